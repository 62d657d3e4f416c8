"""The optimum: against brute force and against the polytope of PF theorem 2, with a bound that is one."""

from __future__ import annotations

import itertools
from decimal import Decimal, localcontext

import cdd
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import xlogy

import funnel
from funnel import LDP, LIP, Joint, SolverError, SpecError
from funnel.measures import mutual_information
from funnel.solver.budget import Budget
from funnel.solver.split import best_split
from funnel.solver.vertices import enumerate_vertices
from tests.strategies import joints

kinds = st.sampled_from([LIP, LDP])


def brute_force_value(joint: Joint, guarantee: funnel.Guarantee) -> float:
    """max I(X;Y) by trying every set of active conditions for a vertex: only for a handful of inputs."""
    joint = Joint.from_counts(joint.counts[:, joint.counts.sum(axis=0) > 0])
    p = joint.p_input
    rows = guarantee.cone(joint) / p
    conditions = np.vstack([-np.eye(len(p)), rows])
    scale = np.abs(conditions).max(axis=1)
    vertices = []
    for active in itertools.combinations(range(len(conditions)), len(p) - 1):
        system = np.vstack([np.ones(len(p)), conditions[list(active)] / scale[list(active), None]])
        if np.linalg.matrix_rank(system, tol=1e-9) < len(p):
            continue
        vertex = np.linalg.solve(system, np.eye(len(p))[0])
        if (conditions @ vertex <= 1e-9 * scale).all():
            vertices.append(np.maximum(vertex, 0))
    found = np.array(vertices)
    gains = xlogy(found, found).sum(axis=1)
    solved = linprog(-gains, A_eq=found.T, b_eq=p, method="highs")
    assert solved.status == 0
    return float(joint.entropy - solved.fun)


@settings(max_examples=80)
@given(joints(max_secrets=3, max_inputs=4), kinds, st.sampled_from([0.1, 0.5, 1.0, 2.0]))
def test_equal_to_brute_force(joint: Joint, kind: type[funnel.Guarantee], epsilon: float) -> None:
    assume((joint.counts.sum(axis=1) > 0).all())
    solution = funnel.optimal(joint, kind(epsilon))
    assert solution.status == "optimal"
    assert solution.utility <= solution.bound + 1e-12
    assert solution.gap <= 1e-6
    assert solution.utility == pytest.approx(brute_force_value(joint, kind(epsilon)), abs=1e-6)
    assert len(solution.protocol.outputs) <= len(joint.inputs)


def direct_polytope_value(joint: Joint, epsilon: float) -> float:
    """PF theorem 2: the best vertex of the polytope of all a × a channels that are ε-LDP."""
    c, a = joint.counts.shape
    given_secret = joint.input_given_secret
    rows = []
    for y, s, t in itertools.product(range(a), range(c), range(c)):
        if s != t:
            row = np.zeros((a, a))
            row[y] = np.exp(epsilon) * given_secret[t] - given_secret[s]
            rows.append([0.0, *row.ravel()])
    rows += [[0.0, *unit] for unit in np.eye(a * a)]
    equalities = []
    for x in range(a):
        row = np.zeros((a, a))
        row[:, x] = 1
        equalities.append([-1.0, *row.ravel()])
    matrix = cdd.matrix_from_array(
        equalities + rows, rep_type=cdd.RepType.INEQUALITY, lin_set=set(range(len(equalities)))
    )
    generators = np.array(cdd.copy_generators(cdd.polyhedron_from_matrix(matrix)).array)
    best = 0.0
    for point in generators[generators[:, 0] == 1, 1:]:
        channel = np.maximum(point.reshape(a, a), 0)
        distribution = channel * joint.p_input
        best = max(
            best,
            float(xlogy(distribution, channel).sum() - xlogy(distribution.sum(axis=1), distribution.sum(axis=1)).sum()),
        )
    return best


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("secrets", [2, 3])
def test_the_cone_way_for_ldp_equals_the_polytope_of_all_channels(size: int, seed: int, secrets: int) -> None:
    rng = np.random.default_rng(seed)
    joint = Joint.from_counts(rng.integers(1, 1000, (secrets, size)))
    for epsilon in (0.2, 0.7):
        solution = funnel.optimal(joint, LDP(epsilon))
        assert solution.utility == pytest.approx(direct_polytope_value(joint, epsilon), abs=1e-8)


@settings(max_examples=40)
@given(joints(max_secrets=3, max_inputs=3), kinds, st.integers(2, 5))
def test_splitting_an_input_in_proportion_changes_nothing_but_its_own_entropy(
    joint: Joint, kind: type[funnel.Guarantee], parts: int
) -> None:
    """Presolve is exact: what it merges and splits again is worth exactly the entropy of the split."""
    split = Joint.from_counts(np.column_stack([joint.counts * parts, joint.counts[:, 0]]))
    whole = Joint.from_counts(np.column_stack([joint.counts[:, :1] * (parts + 1), joint.counts[:, 1:] * parts]))
    guarantee = kind(0.5)
    gain = split.entropy - whole.entropy
    assert funnel.optimal(split, guarantee).utility == pytest.approx(
        funnel.optimal(whole, guarantee).utility + gain, abs=1e-6
    )


@settings(max_examples=40)
@given(joints(max_inputs=4), kinds, st.floats(0.01, 3), st.integers(0, 2**32 - 1))
def test_no_feasible_channel_beats_the_bound(
    joint: Joint, kind: type[funnel.Guarantee], epsilon: float, seed: int
) -> None:
    """Random channels, shrunk towards their marginal until they are feasible."""
    guarantee = kind(epsilon)
    solution = funnel.optimal(joint, guarantee)
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(4, 0.3), size=len(joint.inputs)).T
    marginal = matrix @ joint.p_input
    rows = guarantee.cone(joint)
    for share in np.linspace(0, 1, 30):
        channel = (1 - share) * matrix + share * marginal[:, None]
        if (rows @ channel.T <= 0).all():
            distribution = channel * joint.p_input
            value = xlogy(distribution, channel).sum() - xlogy(distribution.sum(axis=1), distribution.sum(axis=1)).sum()
            assert value <= solution.bound + 1e-9
            break


def test_a_budget_of_zero_and_a_large_one() -> None:
    joint = Joint.from_counts([[30, 10, 20], [10, 30, 20]])
    nothing = funnel.optimal(joint, LIP(0.0))
    assert LIP(0.0).holds(joint, nothing.protocol)
    everything = funnel.optimal(joint, LIP(30.0))
    assert everything.utility == pytest.approx(joint.entropy)
    assert everything.protocol.outputs.labels == joint.inputs.labels


def test_a_spent_budget_begins_no_enumeration() -> None:
    joint = Joint.from_counts(np.random.default_rng(8).integers(1, 9999, (3, 5)))
    budget = Budget.of(1.0, lambda: 0.0)
    budget.spend(budget.remaining)
    with pytest.raises(SolverError, match="within the limit"):
        funnel.optimal(joint, LDP(0.5), method="vertices", time_limit=budget)


def test_parameters_out_of_range() -> None:
    joint = Joint.from_counts([[1, 2], [2, 1]])
    with pytest.raises(SpecError, match="method"):
        funnel.optimal(joint, LIP(1.0), method="magic")
    with pytest.raises(SpecError, match="positive"):
        funnel.optimal(joint, LIP(1.0), gap=0)


@pytest.mark.parametrize("guarantee", [LIP(0.5), LDP(0.6), funnel.PML(0.3), funnel.PerfectPrivacy()])
def test_all_that_is_read_can_be_counted(guarantee: funnel.Guarantee) -> None:
    """By I((S,X);Y), as the mixture of all vertices over (s, x) has it; what counts X alone keeps less of both."""
    for seed in range(3):
        joint = Joint.from_counts(np.random.default_rng(seed).integers(1, 60, size=(2 + seed // 2, 3)))
        best = funnel.optimal(joint, guarantee, 1e-5, reads_secret=True, counts="secret and inputs")
        read = joint.with_secret()
        listed = best_split(enumerate_vertices(read, guarantee), read.p_input).value + read.entropy
        told = mutual_information(joint, best.protocol, "secret and inputs")
        assert best.utility == told
        assert listed - 2e-5 <= told <= listed + 1e-9
        assert listed <= best.bound + 1e-9
        assert guarantee.holds(joint, best.protocol)
        by_inputs = funnel.optimal(joint, guarantee, 1e-5, reads_secret=True).protocol
        assert mutual_information(joint, by_inputs, "secret and inputs") <= best.bound
    with pytest.raises(SpecError, match="counts inputs, or secret and inputs, not 'secret'"):
        funnel.optimal(joint, guarantee, counts="secret")


def entropy_of(sizes: list[int]) -> Decimal:
    """H of a distribution of records, nats, to forty digits."""
    with localcontext() as digits:
        digits.prec = 40
        n = Decimal(sum(sizes))
        return n.ln() - sum((size * Decimal(size).ln() for size in sizes), Decimal(0)) / n


@pytest.mark.parametrize("inputs", [5, 70])
def test_a_bound_that_is_an_entropy_is_not_below_it(inputs: int) -> None:
    """Of X published as it is, in a table or in pairs: it is its own optimum, to the last digit."""
    random = np.random.default_rng(inputs)
    for _ in range(12):
        joint = Joint.from_counts(random.integers(1, 1000, size=(2, inputs)))
        best = funnel.optimal(joint, LIP(12.0))
        assert best.status == "optimal"
        assert Decimal(best.bound) >= entropy_of(joint.counts.sum(axis=0).tolist())
        assert best.bound <= joint.entropy + 1e-11
