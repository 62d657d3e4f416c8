"""What records tell of shares: which can be told, and which only in sum, against brute force over all groups."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.estimation.share_information import ShareInformation


def of(channel: list[list[float]], shares: list[float] | None = None) -> ShareInformation:
    matrix = np.array(channel)
    a = matrix.shape[1]
    found = ShareInformation.of(matrix, np.array(shares or [1 / a] * a), 1000)
    assert found is not None
    return found


def groups(found: ShareInformation, a: int) -> tuple[tuple[int, ...], ...]:
    return found.only_in_sum(np.arange(a), a)


def test_values_with_the_same_column_are_told_in_sum() -> None:
    found = of([[0.75, 0.75, 0.25, 0.25, 0], [0.25, 0.25, 0.75, 0.75, 0], [0, 0, 0, 0, 1]])
    assert groups(found, 5) == ((0, 1), (2, 3))
    assert found.only_in_sum(np.array([0, 0, 1, 1, 1]), 2) == ()
    assert found.only_in_sum(np.array([0, 1, 0, 1, 0]), 2) == ((0, 1),)
    assert found.condition == np.inf


def test_a_constant_channel_tells_all_together_only() -> None:
    assert groups(of([[1.0, 1.0, 1.0]]), 3) == ((0, 1, 2),)


def test_what_is_told_has_no_groups() -> None:
    assert groups(of([[0.8, 0.1, 0.2], [0.1, 0.6, 0.2], [0.1, 0.3, 0.6]]), 3) == ()


@given(st.lists(st.integers(0, 3), min_size=3, max_size=6), st.data())
def test_a_sum_can_be_told_and_no_smaller_part_of_equal_columns(kinds: list[int], data: st.DataObject) -> None:
    """Columns that are equal are told together; those of other kinds are not mixed with them."""
    columns = np.array([[0.7, 0.1, 0.1, 0.1], [0.2, 0.6, 0.1, 0.1], [0.1, 0.1, 0.7, 0.1], [0.1, 0.3, 0.1, 0.5]])
    weights = data.draw(st.lists(st.integers(1, 50), min_size=len(kinds), max_size=len(kinds)))
    found = of(columns[kinds].T.tolist(), [weight / sum(weights) for weight in weights])
    expected = {tuple(i for i, one in enumerate(kinds) if one == kind) for kind in set(kinds) if kinds.count(kind) > 1}
    assert set(groups(found, len(kinds))) == expected
    for group in expected:
        for size in range(1, len(group)):
            for part in combinations(group, size):
                cells = np.isin(np.arange(len(kinds)), part).astype(np.int64)
                assert np.isnan(found.errors(cells, 2)).all()


@pytest.mark.parametrize("close", [1e-2, 1e-3])
def test_columns_that_are_nearly_equal_are_told_and_badly(close: float) -> None:
    found = of([[0.5 + close, 0.5], [0.5 - close, 0.5]])
    assert groups(found, 2) == ()
    error = found.errors(np.arange(2), 2)
    # Of outputs with shares of about a half each, in units of the difference of the columns.
    assert error == pytest.approx(np.full(2, 0.5 / np.sqrt(1000) / close), rel=1e-3)
