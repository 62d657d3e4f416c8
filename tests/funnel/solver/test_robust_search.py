"""The optimum over the χ² set by levels of two secrets and joint ascents: bounds, what is inside, and limits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import funnel
from funnel import RLDP, Joint, SolverError
from funnel.guarantees.worst_case import pair_ratios, worst_pair
from funnel.joint import FloatArray
from funnel.measures.information import information_of
from funnel.mechanisms import mechanism
from funnel.solver.budget import Budget
from funnel.solver.cuts import SetProblem
from funnel.solver.goal import ENTROPY
from funnel.solver.request import Solution
from funnel.solver.robust_ascent import RobustCone, ascended, crossed, nothing_disclosed
from funnel.solver.robust_pricing import RobustPricer
from funnel.solver.robust_search import searchable, searched
from funnel.solver.search import optimal_over_cone
from funnel.solver.simple_polytope import SimplePolytope

SMALL = Joint.from_counts(np.array([[90, 320, 20], [212, 37, 61]]))
# One combination never occurs.
LARGER = Joint.from_counts(np.array([[90, 320, 20, 44], [212, 37, 61, 3], [94, 19, 147, 80], [0, 60, 30, 170]]))


def cone_of(joint: Joint, epsilon: float) -> RobustCone:
    return RobustCone(SetProblem.of(joint.with_secret(), RLDP(epsilon, set="chi2")), Budget.of(None))


def pricer_of(joint: Joint, epsilon: float, share: float = 0.35) -> RobustPricer:
    near = RLDP(epsilon, set="chi2").neighbourhood(joint.with_secret())
    return RobustPricer(near, epsilon, share, Budget.of(None))


def rows_inside(cone: RobustCone, number: int, seed: int) -> FloatArray:
    """Posteriors that are inside by the exact worst case: random ones, moved towards the average row."""
    random = np.random.default_rng(seed)
    spread = random.gamma(random.choice([0.05, 0.3, 2.0], size=(number, 1)), size=(number, len(cone.distribution)))
    posteriors = spread * cone.distribution + 1e-9 * cone.distribution
    return cone.inside(posteriors / posteriors.sum(axis=1, keepdims=True), True)


def worth(posteriors: FloatArray, prices: FloatArray) -> FloatArray:
    return np.asarray(ENTROPY.gains(posteriors) - posteriors @ prices)


def test_a_cube_is_cut_as_by_hand() -> None:
    rows = np.vstack([np.eye(3), -np.eye(3)])
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
    active = np.where(corners == 1, np.arange(3), np.arange(3) + 3)
    cube = SimplePolytope(rows, np.array([1.0, 1, 1, 0, 0, 0]), corners, active)
    assert cube.cut(np.ones(3), 3.5) == 0
    assert cube.cut(np.ones(3), 2.5) == 3
    assert cube.cut(-np.ones(3), -0.25) == 3
    found = {tuple(np.round(vertex, 6)) for vertex in cube.vertices}
    assert len(found) == 12
    assert {(0.5, 1.0, 1.0), (1.0, 0.5, 1.0), (1.0, 1.0, 0.5), (0.25, 0.0, 0.0), (1.0, 1.0, 0.0)} <= found
    assert len(cube.edges()[0]) == 12 * 3 // 2
    # A vertex that is missing is noticed.
    cube.vertices, cube._active = cube.vertices[1:], cube._active[1:]
    with pytest.raises(SolverError, match="not all there"):
        cube.edges()


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_what_is_moved_inside_is_inside(epsilon: float) -> None:
    for joint in (SMALL, LARGER):
        cone = cone_of(joint, epsilon)
        inside = rows_inside(cone, 12, 3)
        assert inside.sum(axis=1) == pytest.approx(1.0)
        for posterior in inside:
            ratio = worst_pair(cone.rows(posterior[None]), cone.near).ratio
            assert ratio <= np.exp(epsilon) * (1 + 1e-7)
        # And no further than need be: most of what was outside is at the limit.
        ratios = pair_ratios(cone.rows(inside), cone.near).found.max(axis=(1, 2))
        assert (ratios > np.exp(epsilon) * (1 - 1e-3)).mean() > 0.5


@pytest.mark.parametrize(("joint", "share"), [(SMALL, 0.2), (SMALL, 0.8), (LARGER, 0.35)])
def test_no_row_is_worth_more_than_the_bound(joint: Joint, share: float) -> None:
    """Brute force over rows inside, at several prices, before and after cuts; whatever θ is."""
    epsilon = 1.0
    cone, pricer = cone_of(joint, epsilon), pricer_of(joint, epsilon, share)
    inside = rows_inside(cone, 60, 1)
    random = np.random.default_rng(2)
    for step in range(2):
        prices = (0.4 + 0.3 * step) * np.log(cone.distribution) + random.normal(0, 0.3, len(cone.distribution))
        loosely, closely = pricer.search(prices, 0), pricer.search(prices, 15)
        best = float(worth(inside, prices).max())
        assert best <= closely.bound <= loosely.bound + 1e-9
        # What attains it nearly: a mixture whose total is 1.
        assert closely.mixtures.sum(axis=1) == pytest.approx(1.0, abs=1e-6)
        assert (closely.worth - closely.mixtures @ prices <= closely.bound + 1e-6).all()
        pricer.cut(closely.posteriors)
        cut = pricer.search(prices, 15).bound
        assert best <= cut <= closely.bound + 1e-9


def test_where_the_data_leave_nothing_open_it_is_plain_ldp() -> None:
    """With so many records that F is nearly a point; one brute force of it lists all vertices."""
    many = Joint.from_counts(SMALL.counts * 10**6)
    read = many.with_secret()
    problem = SetProblem.of(read, RLDP(1.0, set="chi2"))
    found, near = searched(problem, 1e-3, Budget.of(2.5)), problem.near
    rows = np.zeros((2, 2, 3))
    for s in range(2):
        rows[s, s], rows[s, 1 - s] = near.distribution[s], -np.exp(1.0) * near.distribution[1 - s]
    plain = optimal_over_cone(rows.reshape(2, 6), read.p_input, 1e-6).split
    assert plain.value - 0.02 <= found.kept.value <= plain.value + 1e-6
    assert plain.value <= found.bound


def test_where_the_data_leave_little_open_it_begins_at_the_optimum_of_the_estimate() -> None:
    """From shares of ln p nothing is found yet after so much work, and the bound is 1.97 nats."""
    joint = Joint.from_counts(LARGER.counts * 100)
    read = joint.with_secret()
    found = searched(SetProblem.of(read, RLDP(1.0, set="chi2")), 1e-3, Budget.of(0.7, lambda: 0.0))
    kept, bound = found.kept.value + read.entropy, found.bound + read.entropy
    assert 0 < kept <= bound <= 1.1 * kept


@pytest.fixture(scope="module")
def by_limit() -> dict[float, Solution]:
    guarantee = RLDP(1.0, set="chi2")
    return {
        limit: funnel.optimal(LARGER, guarantee, 1e-3, limit, reads_secret=True, counts="secret and inputs")
        for limit in (0.5, 3.0)
    }


def test_a_larger_limit_never_finds_less(by_limit: dict[float, Solution]) -> None:
    found = list(by_limit.values())
    for less, more in itertools.pairwise(found):
        assert more.utility >= less.utility - 1e-6
        assert more.bound <= less.bound + 1e-9
    assert found[-1].utility > 0.3


def test_it_keeps_more_than_polyopt_and_less_than_its_bound(by_limit: dict[float, Solution]) -> None:
    guarantee = RLDP(1.0, set="chi2")
    found = by_limit[3.0]
    read = LARGER.with_secret()
    assert guarantee.holds_for(read, found.protocol.weights)
    told = information_of((found.protocol.weights / 2.0**63 * read.p_input).T)
    assert told == pytest.approx(found.utility, abs=1e-9)
    other = mechanism("polyopt").fitted(LARGER, guarantee, Budget.of(0.5)).protocol
    most = information_of((other.weights / 2.0**63 * read.p_input).T)
    assert most < found.utility <= found.bound
    # No mixture of rows inside is worth more than the bound: prices of one side against the other.
    near = guarantee.neighbourhood(read)
    assert searchable(near, 1.0)
    cone = cone_of(LARGER, 1.0)
    kept = ascended(cone, rows_inside(cone, 40, 9), nothing_disclosed(cone), Budget.of(0.5))
    assert kept.mass @ kept.posteriors == pytest.approx(cone.distribution, abs=1e-7)
    assert nothing_disclosed(cone).value <= kept.value <= found.bound - read.entropy
    # What several ascents found, together, is no less than the best of them, and inside.
    for evenly in (False, True):
        together = crossed(cone, [kept], kept, Budget.of(0.5), evenly)
        assert kept.value <= together.value <= found.bound - read.entropy
        assert together.mass @ together.posteriors == pytest.approx(cone.distribution, abs=1e-7)
        ratios = [worst_pair(cone.rows(one[None]), cone.near).ratio for one in together.posteriors]
        assert max(ratios) <= np.exp(1.0) * (1 + 5e-3)


def test_the_distributions_of_half_spaces_are_worst() -> None:
    """Each half-space, at its own output, is the violation of its pair by the distributions of some share."""
    cone = cone_of(LARGER, 1.0)
    posteriors = np.random.default_rng(4).dirichlet(np.full(len(cone.distribution), 0.4), size=5)
    looked = cone.looked_at(posteriors)
    conditions, outputs = cone.half_spaces(looked, 0.3)
    over = (conditions * posteriors[outputs]).sum(axis=1)
    for y in range(5):
        worst = np.sort(looked.over[y].max(axis=2).ravel())[::-1][: int((outputs == y).sum())]
        assert over[outputs == y] == pytest.approx(worst, rel=1e-6, abs=1e-6)
    assert len(cone.half_spaces(cone.looked_at(cone.distribution[None]), 0.02)[0]) == 0


def test_small_tables_and_large_budgets_are_for_cutting_planes() -> None:
    near = RLDP(1.0, set="chi2").neighbourhood(SMALL.with_secret())
    assert not searchable(near, 1.0)
    larger = RLDP(1.0, set="chi2").neighbourhood(LARGER.with_secret())
    assert searchable(larger, 1.0)
    assert not searchable(larger, 8.0)
