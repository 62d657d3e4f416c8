"""Outputs were drawn without regard to the secret: given the input, they have nothing to do with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from funnel.alphabet import Alphabet
from funnel.drawn import DrawnCounts
from funnel.findings.independence import Independence, independence
from funnel.pipeline.expectations.custom.base import EvidenceMetric, Finding, ReleaseExpectation, counted
from funnel.pipeline.expectations.custom.channel import Channel, other_protocol
from funnel.pipeline.expectations.drawing import JudgedDrawing, not_left

_WHAT = "counts of secret, input and output"


@dataclass(frozen=True)
class MeasuredIndependence:
    """Result of the test, with the labels of the least likely group; or what is wrong with the counts."""

    found: Independence | None
    worst: str
    wrong: str | None
    digest: str


class SecretIndependence(EvidenceMetric):
    """P-value of the drawn (secret, input, output) counts under the protocol."""

    metric_name = "draws.independence"

    @classmethod
    def measure(cls, table: pd.DataFrame, arguments: dict[str, object]) -> MeasuredIndependence:
        """Measure it on the drawing."""
        judged = JudgedDrawing.read(table)
        drawing, channel = judged.drawing, judged.channel
        digest = channel.protocol.digest
        if drawing.counts is None or drawing.secret is None:
            return MeasuredIndependence(None, "", None, digest)
        if (wrong := _wrong_margin(drawing.counts, channel, drawing.secret)) is not None:
            return MeasuredIndependence(None, "", wrong, digest)
        found = independence(drawing.counts, channel.protocol)
        secrets, inputs = drawing.secret.labels, channel.protocol.inputs.labels
        secret = f"secret {secrets[found.worst_secret]!r}"
        outside = found.worst_input == len(inputs)
        worst = f"{secret} outside the alphabet" if outside else f"{secret} and input {inputs[found.worst_input]!r}"
        return MeasuredIndependence(found, worst, None, digest)


def _wrong_margin(counts: DrawnCounts, channel: Channel, secret: Alphabet) -> str | None:
    """How counts by secret differ from what else is known of the draws; None if they do not."""
    b, a = channel.protocol.size
    joint = channel.joint.read_by(channel.protocol.inputs.columns)
    c = len(joint.secret)
    # Values that the spec lists come in its order, and are counted again in another.
    places = [secret.get(symbol) for symbol in joint.secret.symbols]
    same_secret = secret.columns == joint.secret.columns and sorted(places) == list(range(len(secret)))
    if not same_secret or counts.shape != (c + 1, a + 1, b):
        return "draws were counted by other secrets, inputs or outputs than those of the snapshot and the protocol"
    if not DrawnCounts.of_pairs(counts).agrees_with(channel.drawn):
        return "the counts by secret do not add up to the drawn pairs"
    expected = np.zeros((c + 1, a + 1), dtype=np.int64)
    for x, symbol in enumerate(joint.inputs.symbols):
        place = channel.protocol.inputs.get(symbol)
        expected[places, place if place >= 0 else a] += joint.counts[:, x]
    different = np.abs(counts.inputs - expected)
    if different.any():
        return (
            f"records with {counted(int(np.count_nonzero(different)), 'combination')} of secret and input drew other "
            "than as often as they are in the snapshot"
        )
    return None


class ExpectDrawsToIgnoreTheSecret(ReleaseExpectation):
    """Expect outputs to be draws from the law of their input for every value of the secret: Y ⫫ S given X.

    Inputs and outputs alone would fit a protocol although records of one secret draw differently, if others make up
    for it. Correct draws fail with a probability of at most the significance: see `funnel.findings.independence`.
    """

    significance: float
    protocol_digest: str

    evidence_table = "drawing"
    metric_dependencies = ("draws.independence",)
    success_keys = ("significance", "protocol_digest")

    def find(self, value: MeasuredIndependence) -> Finding:
        """Compare the p-value, corrected for the number of tests, with the significance."""
        if value.digest != self.protocol_digest:
            return Finding(None, self.significance, other_protocol(value.digest, self.protocol_digest))
        if value.wrong is not None:
            return Finding(None, self.significance, value.wrong)
        if value.found is None:
            observed, failure = not_left(_WHAT)
            return Finding(observed, self.significance, failure)
        found, failure = value.found, None
        if found.impossible:
            failure = (
                f"{counted(found.impossible, 'record')} with an output that the protocol never gives for their input, "
                f"most of them with {value.worst}"
            )
        elif not found.p_value >= self.significance:
            failure = (
                f"outputs depend on the secret beyond the input: p-value {found.p_value:.3g} is below "
                f"{self.significance:.3g} over {counted(found.groups, 'combination')} of secret and input; records "
                f"with {value.worst} are the least likely"
            )
        return Finding(found.p_value, self.significance, failure)
