"""Random joint distributions for property tests, the awkward kinds included."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from funnel import Joint

CELLS = st.one_of(st.just(0), st.integers(1, 30), st.integers(1, 10**5))


@st.composite
def joints(draw: st.DrawFn, max_secrets: int = 4, max_inputs: int = 5, min_inputs: int = 1) -> Joint:
    """Counts with zero cells, unseen secrets and inputs, one dominant symbol, proportional columns, rare secrets."""
    c = draw(st.integers(1, max_secrets))
    a = draw(st.integers(min_inputs, max_inputs))
    counts = np.array(draw(st.lists(st.lists(CELLS, min_size=a, max_size=a), min_size=c, max_size=c)), dtype=np.int64)
    kind = draw(st.sampled_from(["plain", "plain", "dominant", "deterministic", "proportional", "rare secret"]))
    if kind == "dominant":
        counts[:, 0] += 10**6
    elif kind == "deterministic":
        counts = np.where(np.arange(a) % c == np.arange(c)[:, None], counts + 1000, counts % 2)
    elif kind == "proportional" and a > 1:
        counts[:, -1] = 3 * counts[:, 0]
    elif kind == "rare secret":
        counts[0] = np.minimum(counts[0], 1)
        counts[1:] *= 100
    if counts.sum() == 0:
        counts[0, 0] = 1
    return Joint.from_counts(counts)


budgets = st.one_of(st.sampled_from([0.01, 0.5, 1.0, 2.0]), st.floats(0.001, 6))
