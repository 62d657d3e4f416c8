"""The categories of a released column are exactly those declared."""

from __future__ import annotations

from typing import Any

from funnel.pipeline.expectations.custom.base import Finding, ReleaseExpectation, counted, named


class ExpectReleasedCategoriesToEqualDeclared(ReleaseExpectation):
    """Expect the categories of a column to be the declared ones.

    A category that the dictionary of the file declares is published, whether or not a record has it. So the
    dictionary lists all declared categories too: which of them nobody has would otherwise show in the file's types.
    """

    column: str
    categories: list[str]

    evidence_table = "categories"
    metric_dependencies = ("evidence.records",)
    success_keys = ("column", "categories")

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """Compare as sets; undeclared categories are named only where they are values of the source's alphabet."""
        mine = [line for line in value if line["column"] == self.column]
        if not any(line["readable"] for line in mine):
            return Finding(None, len(self.categories), f"column {self.column!r} cannot be read as categories")
        declared = set(self.categories)
        present = {line["category"] for line in mine}
        undeclared = [line for line in mine if line["category"] not in declared]
        missing = [name for name in self.categories if name not in present]
        parts = []
        if undeclared:
            records = sum(int(line["records"]) for line in undeclared)
            known = [line["category"] for line in undeclared if isinstance(line["category"], str)]
            names = f": {named(known)}" if known else ""
            parts.append(f"{_categories(len(undeclared), 'undeclared')} on {counted(records, 'record')}{names}")
        if missing:
            parts.append(f"{_categories(len(missing), 'declared')} missing: {named(missing)}")
        failure = f"column {self.column!r}: {'; '.join(parts)}" if parts else None
        return Finding(len(mine), len(self.categories), failure)


def _categories(number: int, kind: str) -> str:
    return counted(number, f"{kind} category", f"{kind} categories")
