"""Another reader finds the same records in the released table."""

from __future__ import annotations

from funnel.pipeline.expectations.custom.claims import ClaimsExpectation


class ExpectSecondReaderToAgree(ClaimsExpectation):
    """Expect the released table to hold the same number of every output to a reader of another make."""

    evidence_table = "second_reader"
