"""The rows of histories against scipy, one programme each: optimal, below the bounds, within the conditions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from funnel import ALIP, LDP, LIP, PML, PerfectPrivacy, SolverError
from funnel.history import programme, tangent
from funnel.history.conditions import Conditions, binding_rows
from funnel.history.history_groups import Group, GroupProgrammes
from funnel.history.programme import Rows, RowSearch
from funnel.history.shared_channel import SharedChannel
from funnel.solver.budget import Budget

GUARANTEES = [LIP(0.3), LIP(1.0), ALIP(0.4, 0.9), PML(0.4), LDP(0.7), LDP(0.0), PerfectPrivacy()]


def by_hand(distribution: np.ndarray, mass: np.ndarray, cone: np.ndarray, gains: np.ndarray) -> float:
    """The best value of one history: the conditions as they are written, for a solver that knows nothing of them."""
    outputs, inputs = gains.shape
    given_inputs, posteriors = distribution.sum(axis=0), cone @ distribution
    limits = posteriors - np.maximum(posteriors.sum(axis=1), 0)[:, None] * given_inputs
    answer = linprog(
        -(gains * mass).ravel(),
        A_ub=np.kron(np.eye(outputs), limits),
        b_ub=np.zeros(outputs * len(cone)),
        A_eq=np.kron(np.ones(outputs), np.eye(inputs)),
        b_eq=np.ones(inputs),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status == 0, answer.message
    return float(-answer.fun)


def violation(distribution: np.ndarray, cone: np.ndarray, channel: np.ndarray) -> float:
    """How far any output is beyond any condition, relatively to the numbers that are compared."""
    posteriors, sizes = cone @ distribution, np.abs(cone) @ distribution
    made = channel @ distribution.sum(axis=0)
    beyond = channel @ posteriors.T - np.outer(made, np.maximum(posteriors.sum(axis=1), 0))
    scale = channel @ sizes.T
    return float((beyond[made > 0] / np.maximum(scale[made > 0], 1e-300)).max(initial=0.0))


def case(seed: int, members: int, c: int, a: int, b: int, apart: float, zeros: float = 0.0) -> dict[str, Any]:
    """Histories with distributions around a common one: priors, masses and gains; some moved where they are apart."""
    rng = np.random.default_rng(seed)
    common = rng.dirichlet(np.ones(c * a)).reshape(c, a)
    noise = rng.dirichlet(np.full(c * a, 0.5), size=members).reshape(members, c, a)
    distributions = (1 - apart) * common + apart * noise
    distributions *= rng.random(distributions.shape) >= zeros
    distributions += (distributions.sum(axis=(1, 2)) == 0)[:, None, None]
    distributions /= distributions.sum(axis=(1, 2), keepdims=True)
    shares = rng.dirichlet(np.ones(members))
    return {
        "distributions": distributions,
        "masses": shares[:, None] * distributions.sum(axis=1),
        "prior_of": np.zeros(members, dtype=np.int64),
        "gains": np.log(np.maximum(rng.dirichlet(np.full(b, 0.3), size=a).T, 5e-4)),
        "prior": common.sum(axis=1),
    }


def solved(given_case: dict[str, Any], guarantee: Any, **options: Any) -> tuple[Rows, np.ndarray]:
    cone = guarantee.posterior_cone(given_case["prior"])
    arguments = (given_case[name] for name in ("distributions", "masses", "prior_of"))
    return RowSearch(*arguments, [cone]).best(given_case["gains"], **options), cone


def best_by_hand(given_case: dict[str, Any], cone: np.ndarray) -> np.ndarray:
    """The best value of every history."""
    pairs = zip(given_case["distributions"], given_case["masses"], strict=True)
    return np.array([by_hand(distribution, mass, cone, given_case["gains"]) for distribution, mass in pairs])


def check(rows: Rows, given_case: dict[str, Any], cone: np.ndarray, best: np.ndarray | None = None) -> np.ndarray:
    """What holds for any answer; returns the best value of every history, computed by hand unless it was before."""
    assert (rows.library >= 0).all()
    assert rows.library.sum(axis=1) == pytest.approx(1, abs=1e-13)
    assert sorted(set(rows.assigned.tolist())) == list(range(len(rows.library)))
    for h, (distribution, mass) in enumerate(zip(given_case["distributions"], given_case["masses"], strict=True)):
        channel = rows.library[rows.assigned[h]]
        assert violation(distribution, cone, channel) <= 1.001e-10
        assert (channel * given_case["gains"] * mass).sum() == pytest.approx(rows.values[h], abs=1e-12)
    best = best_by_hand(given_case, cone) if best is None else best
    assert (rows.values <= rows.bounds + 1e-12).all()
    assert (best <= rows.bounds + 1e-8).all()
    assert rows.value == pytest.approx(rows.values.sum())
    assert rows.bound == pytest.approx(rows.bounds.sum())
    return best


cases = st.builds(
    case,
    seed=st.integers(0, 2**32 - 1),
    members=st.integers(1, 7),
    c=st.integers(1, 4),
    a=st.integers(1, 5),
    b=st.integers(1, 5),
    apart=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    zeros=st.sampled_from([0.0, 0.0, 0.4]),
)


@settings(max_examples=150)
@given(cases, st.sampled_from(GUARANTEES))
def test_alone_every_history_has_its_optimum(given_case: dict[str, Any], guarantee: Any) -> None:
    rows, cone = solved(given_case, guarantee)
    best = check(rows, given_case, cone)
    assert rows.values == pytest.approx(best, abs=1e-8)
    assert rows.bounds == pytest.approx(best, abs=1e-8)


@settings(max_examples=100)
@given(cases, st.sampled_from(GUARANTEES), st.integers(1, 6))
def test_shared_channels_keep_the_conditions_of_every_member(
    given_case: dict[str, Any], guarantee: Any, channels: int
) -> None:
    rows, cone = solved(given_case, guarantee, channels=channels)
    best = check(rows, given_case, cone)
    assert (rows.values <= best + 1e-8).all()
    assert rows.programmes <= channels
    constants = given_case["masses"] @ given_case["gains"].T
    assert (rows.values >= constants.max(axis=1) - 1e-12).all()


@settings(max_examples=25)
@given(cases, st.sampled_from(GUARANTEES), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_order_of_histories_does_not_matter(
    given_case: dict[str, Any], guarantee: Any, channels: int, seed: int
) -> None:
    order = np.random.default_rng(seed).permutation(len(given_case["distributions"]))
    other = given_case | {name: given_case[name][order] for name in ("distributions", "masses", "prior_of")}
    (first, _), (second, _) = (solved(either, guarantee, channels=channels) for either in (given_case, other))
    assert np.array_equal(first.library, second.library)
    assert np.array_equal(first.assigned[order], second.assigned)
    assert np.array_equal(first.values[order], second.values)
    assert np.array_equal(first.bounds[order], second.bounds)


@settings(max_examples=60)
@given(cases, st.sampled_from(GUARANTEES), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_gains_may_change(given_case: dict[str, Any], guarantee: Any, channels: int, seed: int) -> None:
    cone = guarantee.posterior_cone(given_case["prior"])
    search = RowSearch(given_case["distributions"], given_case["masses"], given_case["prior_of"], [cone])
    search.best(given_case["gains"], channels=channels)
    rng = np.random.default_rng(seed)
    for size in (0.1, 3.0):
        changed = given_case | {"gains": given_case["gains"] + size * rng.normal(size=given_case["gains"].shape)}
        rows = search.best(changed["gains"], channels=channels)
        best = check(rows, changed, cone)
        if channels >= len(given_case["distributions"]):
            # Some keep the channel that they had, for which next to nothing is missing.
            least = programme._STAYS * abs(rows.value) + 1e-8
            assert (rows.bounds >= best - 1e-8).all()
            assert (rows.bounds - rows.values).sum() <= least
            assert (best - rows.values).sum() <= least


def test_programmes_are_solved_again_only_where_other_gains_may_change_a_channel() -> None:
    given_case = case(8, 200, 2, 6, 6, 0.6)
    cone = LIP(0.5).posterior_cone(given_case["prior"])
    search = RowSearch(given_case["distributions"], given_case["masses"], given_case["prior_of"], [cone])
    first = search.best(given_case["gains"])
    assert search.best(given_case["gains"]).programmes == 0
    gains = given_case["gains"].copy()
    # What only some histories ever publish.
    gains[2] += 0.1
    again, anew = (
        search.best(gains),
        RowSearch(given_case["distributions"], given_case["masses"], given_case["prior_of"], [cone]),
    )
    assert 0 < again.programmes < first.programmes
    assert again.value == pytest.approx(anew.best(gains).value, rel=programme._STAYS)


def test_what_was_found_stays_where_the_budget_ends() -> None:
    given_case = case(6, 90, 2, 5, 5, 0.4)
    cone = LIP(0.5).posterior_cone(given_case["prior"])
    search = RowSearch(given_case["distributions"], given_case["masses"], given_case["prior_of"], [cone])
    first = search.best(given_case["gains"])
    again = search.best(given_case["gains"], budget=1e-6)
    assert (first.programmes, again.programmes) == (90, 0)
    assert again.values == pytest.approx(first.values, abs=1e-12)
    changed = given_case | {"gains": given_case["gains"][::-1]}
    part = search.best(changed["gains"], budget=0.05)
    best = check(part, changed, cone)
    assert 0 < part.programmes < 90
    assert best.sum() > part.value


def test_neither_does_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    given_case = case(5, 120, 2, 5, 5, 0.4)
    answers = []
    for threads in (1, 7):
        monkeypatch.setattr(programme.os, "cpu_count", lambda threads=threads: threads)
        answers.append([solved(given_case, LIP(0.5), channels=channels)[0] for channels in (200, 80)])
    for first, second in zip(*answers, strict=True):
        assert np.array_equal(first.library, second.library)
        assert np.array_equal(first.assigned, second.assigned)
        assert np.array_equal(first.bounds, second.bounds)


def programmes(given_case: dict[str, Any], guarantee: Any) -> GroupProgrammes:
    distributions, masses, prior_of = (given_case[name] for name in ("distributions", "masses", "prior_of"))
    cone = binding_rows(guarantee.posterior_cone(given_case["prior"]))
    return GroupProgrammes(distributions, masses, masses.sum(axis=1), prior_of, [cone], None, given_case["gains"])


@pytest.mark.parametrize("guarantee", [LIP(0.5), ALIP(0.4, 0.9), PerfectPrivacy()])
def test_who_is_alone_is_judged_as_a_group_of_one_is(guarantee: Any) -> None:
    given_case = case(8, 60, 2, 5, 6, 0.9, 0.3)
    asked = programmes(given_case, guarantee)
    for h, found in enumerate(asked.solve([Group(np.array([h])) for h in range(60)], 0, np.inf)):
        own = Conditions.of(given_case["distributions"][h : h + 1], asked.cones[0])
        again = SharedChannel.for_needs(
            found.channel, own.needs(found.channel), found.bounds, found.prices, found.work, found.judging
        ).valued(given_case["masses"][h : h + 1], given_case["gains"])
        for name in ("constant", "levels", "values"):
            assert np.array_equal(getattr(found, name), getattr(again, name)), name


def test_a_chain_of_programmes_has_the_channels_that_each_has_by_itself() -> None:
    given_case = case(9, 40, 3, 5, 5, 0.6)
    asked = programmes(given_case, LIP(0.5))
    together = asked.solve([Group(np.array([h])) for h in range(40)], 0, np.inf)
    for h, found in enumerate(together):
        (alone,) = asked.solve([Group(np.array([h]))], 0, np.inf)
        assert found.values[0] == pytest.approx(alone.values[0], rel=1e-6, abs=1e-12)
        assert found.values[0] <= found.bounds[0] + 1e-9
        assert found.work > 0


def test_no_round_of_cutting_planes_is_begun_once_the_work_is_done() -> None:
    given_case = case(3, 80, 2, 6, 6, 0.7)
    asked, groups = programmes(given_case, LIP(0.5)), [np.arange(40), np.arange(40, 80)]
    without, ended, free = (
        asked.solve([Group(members) for members in groups], rounds, work)
        for rounds, work in ((0, np.inf), (tangent.ROUNDS, 0.0), (tangent.ROUNDS, np.inf))
    )
    assert [one.work for one in ended] == [one.work for one in without]
    assert all(one.work < more.work for one, more in zip(ended, free, strict=True))
    # What the first programme took counts for the second.
    some = asked.solve([Group(members) for members in groups], tangent.ROUNDS, without[0].work + 1.0)
    assert some[0].work > without[0].work
    assert some[1].judging < free[1].judging
    # A channel that members break more still keeps their conditions, with more of a constant row.
    cone = asked.cones[0]
    for members, one in zip(groups, ended, strict=True):
        can = one.levels >= 0
        assert can.any()
        for h, level in zip(members[can].tolist(), one.levels[can].tolist(), strict=True):
            assert violation(given_case["distributions"][h], cone, one.at_level(level)) <= 1e-9
        assert (one.values[can] <= one.bounds[can] + 1e-9).all()


def test_more_channels_miss_less() -> None:
    given_case = case(11, 150, 2, 6, 6, 0.15)
    missing = []
    best = None
    for channels in (4, 30, 150):
        rows, cone = solved(given_case, LIP(0.6), channels=channels)
        best = check(rows, given_case, cone, best)
        missing.append(best.sum() - rows.value)
        # One channel serves many where there are few.
        assert len(rows.library) <= 7 * channels + 6
    assert missing[0] > missing[1] > missing[2]
    assert missing[2] == pytest.approx(0, abs=1e-8)
    constants = given_case["masses"] @ given_case["gains"].T
    assert missing[1] < 0.1 * (best.sum() - constants.max(axis=1).sum())


def test_people_who_were_moved_keep_what_their_history_says() -> None:
    given_case = case(3, 60, 2, 6, 4, 0.6)
    rows, cone = solved(given_case, LIP(0.2))
    distributions = given_case["distributions"]
    moved = (distributions.sum(axis=2) @ cone.T > 0).any(axis=1)
    assert 10 < moved.sum() < 50
    check(rows, given_case, cone)
    telling = 0
    for h in np.flatnonzero(moved):
        channel = rows.library[rows.assigned[h]]
        joint = distributions[h] @ channel.T
        made = joint[:, joint.sum(axis=0) > 0]
        posteriors, alone = (
            made / made.sum(axis=0),
            np.repeat(distributions[h].sum(axis=1)[:, None], made.shape[1], axis=1),
        )
        assert posteriors == pytest.approx(alone, rel=1e-9)
        telling += bool(np.ptp(channel, axis=1).max() > 0.1)
    # Two secrets leave one equation: everything that does not tell of them may still be said.
    assert telling == moved.sum()


def test_histories_of_two_versions_keep_the_conditions_of_their_own_prior() -> None:
    given_case = case(7, 8, 3, 4, 4, 0.5)
    given_case["prior_of"] = np.arange(8) % 2
    cones = [LIP(0.4).posterior_cone(given_case["prior"]), LIP(0.4).posterior_cone(np.array([0.2, 0.3, 0.5]))]
    for channels in (8, 3):
        search = RowSearch(given_case["distributions"], given_case["masses"], given_case["prior_of"], cones)
        rows = search.best(given_case["gains"], channels=channels)
        for h in range(8):
            cone, channel = cones[h % 2], rows.library[rows.assigned[h]]
            assert violation(given_case["distributions"][h], cone, channel) <= 1.001e-10
            best = by_hand(given_case["distributions"][h], given_case["masses"][h], cone, given_case["gains"])
            assert rows.values[h] <= best + 1e-9 <= rows.bounds[h] + 2e-9
            if channels == 8:
                assert rows.values[h] == pytest.approx(best, abs=1e-8)


def test_a_vertex_of_the_region_has_nothing_left_to_say() -> None:
    # The inputs tell the secret half to half, and the posterior is at the end: two inputs, one equation.
    prior, end = np.array([0.5, 0.5]), np.exp(0.3) / 2
    cone = LIP(0.3).posterior_cone(prior)
    shares = np.array([end, 1 - end])
    vertex = np.array([[shares[0], 0.0, 0.0], [0.0, shares[1], 0.0]])
    inside = np.array([[0.5, 0.0, 0.0], [0.0, 0.5, 0.0]])
    edge = np.array([[shares[0] / 2, 0.0, shares[0] / 2], [0.0, shares[1], 0.0]])
    distributions = np.stack([vertex, inside, edge])
    masses = distributions.sum(axis=1) / 3
    rows = RowSearch(distributions, masses, np.zeros(3, dtype=np.int64), [cone]).best(np.log(np.eye(3) + 1e-3))
    assert rows.programmes == 2
    assert np.ptp(rows.library[rows.assigned[0]], axis=1) == pytest.approx(0)
    assert rows.bounds[0] == rows.values[0]
    for h in (1, 2):
        assert np.ptp(rows.library[rows.assigned[h]], axis=1).max() > 0.2
        assert rows.values[h] == pytest.approx(
            by_hand(distributions[h], masses[h], cone, np.log(np.eye(3) + 1e-3)), abs=1e-9
        )


def test_where_work_is_bounded_the_rest_says_nothing_and_the_bound_stands() -> None:
    given_case = case(2, 200, 2, 5, 5, 0.4)
    whole, _ = solved(given_case, LIP(0.5))
    spent = Budget.of(1e-6)
    nothing, cone = solved(given_case, LIP(0.5), budget=spent)
    best = check(nothing, given_case, cone)
    assert nothing.programmes == 0
    assert np.ptp(nothing.library, axis=2).max() == 0
    some = []
    for _ in range(2):
        budget = Budget.of(0.1)
        rows, cone = solved(given_case, LIP(0.5), budget=budget)
        check(rows, given_case, cone, best)
        assert 0 < rows.programmes < 200
        assert nothing.value < rows.value < whole.value
        some.append(rows)
    assert np.array_equal(some[0].library, some[1].library)
    assert np.array_equal(some[0].assigned, some[1].assigned)


def test_people_without_mass_and_inputs_without_distribution_do_no_harm() -> None:
    given_case = case(9, 12, 2, 5, 4, 0.5)
    given_case["masses"][::2] = 0.0
    given_case["distributions"][:, :, 3] = 0.0
    given_case["distributions"] /= given_case["distributions"].sum(axis=(1, 2), keepdims=True)
    given_case["masses"][:, 3] = 0.0
    for channels in (12, 3):
        rows, cone = solved(given_case, LIP(0.5), channels=channels)
        check(rows, given_case, cone)
        assert np.isfinite(rows.bounds).all()


def test_it_tells_how_far_it_is() -> None:
    told: list[tuple[int, int | None]] = []
    solved(case(1, 40, 2, 3, 3, 0.3), LIP(0.5), progress=lambda what, done, total: told.append((done, total)))
    assert told[-1] == (40, 40)
    assert told == sorted(told)


def test_a_programme_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    given_case = case(4, 3, 2, 5, 5, 0.3)
    with pytest.raises(SolverError, match="not finite"):
        solved(given_case | {"gains": np.full((5, 5), np.nan)}, LIP(0.5))
    monkeypatch.setattr(tangent, "_PATIENCE", 0)
    with pytest.raises(SolverError, match="kIterationLimit"):
        solved(given_case, LIP(0.5))


def test_without_histories_there_is_nothing_to_do() -> None:
    search = RowSearch(np.zeros((0, 2, 3)), np.zeros((0, 3)), np.zeros(0, dtype=np.int64), [])
    rows = search.best(np.zeros((3, 3)))
    assert len(rows.library) == 0
    assert rows.value == rows.bound == 0
