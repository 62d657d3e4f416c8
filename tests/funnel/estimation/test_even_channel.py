"""Even channel: products and shares are those of the table of all records that it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from funnel.alphabet import Alphabet
from funnel.estimation import plain_counts
from funnel.estimation.even_channel import EvenChannel
from funnel.estimation.plain_counts import PlainCounts
from funnel.joint import FloatArray

PARTS = np.array([0, 0, 0, 1, 1, 3, 3])
COUNTS = np.array([5, 1, 2, 4, 4, 1, 6])
# Nobody was published of part 2: what would go there stays.
MOVES = np.array([[0.7, 0.3, 0.1, 0.0], [0.1, 0.5, 0.2, 0.2], [0.1, 0.1, 0.4, 0.1], [0.1, 0.1, 0.3, 0.7]])
CHANNEL = EvenChannel(MOVES, PARTS, COUNTS)


def table() -> FloatArray:
    """Record by record: whom everybody of the other parts takes the place of."""
    found = np.zeros((7, 7))
    for x, part in enumerate(PARTS):
        for y, other in enumerate(PARTS):
            if other != part:
                found[y, x] = MOVES[other, part] * COUNTS[y] / COUNTS[other == PARTS].sum()
        found[x, x] = 1 - found[:, x].sum()
    return found


def test_products_are_those_of_the_table() -> None:
    shares, rows = COUNTS / COUNTS.sum(), np.random.default_rng(1).normal(size=(3, 7))
    assert CHANNEL @ shares == pytest.approx(table() @ shares)
    assert rows @ CHANNEL == pytest.approx(rows @ table())
    assert csr_array(rows) @ CHANNEL == pytest.approx(rows @ table())
    assert CHANNEL.diagonal() == pytest.approx(np.diagonal(table()))


def test_counts_are_those_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variances, r and what stays in a column; also where rows of statistics are taken a few at a time."""
    values = Alphabet(("a", "b"), tuple((f"a{x % 3}", f"b{x}") for x in range(7)))
    even, plain = (PlainCounts(values, COUNTS, channel) for channel in (CHANNEL, csr_array(table())))
    rows = np.random.default_rng(2).normal(size=(5, 7))
    for entries in (7, 1000):
        monkeypatch.setattr(plain_counts, "_ENTRIES", entries)
        for some in (rows, csr_array(rows)):
            assert np.array(even.both_variances(some)) == pytest.approx(np.array(plain.both_variances(some)))
    assert even.expected == pytest.approx(plain.expected)
    assert even.unchanged == pytest.approx(plain.unchanged)
    for columns in (("a",), ("b",), ("a", "b")):
        assert even.stays(columns) == pytest.approx(plain.stays(columns))
    assert even.aimed(rows, True).covariance == pytest.approx(plain.aimed(rows, True).covariance)
