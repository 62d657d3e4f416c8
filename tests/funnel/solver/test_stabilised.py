"""Boxes tightened by conditions, and prices near those of the best bound: true, and close where inputs are many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.solver.budget import Budget
from funnel.solver.columns import ColumnGeneration
from funnel.solver.problem import Problem
from funnel.solver.region import Region
from funnel.solver.search import search_of
from funnel.solver.split import best_split
from funnel.solver.stabilised import StabilisedColumns
from funnel.solver.tightening import Tightening, TighteningPricer, by_largest
from funnel.solver.vertices import enumerate_vertices
from tests.strategies import joints

kinds = st.sampled_from([funnel.LIP(0.5), funnel.LDP(0.7), funnel.ALIP(0.3, 0.8), funnel.PML(0.4), funnel.LIP(2.0)])
seeds = st.integers(0, 2**32 - 1)


def posteriors_of(problem: Problem, random: np.random.Generator) -> np.ndarray:
    """Vertices of the region, and mixtures of them."""
    vertices = enumerate_vertices(problem.merged.joint, problem.guarantee, Budget.of(None), problem.rows, True)
    return np.vstack([vertices, random.dirichlet(np.full(len(vertices), 0.3), size=60) @ vertices])


def random_boxes(random: np.random.Generator, number: int, inputs: int) -> tuple[np.ndarray, np.ndarray]:
    ends = np.sort(
        random.random((2, number, inputs)) * random.choice([0.3, 1.0, 1.0], size=(2, number, inputs)), axis=0
    )
    whole = random.random((number, inputs)) < 0.4
    return np.where(whole, 0.0, ends[0]), np.where(whole, 1.0, ends[1])


@settings(max_examples=40, deadline=None)
@given(joints(max_secrets=4, max_inputs=6), kinds, seeds)
def test_no_posterior_of_the_region_is_cut_off(joint: funnel.Joint, guarantee: funnel.LIP, seed: int) -> None:
    problem, random = Problem.of(joint, guarantee, False), np.random.default_rng(seed)
    known, a = posteriors_of(problem, random), len(problem.law)
    # Boxes around posteriors, their ends at shares of others: what a cut in the wrong place would lose.
    one, other = known[random.integers(len(known), size=(2, 100))]
    some = random.random((100, a)) < 0.5
    lower = np.vstack([np.where(some, np.minimum(one, other), 0.0), random_boxes(random, 100, a)[0]])
    upper = np.vstack(
        [np.where(some, np.maximum(one, other), 1.0), np.maximum(random_boxes(random, 100, a)[1], lower[100:])]
    )
    for region in (problem.region, problem.priced):
        new_lower, new_upper, possible = Tightening(region).tightened(lower, upper)
        for box in range(len(lower)):
            # The vertices that are listed are off by what doubles are.
            inside = known[((known >= lower[box] - 1e-15) & (known <= upper[box] + 1e-15)).all(axis=1)]
            if len(inside):
                assert possible[box]
                assert (inside >= new_lower[box] - 1e-9).all()
                assert (inside <= new_upper[box] + 1e-9).all()
        assert (new_upper[possible] <= upper[possible]).all()
        assert (new_lower[possible] >= lower[possible]).all()


def test_a_level_may_be_anywhere() -> None:
    """LDP of many secrets is priced by its least lift, which no box bounds."""
    random = np.random.default_rng(3)
    problem = Problem.of(funnel.Joint.from_counts(random.integers(1, 40, size=(5, 7))), funnel.LDP(0.7), False)
    assert problem.priced.levels == 1
    known = posteriors_of(problem, random)
    for least in (0.0, 0.05):
        lower, upper = np.where(known > least, least, 0.0), np.ones_like(known)
        new_lower, new_upper, possible = Tightening(problem.priced).tightened(lower, upper)
        assert possible.all()
        assert (known >= new_lower - 1e-9).all()
        assert (known <= new_upper + 1e-9).all()


def test_a_box_is_cut_to_what_one_condition_leaves() -> None:
    # v_0 is at most half of what the third input has.
    region = Region.of(np.array([[1.0, 0.0, -0.5]]), np.array([0.1, 0.5, 0.4]))
    lower, upper, possible = Tightening(region).tightened(
        np.array([[0.0, 0.0, 0.0], [0.0, 0.7, 0.0], [0.2, 0.7, 0.0]]), np.ones((3, 3))
    )
    assert possible.tolist() == [True, True, False]
    assert upper[0] == pytest.approx([1 / 3, 1.0, 1.0])
    assert upper[1] == pytest.approx([0.1, 1.0, 0.3])
    assert lower[1] == pytest.approx([0.0, 0.7, 0.0])


@given(seeds)
def test_boxes_by_the_largest_share_cover_every_posterior_once_or_at_an_edge(seed: int) -> None:
    random = np.random.default_rng(seed)
    a = int(random.integers(1, 12))
    points = random.dirichlet(np.full(a, float(random.choice([0.1, 0.5, 3.0]))), size=200)
    reach = np.maximum(points.max(axis=0), random.random(a))
    lower, upper = by_largest(reach)
    inside = ((points[:, None] >= lower) & (points[:, None] <= upper)).all(axis=2)
    assert (inside.sum(axis=1) >= 1).all()
    # Overlapping boxes are searched twice.
    assert inside.sum() <= 1.05 * len(points)


@settings(max_examples=20, deadline=None)
@given(joints(max_secrets=4, max_inputs=7), kinds)
def test_bound_and_value_against_all_vertices(joint: funnel.Joint, guarantee: funnel.LIP) -> None:
    problem = Problem.of(joint, guarantee, False)
    vertices = enumerate_vertices(problem.merged.joint, guarantee, Budget.of(None), problem.rows, True)
    best = best_split(vertices, problem.law)
    for region in (problem.region, problem.priced):
        found = StabilisedColumns(region).run(1e-4)
        assert found.split.bound >= best.value - 1e-9
        assert found.split.value <= best.bound + 1e-9
        # Where values are a million times rarer than others columns are parallel to rounding, and that is said.
        thin = problem.law.min() < 1e-4
        assert found.finished or thin
        assert not found.finished or found.split.bound - found.split.value <= (1e-3 if thin else 1e-4)
        assert found.split.mass @ found.split.posteriors == pytest.approx(problem.law, abs=1e-9)
        # A budget that ends early leaves both true.
        early = StabilisedColumns(region, Budget.of(1e-3)).run(1e-6)
        assert early.split.value <= best.bound + 1e-9
        assert early.split.bound >= best.value - 1e-9


@settings(max_examples=20, deadline=None)
@given(joints(max_secrets=4, max_inputs=7), kinds, seeds)
def test_a_search_of_tightened_boxes_bounds_every_posterior(
    joint: funnel.Joint, guarantee: funnel.LIP, seed: int
) -> None:
    problem, random = Problem.of(joint, guarantee, False), np.random.default_rng(seed)
    known, prices = posteriors_of(problem, random), random.normal(-0.7, 0.4, size=len(problem.law))
    most = float((problem.region.gains(known) - known @ prices).max())
    for region in (problem.region, problem.priced):
        for target in (most - 0.1, most + 1e-6, most + 0.1):
            priced = TighteningPricer(region).search(prices, target)
            assert priced.bound >= most - 1e-9
            values = region.gains(priced.columns) - priced.columns @ prices
            assert (values > target).all()
            assert len(values) or priced.bound == pytest.approx(target)


def test_a_hundred_inputs_and_more_close() -> None:
    counts = np.random.default_rng(0).integers(1, 1000, size=(12, 100))
    joint = funnel.Joint.from_counts(counts)
    problem, gap = Problem.of(joint, funnel.LIP(0.5), False), 0.015 * joint.entropy
    search = search_of(problem.region, Budget.of(15.0))
    assert isinstance(search, StabilisedColumns)
    found = search.run(gap)
    assert found.finished
    assert found.split.bound - found.split.value <= gap
    # Boxes of posteriors at the prices of the mixture left 6.6 % of H(X) at the work in which this closes.
    plain = ColumnGeneration(problem.region, Budget.of(2.0)).run(gap)
    assert plain.split.bound - plain.split.value > 2 * gap
    few = Problem.of(funnel.Joint.from_counts(counts[:, :99]), funnel.LIP(0.5), False)
    assert isinstance(search_of(few.region, Budget.of(1.0)), ColumnGeneration)
