"""The protocol meets the declared bound under the estimated joint law, exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from funnel.guarantees import parse_guarantee
from funnel.pipeline.expectations.custom.base import EvidenceMetric, Finding, ReleaseExpectation
from funnel.pipeline.expectations.custom.channel import Channel, other_protocol


@dataclass(frozen=True)
class MeasuredLevel:
    """The exact level of a protocol: its value in nats, whether the bound holds, and where it is attained."""

    holds: bool
    value: float
    digest: str
    output: str
    secret: str


class ProtocolLevel(EvidenceMetric):
    """The smallest budget for which a guarantee holds, and the exact decision on the integer weights."""

    metric_name = "protocol.level"
    value_keys = ("guarantee",)

    @classmethod
    def measure(cls, table: pd.DataFrame, arguments: dict[str, Any]) -> MeasuredLevel:
        """Measure it on the table of the published channel."""
        channel = Channel.read(table)
        guarantee = parse_guarantee(arguments["guarantee"])
        level = guarantee.level(channel.joint, channel.protocol)
        return MeasuredLevel(
            guarantee.holds(channel.joint, channel.protocol),
            level.value,
            channel.protocol.digest,
            channel.protocol.outputs.labels[level.witness.output],
            channel.joint.secret.labels[level.witness.secret],
        )


class ExpectProtocolLevelToMeetBound(ReleaseExpectation):
    """Expect the protocol of this digest to meet the guarantee, under the estimated joint law of secret and input."""

    guarantee: str
    budget: float
    protocol_digest: str

    evidence_table = "published"
    metric_dependencies = ("protocol.level",)
    success_keys = ("guarantee", "budget", "protocol_digest")

    def find(self, value: MeasuredLevel) -> Finding:
        """Take the exact decision; the level is there to say by how much."""
        observed = value.value if math.isfinite(value.value) else "infinite"
        failure = None
        if value.digest != self.protocol_digest:
            failure = other_protocol(value.digest, self.protocol_digest)
        elif not value.holds:
            excess = _excess(value.value, self.budget)
            failure = f"{excess} nats, at output {value.output!r} and secret {value.secret!r}"
        return Finding(observed, self.budget, failure)


def _excess(level: float, budget: float) -> str:
    gap = level - budget
    if math.isinf(level):
        return f"level is infinite instead of at most {budget!r}"
    if gap <= 0:
        # The decision keeps clear of every rounding of e^ε, so a level can be refused that prints like the bound.
        return f"level {level!r} is not provably within the declared {budget!r}"
    if gap >= 1e-6:
        return f"level {level:.6f} exceeds the declared {budget!r} by {gap:.6f}"
    return f"level {level!r} exceeds the declared {budget!r} by {gap:.2e}"
