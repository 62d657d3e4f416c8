"""The columns of a release are those declared, in their order."""

from __future__ import annotations

from typing import Any

from funnel.pipeline.expectations.custom.base import Finding, ReleaseExpectation, counted, named


class ExpectReleasedColumnsToEqualDeclared(ReleaseExpectation):
    """Expect the columns of the file to be the published columns, each once and in order."""

    columns: list[str]

    evidence_table = "columns"
    metric_dependencies = ("evidence.records",)
    success_keys = ("columns",)

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """Compare the names with the declared ones."""
        present = [column["name"] for column in value]
        missing = [name for name in self.columns if name not in present]
        further = [name for name in dict.fromkeys(present) if name not in self.columns]
        repeated = [name for name in self.columns if present.count(name) > 1]
        parts = [
            f"{counted(len(names), 'column')} {what}: {named(names)}"
            for names, what in (
                (missing, "missing"),
                (further, "too many"),
                (repeated, "there more than once"),
            )
            if names
        ]
        if not parts and present != self.columns:
            parts = [f"the columns are in the order {named(present)} instead of {named(self.columns)}"]
        return Finding(present, self.columns, "; ".join(parts) or None)
