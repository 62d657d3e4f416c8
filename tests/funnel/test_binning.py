"""Partitions of numbers: dynamic programming against all of them, and against the gate's second computation."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.binning import ENOUGH, NUMBERS, WEIGHTS, Cells, assessed, best_cuts, chosen_edges, partitions
from funnel.recount.bins import declared_cuts, is_found
from funnel.settings.numbers import NumberSettings


def cells_of(seed: int, number: int, secrets: int = 2, most: int = 64) -> Cells:
    random = np.random.default_rng(seed)
    numbers = tuple(sorted(random.choice(np.arange(-100, 100), size=number, replace=False).tolist()))
    return Cells.of(numbers, random.integers(0, 40, size=(secrets, number)) + 1, most)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 9), st.sampled_from(WEIGHTS), st.booleans())
def test_dynamic_programming_finds_the_best_of_all_partitions(
    seed: int, number: int, weight: float, by_variance: bool
) -> None:
    cells = cells_of(seed, 9)
    scores = cells.scores(weight, by_variance)

    def total(cuts: tuple[int, ...]) -> float:
        ends = (0, *cuts, len(cells))
        return float(sum(scores[i, j] for i, j in pairwise(ends)))

    number = min(number, len(cells))
    best = max(map(total, combinations(range(1, len(cells)), number - 1)))
    assert total(best_cuts(scores, number)) == pytest.approx(best, abs=1e-12)


def test_scores_add_up_to_information_less_that_of_the_secret() -> None:
    cells = cells_of(3, 12, secrets=3)
    for by_variance in (False, True):
        plain, weighed = cells.scores(0.0, by_variance), cells.scores(2.0, by_variance)
        cuts = (0, 4, 7, len(cells))
        counts = np.add.reduceat(cells.counts, [0, 4, 7], axis=1)
        joint = funnel.Joint.from_counts(counts)
        told = sum(plain[i, j] for i, j in pairwise(cuts))
        secret = sum(plain[i, j] - weighed[i, j] for i, j in pairwise(cuts)) / 2
        identity = funnel.fit("identity", joint, funnel.MutualInformation(100.0))
        assert secret == pytest.approx(funnel.measures.secret_information(joint, identity))
        if not by_variance:
            assert told == pytest.approx(joint.entropy)
        else:
            means = np.add.reduceat(cells.sums, [0, 4, 7]) / counts.sum(axis=0)
            assert told == pytest.approx(float(means**2 @ counts.sum(axis=0)) / cells.squares)


def test_cells_are_quantiles_and_none_is_empty() -> None:
    counts = np.array([[1000, 1, 1, 1, 500, 1], [0, 1, 0, 0, 500, 0]])
    cells = Cells.of((1, 2, 3, 4, 5, 6), counts, most=4)
    assert cells.firsts == (1, 2, 4, 6)
    assert (cells.counts.sum(axis=0) > 0).all()
    assert cells.counts.sum() == counts.sum()
    many = cells_of(5, 150)
    assert len(many) <= 64


@pytest.mark.parametrize("by_variance", [False, True])
def test_few_intervals_tell_nearly_what_the_best_of_those_tried_do(by_variance: bool) -> None:
    cells, guarantee = cells_of(7, 40), funnel.LIP(0.3)
    edges = chosen_edges(cells, guarantee, by_variance)
    cuts = tuple(cells.firsts.index(edge) for edge in edges)
    best = assessed(cells, cuts, guarantee, by_variance)
    assert best.told <= best.bound
    every = [
        assessed(cells, one, guarantee, by_variance)
        for number in NUMBERS
        for one in partitions(cells, number, by_variance)
    ]
    most = max(one.told for one in every)
    assert best.told >= ENOUGH * most
    assert all(len(one.cuts) >= len(cuts) for one in every if one.told >= ENOUGH * most)
    # Of all partitions into so many intervals it is among the best: the sum is near what is wanted.
    random = np.random.default_rng(8)
    others = [
        tuple(sorted(random.choice(np.arange(1, len(cells)), size=len(cuts), replace=False).tolist()))
        for _ in range(30)
    ]
    assert best.told >= np.quantile([assessed(cells, one, guarantee, by_variance).told for one in others], 0.9) * 0.99


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 3), st.booleans())
def test_the_gate_finds_the_same_cut_points_possible(seed: int, secrets: int, by_variance: bool) -> None:
    random = np.random.default_rng(seed)
    numbers = tuple(sorted(random.choice(np.arange(-100, 100), size=30, replace=False).tolist()))
    counts = random.integers(0, 40, size=(secrets, 30)) + 1
    cells = Cells.of(numbers, counts, 64)
    known = {
        number: {(str(s),): int(count) for s, count in enumerate(column)}
        for number, column in zip(numbers, counts.T.tolist(), strict=True)
    }
    for number in (2, 4, 7):
        for cuts in partitions(cells, number, by_variance):
            edges = cells.edges(cuts)
            assert is_found(known, edges, by_variance) is None
            assert is_found(known, edges[1:], by_variance, merged=True) is None
    worst = cells.edges(tuple(range(1, 6)))
    assert "better" in str(is_found(known, worst, by_variance))
    assert "no quantile cell" in str(is_found(known, [numbers[3] + 0.5], by_variance))


@settings(max_examples=200, deadline=None)
@given(
    st.floats(-1e6, 1e6, allow_nan=False) | st.integers(-(10**6), 10**6),
    st.floats(1e-3, 1e7) | st.integers(2, 10**7),
    st.booleans(),
)
def test_edges_of_a_range_are_round_few_and_found_twice(low: float, width: float, whole: bool) -> None:
    high = low + width
    if not low < high:
        return
    made = NumberSettings(range=(low, high), whole=whole).round_edges
    assert [float(edge) for edge in declared_cuts(low, high, whole)] == [float(edge) for edge in made]
    assert 1 <= len(made) <= 9
    assert all(low < edge < high for edge in made)


def test_edges_of_a_range_that_people_know() -> None:
    assert NumberSettings(range=(0, 100)).round_edges == (10, 20, 30, 40, 50, 60, 70, 80, 90)
    assert NumberSettings(range=(17, 90)).round_edges == (20, 30, 40, 50, 60, 70, 80)
    assert NumberSettings(range=(0, 1)).round_edges == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    assert NumberSettings(range=(1, 3), whole=True).round_edges == (2,)
    assert NumberSettings(unit="m").round_edges == ()
