"""Levels in plain fractions agree with those of the guarantees, and disagree with what sabotage would compute."""

from __future__ import annotations

import math
from dataclasses import asdict
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaincinv

import funnel
from funnel.bounds import Bounds
from funnel.guarantees import examples, names
from funnel.joint import Joint
from funnel.recount.channel import Channel
from funnel.recount.count_box import CountBox
from funnel.recount.intervals import ball
from funnel.recount.levels import plain_level
from funnel.recount.promise import NUMBERS, SEVERAL, declared_promise, read_promise
from funnel.recount.ratios import plain_information
from funnel.recount.robust import _Side, quantile_above
from funnel.recount.run_results import results_remembered
from tests.strategies import joints

TEXTS = (
    "lip:0.7",
    "alip:0.9,0.4",
    "alip:0,0.4",
    "alip:inf,0.4",
    "alip:0.3,inf",
    "ldp:1.1",
    "perfect",
    "l1-lift:0.5,0.8",
    "chi2-lift:0.5,inf",
    "chi2-lift:0.4,0.4",
    "alpha-lift:0.6,0.9,3",
    "mi:0.05",
)


@st.composite
def channels(draw: st.DrawFn, inputs: int, max_outputs: int = 5) -> np.ndarray:
    """Weights (b, a) that sum to 2^63 by column, with zeros, equal columns and outputs that tell nothing among them."""
    b = draw(st.integers(1, max_outputs))
    shares = st.sampled_from([0, 0, 1, 1, 2, 3, 17, 10**6, 2**40 + 1])
    columns = [draw(st.lists(shares, min_size=b, max_size=b)) for _ in range(inputs)]
    if draw(st.booleans()):
        columns = [columns[0]] * inputs
    weights = []
    for column in columns:
        total = sum(column) or 1
        exact = [2**63 * share // total for share in column]
        exact[column.index(max(column))] += 2**63 - sum(exact)
        weights.append(exact)
    return np.array(weights, dtype=np.uint64).T


def same(text: str, joint: funnel.Joint, weights: np.ndarray, reads_secret: bool = False) -> None:
    """Both computations find the same level, and decide the same, over the bounds of the counts if there are some."""
    guarantee, bounds = funnel.parse_guarantee(text), joint.bounds
    read = joint.with_secret() if reads_secret else joint
    box = None if bounds is None else CountBox.of(bounds.lower, bounds.upper, bounds.totals)
    ours = plain_level(text, joint.counts, weights, reads_secret=reads_secret, published=joint.inputs.symbols, box=box)
    theirs = guarantee.level_for(read, weights).value
    assert ours.nats == pytest.approx(theirs, rel=1e-12, abs=1e-300), text
    assert ours.holds == guarantee.holds_for(read, weights), text


@pytest.mark.parametrize("reads_secret", [False, True])
@settings(max_examples=50, deadline=None)
@given(st.data())
def test_same_levels_and_decisions(reads_secret: bool, data: st.DataObject) -> None:
    joint = data.draw(joints(max_secrets=3, max_inputs=3) if reads_secret else joints())
    weights = data.draw(channels(joint.counts.size if reads_secret else joint.counts.shape[1]))
    for text in TEXTS:
        same(text, joint, weights, reads_secret)


def _same_over_distributions(joint: funnel.Joint, weights: np.ndarray, reads_secret: bool) -> float:
    read = joint.with_secret() if reads_secret else joint
    level = funnel.RLDP(1.0, 0.05, set="chi2").level_for(read, weights)
    ours = plain_level("rldp:1.0,0.05,chi2", joint.counts, weights, reads_secret=reads_secret)
    if math.isinf(level.value) or math.isinf(ours.nats):
        assert ours.nats == level.value
        return ours.nats
    # The maker's bound is tight to 1e-8 where it says what attains it; ours may not exceed it, nor what is attained.
    assert ours.nats <= level.value * (1 + 1e-10) + 1e-11
    if level.witness.distribution is not None:
        distribution = np.array(level.witness.distribution)
        shape = (len(weights), *distribution.shape) if reads_secret else (len(weights), 1, distribution.shape[1])
        rows = weights.reshape(shape) / 2.0**63
        given_secret = (rows * distribution).sum(axis=2) / distribution.sum(axis=1)
        ratios = given_secret[:, :, None] / np.where(given_secret > 0, given_secret, 1.0)[:, None, :]
        # The rounding of these lines.
        assert math.log(ratios.max()) <= ours.nats + 1e-13
    return ours.nats


@settings(max_examples=40, deadline=None)
@given(st.data(), joints(max_secrets=3, max_inputs=4), st.booleans())
def test_robust_levels_agree_and_no_distribution_exceeds_them(
    data: st.DataObject, joint: funnel.Joint, reads_secret: bool
) -> None:
    joint = funnel.Joint.from_counts(joint.counts + (joint.counts.sum(axis=1, keepdims=True) == 0))
    read = joint.with_secret() if reads_secret else joint
    _same_over_distributions(joint, data.draw(channels(read.counts.shape[1], max_outputs=3)), reads_secret)


_OFTEN, _HALF = 9223372036829609985, 2**62


@pytest.mark.parametrize(
    ("counts", "rows"),
    [
        ([[1, 0, 1, 0], [2300, 2595000, 5772200, 0]], [[0, _OFTEN, 3 * 2**61, 2**61]]),
        ([[1, 1, 1], [0, 0, 9339100], [1200, 7694700, 1515000]], [[0, _HALF, 3074457345618258602]]),
    ],
)
def test_the_distribution_that_is_worst_is_one_of_those_the_data_allow(
    counts: list[list[int]], rows: list[list[int]]
) -> None:
    """Where hardly any of many records has a secret, rounding took it out of the set, by 2e-9 of its radius."""
    weights = np.array([[2**63 - one for one in rows[0]], rows[0]], dtype=np.uint64)
    _same_over_distributions(funnel.Joint.from_counts(counts), weights, False)


@pytest.mark.parametrize(
    ("counts", "columns"),
    [
        ([[1000, 1, 0], [1, 85691, 0], [1, 0, 1020]], [[0, 2, 3], [25165823, None, 8388607], [_HALF, _HALF, 0]]),
        (
            [[0, 10, 25, 44888], [13, 7119, 0, 1]],
            [[None, 8388600370597, 8388600], [1, 1, 0], [1, 0, 1], [1, 1, 0]],
        ),
    ],
)
def test_what_is_nearly_never_published_of_a_secret_is_told_from_what_never_is(
    counts: list[list[int]], columns: list[list[int | None]]
) -> None:
    """No distribution in the set takes away what somebody was seen with: the ratio is finite, beyond e^27."""
    filled = []
    for column in columns:
        known = [one or 0 for one in column]
        if None not in column and sum(known) < 9:
            known = [2**63 * one // sum(known) for one in known]
        known[column.index(None) if None in column else known.index(max(known))] += 2**63 - sum(known)
        filled.append(known)
    joint, weights = funnel.Joint.from_counts(counts), np.array(filled, dtype=np.uint64).T
    ours = _same_over_distributions(joint, weights, False)
    assert 27 < ours < 36
    assert funnel.RLDP(1.0, 0.05, set="chi2").level_for(joint, weights).value == pytest.approx(ours, abs=1e-8)


BOXES = (
    "lip:0.9",
    "alip:0.7,1.1",
    "ldp:1.2",
    "pml:0.8",
    "rlip:0.9,0.05",
    "ralip:0.7,inf,0.1",
    "rldp:1.2,0.05",
    "rpml:0.8,0.2",
)


@settings(max_examples=20, deadline=None)
@given(st.data(), joints(max_secrets=3, max_inputs=4), st.booleans(), st.integers(0, 3), st.integers(0, 5))
def test_same_over_boxes_of_distributions_and_of_counts(
    data: st.DataObject, joint: funnel.Joint, reads_secret: bool, within: int, of_totals: int
) -> None:
    counts = 5 * joint.counts + (joint.counts.sum(axis=1, keepdims=True) == 0)
    lower, upper, sums = np.maximum(counts - within, 0), counts + within, counts.sum(axis=1)
    totals = np.stack(
        [np.maximum(sums - of_totals, lower.sum(axis=1)), np.minimum(sums + of_totals, upper.sum(axis=1))]
    )
    bounds = Bounds(lower, upper, totals.T, 0.01)
    noisy = Joint(counts, joint.secret, joint.inputs, bounds)
    weights = data.draw(channels(counts.size if reads_secret else counts.shape[1], max_outputs=3))
    for text in BOXES:
        same(text, noisy, weights, reads_secret)


def test_by_hand() -> None:
    # P(y0|s0) = 3/4 · 3/4 + 1/4 · 1/4 = 5/8, P(y0|s1) = 3/8, P(y0) = 1/2.
    counts, weights = [[3, 1], [1, 3]], [[3, 1], [1, 3]]
    assert plain_level("lip:1", counts, weights, 4).nats == pytest.approx(math.log(4 / 3), rel=1e-15)
    assert plain_level("ldp:1", counts, weights, 4).nats == pytest.approx(math.log(5 / 3), rel=1e-15)
    both = plain_level("alip:0.3,0.3", counts, weights, 4)
    assert (both.nats, both.holds) == (pytest.approx(math.log(4 / 3)), True)
    one = plain_level("alip:0.28,0.3", counts, weights, 4)
    # Falls by 4/3, ln = .2877 > .28: as a level by the proportion .3/.28.
    assert (one.nats, one.holds) == (pytest.approx(math.log(4 / 3) * 0.3 / 0.28), False)
    assert plain_level("l1-lift:1,1", counts, weights, 4).nats == pytest.approx(math.log(1 + (1 / 3 + 1 / 5) / 2))
    assert plain_level("chi2-lift:inf,1", counts, weights, 4).nats == pytest.approx(math.log(1 + 1 / 4))
    assert plain_level("alpha-lift:inf,1,2", counts, weights, 4).nats == pytest.approx(math.log(17 / 16) / 2)
    information = math.log(2) + (5 * math.log(5 / 8) + 3 * math.log(3 / 8)) / 8
    assert plain_level("mi:1", counts, weights, 4).nats == pytest.approx(information)
    kept = plain_information(Channel.of(counts, weights, 4))
    assert kept.entropy == pytest.approx(math.log(2))
    assert kept.utility == pytest.approx(math.log(2) + (3 * math.log(3 / 4) + math.log(1 / 4)) / 4)


def test_a_level_that_is_remembered_is_that_of_the_same_question() -> None:
    counts, weights = [[3, 1], [1, 3]], [[3, 1], [1, 3]]
    with results_remembered():
        first = plain_level("lip:1", counts, weights, 4)
        assert plain_level("lip:1", tuple(map(tuple, counts)), np.array(weights), 4) is first
        others = [plain_level("lip:0.1", counts, weights, 4), plain_level("lip:1", [[3, 1], [1, 2]], weights, 4)]
        assert [one.holds for one in others] == [False, True]
        assert others[1].nats != first.nats
    assert plain_level("lip:1", counts, weights, 4) is not first


def test_all_columns_together_tell_the_secret_to_one_who_knows_them() -> None:
    # y = s + x1 + x2 mod 2: no column alone, nor none, tells s from y, and both do.
    symbols = (("0", "0"), ("0", "1"), ("1", "0"), ("1", "1"))
    sums = [(s + int(one) + int(other)) % 2 for s in range(2) for one, other in symbols]
    weights = [[1 - bit for bit in sums], sums]
    ours = plain_level("srlip:1", [[1] * 4] * 2, weights, 1, reads_secret=True, published=symbols)
    assert (ours.nats, ours.holds) == (math.inf, False)
    assert plain_level("lip:1", [[1] * 4] * 2, weights, 1, reads_secret=True).nats == 0.0


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), min_size=2, max_size=4),
    st.fractions(0, 20, max_denominator=50),
    st.fractions(0, 30, max_denominator=50),
)
def test_a_price_on_deviation_bounds_all_deviations(
    cells: list[tuple[int, int]], multiplier: Fraction, price: Fraction
) -> None:
    values, records = zip(*cells, strict=True)
    side = _Side(values, (*records[:-1], records[-1] + 1), 40)
    share, top = side.size / 40, max(values)
    root = sum(n / side.size * math.sqrt(multiplier + top - v) for v, n in zip(values, side.records, strict=True))
    for q in [1 + k / 20 for k in range(200)]:
        mean = min(float(top), top + float(multiplier) - root**2 / q**2)
        assert float(side.priced(multiplier, price)) >= mean - float(price) * share * q - 1e-9


@pytest.mark.parametrize("degrees", [1, 2, 24, 500])
def test_the_quantile_is_not_below_the_true_one(degrees: int) -> None:
    level = Fraction(19, 20)
    found = quantile_above(degrees, level)
    with flint.ctx.workprec(300):
        reached = (ball(found) / 2).gamma_lower(flint.arb(degrees) / 2, regularized=1)
        assert reached > ball(level)
    assert float(found) == pytest.approx(2 * gammaincinv(degrees / 2, 0.95), rel=1e-13)


def test_an_excluded_secret_has_no_level() -> None:
    level = plain_level("lip:50", [[1, 0], [0, 1]], [[1, 0], [0, 1]], 1)
    assert (level.nats, level.holds) == (math.inf, False)


def test_the_bound_itself_is_decided_exactly() -> None:
    # The ratio is 1 + 10^-18: a float would call it 1.
    big = 10**18
    counts, weights = [[1, 0], [0, 1]], [[big + 1, big], [big - 1, big]]
    assert plain_level("ldp:1.0e-18", counts, weights, 2 * big).holds is False
    assert plain_level("ldp:1.1e-18", counts, weights, 2 * big).holds is True
    assert plain_level("perfect", counts, weights, 2 * big).holds is False


@settings(max_examples=40, deadline=None)
@given(st.data(), joints(min_inputs=2))
def test_information_agrees(data: st.DataObject, joint: funnel.Joint) -> None:
    weights = data.draw(channels(joint.counts.shape[1]))
    alphabet = funnel.Alphabet.of(None, len(weights), "y")
    protocol = funnel.Protocol(weights, weights[:, 0], joint.inputs, alphabet)
    ours = plain_information(Channel.of(joint.counts, weights, 2**63))
    assert ours.utility == pytest.approx(funnel.measures.mutual_information(joint, protocol), abs=1e-12)
    assert ours.entropy == pytest.approx(joint.entropy, abs=1e-12)


class TestSabotage:
    """What a sabotaged maker would compute is told apart from what is."""

    counts = ((30, 10, 5), (10, 50, 5), (2, 3, 40))

    def protocol(self, text: str) -> tuple[funnel.Joint, np.ndarray]:
        joint = funnel.Joint.from_counts(self.counts)
        return joint, funnel.fit("grr", joint, funnel.parse_guarantee(text)).weights

    @pytest.mark.parametrize(
        "text",
        ["lip:1.0", "ldp:1.0", "alip:1.0,0.6", "rldp:1.0,0.05", "rlip:1.0", "pml:1.0", "mi:0.05"],
    )
    def test_twice_the_budget_does_not_pass(self, text: str) -> None:
        guarantee = funnel.parse_guarantee(text)
        _, weights = self.protocol(str(guarantee.with_budget(2 * guarantee.budget)))
        assert not plain_level(text, self.counts, weights).holds
        assert plain_level(text, self.counts, self.protocol(text)[1]).holds

    @pytest.mark.parametrize(
        "text",
        [
            "lip:1.0",
            "ldp:1.0",
            "alip:1.0,0.6",
            "rldp:1.0,0.05",
            "rldp:1.0,0.05,chi2",
            "ralip:1.0,0.6",
            "mi:0.05",
            "chi2-lift:1,1",
        ],
    )
    @pytest.mark.parametrize("order", [(2, 1, 0), (0, 2, 1), (2, 0, 1)])
    def test_secrets_permuted_among_the_records_have_another_level(self, text: str, order: tuple[int, ...]) -> None:
        weights = [[5, 1, 2], [2, 6, 1], [1, 1, 5]]
        # Records of the first input only: a permutation of all of them would change the names alone.
        permuted = [[self.counts[order[s]][0], *self.counts[s][1:]] for s in range(3)]
        assert plain_level(text, permuted, weights, 8).nats != plain_level(text, self.counts, weights, 8).nats

    def test_a_constant_secret_is_told_apart(self) -> None:
        identity = [[1 if x == y else 0 for x in range(3)] for y in range(3)]
        together = [[sum(column) for column in zip(*self.counts, strict=True)]]
        assert plain_level("lip:1.0", together, identity, 1).nats == 0.0
        assert not plain_level("lip:1.0", self.counts, identity, 1).holds

    def test_a_count_that_was_moved_changes_the_level(self) -> None:
        weights = self.protocol("lip:1.0")[1]
        moved = [list(row) for row in self.counts]
        # The secret that leaks most: a count elsewhere need not be seen in a level, so counts are compared too.
        moved[2][1] -= 1
        moved[2][2] += 1
        assert plain_level("lip:1.0", moved, weights).nats > plain_level("lip:1.0", self.counts, weights).nats

    @pytest.mark.parametrize("change", [(0, 0, 1), (0, 0, -1)])
    def test_weights_that_do_not_add_up_are_refused(self, change: tuple[int, int, int]) -> None:
        _, weights = self.protocol("lip:1.0")
        y, x, by = change
        altered = [[int(weight) for weight in row] for row in weights]
        altered[y][x] += by
        with pytest.raises(funnel.DataError, match="add up"):
            plain_level("lip:1.0", self.counts, altered)

    def test_negative_weights_are_refused(self) -> None:
        with pytest.raises(funnel.DataError, match="add up"):
            plain_level("lip:1.0", [[1, 1], [1, 2]], [[-1, 2], [3, 0]], 2)


class TestPromises:
    def test_every_registered_guarantee_is_known_by_its_numbers(self) -> None:
        assert {*NUMBERS, SEVERAL} == set(names())
        for text in examples():
            if "&" in text:
                continue
            guarantee = funnel.parse_guarantee(text)
            promise = read_promise(str(guarantee))
            assert promise.kind == guarantee.name
            numbers = {name: math.inf if value is None else float(value) for name, value in promise.numbers.items()}
            stated = asdict(guarantee)  # type: ignore[call-overload]
            assert promise.distributions == stated.pop("set", None)
            assert numbers == stated
            assert float(promise.budget) == guarantee.budget

    @pytest.mark.parametrize("text", TEXTS)
    def test_budgets(self, text: str) -> None:
        assert float(read_promise(text).budget) == funnel.parse_guarantee(text).budget

    @pytest.mark.parametrize(
        "text",
        ["", "lip", "lip:", "lip:-1", "lip:nan", "lip:inf", "lip:1,2", "lip:1_0", "lop:1", "alip:inf,inf", "alip:1",
         "alip:lower=1,lower=2", "rldp:1,1", "rldp:1,0", "alpha-lift:1,1,1.5", "perfect:0", "mi:x", "lip:1e9999"],
    )  # fmt: skip
    def test_what_promises_nothing_is_refused(self, text: str) -> None:
        with pytest.raises(funnel.SpecError):
            read_promise(text)

    @pytest.mark.parametrize(
        ("said", "kind", "budget"),
        [
            ('guarantee = "lip:0.1"', "lip", Fraction(1, 10)),
            ("[guarantee]\nkind = 'alip'\nlower = 1.3\nupper = inf\n", "alip", Fraction(13, 10)),
            ("[guarantee]\nkind = 'rldp'\nepsilon = 1\n", "rldp", Fraction(1)),
            ('{"guarantee": {"kind": "lip", "epsilon": 0.1}}', "lip", Fraction(1, 10)),
        ],
    )
    def test_the_text_of_a_spec_declares_it(self, said: str, kind: str, budget: Fraction) -> None:
        promise = declared_promise(said)
        assert (promise.kind, promise.budget) == (kind, budget)

    @pytest.mark.parametrize("said", ["", "guarantee = 1", "[guarantee]\nepsilon = 1", "[1, 2]", "\x00", "a = ="])
    def test_a_spec_that_declares_none_is_refused(self, said: str) -> None:
        with pytest.raises(funnel.SpecError):
            declared_promise(said)
