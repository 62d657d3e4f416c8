"""Two secrets: pairs of inputs in closed form against the list of all vertices, and wide tables."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.guarantees.base import PosteriorGuarantee
from funnel.solver.budget import Budget
from funnel.solver.central import central_mixture
from funnel.solver.interval import Interval
from funnel.solver.pairs import best_shares, paired
from funnel.solver.problem import Problem
from funnel.solver.split import best_split
from funnel.solver.wide import Narrowed, binary_optimum, bound_by_events
from funnel.sparse_weights import SparseWeights
from tests.strategies import joints

bounds = st.sampled_from([funnel.LIP(0.3), funnel.LDP(1.0), funnel.ALIP(0.2, 0.9), funnel.PML(0.25), funnel.LIP(3.0)])


@st.composite
def two_secrets(draw: st.DrawFn) -> funnel.Joint:
    a = draw(st.integers(2, 14))
    cells = st.one_of(st.integers(0, 3), st.integers(0, 2000))
    counts = np.reshape(draw(st.lists(cells, min_size=2 * a, max_size=2 * a)), (2, a))
    counts[:, ~counts.any(axis=0)] = 1
    counts[~counts.any(axis=1)] = 1
    return funnel.Joint.from_counts(counts)


@settings(max_examples=30)
@given(two_secrets(), bounds)
def test_pairs_are_the_optimum(joint: funnel.Joint, guarantee: funnel.Guarantee) -> None:
    listed = funnel.optimal(joint, guarantee, method="vertices")
    found = binary_optimum(joint, guarantee, 1e-6, Budget.of(None))
    assert guarantee.holds_for(joint, found.weights.table())
    names = funnel.Alphabet.of(None, found.weights.shape[0], "Y")
    marginal = funnel.rounding.marginal_weights(joint, found.weights)
    utility = funnel.measures.mutual_information(
        joint, funnel.Protocol.of_sparse(found.weights, marginal, joint.inputs, names)
    )
    assert utility <= listed.bound + 1e-12
    assert found.bound >= listed.utility - 1e-12
    assert utility >= listed.utility - 1e-6


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 1000)), min_size=2, max_size=30))
def test_all_pairs_have_the_same_mean_and_use_everything_up(items: list[tuple[int, int]]) -> None:
    r = np.array(sorted(first for first, _ in items)) / 50
    mass = np.array([second for _, second in items]) / 1000
    first, second, one, two = paired(r, mass)
    mean = (mass * r).sum() / mass.sum()
    if r[0] < mean < r[-1]:
        assert (one * r[first] + two * r[second]) / (one + two) == pytest.approx(np.full(len(one), mean))
    used = np.bincount(first, one, len(r)) + np.bincount(second, two, len(r))
    assert used == pytest.approx(mass)
    assert len(first) <= len(r)


def test_a_bound_over_groups_is_a_bound() -> None:
    counts = np.random.default_rng(5).integers(1, 400, size=(2, 1500))
    r, place = np.unique(counts[0] / counts.sum(axis=0), return_inverse=True)
    distribution = np.bincount(place, weights=counts.sum(axis=0) / counts.sum())
    interval = Interval.of(funnel.LIP(0.4), float(counts[0].sum() / counts.sum()))
    rough = best_shares(r, distribution, interval, 1e-3, Budget.of(None))
    close = best_shares(r, distribution, interval, 1e-5, Budget.of(None))
    assert rough.finished
    assert rough.bound - rough.value <= 1e-3
    assert rough.value <= close.bound
    assert close.value <= rough.bound
    assert close.bound - close.value <= 1e-4


@pytest.fixture(scope="module")
def wide() -> funnel.Joint:
    random = np.random.default_rng(3)
    counts = random.integers(0, 7, size=(3, 1200))
    counts[2] = counts[1]
    counts[:, 17] = 0
    return funnel.Joint.from_counts(counts)


@pytest.mark.parametrize("guarantee", [funnel.LIP(0.5), funnel.LDP(0.8)], ids=str)
def test_a_wide_table_of_two_secrets(wide: funnel.Joint, guarantee: funnel.Guarantee) -> None:
    joint = funnel.Joint.from_counts(wide.counts[:2])
    best = funnel.optimal(joint, guarantee)
    assert (best.method, best.status) == ("pairs", "optimal")
    assert best.protocol.is_sparse
    assert guarantee.holds(joint, best.protocol)
    assert 0 <= best.gap <= 1e-6
    b, a = best.protocol.size
    # An input that never occurs is outside the alphabet, and draws from the marginal.
    assert b <= a == int(joint.counts.any(axis=0).sum()) < len(joint.inputs)
    assert np.bincount(best.protocol.sparse.outputs).max() <= 2
    assert (best.protocol.weights_for(joint.inputs)[:, 17] == best.protocol.marginal).all()
    again = funnel.optimal(joint, guarantee)
    assert again.protocol.digest == best.protocol.digest


def test_a_wide_table_of_more_secrets(wide: funnel.Joint) -> None:
    guarantee = funnel.LIP(0.6)
    best = funnel.optimal(wide, guarantee, gap=0.05)
    assert best.status == "optimal"
    assert best.protocol.is_sparse
    assert guarantee.holds(wide, best.protocol)
    merged = Narrowed.of(wide.occurring).merged.joint
    narrow = funnel.optimal(merged, guarantee, gap=0.05)
    assert best.utility == pytest.approx(narrow.utility + wide.entropy - merged.entropy, abs=1e-6)


def test_what_may_be_published_as_it_is(wide: funnel.Joint) -> None:
    joint = funnel.Joint.from_counts(wide.counts[:2] + 100)
    best = funnel.optimal(joint, funnel.LIP(2.0))
    assert best.utility == pytest.approx(joint.entropy)
    assert len(best.protocol.sparse.values) == len(joint.inputs)


@settings(max_examples=25)
@given(joints(max_secrets=4, max_inputs=6), st.sampled_from([funnel.LIP(0.5), funnel.LDP(0.7), funnel.PML(0.4)]))
def test_events_bound_the_optimum(joint: funnel.Joint, guarantee: funnel.Guarantee) -> None:
    best = funnel.optimal(joint, guarantee)
    assert bound_by_events(joint.occurring, guarantee, 1e-9, Budget.of(None)) >= best.utility - 1e-12


def test_an_event_of_two_secrets_is_all_there_is_to_two_secrets() -> None:
    joint = funnel.Joint.from_counts([[30, 5, 20, 7], [10, 50, 21, 1], [0, 0, 0, 0]])
    best = funnel.optimal(joint, funnel.LIP(0.5))
    assert bound_by_events(joint, funnel.LIP(0.5), 1e-9, Budget.of(None)) == pytest.approx(best.utility, abs=1e-6)


@pytest.mark.parametrize("work", [None, 1e-3])
def test_central_columns_add_up_and_are_inside(work: float | None) -> None:
    counts = np.random.default_rng(8).integers(0, 40, size=(3, 60)) + np.eye(3, dtype=int).repeat(20, axis=1) * 30
    problem = Problem.of(funnel.Joint.from_counts(counts), funnel.LIP(0.4), False)
    found = central_mixture(problem, Budget.of(work), 1e-4)
    assert (problem.rows @ found.T).max() <= 1e-8 * np.abs(problem.rows).max()
    # A mixture of them is p_X, or this fails.
    split = best_split(found, problem.distribution)
    assert split.mass @ split.posteriors == pytest.approx(problem.distribution, abs=1e-9)
    if work is None:
        optimum = funnel.optimal(problem.joint, funnel.LIP(0.4), gap=0.02)
        assert split.value + problem.joint.entropy >= 0.8 * optimum.utility


@pytest.mark.parametrize(
    ("seed", "secrets", "inputs", "records", "epsilon"),
    [(2, 4, 40, 3000, 1.0), (24, 5, 80, 20_000, 0.3)],
)
def test_every_central_column_is_inside(seed: int, secrets: int, inputs: int, records: int, epsilon: float) -> None:
    """Also those that a programme's tolerance left a mass of 1e-14: a mixture could give them any mass."""
    random = np.random.default_rng(seed)
    given_input = random.dirichlet(np.full(secrets, 0.2), size=inputs)
    distribution = (given_input * random.dirichlet(np.full(inputs, 0.3))[:, None]).T
    counts = random.multinomial(records, distribution.ravel()).reshape(distribution.shape)
    joint = funnel.Joint.from_counts(counts[counts.any(axis=1)][:, counts.any(axis=0)])
    problem = Problem.of(joint, funnel.LIP(epsilon), False)
    found, region = central_mixture(problem, Budget.of(20.0), 1e-4), problem.region
    assert (found @ region.rows.T <= 1e-7).all()
    assert (found @ region.rows.T >= region.least - 1e-7).all()


def test_events_bound_a_wide_table_whatever_its_weights_took(monkeypatch: pytest.MonkeyPatch) -> None:
    widened = Narrowed.widened

    def costly(
        narrowed: Narrowed, protocol: funnel.Protocol, guarantee: PosteriorGuarantee, budget: Budget
    ) -> SparseWeights:
        weights = widened(narrowed, protocol, guarantee, budget)
        budget.spend(budget.remaining)
        return weights

    monkeypatch.setattr(Narrowed, "widened", costly)
    counts = np.random.default_rng(3).integers(0, 6, size=(4, 1100))
    joint = funnel.Joint.from_counts(counts[:, counts.any(axis=0)])
    best = funnel.optimal(joint, funnel.LIP(0.5), gap=1e-3, time_limit=1.0)
    assert best.status == "time limit"
    assert best.utility <= best.bound < joint.entropy - 0.1


def test_an_event_whose_programme_fails_leaves_the_bound_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    joint = funnel.Joint.from_counts([[30, 10, 4, 9], [10, 50, 9, 2], [5, 5, 40, 1]])
    without = bound_by_events(joint, funnel.LIP(0.5), 1e-9, Budget.of(None))
    calls = itertools.count()

    def failing(*given: Any) -> Any:
        if next(calls) == 0:
            raise funnel.SolverError("the linear programme over pairs of inputs failed")
        return best_shares(*given)

    monkeypatch.setattr("funnel.solver.wide.best_shares", failing)
    bound = bound_by_events(joint, funnel.LIP(0.5), 1e-9, Budget.of(None))
    assert funnel.optimal(joint, funnel.LIP(0.5)).utility <= without <= bound < joint.entropy
