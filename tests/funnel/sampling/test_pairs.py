"""Counts of pairs: the same as row by row, however many batches there are."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel import DataError
from funnel.sampling import PairCounts, count_pairs, pairs


@given(
    st.integers(1, 5).flatmap(
        lambda a: st.tuples(
            st.just(a),
            st.integers(1, 5).flatmap(
                lambda b: st.tuples(
                    st.just(b), st.lists(st.tuples(st.integers(-1, a - 1), st.integers(0, b - 1)), max_size=40)
                )
            ),
        )
    ),
    st.integers(1, 50),
    st.integers(1, 9),
    st.sampled_from([np.int8, np.int64]),
)
def test_counts_are_those_of_a_loop_over_rows(
    drawn: tuple[int, tuple[int, list[tuple[int, int]]]], cut: int, held: int, kind: type
) -> None:
    a, (b, rows) = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "_LEAST_HELD", held)
        patch.setattr(pairs, "_MOST_HELD", held)
        counts = PairCounts(a, b)
    for start in range(0, len(rows), cut):
        some = np.array(rows[start : start + cut])
        counts.add(some[:, 0].astype(kind), some[:, 1].astype(np.uint8))
        # Looking in between changes nothing.
        assert counts.table().sum() == min(start + cut, len(rows))
    expected = collections.Counter(rows)
    table = counts.table()
    assert table.shape == (a + 1, b)
    assert all(table[x, y] == expected[x if x < a else -1, y] for x in range(a + 1) for y in range(b))


def test_pairs_are_counted_with_the_outsiders_last() -> None:
    inputs, outputs = np.array([0, 1, 1, -1, 2, -1]), np.array([3, 0, 0, 1, 3, 1], dtype=np.uint8)
    expected = np.zeros((4, 4), dtype=np.int64)
    expected[0, 3] = expected[2, 3] = 1
    expected[1, 0] = expected[3, 1] = 2
    counts = count_pairs(inputs, outputs, 3, 4)
    np.testing.assert_array_equal(counts, expected)
    assert counts.dtype == np.int64
    # Codes of a byte must not wrap around in the product.
    wide = count_pairs(np.array([199]), np.array([199], dtype=np.uint8), 200, 200)
    assert wide[199, 199] == 1


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [([2], [0], "input codes"), ([-2], [0], "input codes"), ([0], [2], "output codes"), ([0, 1], [0], "do not fit")],
)
def test_pairs_outside_their_alphabets_are_refused(inputs: list[int], outputs: list[int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        count_pairs(np.array(inputs), np.array(outputs), 2, 2)
