"""Every column of a release is a dictionary of strings."""

from __future__ import annotations

from typing import Any

from funnel.pipeline.expectations.custom.base import Finding, ReleaseExpectation, counted


class ExpectReleasedColumnsToBeCategories(ReleaseExpectation):
    """Expect every column of the file to have the Arrow type ``dictionary<string>``, so that readers get categories."""

    columns: list[str]

    evidence_table = "columns"
    metric_dependencies = ("evidence.records",)
    success_keys = ("columns",)

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """Count the published columns of another type; others are another expectation's matter."""
        present = {column["name"]: column for column in value}
        wrong = [name for name in self.columns if name in present and not present[name]["is_category"]]
        examples = ", ".join(f"{name!r} is {present[name]['type']}" for name in wrong[:3])
        failure = f"{counted(len(wrong), 'column')} of another type than dictionary<string>: {examples}"
        types = {name: present[name]["type"] for name in self.columns if name in present}
        return Finding(types, "dictionary<string>", failure if wrong else None)
