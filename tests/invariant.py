"""Invariant channels made by hand: flows between values whose rows and columns sum to the counts of these values."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from funnel import Alphabet, Joint, Protocol
from funnel.rounding import integer_weights

IntTable = npt.NDArray[np.int64]
# A record is so many units of flow.
UNITS = 12


@st.composite
def flows(draw: st.DrawFn, max_values: int = 4, max_count: int = 6) -> IntTable:
    """Units of flow from value x to value y, shape (a, a); rows and columns sum to UNITS times the counts, all > 0."""
    a = draw(st.integers(2, max_values))
    counts = draw(st.lists(st.integers(1, max_count), min_size=a, max_size=a))
    flow = np.diag(np.array(counts, dtype=np.int64) * UNITS)
    place = st.integers(0, a - 1)
    for _ in range(draw(st.integers(0, 8))):
        i, j, k, m = (draw(place) for _ in range(4))
        if i == k or j == m:
            continue
        amount = draw(st.integers(0, int(min(flow[i, m], flow[k, j]))))
        flow[[i, k], [j, m]] += amount
        flow[[i, k], [m, j]] -= amount
    return flow


def counts_of(flow: IntTable) -> IntTable:
    """The counts of the values, shape (a,)."""
    return np.asarray(flow.sum(axis=1) // UNITS)


def exact_channel(flow: IntTable) -> list[list[Fraction]]:
    """``W[y][x]``, exactly."""
    rows = flow.sum(axis=1)
    a = len(flow)
    return [[Fraction(int(flow[x, y]), int(rows[x])) for x in range(a)] for y in range(a)]


def invariant_protocol(channel: npt.ArrayLike, inputs: Alphabet, counts: npt.ArrayLike) -> Protocol:
    """The protocol of a channel (a, a) whose outputs are its inputs; records outside draw by the counts (a,)."""
    weights = integer_weights(np.asarray(channel, dtype=float))
    marginal = integer_weights(np.asarray(counts, dtype=float)[:, None] / np.sum(counts))[:, 0]
    return Protocol(weights, marginal, inputs, inputs, "invariant")


def protocol_of_flow(flow: IntTable, inputs: Alphabet | None = None) -> Protocol:
    """The protocol of a flow."""
    channel = [[float(entry) for entry in row] for row in exact_channel(flow)]
    return invariant_protocol(channel, inputs or Alphabet.of(None, len(flow), "X"), counts_of(flow))


def joint_of_flow(flow: IntTable, inputs: Alphabet | None = None) -> Joint:
    """The counts of its values, of one secret."""
    return Joint.from_counts([counts_of(flow)], inputs=inputs)
