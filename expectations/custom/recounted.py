"""The counts that a release was made from are those of its source."""

from __future__ import annotations

from funnel.pipeline.expectations.custom.claims import ClaimsExpectation


class ExpectCountsToEqualRecount(ClaimsExpectation):
    """Expect the counts of (secret, input), and the alphabets, to be those counted again from the source."""

    evidence_table = "recount"
