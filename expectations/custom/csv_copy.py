"""The csv of a release says what its parquet file says."""

from __future__ import annotations

from funnel.pipeline.expectations.custom.claims import ClaimsExpectation


class ExpectCsvToEqualTable(ClaimsExpectation):
    """Expect the csv, read by another reader than it was written with, to hold the same rows in the same order."""

    evidence_table = "csv"
