"""Numbers that are drawn within intervals follow from the published records alone."""

from __future__ import annotations

from funnel.pipeline.expectations.custom.claims import ClaimsExpectation


class ExpectNumbersToFollowRecords(ClaimsExpectation):
    """Expect every number to be the one that the published records and the declared intervals make, made again."""

    evidence_table = "drawn_numbers"
