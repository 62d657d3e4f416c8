"""What all expectations on the claims of a file share: every declared claim is there, once, and true."""

from __future__ import annotations

from typing import Any

from funnel.pipeline.expectations.custom.base import Finding, ReleaseExpectation, counted, named

_TOLD = 3


class ClaimsExpectation(ReleaseExpectation):
    """Expect every claim to hold, and no other claims to be there than those declared.

    A claim that was not looked at is not taken for one that holds.
    """

    claims: list[str]

    metric_dependencies = ("evidence.records",)
    success_keys = ("claims",)

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """Count the claims that do not hold, and say why for the first few."""
        present = [line["claim"] for line in value]
        missing = [name for name in self.claims if name not in present]
        further = [name for name in dict.fromkeys(present) if name not in self.claims or present.count(name) > 1]
        # A failure that is missing comes back from the table as a number that is none.
        wrong = [(line["claim"], line["failure"]) for line in value if isinstance(line["failure"], str)]
        parts = [f"{name} {failure}" for name, failure in wrong[:_TOLD]]
        if len(wrong) > _TOLD:
            parts.append(f"{len(wrong) - _TOLD:,} more do not hold")
        if missing:
            parts.append(f"{counted(len(missing), 'claim')} not looked at: {named(missing)}")
        if further:
            parts.append(f"{counted(len(further), 'claim')} not declared: {named(further)}")
        return Finding(len(self.claims) - len(missing) - len(wrong), len(self.claims), "; ".join(parts) or None)
