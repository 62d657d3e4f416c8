"""The optimum by variance: against all vertices, against protocols at random, and with its certificate."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import funnel
from funnel.guarantees.base import ConeGuarantee
from funnel.guarantees.sided import over_set
from funnel.joint import FloatArray
from funnel.measures.utilities import Variance
from funnel.solver.budget import Budget
from funnel.solver.cuts import SetProblem
from funnel.solver.goal import ENTROPY, Entropy, SquaredMean
from funnel.solver.lift_cuts import cuts_for
from funnel.solver.parts import PartsPricer
from funnel.solver.problem import Problem
from funnel.solver.repair import repaired
from funnel.solver.slopes import SlopePricer
from funnel.solver.split import Split
from funnel.solver.threshold_pricing import ThresholdPricer
from funnel.solver.vertices import polytope_vertices


def distributions(seed: int, number: int, most: int = 6) -> list[funnel.Joint]:
    """Random tables of two to four secrets whose inputs have random numbers for names."""
    random, found = np.random.default_rng(seed), []
    for _ in range(number):
        c, a = random.integers(2, 5), random.integers(2, most)
        counts = random.integers(1, random.choice([4, 40, 4000]), size=(c, a))
        names = [str(n) for n in random.choice(np.arange(-50, 50), size=a, replace=False)]
        found.append(funnel.Joint.from_counts(counts, inputs=names))
    return found


def vertices_of(joint: funnel.Joint, guarantee: ConeGuarantee) -> FloatArray:
    vertices = np.maximum(polytope_vertices(guarantee.cone(joint) / joint.p_input), 0)
    return np.asarray(vertices / vertices.sum(axis=1, keepdims=True))


def listed(joint: funnel.Joint, guarantee: ConeGuarantee) -> float:
    """The optimum by a linear programme over all vertices of the cone, in numbers as they are."""
    vertices = vertices_of(joint, guarantee)
    numbers = np.array([float(label) for label in joint.inputs])
    mean = float(numbers @ joint.p_input)
    gains = (vertices @ (numbers - mean)) ** 2
    best = linprog(-gains, A_eq=vertices.T, b_eq=joint.p_input)
    return float(-best.fun / (joint.p_input @ (numbers - mean) ** 2))


def explained(joint: funnel.Joint, protocol: funnel.Protocol) -> Fraction:
    """Var E[X|Y] / Var X by its definition, in fractions, from counts and integer weights."""
    numbers = [Fraction(label) for label in joint.inputs]
    people = [int(count) for count in joint.counts.sum(axis=0)]
    n = sum(people)
    mean = sum((x * k for x, k in zip(numbers, people, strict=True)), Fraction()) / n
    variance = sum((k * (x - mean) ** 2 for x, k in zip(numbers, people, strict=True)), Fraction()) / n
    between = Fraction()
    for row in protocol.weights_for(joint.inputs).tolist():
        masses = [Fraction(w * k) for w, k in zip(row, people, strict=True)]
        if total := sum(masses, Fraction()):
            expected = sum((m * x for m, x in zip(masses, numbers, strict=True)), Fraction()) / total
            between += total * (expected - mean) ** 2
    return between / protocol.denominator / n / variance


@pytest.mark.parametrize("method", ["vertices", "columns"])
def test_the_optimum_is_that_over_all_vertices(method: str) -> None:
    for seed, joint in enumerate(distributions(0, 40)):
        guarantee = (funnel.LIP if seed % 2 else funnel.LDP)([0.1, 0.5, 1.0][seed % 3])
        best = funnel.optimal(joint, guarantee, gap=1e-6, method=method, utility="variance")
        optimum = listed(joint, guarantee)
        assert best.utility <= optimum + 1e-9
        assert best.bound >= optimum - 1e-9
        assert best.gap <= 1e-6
        assert best.status == "optimal"
        assert guarantee.holds(joint, best.protocol)
        assert best.utility == pytest.approx(float(explained(joint, best.protocol)), abs=1e-12)


def test_no_protocol_at_random_explains_more() -> None:
    random, tried = np.random.default_rng(4), 0
    for joint in distributions(1, 12):
        guarantee = funnel.LIP(0.5)
        best = funnel.optimal(joint, guarantee, utility="variance")
        useful, vertices = Variance.of(joint.inputs), vertices_of(joint, guarantee)
        for _ in range(20):
            # A random objective gives a random corner of all protocols.
            mixture = linprog(-random.random(len(vertices)), A_eq=vertices.T, b_eq=joint.p_input).x
            matrix = (vertices * mixture[:, None] / joint.p_input)[mixture > 1e-12]
            means = (matrix * joint.p_input) @ np.array([float(label) for label in joint.inputs])
            q = matrix @ joint.p_input
            spread = float(joint.p_input @ useful.of_inputs(joint.inputs, joint.p_input) ** 2) - float(means.sum()) ** 2
            assert float((means**2 / q).sum() - means.sum() ** 2) / spread <= best.bound + 1e-9
            tried += 1
    assert tried == 240


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 2.0), st.floats(1e-6, 0.1))
def test_pricing_is_a_bound_and_finds_what_reaches_it(seed: int, epsilon: float, target: float) -> None:
    (joint,) = distributions(seed, 1)
    problem = Problem.of(joint, funnel.LIP(epsilon), False, utility=Variance.of(joint.inputs))
    vertices = vertices_of(joint, funnel.LIP(epsilon))
    prices = np.random.default_rng(seed).normal(size=len(joint.inputs))
    most = float((problem.region.gains(vertices) - vertices @ prices).max())
    pricer = SlopePricer(problem.region)
    pricer.patience = 10**6
    found = pricer.search(prices, target)
    assert found.bound >= most - 1e-9
    assert found.bound <= max(target, most) + 1e-6
    best = (problem.region.gains(found.columns) - found.columns @ prices).max(initial=-np.inf)
    assert best >= most - 1e-6 or most <= target + 1e-6


def test_a_search_that_is_stopped_still_has_a_true_bound() -> None:
    joint = funnel.Joint.from_counts(
        np.random.default_rng(5).integers(1, 60, size=(4, 12)), inputs=[str(n * n) for n in range(12)]
    )
    whole = funnel.optimal(joint, funnel.LDP(0.3), utility="variance", method="columns")
    for seconds in (1e-4, 1e-3, 1e-2):
        best = funnel.optimal(joint, funnel.LDP(0.3), utility="variance", method="columns", time_limit=seconds)
        assert best.bound >= whole.utility
        assert best.utility <= whole.bound
        assert funnel.LDP(0.3).holds(joint, best.protocol)


def test_scale_and_origin_do_not_matter() -> None:
    (joint,) = distributions(6, 1)
    plain = funnel.optimal(joint, funnel.LIP(0.4), utility="variance")
    moved = {label: 1e6 + 1000 * float(label) for label in joint.inputs}
    other = funnel.optimal(joint, funnel.LIP(0.4), utility=funnel.measures.Variance(moved))
    assert other.utility == pytest.approx(plain.utility, abs=1e-6)


def test_numbers_that_do_not_vary_leave_nothing_to_explain() -> None:
    joint = funnel.Joint.from_counts([[3, 5], [8, 2]])
    best = funnel.optimal(joint, funnel.LIP(0.1), utility=funnel.measures.Variance({"X0": 7, "X1": 7}))
    assert (best.utility, best.status) == (0.0, "optimal")
    assert best.bound < 1e-12


def test_what_reads_the_secret_explains_no_less() -> None:
    for joint in distributions(7, 5, 4):
        blind = funnel.optimal(joint, funnel.LIP(0.3), gap=1e-4, utility="variance")
        seeing = funnel.optimal(joint, funnel.LIP(0.3), gap=1e-4, utility="variance", reads_secret=True)
        assert seeing.utility >= blind.utility - 1e-4
        assert seeing.bound >= blind.utility
        assert funnel.LIP(0.3).holds(joint, seeing.protocol)


@pytest.mark.parametrize("guarantee", [funnel.RLIP(0.8), funnel.RLDP(0.8, set="boxes"), funnel.RLDP(0.8)])
def test_over_a_set_of_distributions(guarantee: funnel.Guarantee) -> None:
    counts = np.array([[400, 300, 200, 100], [100, 200, 300, 400]])
    joint = funnel.Joint.from_counts(counts, inputs=["1", "2", "3", "20"])
    nominal = funnel.optimal(
        joint, funnel.LDP(0.8) if guarantee.name == "rldp" else funnel.LIP(0.8), utility="variance"
    )
    best = funnel.optimal(joint, guarantee, gap=1e-3, utility="variance")
    assert 0 < best.utility <= best.bound
    assert best.gap <= 1e-3
    assert best.utility <= nominal.bound
    assert guarantee.holds(joint, best.protocol)


def test_distributions_that_leave_much_open_are_priced_for_the_goal() -> None:
    """Where entropy is priced by thresholds of the widest distribution, the square of a mean is not."""
    counts = np.random.default_rng(0).integers(1, 9, size=(2, 40)) * [[1], [100]]
    joint = funnel.Joint.from_counts(counts, inputs=[str(n) for n in range(40)])
    guarantee = over_set(funnel.RLDP(1.0, set="boxes"), joint)
    assert guarantee is not None
    goal = SquaredMean.of(np.arange(40.0), joint.p_input)
    kinds = {}
    for what in (ENTROPY, goal):
        parts = cuts_for(SetProblem.of(joint, guarantee, what)).pricer(Budget.of(None))
        assert isinstance(parts, PartsPricer)
        kinds[what] = {type(one) for one in parts._pricers}
    assert kinds[goal] == {SlopePricer}
    assert ThresholdPricer in kinds[ENTROPY]


def test_perfect_privacy() -> None:
    joint = funnel.Joint.from_counts([[10, 20, 30], [20, 40, 60]], inputs=["1", "2", "4"])
    best = funnel.optimal(joint, funnel.PerfectPrivacy(), utility="variance")
    assert best.utility == pytest.approx(1.0)


def test_slopes_are_those_of_the_goal() -> None:
    random = np.random.default_rng(8)
    for goal in (ENTROPY, SquaredMean(random.normal(size=5))):
        masses = random.random(5)
        slopes = goal.slopes(masses[None] / masses.sum())[0]
        for x in range(5):
            step = np.zeros(5)
            step[x] = 1e-6
            ends = [m.sum() * float(goal.gains(m[None] / m.sum())[0]) for m in (masses - step, masses + step)]
            assert slopes[x] == pytest.approx((ends[1] - ends[0]) / 2e-6, abs=1e-5)
        first = goal.first_prices(np.ones(5))
        points = random.dirichlet(np.ones(5), size=50)
        assert (goal.gains(points) <= points @ first + 1e-12).all()
        assert goal.most(points.mean(axis=0)) >= goal.gains(points).mean()
    assert isinstance(ENTROPY, Entropy)


def test_moving_inside_keeps_the_value_of_variance() -> None:
    (joint,) = distributions(9, 1)
    problem = Problem.of(joint, funnel.LIP(0.5), False, utility=Variance.of(joint.inputs))
    distribution, goal = problem.distribution, problem.region.goal
    vertices = vertices_of(joint, funnel.LIP(0.5))
    mass = linprog(-goal.gains(vertices), A_eq=vertices.T, b_eq=distribution).x
    split = Split(vertices[mass > 1e-12], mass[mass > 1e-12], float(goal.gains(vertices) @ mass), 1.0)
    moved = repaired(split, distribution, problem.tightened(1e-7), None, Budget.of(None), goal=goal)
    assert moved is not None
    assert moved.value == pytest.approx(split.value, abs=1e-5)
    assert moved.posteriors.T @ moved.mass == pytest.approx(distribution, abs=1e-9)


def test_values_without_a_number_are_refused_by_name() -> None:
    joint = funnel.Joint.from_counts([[3, 5], [8, 2]], inputs=["1", "many"])
    with pytest.raises(funnel.SpecError, match="'many' is none"):
        funnel.optimal(joint, funnel.LIP(1.0), utility="variance")
    with pytest.raises(funnel.SpecError, match="unknown utility 'variation'"):
        funnel.optimal(joint, funnel.LIP(1.0), utility="variation")
    with pytest.raises(funnel.SpecError, match="1 have none"):
        funnel.optimal(joint, funnel.LIP(1.0), utility=funnel.measures.Variance({"1": 1}))
    with pytest.raises(funnel.SpecError, match="finite number"):
        funnel.measures.Variance({"1": np.nan})
    with pytest.raises(funnel.SpecError, match="leave counts out"):
        funnel.optimal(
            joint,
            funnel.RLDP(1.0),
            reads_secret=True,
            counts="secret and inputs",
            utility=funnel.measures.Variance({"1": 1, "many": 9}),
        )
    two = funnel.Joint.from_counts([[3, 5], [8, 2]], inputs=[("1", "2"), ("3", "4")])
    with pytest.raises(funnel.SpecError, match="one column of numbers"):
        funnel.optimal(two, funnel.LIP(1.0), utility="variance")


@pytest.mark.parametrize(
    ("column", "secret", "epsilon", "of_information", "of_variance"),
    [
        ("age", "income", 0.25, 0.53, 0.69),
        ("hours-per-week", "sex", 0.25, 0.36, 0.63),
        ("education-num", "income", 0.25, 0.09, 0.40),
    ],
)
def test_more_is_explained_of_real_numbers_than_by_the_optimum_of_information(
    column: str, secret: str, epsilon: float, of_information: float, of_variance: float
) -> None:
    """METHOD section 9, the figures of its prototype."""
    joint = funnel.Joint.from_table("data/adult.parquet", secret=[secret], inputs=[column])
    informed = funnel.optimal(joint, funnel.LIP(epsilon), gap=1e-4).protocol
    assert Variance.of(joint.inputs).told(joint, informed) == pytest.approx(of_information, abs=0.006)
    best = funnel.optimal(joint, funnel.LIP(epsilon), gap=1e-4, utility="variance")
    assert best.utility == pytest.approx(of_variance, abs=0.006)
    assert best.gap <= 1e-4
