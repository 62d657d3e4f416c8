"""Every record of a release has a value in every column."""

from __future__ import annotations

from typing import Any

from funnel.pipeline.expectations.custom.base import Finding, ReleaseExpectation, counted


class ExpectReleasedColumnsToHoldNoNulls(ReleaseExpectation):
    """Expect no more nulls in any column than allowed (none): a protocol always gives an output."""

    allowed: int

    evidence_table = "columns"
    metric_dependencies = ("evidence.records",)
    success_keys = ("allowed",)

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """Count the nulls by column."""
        nulls = {column["name"]: int(column["nulls"]) for column in value if column["nulls"] > self.allowed}
        examples = ", ".join(f"{name!r} has {counted(count, 'null')}" for name, count in list(nulls.items())[:3])
        failure = f"{counted(len(nulls), 'column')} with nulls: {examples}"
        return Finding(sum(nulls.values()), self.allowed, failure if nulls else None)
