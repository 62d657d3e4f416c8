"""Hundreds of inputs: the bound by groups of them, neighbours of vertices, and what a short limit keeps."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import funnel
from funnel.solver import central, input_groups
from funnel.solver.budget import Budget
from funnel.solver.columns import ColumnGeneration
from funnel.solver.input_groups import GroupedBound, grouped
from funnel.solver.neighbours import Neighbourhood, Vertices
from funnel.solver.pricing import Pricer
from funnel.solver.problem import Problem
from funnel.solver.search import mixture_of_many
from funnel.solver.split import best_split
from tests.strategies import joints

kinds = st.sampled_from([funnel.LIP(0.5), funnel.LDP(0.7), funnel.ALIP(0.3, 0.8), funnel.PML(0.4), funnel.LIP(2.0)])


def hundreds(seed: int, secrets: int, inputs: int, records: int) -> funnel.Joint:
    """Records with posteriors that are far apart."""
    random = np.random.default_rng(seed)
    given_input = random.dirichlet(np.full(secrets, 0.2), size=inputs)
    distribution = (given_input * random.dirichlet(np.full(inputs, 1.0))[:, None]).T
    counts = random.multinomial(records, distribution.ravel()).reshape(distribution.shape)
    return funnel.Joint.from_counts(counts[counts.any(axis=1)][:, counts.any(axis=0)])


@settings(max_examples=25, deadline=None)
@given(joints(max_secrets=4, max_inputs=8), kinds)
def test_groups_bound_what_any_protocol_tells(joint: funnel.Joint, guarantee: funnel.LIP) -> None:
    best = funnel.optimal(joint, guarantee)
    problem = Problem.of(joint, guarantee, False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(input_groups, "_GROUPS", 1)
        patched.setattr(input_groups, "_FINER", 1.5)
        bound, last = GroupedBound(problem.priced), np.inf
        while not bound.finest:
            assert bound.refine(1e-6, Budget.of(None))
            assert bound.bound <= last
            assert bound.bound + joint.entropy >= best.utility - 1e-12
            last = bound.bound
    # Of single inputs it is the optimum itself.
    assert bound.bound + joint.entropy <= best.bound + 2e-6


@pytest.mark.parametrize("guarantee", [funnel.LIP(1.0), funnel.LDP(1.0)])
def test_more_groups_bound_closer(guarantee: funnel.LIP | funnel.LDP, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_groups, "_GROUPS", 8)
    problem = Problem.of(hundreds(5, 4, 60, 50_000), guarantee, False)
    bound, found = GroupedBound(problem.priced), []
    for _ in range(3):
        assert bound.refine(0.015, Budget.of(None))
        found.append(bound.bound)
    assert found[2] < found[1] < found[0] < 0


def test_groups_are_as_many_as_asked_for_and_of_those_that_are_alike() -> None:
    random = np.random.default_rng(0)
    kinds_of_input, distribution = random.normal(size=(3, 5)), random.dirichlet(np.ones(40))
    which = random.integers(5, size=40)
    which[:5] = np.arange(5)
    rows = kinds_of_input[:, which]
    group = grouped(rows, distribution, np.ones(3), 5)
    assert len(np.unique(group)) == 5
    assert all(len(np.unique(which[group == one])) == 1 for one in range(5))
    assert len(np.unique(grouped(rows, distribution, np.ones(3), 17))) == 17


def test_a_bound_by_groups_ends_with_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem.of(hundreds(5, 4, 60, 50_000), funnel.LIP(1.0), False)
    bound, whole = GroupedBound(problem.priced), GroupedBound(problem.priced)
    assert not bound.refine(1e-3, Budget.of(1e-6))
    assert bound.bound == whole.bound
    assert not bound.refine(1e-9, Budget.of(0.02))
    monkeypatch.setattr(input_groups, "_GROUPS", 8)
    assert whole.refine(0.015, Budget.of(None))
    assert whole.bound <= bound.bound <= 0


@settings(max_examples=25, deadline=None)
@given(joints(max_secrets=3, max_inputs=6, min_inputs=3), kinds, st.integers(0, 2**32 - 1))
# Two conditions and the sum of shares are dependent here, but for rounding: that basis is no vertex.
@example(funnel.Joint.from_counts([[0, 0, 0, 6], [0, 0, 2, 0], [0, 144, 1, 0]]), funnel.PML(0.4), 0)
def test_neighbours_are_all_vertices_one_exchange_away(joint: funnel.Joint, guarantee: funnel.LIP, seed: int) -> None:
    problem = Problem.of(joint, guarantee, False)
    region, random = problem.region, np.random.default_rng(seed)
    if not len(region.rows):
        return
    budget = Budget.of(None)
    near, prices = Neighbourhood(region, budget), random.normal(-1.0, 1.0, size=region.inputs)
    starts = near.vertices(Pricer(region, budget), region.distribution[None], prices)
    for number in range(len(starts)):
        start = starts[np.array([number])]
        here, inside = near.posteriors(start)
        assert inside.all()
        found, most = near.best(start, np.array([number]), prices)
        posteriors, inside = near.posteriors(found)
        worth = region.gains(posteriors) - posteriors @ prices
        assert inside.all()
        assert worth.max(initial=0.0) == pytest.approx(most, abs=1e-5)
        every = _one_exchange_away(near, start)
        others = every[np.abs(every - here).max(axis=1) > 1e-6]
        assert most >= (region.gains(others) - others @ prices).max(initial=0.0) - 1e-5


def _one_exchange_away(near: Neighbourhood, vertex: Vertices) -> np.ndarray:
    """Posteriors of the region whose basis has one other member, by trying every one of them."""
    number = vertex.top.shape[1]
    bases, tops = [], []
    for enters, place, up in itertools.product(range(number), range(vertex.basis.shape[1]), (False, True)):
        if enters not in vertex.basis[0]:
            basis, top = vertex.basis[0].copy(), vertex.top[0].copy()
            top[basis[place]] = up
            basis[place] = enters
            bases.append(basis)
            tops.append(top)
    found, inside = near.posteriors(Vertices(np.array(bases), np.array(tops)))
    return np.asarray(found[inside])


def test_a_short_limit_keeps_nearly_what_a_long_one_does() -> None:
    """79 % were kept, and 90 % with four times the limit: what was missing of a mixture was not within the limit."""
    kept = []
    for seed in (1, 2, 3):
        joint = hundreds(seed, 4, 500, 60_000)
        found = funnel.optimal(joint, funnel.LIP(1.0), gap=0.05, time_limit=4.0)
        kept.append(found.utility / joint.entropy)
        assert funnel.LIP(1.0).holds(joint, found.protocol)
        # Where this was measured, 94, 96 and 95 %.
        assert found.utility <= found.bound <= 0.965 * joint.entropy
    # Where a search is cut off depends on rounding, and so on the processor: one of them may keep less.
    assert sorted(kept)[1] >= 0.89


def test_what_a_search_starts_from_is_not_lost_when_the_budget_ends_at_once() -> None:
    joint = hundreds(3, 3, 60, 20_000)
    problem = Problem.of(joint, funnel.LIP(1.0), False)
    known = funnel.optimal(joint, funnel.LIP(1.0), gap=0.05).protocol
    start = problem.posteriors(known.weights)
    value = float(problem.region.gains(start) @ (known.weights / known.denominator @ joint.p_input))
    budget = Budget.of(1e-6)
    found = mixture_of_many(problem, [start], 1e-3, budget, ColumnGeneration(problem.priced, budget))
    assert found.split.value >= value - 1e-9
    assert found.split.bound >= value
    assert not found.finished


def test_a_programme_that_fails_leaves_the_mixture_there_was(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem.of(hundreds(3, 3, 60, 20_000), funnel.LIP(1.0), False)
    best, calls = Neighbourhood.best, itertools.count()

    def failing(near: Neighbourhood, *asked: Any) -> Any:
        if next(calls) == 6:
            raise funnel.SolverError("a singular basis")
        return best(near, *asked)

    monkeypatch.setattr(Neighbourhood, "best", failing)
    found = central.central_mixture(problem, Budget.of(None), 1e-4)
    assert len(found) > 10
    split = best_split(found, problem.distribution)
    assert split.mass @ split.posteriors == pytest.approx(problem.distribution, abs=1e-9)
    assert split.value + problem.joint.entropy > 0.5 * problem.joint.entropy
