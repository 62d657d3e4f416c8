"""SRLIP and attribute protection by definition, in fractions, and tiny joint distributions for them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from funnel import Alphabet, Joint
from funnel.bounds import Bounds
from funnel.joint import IntArray
from funnel.protocol import DENOMINATOR, WeightArray

PUBLISHED = Alphabet(("size", "colour"), tuple(itertools.product(("s", "m"), ("red", "blue"))))
Table = list[list[int]]


@st.composite
def tables(draw: st.DrawFn, largest: int = 6, secrets: int = 3) -> Joint:
    """Two or three secrets by two published columns of two values each, zeros among the counts."""
    c = draw(st.integers(2, secrets))
    cells = st.one_of(st.just(0), st.integers(0, largest))
    counts = draw(st.lists(st.lists(cells, min_size=4, max_size=4), min_size=c, max_size=c))
    if not any(map(any, counts)):
        counts[0][0] = 1
    return Joint.from_counts(counts, inputs=PUBLISHED)


@st.composite
def noisy_tables(draw: st.DrawFn) -> Joint:
    """The same, few records known up to one in some cells and totals."""
    joint = draw(tables(largest=2, secrets=2))
    c = len(joint.secret)
    slack = st.lists(st.lists(st.integers(0, 1), min_size=4, max_size=4), min_size=c, max_size=c)
    lower = np.maximum(joint.counts - np.array(draw(slack)), 0)
    upper = joint.counts + np.array(draw(slack))
    totals = joint.counts.sum(axis=1)
    off = draw(st.integers(0, 4))
    return replace(joint, bounds=Bounds(lower, upper, np.stack([np.maximum(totals - off, 0), totals + off], 1), 0.1))


@st.composite
def channels(draw: st.DrawFn, inputs: int) -> WeightArray:
    """Weights (2 or 3, inputs) in eighths, zeros among them."""
    b = draw(st.integers(2, 3))
    shares = st.lists(st.sampled_from([0, 1, 1, 2, 3, 4]), min_size=b - 1, max_size=b - 1)
    columns = [[*column, 8 - sum(column)] for column in draw(st.lists(shares, min_size=inputs, max_size=inputs))]
    return np.array(columns, dtype=np.uint64).T * np.uint64(DENOMINATOR // 8)


def tables_within(bounds: Bounds) -> Iterator[IntArray]:
    """Every table of counts within bounds that has a record."""
    ranges = [range(low, high + 1) for low, high in zip(bounds.lower.ravel(), bounds.upper.ravel(), strict=True)]
    tables = np.array(list(itertools.product(*ranges))).reshape(-1, *bounds.shape)
    sums = tables.sum(axis=2)
    within = ((bounds.totals[:, 0] <= sums) & (sums <= bounds.totals[:, 1])).all(axis=1)
    yield from tables[within & sums.any(axis=1)]


_ALIKE = {
    known: [
        [u for u, symbol in enumerate(PUBLISHED.symbols) if tuple(symbol[k] for k in known) == values]
        for values in sorted({tuple(symbol[k] for k in known) for symbol in PUBLISHED.symbols})
    ]
    for known in ((), (0,), (1,), (0, 1))
}
"""The places of the values that are alike in some columns, for every set of columns."""


def worst_known(
    counts: Table, weights: WeightArray, reads_secret: bool, sets: list[tuple[int, ...]]
) -> Fraction | None:
    """The largest P(y|s,x_J)/P(y|x_J), or its inverse, for some sets J of the two columns; None if infinite.

    counts: c × 4; weights: (b, 4), or (b, 4 c) by (s, u).
    """
    # Numerator and denominator, in whole numbers: thousands of tables are looked at.
    high, low = 1, 1
    for row in (weights // np.gcd.reduce(weights, axis=None)).tolist():
        for us in (us for known in sets for us in _ALIKE[known]):
            sizes = [sum([cells[u] for u in us]) for cells in counts]
            masses = [
                sum([cells[u] * row[s * 4 + u if reads_secret else u] for u in us]) for s, cells in enumerate(counts)
            ]
            people, told = sum(sizes), sum(masses)
            for size, mass in zip(sizes, masses, strict=True):
                if not size or not told:
                    continue
                if not mass:
                    return None
                above, below = sorted((mass * people, size * told), reverse=True)
                if above * low > high * below:
                    high, low = above, below
    return Fraction(high, low)


PROPER: list[tuple[int, ...]] = [(), (0,), (1,)]


def worst_srlip(counts: Table, weights: WeightArray, reads_secret: bool) -> Fraction | None:
    """Of SRLIP; all columns together where the channel reads the secret."""
    return worst_known(counts, weights, reads_secret, [*PROPER, (0, 1)] if reads_secret else PROPER)


def worst_labels(secrets: int, weights: WeightArray) -> Fraction | None:
    """The largest T(y|s,u)/T(y|s',u) over all s, s' and u."""
    worst = Fraction(1)
    for row in weights.tolist():
        for u in range(4):
            for s, t in itertools.permutations(range(secrets), 2):
                high, low = row[s * 4 + u], row[t * 4 + u]
                if high and not low:
                    return None
                if high:
                    worst = max(worst, Fraction(high, low))
    return worst


def worst_attribute(counts: Table, weights: WeightArray, reads_secret: bool) -> Fraction | None:
    """Of attribute protection."""
    known = worst_known(counts, weights, reads_secret, PROPER)
    if not reads_secret:
        return known
    labels = worst_labels(len(counts), weights)
    return None if known is None or labels is None else max(known, labels)
