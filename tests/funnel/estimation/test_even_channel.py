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
# The same with a secret that is published: people of a part move alike, and of those that stay it changes.
WITH_SECRET = np.zeros((2, 4, 2, 4))
for h, k in np.ndindex(4, 4):
    changes = [[0.8, 0.3], [0.2, 0.7]] if h == k else [[0.6, 0.6], [0.4, 0.4]]
    WITH_SECRET[:, h, :, k] = MOVES[h, k] * np.array(changes)
CHANNELS = [EvenChannel(moves, PARTS, COUNTS) for moves in (MOVES[np.newaxis, :, np.newaxis], WITH_SECRET)]
# The same for donors who are followed: of records that keep their part some are anybody's of it.
CHANNELS.append(EvenChannel(MOVES[np.newaxis, :, np.newaxis], PARTS, COUNTS, kept=0.6))


def table(channel: EvenChannel) -> FloatArray:
    """Record by record: whom everybody of the other parts takes the place of, and what becomes of the secret."""
    moves, c = channel.moves, len(channel.moves)
    found = np.zeros((c, 7, c, 7))
    for s, x, t, y in np.ndindex(c, 7, c, 7):
        anybody = moves[t, PARTS[y], s, PARTS[x]] * COUNTS[y] / COUNTS[PARTS[y] == PARTS].sum()
        found[t, y, s, x] = anybody * (1 if PARTS[x] != PARTS[y] else 1 - channel.kept)
        found[t, y, s, x] += channel.kept * moves[t, PARTS[x], s, PARTS[x]] * (x == y)
    for s, x in np.ndindex(c, 7):
        found[s, x, s, x] += 1 - found[:, :, s, x].sum()
    return found.reshape(7 * c, 7 * c)


@pytest.mark.parametrize("channel", CHANNELS)
def test_products_are_those_of_the_table(channel: EvenChannel) -> None:
    size = len(table(channel))
    shares, rows = np.arange(1, size + 1) / 9, np.random.default_rng(1).normal(size=(3, size))
    assert channel @ shares == pytest.approx(table(channel) @ shares)
    assert rows @ channel == pytest.approx(rows @ table(channel))
    assert csr_array(rows) @ channel == pytest.approx(rows @ table(channel))
    # But for donors of the own part who are like the record.
    alike = (1 - channel.kept) * np.tile(
        MOVES.diagonal()[PARTS] * COUNTS / np.bincount(PARTS, COUNTS)[PARTS], size // 7
    )
    assert channel.diagonal() == pytest.approx(np.diagonal(table(channel)) - alike)


@pytest.mark.parametrize("channel", CHANNELS)
def test_counts_are_those_of_the_table(channel: EvenChannel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variances, r and what stays in a column; also where rows of statistics are taken a few at a time."""
    size = len(table(channel))
    values = Alphabet(("a", "b"), tuple((f"a{x % 3}", f"b{x}") for x in range(size)))
    counts = np.arange(1, size + 1)
    even, plain = (PlainCounts(values, counts, one) for one in (channel, csr_array(table(channel))))
    rows = np.random.default_rng(2).normal(size=(5, size))
    for entries in (7, 1000):
        monkeypatch.setattr(plain_counts, "_ENTRIES", entries)
        for some in (rows, csr_array(rows)):
            assert np.array(even.both_variances(some)) == pytest.approx(np.array(plain.both_variances(some)))
    assert even.expected == pytest.approx(plain.expected)
    assert (even.unchanged <= plain.unchanged + 1e-12).all()
    assert channel.kept < 1 or even.unchanged == pytest.approx(plain.unchanged)
    for columns in (("a",), ("b",), ("a", "b")):
        assert even.stays(columns) == pytest.approx(plain.stays(columns))
    assert even.aimed(rows, True).covariance == pytest.approx(plain.aimed(rows, True).covariance)
