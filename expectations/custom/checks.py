"""The expectation that a check of the table of checks passes: one class, whose instances the table declares."""

from __future__ import annotations

from typing import Any

from funnel.pipeline.expectations.custom.base import Finding, ReleaseExpectation


class ExpectCheckToPass(ReleaseExpectation):
    """Expect the check of this name to have been made, once, and to have passed.

    A check that was not made is not taken for one that holds.
    """

    check: str

    evidence_table = "checks"
    metric_dependencies = ("evidence.records",)
    success_keys = ("check",)

    @property
    def judged_name(self) -> str:
        """The name of the check."""
        return self.check

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """Look for its line."""
        mine = [line for line in value if line["check"] == self.check]
        if len(mine) != 1:
            return Finding(None, "passed", f"it was made {len(mine)} times: the release lacks what it needs")
        (line,) = mine
        # A failure that is missing comes back from the table as a number that is none.
        return Finding(line["state"], "passed", line["failure"] if isinstance(line["failure"], str) else None)
