"""A released file holds what was drawn: as many records of every output."""

from __future__ import annotations

from typing import Any

from funnel.pipeline.expectations.custom.base import Finding, ReleaseExpectation, counted


class ExpectReleasedCountsToEqualDrawn(ReleaseExpectation):
    """Expect the file to hold every output exactly as often as it was drawn.

    Only then do tests on what was drawn say anything about what is published.
    """

    labels: list[str]
    drawn: list[int]

    evidence_table = "outputs"
    metric_dependencies = ("evidence.records",)
    success_keys = ("labels", "drawn")

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """Compare output by output."""
        released = {int(line["output"]): int(line["records"]) for line in value}
        differences = [
            (label, released.get(y, 0) - drawn)
            for y, (label, drawn) in enumerate(zip(self.labels, self.drawn, strict=True))
            if released.get(y, 0) != drawn
        ]
        failure = None
        if differences:
            examples = ", ".join(
                f"{label!r} has {counted(abs(gap), 'record')} {'more' if gap > 0 else 'fewer'} than were drawn"
                for label, gap in differences[:3]
            )
            failure = f"{len(differences):,} of {counted(len(self.labels), 'output')} with another count: {examples}"
        return Finding(len(differences), 0, failure)
