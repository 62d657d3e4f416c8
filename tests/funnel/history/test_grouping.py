"""Groups of histories: everybody in one group, alike ones together, and no group cut that has one distribution."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from funnel.history.history_groups import grouped, split_group, spread


def distributions_of(seed: int, members: int, kinds: int) -> np.ndarray:
    """So many distributions of few kinds."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(6), size=kinds).reshape(kinds, 2, 3)[rng.integers(0, kinds, members)]


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 5), st.integers(1, 40))
def test_groups_part_the_histories(seed: int, members: int, kinds: int, number: int) -> None:
    distributions, weights = distributions_of(seed, members, kinds), np.random.default_rng(seed).random(members) + 0.1
    start = [np.arange(members)[: members // 2], np.arange(members)[members // 2 :]]
    start = [part for part in start if len(part)]
    groups = grouped(distributions, weights, start, number)
    assert sorted(np.concatenate(groups).tolist()) == list(range(members))
    assert len(start) <= len(groups) <= max(len(start), number)
    if number >= members:
        # As many groups as there are distributions in each of the first ones, and no more.
        distinct = [len({distributions[h].tobytes() for h in part}) for part in start]
        assert len(groups) == sum(distinct)
        assert all(spread(distributions, weights, group) < 1e-24 for group in groups)


@given(st.integers(0, 10**6), st.integers(2, 30))
def test_a_cut_leaves_two_groups_that_are_closer(seed: int, members: int) -> None:
    distributions, weights = distributions_of(seed, members, 4), np.random.default_rng(seed).random(members) + 0.1
    first, second = split_group(distributions, weights, np.arange(members))
    assert len(first)
    assert len(second)
    assert sorted([*first, *second]) == list(range(members))
    parts = spread(distributions, weights, first) + spread(distributions, weights, second)
    assert parts <= spread(distributions, weights, np.arange(members)) + 1e-12


def test_equal_distributions_are_cut_too_where_somebody_asks_for_it() -> None:
    distributions = np.full((5, 2, 3), 1 / 6)
    first, second = split_group(distributions, np.ones(5), np.arange(5))
    assert (len(first), len(second)) == (2, 3)
