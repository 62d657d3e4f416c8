"""Records were drawn for every input symbol as often as it is in the snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from funnel.pipeline.expectations.custom.base import EvidenceMetric, Finding, ReleaseExpectation, counted
from funnel.pipeline.expectations.custom.channel import Channel, snapshot_inputs

OUTSIDE = "records outside the alphabet"


@dataclass(frozen=True)
class MeasuredInputs:
    """Number of draws, and by input of the protocol the draws less the records of the snapshot, where they differ."""

    draws: int
    inputs: int
    gaps: dict[str, int]


class DrawnInputs(EvidenceMetric):
    """How the draws by input symbol differ from the snapshot, records outside the protocol's alphabet included."""

    metric_name = "draws.inputs"

    @classmethod
    def measure(cls, table: pd.DataFrame, arguments: dict[str, Any]) -> MeasuredInputs:
        """Measure it on the channel table."""
        channel = Channel.read(table)
        gaps = (channel.drawn.by_input - snapshot_inputs(channel)).tolist()
        names = [*(f"input {label!r}" for label in channel.protocol.inputs.labels), OUTSIDE]
        different = {name: gap for name, gap in zip(names, gaps, strict=True) if gap}
        return MeasuredInputs(channel.drawn.n, len(names), different)


class ExpectDrawnInputsToEqualSnapshot(ReleaseExpectation):
    """Expect as many draws for every input symbol as the snapshot has records with it: each record drew once."""

    rows: int

    evidence_table = "channel"
    metric_dependencies = ("draws.inputs",)
    success_keys = ("rows",)

    def find(self, value: MeasuredInputs) -> Finding:
        """List the inputs that drew more or less often; how many records have an input stays internal."""
        failure = None
        if value.gaps:
            examples = ", ".join(
                f"{name} has {counted(abs(gap), 'draw')} too {'many' if gap > 0 else 'few'}"
                for name, gap in list(value.gaps.items())[:3]
            )
            failure = (
                f"{len(value.gaps):,} of {value.inputs:,} inputs drew other than as often as they occur: {examples}"
            )
        elif value.draws != self.rows:
            failure = f"{counted(value.draws, 'draw')} for a snapshot of {self.rows:,}"
        return Finding(value.draws, self.rows, failure)
