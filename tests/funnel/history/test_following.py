"""The next version: refusals, what rows may depend on, and repairs that always end in something proven."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import funnel
from funnel.guarantees.base import PosteriorGuarantee
from funnel.history.allowed import allowed_by
from funnel.history.changes import Changes
from funnel.history.corrected import PARTS, means, right_on_average
from funnel.history.following import VersionTerms
from funnel.history.history_status import HistoryStatus, stand
from funnel.history.library import (
    constant_channels,
    distinct_channels,
    effective_weights,
    integer_library,
    with_constants,
)
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.history.prove import proven_weights
from funnel.joint import FloatArray, IntArray
from funnel.protocol import DENOMINATOR, WORD_BITS, exact_sums
from funnel.solver.integer_balance import IMBALANCE, imbalance
from funnel.solver.invariant import counted


def second_version(
    seed: int = 0, n: int = 300, a: int = 3, inputs: IntArray | None = None, staying: float = 0.8
) -> tuple[Past, Observed]:
    """A version after one, of the same people."""
    random = np.random.default_rng(seed)
    before = random.choice(2 * a, size=n, p=random.dirichlet(np.ones(2 * a) * 3))
    after = np.where(random.random(n) < staying, before, random.integers(0, 2 * a, size=n))
    joints = [funnel.Joint.from_counts(np.bincount(cells, minlength=2 * a).reshape(2, a)) for cells in (before, after)]
    first = VersionTerms(funnel.LIP(0.8), "a").decide(
        Past(), Observed.counted(joints[0], {}, np.zeros(n, int), before % a), read_alone=False
    )
    outputs = random.integers(0, len(first.channel.outputs), size=n)
    kinds, places = np.unique(outputs, return_inverse=True)
    past = Past().followed_by(first.chapter(np.zeros(len(kinds), int), kinds))
    xs = after % a if inputs is None else inputs
    return past, Observed.counted(joints[1], {0: Changes.counted(before, after)}, 1 + places, xs)


def most_unchanged(status: HistoryStatus, worth: FloatArray, epsilon: float) -> float:
    """The largest weighted share unchanged of LIP channels in balance, by one programme over all histories at once."""
    joint, distributions, masses = status.joint, status.distributions.values, status.masses()
    h, c, a = distributions.shape
    among, p, most = masses.sum(axis=0), joint.p_input, np.exp(epsilon)
    share = masses / among
    number = np.arange(h * a * a).reshape(h, a, a)
    gains = np.zeros((h, a, a))
    gains[:, range(a), range(a)] = share * worth
    equal, wanted, below = [], [], []
    for k in range(h):
        for x in range(a):
            equal.append(np.isin(number.ravel(), number[k, :, x]).astype(float))
            wanted.append(1.0)
    # Every history was in the version before, and has its secret then and its secret now.
    for one in status.everybody:
        for k, y, s, sign in product(range(h), range(a), range(c), (1, -1)):
            distribution, prior = (
                one.distributions.values[k],
                one.priors[one.prior_of[k]] / one.priors[one.prior_of[k]].sum(),
            )
            row = np.zeros((h, a, a))
            row[k, y] = sign * (distribution[s] - most**sign * prior[s] * distribution.sum(axis=0))
            below.append(row.ravel())
    for y in range(a):
        row = np.zeros((h, a, a))
        row[:, y] = share * p
        equal.append(row.ravel())
        wanted.append(p[y])
        for s in range(c):
            for sign in (1, -1):
                row = np.zeros((h, a, a))
                row[:, y] = sign * share * (joint.p[s] - most**sign * joint.p_secret[s] * p)
                below.append(row.ravel())
    solved = linprog(-gains.ravel(), A_ub=below, b_ub=np.zeros(len(below)), A_eq=equal, b_eq=wanted, method="highs")
    assert solved.status == 0
    return float(-solved.fun)


@pytest.mark.parametrize("seed", range(6))
def test_values_stay_as_they_are_nearly_as_often_as_one_programme_over_all_histories_allows(seed: int) -> None:
    past, observed = second_version(seed, 2_000, a=4)
    bound = funnel.LIP(0.8)
    status = stand(past, observed, bound)
    target = funnel.fit("invariant", observed.joint, bound)
    step = VersionTerms(bound, "b", target=target).decide(past, observed)
    assert not status.moved.any()
    assert imbalance(step.joint, step.channel.weights) <= IMBALANCE
    worth = counted(step.joint, "root")
    most, reached = most_unchanged(status, worth, 0.8), float(worth @ step.channel.matrix.diagonal())
    assert most - 2e-3 <= reached <= most + 1e-7


def test_who_people_with_a_history_are_does_not_enter_what_is_published_of_values_that_stay() -> None:
    past, observed = second_version()
    people = np.repeat(observed.nodes, observed.records), np.repeat(observed.inputs, observed.records)
    shuffled = np.random.default_rng(1).permutation(people[1])
    other = Observed.counted(observed.joint, observed.changes, people[0], shuffled)
    target = funnel.fit("invariant", observed.joint, funnel.LIP(0.8))
    one, same = (VersionTerms(funnel.LIP(0.8), "b", target=target).decide(past, who) for who in (observed, other))
    assert (one.channel.weights == same.channel.weights).all()
    assert (one.library == same.library).all()


def test_masses_do_not_depend_on_the_inputs_that_people_with_a_history_have() -> None:
    past, observed = second_version()
    people = np.repeat(observed.nodes, observed.records), np.repeat(observed.inputs, observed.records)
    shuffled = np.random.default_rng(1).permutation(people[1])
    other = Observed.counted(observed.joint, observed.changes, people[0], shuffled)
    assert len(other.nodes) != len(observed.nodes) or (other.records != observed.records).any()
    bound = funnel.LIP(0.8)
    assert (stand(past, observed, bound).masses() == stand(past, other, bound).masses()).all()


@settings(max_examples=30)
@given(
    st.integers(0, 10**6),
    st.sampled_from(
        [
            funnel.LIP(0.3),
            funnel.LDP(0.5),
            funnel.ALIP(0.2, 0.4),
            funnel.PerfectPrivacy(),
            funnel.LIP(5.0),
            funnel.PML(0.3),
        ]
    ),
    st.sampled_from([0.0, 1e-12, 1e-6, 0.3]),
    st.sampled_from([1.0, 0.75, 0.5, 0.1]),
)
def test_any_rows_at_all_are_mended_until_they_are_proven(
    seed: int, guarantee: PosteriorGuarantee, noise: float, reserve: float
) -> None:
    past, observed = second_version(seed)
    allowed, random = allowed_by(guarantee), np.random.default_rng(seed)
    # These budgets times these shares are doubles that are not above the product, which is what a reader asks.
    smaller = allowed_by(guarantee.with_budget(guarantee.budget * reserve))
    status = stand(past, observed, guarantee, reserve)
    h, b = len(status.nodes), 4
    rows = random.dirichlet(np.ones(b) * 0.3, size=(h, 3)).transpose(0, 2, 1)
    if noise < 0.3:
        # Nearly constant: what a solver leaves of rows that may say nothing.
        rows = rows[:, :, :1] * (1 + noise * random.random(rows.shape))
        rows /= rows.sum(axis=1, keepdims=True)
    proven = proven_weights(status, integer_library(rows), np.arange(h), np.zeros(h, dtype=np.int64))
    for place in range(h):
        weights = proven.library[proven.drawn_from[place]]
        assert exact_sums(weights) == [DENOMINATOR] * 3
        assert _decided(status, allowed, place, weights)
        said, prior = _said(status, place, weights)
        if smaller.within_exactly(said.sum(axis=1, keepdims=True), prior):
            assert smaller.within_exactly(said, prior)
        assert proven.reached[0].outside[place] == (
            status.moved[place] and not allowed.within_exactly(*_said(status, place, weights))
        )
    assert 0 <= proven.furthest.level.value <= guarantee.budget


def _said(status: HistoryStatus, place: int, weights: Any) -> tuple[Any, Any]:
    return status.exact_distribution(place) @ weights.astype(object).T, status.priors[status.prior_of[place]]


def _decided(status: HistoryStatus, allowed: Any, place: int, weights: Any) -> bool:
    decide = allowed.no_worse_exactly if status.moved[place] else allowed.within_exactly
    return bool(decide(*_said(status, place, weights)))


def test_rows_that_pass_are_left_as_they_are() -> None:
    past, observed = second_version()
    guarantee = funnel.LIP(5.0)
    status = stand(past, observed, guarantee)
    h = len(status.nodes)
    rows = np.tile(np.array([[0.5, 0.25, 0.25], [0.5, 0.75, 0.75]]), (h, 1, 1))
    proven = proven_weights(status, integer_library(rows), np.arange(h), np.zeros(h, dtype=np.int64))
    assert len(proven.library) == 1
    assert (proven.library[0] == integer_library(rows[:1])[0]).all()
    assert 0 < proven.furthest.level.value < 5


def test_a_target_of_this_version_is_what_new_people_are_drawn_from() -> None:
    joint = funnel.Joint.from_counts([[30, 10, 5], [10, 50, 20]])
    target = funnel.fit("grr", joint, funnel.LIP(0.5))
    observed = Observed(joint, {}, np.zeros(3, int), np.arange(3), joint.counts.sum(axis=0))
    step = VersionTerms(funnel.LIP(0.5), "a", target=target).decide(Past(), observed, read_alone=False)
    assert (step.rows_for(()) == target.weights).all()
    assert (step.channel.weights == target.weights).all()
    assert step.channel.outputs == target.outputs
    assert step.level.value == pytest.approx(funnel.LIP(0.5).level(joint, target).value, abs=1e-12)
    assert step.utility == step.alone <= step.bound == step.entropy


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": "a"}, "published already"),
        ({"guarantee": funnel.MutualInformation(0.1)}, "no bound on the posterior"),
        ({"guarantee": funnel.LIP(0.01), "target": "good"}, "does not meet lip:0.01"),
        ({"target": "other"}, "not the 3 of this version"),
    ],
)
def test_what_cannot_be_followed_is_refused(change: dict[str, Any], message: str) -> None:
    past, observed = second_version()
    wide = funnel.Joint.from_counts([[30, 10], [10, 50]])
    targets = {
        "good": lambda: funnel.fit("identity", observed.joint, funnel.LIP(5.0)),
        "other": lambda: funnel.fit("grr", wide, funnel.LIP(0.5)),
    }
    asked: dict[str, Any] = {"guarantee": funnel.LIP(0.8), "version": "b", **change}
    if "target" in asked:
        asked["target"] = targets[asked["target"]]()
    with pytest.raises(funnel.SpecError, match=message):
        VersionTerms(**asked).decide(past, observed, read_alone=False)


def test_changes_that_were_not_counted_are_missed() -> None:
    past, observed = second_version()
    without = Observed(observed.joint, {}, observed.nodes, observed.inputs, observed.records)
    with pytest.raises(funnel.DataError, match="since version 'a' have not been counted"):
        VersionTerms(funnel.LIP(0.8), "b").decide(past, without, read_alone=False)


def test_a_tiny_budget_of_work_still_gives_something_proven() -> None:
    past, observed = second_version()
    target = funnel.optimal(observed.joint, funnel.LIP(0.8)).protocol
    step = VersionTerms(funnel.LIP(0.8), "b", target=target, budget=1e-6).decide(past, observed)
    assert step.level.value <= 0.8
    assert funnel.LIP(0.8).holds(step.joint, step.channel)


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 6), st.integers(1, 5))
def test_whole_numbers_of_a_library_sum_to_all_and_stay_close(seed: int, n: int, b: int, a: int) -> None:
    random = np.random.default_rng(seed)
    rows = random.dirichlet(np.ones(b) * 0.5, size=(n, a)).transpose(0, 2, 1)
    weights = integer_library(rows)
    constants = random.random((n, b))
    for library, expected in [
        (weights, rows),
        (
            with_constants(weights, constants),
            (rows + constants[:, :, None]) / (1 + constants.sum(axis=1))[:, None, None],
        ),
    ]:
        for channel in library:
            assert exact_sums(channel) == [DENOMINATOR] * a
        assert np.ldexp(library.astype(float), -63) == pytest.approx(expected, abs=1e-6)


def test_a_faint_output_joins_the_likeliest() -> None:
    rows = np.array([[[0.7, 0.4], [1e-9, 2e-9], [0.3 - 1e-9, 0.6 - 2e-9]]])
    (weights,) = integer_library(rows)
    assert not weights[1].any()
    assert np.ldexp(weights[0].astype(float), -63) == pytest.approx([0.7 + 1e-9, 0.4 + 2e-9], abs=1e-15)


@pytest.mark.parametrize("rows", [[[[0.5], [0.4]]], [[[1.5], [-0.5]]], [[[np.nan], [1.0]]]])
def test_what_is_no_channel_is_refused(rows: list[list[list[float]]]) -> None:
    with pytest.raises(funnel.SolverError, match="no channel"):
        integer_library(np.array(rows))


def test_equal_channels_are_kept_once() -> None:
    library = constant_channels(np.array([1, 0, 1]), 2, 3)
    kept, drawn_from = distinct_channels(library, np.array([2, 0, 1, 0]))
    assert len(kept) == 2
    assert (kept[drawn_from] == library[[2, 0, 1, 0]]).all()


def test_the_effective_channel_is_the_average_by_people() -> None:
    joint = funnel.Joint.from_counts([[2, 0], [1, 3]])
    library = np.stack([np.eye(2, dtype=np.uint64) * np.uint64(DENOMINATOR), *constant_channels(np.array([1]), 2, 2)])
    observed = Observed(joint, {}, np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([2, 1, 3]))
    weights = effective_weights(observed, library, np.array([1, 0, 0]))
    assert exact_sums(weights) == [DENOMINATOR] * 2
    assert np.ldexp(weights.astype(float), -63) == pytest.approx(np.array([[1 / 3, 0], [2 / 3, 1]]), abs=1e-15)


def test_exact_counts_are_right_to_within_a_record_for_the_people_there_are() -> None:
    past, observed = second_version(2, 3_000, a=5)
    target, bound = funnel.fit("invariant", observed.joint, funnel.LIP(0.3)), funnel.LIP(0.3)
    counts = observed.joint.counts.sum(axis=0)
    late, right = (
        VersionTerms(bound, "b", target=target, right=asked).decide(past, observed) for asked in (False, True)
    )
    by_value = [means(one) / PARTS - counts for one in (late, right)]
    assert np.abs(by_value[0]).max() > 2
    assert np.abs(by_value[1]).max() <= 1 + 1e-3
    # The channel is that of these people, and meets the bound for the version alone.
    weights = right.channel.weights.astype(object) @ counts.astype(object) / 2.0**WORD_BITS
    assert weights.astype(float) - counts == pytest.approx(by_value[1], abs=1e-2)
    assert bound.holds_for(observed.joint, right.channel.weights)
    assert right.level.value <= 0.3


def test_answers_are_put_right_by_whole_records() -> None:
    past, observed = second_version(2, 3_000, a=5)
    bound = funnel.LIP(0.3)
    step = VersionTerms(bound, "b", target=funnel.fit("invariant", observed.joint, bound), right=True).decide(
        past, observed, read_alone=False
    )
    assert right_on_average(step) is step
