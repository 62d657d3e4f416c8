"""The exact knapsack decision against all subsets and, for many items, against a mixed-integer programme."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from funnel.measures.knapsack import light_subset

items = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2**90)), max_size=9)
close_items = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=9)


@given(st.one_of(items, close_items), st.integers(0, 40), st.data())
def test_the_decision_is_that_among_all_subsets(
    pairs: list[tuple[int, int]], capacity: int, data: st.DataObject
) -> None:
    weights, values = [w for w, _ in pairs], [v for _, v in pairs]
    best = max(
        sum(values[i] for i in subset)
        for size in range(len(pairs) + 1)
        for subset in itertools.combinations(range(len(pairs)), size)
        if sum(weights[i] for i in subset) <= capacity
    )
    for above in {best, max(0, best - 1), data.draw(st.integers(0, best))}:
        found = light_subset(weights, values, capacity, above)
        assert (found is None) == (above >= best)
        if found is not None:
            assert list(found) == sorted(set(found))
            assert sum(weights[i] for i in found) <= capacity
            assert sum(values[i] for i in found) > above


@pytest.mark.parametrize("kind", ["unrelated", "alike", "equal ratios"])
def test_a_hundred_items(kind: str) -> None:
    """Also where values nearly follow weights, the hard kind: there the bound by fractions excludes little."""
    rng = np.random.default_rng(7)
    weights = rng.integers(1, 2000, 100)
    values = {
        "unrelated": rng.integers(1, 2000, 100),
        "alike": 2 * weights + rng.integers(0, 200, 100),
        "equal ratios": 6 * weights,
    }[kind]
    capacity = int(weights.sum() // 3)
    optimum = milp(
        -values.astype(float),
        integrality=np.ones(100),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(weights[None, :].astype(float), ub=capacity),
        options={"mip_rel_gap": 0},
    )
    best = round(-optimum.fun)
    found = light_subset(weights.tolist(), values.tolist(), capacity, best - 1)
    assert found is not None
    assert weights[list(found)].sum() <= capacity
    assert values[list(found)].sum() == best
    assert light_subset(weights.tolist(), values.tolist(), capacity, best) is None


def test_even_weights_cannot_fill_an_odd_capacity() -> None:
    """Sums of equal value per weight: no bound helps, only the number of distinct weights keeps it small."""
    weights = [2 * w for w in range(1, 61)]
    assert light_subset(weights, weights, 2001, 2000) is None
    found = light_subset(weights, weights, 2001, 1999)
    assert found is not None
    assert sum(weights[i] for i in found) == 2000
