"""The draws follow the protocol, input symbol by input symbol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from funnel.findings import draw_consistency
from funnel.pipeline.expectations.custom.base import EvidenceMetric, Finding, ReleaseExpectation, counted
from funnel.pipeline.expectations.custom.channel import Channel, other_protocol


@dataclass(frozen=True)
class MeasuredDraws:
    """Result of the test of draws, with the label of the least likely input; None for records outside the alphabet."""

    p_value: float
    tests: int
    impossible: int
    worst: str | None
    digest: str


class DrawConsistency(EvidenceMetric):
    """P-value of the drawn (input, output) counts under the protocol."""

    metric_name = "draws.consistency"

    @classmethod
    def measure(cls, table: pd.DataFrame, arguments: dict[str, Any]) -> MeasuredDraws:
        """Measure it on the channel table."""
        channel = Channel.read(table)
        found = draw_consistency(channel.drawn, channel.protocol)
        labels = channel.protocol.inputs.labels
        worst = labels[found.worst_input] if found.worst_input < len(labels) else None
        return MeasuredDraws(found.p_value, found.tests, found.impossible, worst, channel.protocol.digest)


class ExpectDrawsToFollowProtocol(ReleaseExpectation):
    """Expect the outputs of the records with each input to be draws from the protocol's law for that input.

    A test on the released marginal alone would pass with the laws of two inputs exchanged. Correct draws fail with a
    probability of at most the significance, however many or few the records: see `funnel.findings.draw_consistency`.
    """

    significance: float
    protocol_digest: str

    evidence_table = "channel"
    metric_dependencies = ("draws.consistency",)
    success_keys = ("significance", "protocol_digest")

    def find(self, value: MeasuredDraws) -> Finding:
        """Compare the p-value, corrected for the number of tests, with the significance."""
        worst = "outside the alphabet" if value.worst is None else f"with input {value.worst!r}"
        failure = None
        if value.digest != self.protocol_digest:
            failure = other_protocol(value.digest, self.protocol_digest)
        elif value.impossible:
            failure = (
                f"{counted(value.impossible, 'record')} with an output that the protocol never gives for their input, "
                f"most of them {worst}"
            )
        elif not value.p_value >= self.significance:
            failure = (
                f"p-value {value.p_value:.3g} is below {self.significance:.3g} over {counted(value.tests, 'test')}; "
                f"the records {worst} are the least likely"
            )
        return Finding(value.p_value, self.significance, failure)
