"""Column generation against vertex enumeration: every bound is a bound and every utility is reached."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import linprog

import funnel
from funnel.errors import Terminated, terminable
from funnel.solver import batch
from funnel.solver.bounds import linear_bounds, priced_bounds, proven_empty
from funnel.solver.budget import Budget
from funnel.solver.columns import ColumnGeneration
from funnel.solver.goal import negative_entropy
from funnel.solver.optimum import optimal
from funnel.solver.problem import Problem
from funnel.solver.region import Region
from funnel.solver.search import optimal_over_cone
from funnel.solver.split import best_split
from funnel.solver.vertices import polytope_vertices

LAWS = 400


def distributions(seed: int, number: int) -> list[np.ndarray]:
    """Small tables of counts: sparse, coarse, fine; some with near-duplicate inputs, rare secrets, empty rows."""
    random = np.random.default_rng(seed)
    found = []
    while len(found) < number:
        c, a = random.integers(1, 5), random.integers(1, 7)
        counts = random.integers(0, random.choice([3, 20, 200, 100_000]), size=(c, a))
        trait = random.integers(6)
        if trait == 0:
            counts[:, 0] = counts[:, -1] * random.integers(1, 3)
        elif trait == 1:
            counts[:, 0] = counts[:, -1] + random.integers(0, 2, size=c)
        elif trait == 2:
            counts[0] = 0
            counts[0, random.integers(a)] = 1
        if counts.sum() > 0:
            found.append(counts)
    return found


def test_bound_and_value_on_hundreds_of_small_distributions() -> None:
    """In the cone itself, without rounding to integers: every claim of column generation against all vertices."""
    random = np.random.default_rng(1)
    compared = 0
    for counts in distributions(0, LAWS):
        joint = funnel.Joint.from_counts(counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0])
        epsilon = float(random.choice([0.01, 0.1, 0.3, 0.5, 1.0, 2.0, 4.0]))
        guarantee = (funnel.LIP if random.random() < 0.6 else funnel.LDP)(epsilon)
        distribution = joint.p_input
        rows = guarantee.cone(joint) / distribution
        region = Region.of(rows, distribution)
        vertices = polytope_vertices(rows) if len(region.rows) else np.eye(len(distribution))
        vertices = np.maximum(vertices, 0) / np.maximum(vertices, 0).sum(axis=1, keepdims=True)
        try:
            listed = best_split(vertices, distribution)
        except funnel.SolverError:
            # Double description in floats loses vertices of thin regions; there is nothing to compare with.
            continue
        # A coarse gap makes the bound do the work that otherwise the columns do.
        gap = float(random.choice([1e-6, 1e-2]))
        found = optimal_over_cone(guarantee.cone(joint), distribution, gap=gap)
        assert found.finished
        assert found.split.bound >= listed.value - 1e-12
        assert found.split.value <= listed.bound + 1e-9
        assert found.split.bound - found.split.value <= gap
        compared += 1
    assert compared > 0.95 * LAWS


@pytest.mark.parametrize("seed", range(3))
def test_protocols_of_both_methods(seed: int) -> None:
    for counts in distributions(100 + seed, 12):
        joint = funnel.Joint.from_counts(counts)
        for guarantee in (funnel.LIP(0.7), funnel.LDP(1.1)):
            columns = optimal(joint, guarantee, method="columns")
            vertices = optimal(joint, guarantee, method="vertices")
            assert guarantee.holds(joint, columns.protocol)
            assert columns.status == "optimal"
            assert columns.utility <= vertices.bound + 1e-12
            assert columns.bound >= vertices.utility - 1e-12
            assert len(columns.protocol.weights) <= counts.shape[1]


def test_bound_holds_for_any_multipliers() -> None:
    """Weak duality with the worst of solvers: random multipliers never give a bound below a vertex of the box."""
    random = np.random.default_rng(4)
    for counts in distributions(5, 200):
        if (counts.sum(axis=0) == 0).any() or (counts.sum(axis=1) == 0).any():
            continue
        joint = funnel.Joint.from_counts(counts)
        distribution = joint.p_input
        region = Region.of(funnel.LIP(0.5).cone(joint) / distribution, distribution)
        prices = random.normal(size=len(distribution))
        duals = random.normal(size=(20, len(region.system))) * random.choice([0.1, 1.0, 10.0])
        ones = np.ones((20, len(distribution)))
        bounds, _, _ = priced_bounds(region, prices, duals, 0 * ones, ones)
        assert (bounds >= float(negative_entropy(distribution) - prices @ distribution) - 1e-12).all()


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 1e-6, 1e-3])
def test_thin_regions(epsilon: float) -> None:
    joint = funnel.Joint.from_counts([[40, 10, 3, 7], [5, 30, 6, 1], [12, 9, 22, 8]])
    solution = optimal(joint, funnel.LIP(epsilon), method="columns")
    assert funnel.LIP(epsilon).holds(joint, solution.protocol)
    assert solution.utility <= solution.bound
    wider = optimal(joint, funnel.LIP(2 * epsilon + 1e-3), method="columns")
    assert wider.bound >= solution.utility


def test_rare_secrets_and_near_duplicates() -> None:
    counts = np.array([[1, 0, 0, 0], [40_000, 20_001, 10_000, 29_999], [20_000, 40_000, 20_001, 20_000]])
    joint = funnel.Joint.from_counts(counts)
    columns = optimal(joint, funnel.LIP(0.5), method="columns")
    vertices = optimal(joint, funnel.LIP(0.5), method="vertices")
    assert columns.bound >= vertices.utility - 1e-12
    assert columns.utility == pytest.approx(vertices.utility, abs=1e-6)


@pytest.mark.parametrize("counts", [[[5]], [[5], [3]], [[5, 2, 1]], [[0, 4], [0, 4]], [[3, 1], [1, 3]]])
def test_smallest_alphabets(counts: list[list[int]]) -> None:
    joint = funnel.Joint.from_counts(counts)
    for method in ("auto", "columns", "vertices"):
        solution = optimal(joint, funnel.LIP(0.3), method=method)
        assert solution.status == "optimal"
        assert funnel.LIP(0.3).holds(joint, solution.protocol)


def random_joint(c: int, a: int, seed: int) -> funnel.Joint:
    return funnel.Joint.from_counts(np.random.default_rng(seed).integers(1, 1000, size=(c, a)))


@pytest.mark.parametrize("seconds", [1e-9, 0.02, 0.1])
def test_a_budget_gives_a_protocol_with_a_true_bound(seconds: float) -> None:
    """So much work is not enough here, on any machine: it is counted, and the clock stands still."""
    joint, guarantee = random_joint(6, 40, 2), funnel.LIP(0.5)
    stopped, again = (
        optimal(joint, guarantee, time_limit=Budget.of(seconds, lambda: 0.0), method="columns") for _ in range(2)
    )
    assert stopped.status == "time limit"
    assert not stopped.finished
    assert guarantee.holds(joint, stopped.protocol)
    assert 0 <= stopped.utility <= stopped.bound <= joint.entropy + 1e-9
    assert stopped.protocol.digest == again.protocol.digest
    assert (stopped.utility, stopped.bound) == (again.utility, again.bound)


def test_more_work_is_never_worse() -> None:
    joint, guarantee = random_joint(6, 30, 5), funnel.LIP(0.3)
    found = [optimal(joint, guarantee, time_limit=seconds, method="columns") for seconds in (1e-9, 0.01, 0.1, 1.0)]
    assert all(earlier.utility <= later.utility + 1e-6 for earlier, later in itertools.pairwise(found))
    assert all(earlier.bound >= later.bound for earlier, later in itertools.pairwise(found))


def test_the_safety_clock_ends_a_search_and_says_so() -> None:
    joint, guarantee = random_joint(6, 40, 2), funnel.LIP(0.5)
    calls = itertools.count()
    # A machine so slow that every look at the clock takes a minute.
    stopped = optimal(joint, guarantee, time_limit=Budget.of(1e4, lambda: 6e2 * next(calls)), method="columns")
    assert stopped.status == "clock"
    assert guarantee.holds(joint, stopped.protocol)
    assert stopped.utility <= stopped.bound


def test_termination_ends_a_search_and_whatever_it_is_for() -> None:
    def end(what: str, done: int, total: int | None) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with terminable() as terminated:
        with pytest.raises(Terminated):
            optimal(random_joint(5, 12, 3), funnel.LIP(0.5), method="columns", progress=end)
        assert terminated()


@pytest.mark.parametrize(("after", "reads_secret"), [(0, False), (1, False), (0, True)])
@pytest.mark.parametrize("by_signal", [False, True])
def test_interrupt_gives_a_protocol_with_a_true_bound(after: int, reads_secret: bool, by_signal: bool) -> None:
    joint = random_joint(3, 6, 3) if reads_secret else random_joint(5, 12, 3)
    guarantee = funnel.LIP(0.5)
    calls = itertools.count()

    def interrupt(what: str, done: int, total: int | None) -> None:
        if next(calls) == after:
            if by_signal:
                os.kill(os.getpid(), signal.SIGINT)
            else:
                raise KeyboardInterrupt

    stopped = optimal(joint, guarantee, method="columns", progress=interrupt, reads_secret=reads_secret)
    whole = optimal(joint, guarantee, method="columns", reads_secret=reads_secret)
    assert stopped.status == "interrupted"
    assert not stopped.finished
    assert guarantee.holds(joint, stopped.protocol)
    assert stopped.utility <= whole.bound
    assert stopped.bound >= whole.utility


def clock_that_interrupts(moment: int) -> Callable[[], float]:
    """The budget looks at its clock wherever it is asked whether to go on: as good a moment as any for Ctrl-C."""
    looks = itertools.count()

    def clock() -> float:
        if next(looks) == moment:
            os.kill(os.getpid(), signal.SIGINT)
        return 0.0

    return clock


def test_interrupts_at_any_moment_of_a_search_that_reads_the_secret() -> None:
    """In the joint ascent and in the search that comes before, too."""
    joint, guarantee = random_joint(3, 4, 4), funnel.LIP(0.5)
    stopped = []
    for moment in itertools.count(1, 7):
        budget = Budget.of(1e6, clock_that_interrupts(moment))
        found = optimal(joint, guarantee, time_limit=budget, reads_secret=True)
        assert guarantee.holds(joint, found.protocol)
        assert found.utility <= found.bound
        if found.status == "optimal":
            break
        assert found.status == "interrupted"
        stopped.append(found.utility)
    assert len(stopped) > 3
    assert stopped[-1] > stopped[0]


def test_a_search_closes_in() -> None:
    joint = random_joint(5, 10, 6)
    region = Region.of(funnel.LIP(0.5).cone(joint) / joint.p_input, joint.p_input)
    told: list[tuple[float, float]] = []
    ColumnGeneration(region).run(1e-6, trace=lambda *now: told.append(now))
    values, bounds = np.array(told).T
    assert (np.diff(values) >= -1e-9).all()
    assert (np.diff(bounds) <= 0).all()
    assert bounds[-1] - values[-1] <= 1e-6


def test_progress_is_told_in_words() -> None:
    told: list[tuple[str, int, int | None]] = []
    found = optimal(random_joint(5, 10, 6), funnel.LIP(0.5), method="columns", progress=lambda *now: told.append(now))
    assert told[-1] == (f"{found.utility:.5f} nats, at most {found.bound:.5f}", 0, None)


def test_same_input_same_protocol() -> None:
    joint = random_joint(5, 10, 8)
    first, second = (optimal(joint, funnel.LIP(0.5), method="columns") for _ in range(2))
    assert first.protocol.digest == second.protocol.digest
    assert first.bound == second.bound


def test_objective_through_an_image() -> None:
    """A protocol that reads (s, x) and is judged by I(X;Y): against all vertices, valued through the image."""
    joint = funnel.Joint.from_counts([[30, 10, 3], [5, 30, 6]])
    wide = joint.with_secret()
    distribution = wide.p_input
    image = np.hstack([np.eye(3), np.eye(3)])
    guarantee = funnel.LIP(0.6)
    vertices = polytope_vertices(guarantee.cone(wide) / distribution)
    found = optimal_over_cone(guarantee.cone(wide), distribution, image=image)
    gains = negative_entropy(vertices @ image.T)
    best = -linprog(-gains, A_eq=vertices.T, b_eq=distribution, bounds=(0, None)).fun
    assert found.split.value <= best + 1e-9
    assert best - 1e-9 <= found.split.bound <= best + 1e-6
    blind = optimal(joint, guarantee, method="vertices")
    assert joint.entropy + found.split.value >= blind.utility - 1e-6


def test_batches_solve_linear_programmes() -> None:
    joint = random_joint(4, 9, 12)
    distribution = joint.p_input
    rows = funnel.LIP(0.4).cone(joint) / distribution
    region = Region.of(rows, distribution)
    costs = np.random.default_rng(2).normal(size=(40, 9))
    ones = np.ones_like(costs)
    programme = batch.BatchProgramme(region)
    start = programme.slack_basis()[np.zeros(len(costs), dtype=np.intp)]
    answers = programme.maximise(costs, 0 * ones, ones, start, steps=1000)
    assert answers.solved.all()
    assert (linear_bounds(region, costs, answers.duals, 0 * ones, ones) >= (answers.points * costs).sum(1)).all()
    expected = [
        -linprog(-cost, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=np.ones((1, 9)), b_eq=[1.0]).fun for cost in costs
    ]
    assert (answers.points * costs).sum(axis=1) == pytest.approx(expected, abs=1e-8)


def test_empty_boxes_are_proven_empty() -> None:
    joint = random_joint(4, 6, 13)
    distribution = joint.p_input
    region = Region.of(funnel.LIP(0.2).cone(joint) / distribution, distribution)
    programme = batch.BatchProgramme(region)
    lower = np.zeros((1, 6))
    lower[0, 0] = 0.9999
    upper = np.ones((1, 6))
    answers = programme.maximise(np.zeros((1, 6)), lower, upper, programme.slack_basis())
    reachable = -linprog(
        -np.eye(6)[0], A_ub=region.rows, b_ub=np.zeros(len(region.rows)), A_eq=np.ones((1, 6)), b_eq=[1.0]
    ).fun
    assert reachable < 0.9999
    assert answers.empty[0]
    assert proven_empty(region, answers.duals, lower, upper)[0]
    assert not proven_empty(region, answers.duals, 0 * lower, upper)[0]


@pytest.mark.parametrize("reads_secret", [False, True])
def test_pricing_pairs_of_secrets_by_their_least_lift_is_the_same_optimum(reads_secret: bool) -> None:
    random = np.random.default_rng(4)
    for _ in range(2 if reads_secret else 12):
        c, a = (4, 2) if reads_secret else (random.integers(4, 7), random.integers(3, 7))
        joint = funnel.Joint.from_counts(random.integers(1, random.choice([5, 500]), size=(c, a)))
        problem = Problem.of(joint, funnel.LDP(float(random.choice([0.2, 0.5, 1.5]))), reads_secret)
        assert problem.priced.levels == 1
        assert len(problem.priced.rows) < len(problem.rows)
        found = ColumnGeneration(problem.priced).run(1e-4)
        known = ColumnGeneration(problem.region).run(1e-4)
        assert found.finished
        assert found.split.bound >= known.split.value - 1e-12
        assert known.split.bound >= found.split.value - 1e-12
        # Every posterior it took meets the conditions on pairs.
        assert (found.split.posteriors @ problem.region.rows.T <= 1e-8).all()
