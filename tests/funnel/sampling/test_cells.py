"""Counts of drawn cells: the same as row by row, however many batches there are, in a table or sorted."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel import DataError
from funnel.drawn import DrawnCounts
from funnel.sampling import draw_counts
from funnel.sampling.draw_counts import CellCounts

Rows = list[tuple[int, int, int]]


@st.composite
def drawn_rows(draw: st.DrawFn) -> tuple[tuple[int, int, int], Rows]:
    c, a, b = (draw(st.integers(1, 5)) for _ in "sxy")
    row = st.tuples(st.integers(-1, c - 1), st.integers(-1, a - 1), st.integers(0, b - 1))
    return (c, a, b), draw(st.lists(row, max_size=40))


@given(drawn_rows(), st.integers(1, 50), st.integers(1, 9), st.sampled_from([np.int8, np.int64]), st.booleans())
def test_counts_are_those_of_a_loop_over_rows(
    drawn: tuple[tuple[int, int, int], Rows], cut: int, held: int, kind: type, sparse: bool
) -> None:
    (c, a, b), rows = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draw_counts, "_LEAST_HELD", held)
        patch.setattr(draw_counts, "_MOST_HELD", held)
        patch.setattr(draw_counts, "_MAX_TABLE", 0 if sparse else 1 << 22)
        counts, pairs = CellCounts(a, b, c), CellCounts(a, b)
    for start in range(0, len(rows), cut):
        some = np.array(rows[start : start + cut])
        inputs, outputs = some[:, 1].astype(kind), some[:, 2].astype(np.uint8)
        counts.add(inputs, outputs, some[:, 0].astype(np.int64))
        pairs.add(inputs, outputs)
        # Looking in between changes nothing.
        assert counts.counts().n == min(start + cut, len(rows))
    expected = collections.Counter((s % (c + 1), x % (a + 1), y) for s, x, y in rows)
    found = counts.counts()
    assert found.shape == (c + 1, a + 1, b)
    told = [(s, x, dict(zip(ys.tolist(), ns.tolist(), strict=True))) for s, x, ys, ns in found.rows()]
    assert {(s, x, y): n for s, x, row in told for y, n in row.items()} == expected
    assert (found.pairs == pairs.counts().pairs).all()
    assert found.inputs.sum() == len(rows)
    for s in range(c + 1):
        for x in range(a + 1):
            assert found.inputs[s, x] == sum(count for cell, count in expected.items() if cell[:2] == (s, x))


def test_pairs_are_counted_with_the_outsiders_last() -> None:
    inputs, outputs = np.array([0, 1, 1, -1, 2, -1]), np.array([3, 0, 0, 1, 3, 1], dtype=np.uint8)
    expected = np.zeros((4, 4), dtype=np.int64)
    expected[0, 3] = expected[2, 3] = 1
    expected[1, 0] = expected[3, 1] = 2
    counts = CellCounts(3, 4)
    counts.add(inputs, outputs)
    np.testing.assert_array_equal(counts.counts().pairs, expected)
    # Codes of a byte must not wrap around in the product.
    wide = CellCounts(200, 200)
    wide.add(np.array([199]), np.array([199], dtype=np.uint8))
    assert wide.counts().pairs[199, 199] == 1


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [([2], [0], "input codes"), ([-2], [0], "input codes"), ([0], [2], "output codes"), ([0, 1], [0], "do not fit")],
)
def test_cells_outside_their_alphabets_are_refused(inputs: list[int], outputs: list[int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        CellCounts(2, 2).add(np.array(inputs), np.array(outputs))


@pytest.mark.parametrize("secrets", [0, 2])
def test_all_rows_are_counted_by_secret_or_none(secrets: int) -> None:
    codes = None if secrets else np.zeros(1, dtype=np.int64)
    with pytest.raises(DataError, match="by secret for all rows or for none"):
        CellCounts(2, 2, secrets).add(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), codes)


@pytest.mark.parametrize(
    ("places", "records"), [([1, 0], [1, 1]), ([0, 0], [1, 1]), ([0], [0]), ([-1], [1]), ([12], [1]), ([0, 1], [1])]
)
def test_no_counts_are_not_taken_for_some(places: list[int], records: list[int]) -> None:
    with pytest.raises(DataError, match="counts of draws"):
        DrawnCounts((2, 3, 2), np.array(places), np.array(records))
