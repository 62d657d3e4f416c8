"""Random protocols over random joint distributions, sparse ones and outputs that never occur included."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from funnel import Alphabet, Joint, Protocol
from funnel.joint import FloatArray
from funnel.protocol import WORD_BITS
from funnel.rounding import integer_weights, marginal_weights
from tests.strategies import joints


def protocol_of(joint: Joint, matrix: FloatArray) -> Protocol:
    """The protocol of a channel, shape (b, number of inputs read), over the joint's own inputs."""
    weights = integer_weights(np.asarray(matrix, dtype=float))
    outputs = Alphabet.of([f"y{y}" for y in range(len(weights))], len(weights), "X")
    return Protocol(weights, marginal_weights(joint, weights), joint.inputs, Alphabet(("X",), outputs.symbols))


@st.composite
def channels(draw: st.DrawFn, reads_secret: bool | None = None, max_secrets: int = 4) -> tuple[Joint, Protocol]:
    """A joint distribution and a random protocol, sparse or dense, over its inputs or over secret and inputs."""
    joint = draw(joints(max_secrets=max_secrets))
    read = joint.with_secret() if (draw(st.booleans()) if reads_secret is None else reads_secret) else joint
    b = draw(st.integers(1, 4))
    columns = st.lists(st.one_of(st.just(0.0), st.floats(0.01, 1)), min_size=b, max_size=b).filter(any)
    matrix = np.array([draw(columns) for _ in range(len(read.inputs))]).T
    return joint, protocol_of(read, matrix / matrix.sum(axis=0))


def full_distribution(joint: Joint, protocol: Protocol) -> FloatArray:
    """P(s, x, y) written out, shape (c, a, b)."""
    c, a = joint.counts.shape
    reads_secret = protocol.inputs.columns != joint.inputs.columns
    distribution = np.zeros((c, a, len(protocol.outputs)))
    for s in range(c):
        for x in range(a):
            symbol = joint.secret.symbols[s] * reads_secret + joint.inputs.symbols[x]
            column = protocol.weights[:, protocol.inputs.index(symbol)]
            distribution[s, x] = joint.counts[s, x] / joint.n * (column / 2.0**WORD_BITS)
    return distribution
