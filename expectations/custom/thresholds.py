"""The sampler gives way from one output to the next exactly where the weights say."""

from __future__ import annotations

from typing import Any

import pandas as pd

from funnel.findings.probe import expected_probe
from funnel.pipeline.expectations.custom.base import EvidenceMetric, Finding, ReleaseExpectation
from funnel.pipeline.expectations.drawing import JudgedDrawing, not_left


class Thresholds(EvidenceMetric):
    """What the sampler answered at its thresholds, and what it had to answer."""

    metric_name = "draws.thresholds"

    @classmethod
    def measure(cls, table: pd.DataFrame, arguments: dict[str, Any]) -> tuple[str | None, str]:
        """Measure it on the drawing."""
        judged = JudgedDrawing.read(table)
        return judged.drawing.probe, expected_probe(judged.channel.protocol)


class ExpectSamplerToMeetThresholds(ReleaseExpectation):
    """Expect the right output on both sides of every threshold; draws could not show one that is off by 2^-63."""

    protocol_digest: str

    evidence_table = "drawing"
    metric_dependencies = ("draws.thresholds",)
    success_keys = ("protocol_digest",)

    def find(self, value: tuple[str | None, str]) -> Finding:
        """Compare the digests of the answers."""
        answered, expected = value
        if answered is None:
            observed, failure = not_left("the answers of its sampler at the thresholds")
            return Finding(observed, expected, failure)
        failure = None
        if answered != expected:
            failure = "the sampler does not give way from one output to the next where the weights of the protocol say"
        return Finding(answered, expected, failure)
