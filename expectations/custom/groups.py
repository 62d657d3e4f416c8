"""What is expected of a release whose columns are published in groups, beside what is expected of any."""

from __future__ import annotations

from funnel.pipeline.expectations.custom.claims import ClaimsExpectation


class ExpectGroupsToBeWellFormed(ClaimsExpectation):
    """Expect groups as in the spec, weights that add up, names that are the sets they mix, and enough people."""

    evidence_table = "grouped_form"


class ExpectFileToHoldTexts(ClaimsExpectation):
    """Expect the published columns as categories of the texts of the protocol, and nothing else in the file."""

    evidence_table = "grouped_file"


class ExpectRowsToFollowProtocol(ClaimsExpectation):
    """Expect every text, pair of texts and record as often as the protocol gives it to the people of the source."""

    evidence_table = "grouped_table"


class ExpectStagesToBeDrawnByWeights(ClaimsExpectation):
    """Expect each record to draw at every stage by the weights of its class, and without regard to its secret."""

    evidence_table = "grouped_draws"


class ExpectOrderToBeAsDeclared(ClaimsExpectation):
    """Expect an order of the rows that tells nothing, or that of the source where the spec asks for it."""

    evidence_table = "grouped_order"


class ExpectWordsOfStagesToBeRandom(ClaimsExpectation):
    """Expect a uniform random word for every record and stage, and none that was used before."""

    evidence_table = "grouped_words"


class ExpectChannelsToFollowProtocol(ClaimsExpectation):
    """Expect the effective channel of every column and pair as it follows from weights and counts, and rounded."""

    evidence_table = "channels"
