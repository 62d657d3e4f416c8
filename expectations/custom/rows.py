"""A release has as many records as the snapshot it was drawn from."""

from __future__ import annotations

from typing import Any

from funnel.pipeline.expectations.custom.base import Finding, ReleaseExpectation, counted
from funnel.pipeline.expectations.table_evidence import ROWS


class ExpectReleasedRowsToEqualSnapshot(ReleaseExpectation):
    """Expect the number of records in the file, as read and as its footer says, to be that of the snapshot."""

    rows: int

    evidence_table = "file"
    metric_dependencies = ("evidence.records",)
    success_keys = ("rows",)

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """Compare both numbers with the snapshot's."""
        read, announced = int(value[0][ROWS]), int(value[0]["footer_rows"])
        failure = None
        if read != self.rows:
            more = "more" if read > self.rows else "fewer"
            failure = f"row count {read:,} instead of {self.rows:,}: {abs(read - self.rows):,} {more}"
        elif announced != read:
            failure = f"the file announces {counted(announced, 'record')} but holds {read:,}"
        return Finding(read, self.rows, failure)
