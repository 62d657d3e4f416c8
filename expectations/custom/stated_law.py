"""The outputs of a released table occur about as often as its protocol.json lets one expect."""

from __future__ import annotations

import math
from typing import Any

from funnel.pipeline.expectations.custom.base import Finding, ReleaseExpectation, counted
from funnel.wording import listed


class ExpectOutputsToFollowStatedLaw(ReleaseExpectation):
    """Expect the count of every output to be one that the stated frequencies can give.

    The records of a release are drawn independently, so the count of an output is a sum of independent indicators whose
    mean is n P(y), and P(y) lies between what the rounded frequencies allow. Bernstein's inequality bounds how far it
    can be from its mean: a table that was drawn by its protocol fails with at most the significance, whatever its size.
    """

    labels: list[str]
    least: list[float]
    most: list[float]
    significance: float

    evidence_table = "outputs"
    metric_dependencies = ("evidence.records",)
    success_keys = ("labels", "least", "most", "significance")

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """List the outputs that occur too often or too rarely."""
        released = {int(line["output"]): int(line["records"]) for line in value}
        n = sum(released.values())
        log = math.log(2 * len(self.labels) / self.significance)
        wrong = [
            label
            for y, (label, low, high) in enumerate(zip(self.labels, self.least, self.most, strict=True))
            if not n * low - _reach(n, low, log) <= released.get(y, 0) <= n * high + _reach(n, high, log)
        ]
        words = f"{counted(len(wrong), 'output')} not as often as the protocol gives them: {listed(wrong[:3])}"
        return Finding(len(wrong), 0, words if wrong else None)


def _reach(n: int, p: float, log: float) -> float:
    """How far a sum of n independent indicators of mean p is from its mean with a probability of at most e^-log."""
    return log / 3 + math.sqrt(log * log / 9 + 2 * n * p * (1 - p) * log)
