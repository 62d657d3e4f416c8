"""Unary encoding: exact levels, bounded utility and the strongest parameter, against lists of all sets in fractions."""

from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import ALIP, LDP, LIP, SRLIP, Alphabet, DataError, Guarantee, Joint, PerfectPrivacy, SpecError
from funnel.guarantees.events import secret_comparisons
from funnel.guarantees.exact import exp_below, log_above
from funnel.mechanisms.oue import UnaryEncoding, unary_encoding, unary_level, unary_utility
from funnel.mechanisms.unary import LARGEST_LISTED, listed_sets, listed_weights
from funnel.protocol import DENOMINATOR, exact_sums
from tests.strategies import budgets, joints

weights = st.one_of(
    st.sampled_from([1, 2, 2**62 - 1, 2**62]),
    st.integers(1, 2**62),
    st.integers(0, 61).map(lambda bits: 3 << bits >> 1),
)


def definition(encoding: UnaryEncoding) -> list[list[Fraction]]:
    """P(Y = A|x) as a product over the bits (PF equation (27)), one row a set."""
    size, half, q = len(encoding.inputs), Fraction(1, 2), Fraction(encoding.other_weight, DENOMINATOR)

    def bit(x: int, z: int, is_set: bool) -> Fraction:
        chance = half if x == z else q
        return chance if is_set else 1 - chance

    return [
        [math.prod((bit(x, z, z in members) for z in range(size)), start=Fraction(1)) for x in range(size)]
        for members in listed_sets(size)
    ]


def output_laws(counts: list[list[int]], channel: list[list[Fraction]]) -> list[list[Fraction]]:
    """P(Y|event) for each row of counts, one list an event."""
    return [
        [sum((n * p for n, p in zip(row, channel_row, strict=True)), Fraction(0)) / sum(row) for channel_row in channel]
        for row in counts
    ]


def brute_ratios(joint: Joint, guarantee: Guarantee, encoding: UnaryEncoding) -> tuple[Fraction, Fraction]:
    """Largest gain and largest loss that the guarantee bounds, over all listed sets."""
    compared = guarantee.comparisons(joint) if isinstance(guarantee, SRLIP) else secret_comparisons(joint)
    laws = output_laws(compared.counts.tolist(), definition(encoding))
    if isinstance(guarantee, LDP):
        ours = [laws[k] for k in compared.part]
        worst = max(p / q for one in ours for other in ours for p, q in zip(one, other, strict=True))
        return worst, worst
    pairs = [(laws[a], laws[b]) for a, b in zip(compared.part, compared.whole, strict=True)]
    gain = max(p / q for one, other in pairs for p, q in zip(one, other, strict=True))
    loss = max(q / p for one, other in pairs for p, q in zip(one, other, strict=True))
    return max(gain, Fraction(1)), max(loss, Fraction(1))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Joint, Guarantee]:
    """A joint law and a guarantee; SRLIP over two columns."""
    joint = draw(joints(max_inputs=5))
    kind = draw(st.sampled_from(["lip", "ldp", "alip", "srlip", "perfect"]))
    budget = draw(budgets)
    if kind == "srlip":
        symbols = tuple((f"u{x % 2}", f"v{x // 2}") for x in range(len(joint.inputs)))
        return Joint(joint.counts, joint.secret, Alphabet(("u", "v"), symbols)), SRLIP(budget)
    other = draw(st.one_of(st.just(math.inf), st.just(0.0), budgets))
    return joint, {"lip": LIP(budget), "ldp": LDP(budget), "alip": ALIP(other, budget), "perfect": PerfectPrivacy()}[
        kind
    ]


@settings(max_examples=120)
@given(cases(), weights)
def test_the_level_is_that_of_all_sets(case: tuple[Joint, Guarantee], weight: int) -> None:
    joint, guarantee = case
    encoding = UnaryEncoding.of(joint, weight)
    gain, loss = brute_ratios(joint, guarantee, encoding)
    level = unary_level(joint, guarantee, encoding)
    assert level.witness.ratio == (gain if level.witness.upward else loss)
    if isinstance(guarantee, ALIP):
        above = guarantee.scaled(log_above(gain), guarantee.upper)
        assert level.value == max(above, guarantee.scaled(log_above(loss), guarantee.lower))
    else:
        assert level.witness.ratio == max(gain, loss)
        assert level.value == log_above(max(gain, loss))


@settings(max_examples=60)
@given(joints(max_inputs=5), weights, st.sampled_from([LIP(1.0), LDP(1.0)]))
def test_the_witness_is_a_set_that_attains_the_level(joint: Joint, weight: int, guarantee: Guarantee) -> None:
    encoding = UnaryEncoding.of(joint, weight)
    witness = unary_level(joint, guarantee, encoding).witness
    place = listed_sets(len(joint.inputs)).index(witness.members)
    counts = joint.counts.tolist()
    reference = joint.counts.sum(axis=0).tolist() if witness.other_secret is None else counts[witness.other_secret]
    (one,), (other,) = (
        output_laws([row], [definition(encoding)[place]]) for row in (counts[witness.secret], reference)
    )
    ratio = one[0] / other[0]
    assert witness.ratio == (ratio if witness.upward else 1 / ratio)


def test_eight_inputs_and_the_equation_of_the_paper() -> None:
    """PF (29): max |ln (1 + (e^α - 1) p(A|s)) / (1 + (e^α - 1) p(A))| over sets and secrets."""
    counts = np.array([[9, 4, 1, 0, 7, 2, 30, 5], [1, 6, 8, 3, 2, 2, 2, 40], [0, 5, 5, 9, 1, 1, 1, 1]])
    joint = Joint.from_counts(counts)
    alpha = 1.7
    encoding = UnaryEncoding.at(joint, alpha)
    assert encoding.alpha == pytest.approx(alpha, rel=1e-15)
    k = math.expm1(alpha)
    expected = max(
        abs(math.log((1 + k * given[list(members)].sum()) / (1 + k * joint.p_input[list(members)].sum())))
        for members in listed_sets(8)
        for given in joint.input_given_secret
    )
    assert unary_level(joint, LIP(1.0), encoding).value == pytest.approx(expected, rel=1e-12)
    assert unary_level(joint, LIP(1.0), encoding).witness.ratio == max(brute_ratios(joint, LIP(1.0), encoding))
    assert unary_level(joint, LDP(1.0), encoding).witness.ratio == brute_ratios(joint, LDP(1.0), encoding)[0]


@settings(max_examples=100)
@given(cases())
def test_the_strongest_encoding_holds_and_one_unit_more_does_not(case: tuple[Joint, Guarantee]) -> None:
    joint, guarantee = case
    encoding = unary_encoding(joint, guarantee)
    assert unary_level(joint, guarantee, encoding).value <= guarantee.budget
    two_sided = isinstance(guarantee, ALIP)
    limits = (guarantee.upper, guarantee.lower) if two_sided else (guarantee.budget, guarantee.budget)

    def holds(weight: int) -> bool:
        ratios = brute_ratios(joint, guarantee, UnaryEncoding.of(joint, weight))
        return all(math.isinf(limit) or ratio <= exp_below(limit) for ratio, limit in zip(ratios, limits, strict=True))

    assert holds(encoding.other_weight)
    assert encoding.other_weight == 1 or not holds(encoding.other_weight - 1)


@settings(max_examples=60)
@given(joints(max_inputs=6), weights, st.sampled_from([LIP(1.0), LDP(1.0)]))
def test_listed_weights_are_a_channel_that_tells_no_more(joint: Joint, weight: int, guarantee: Guarantee) -> None:
    encoding = UnaryEncoding.of(joint, weight)
    listed = listed_weights(encoding)
    assert set(exact_sums(listed)) == {DENOMINATOR}
    # An input that some set excludes would be infinitely less likely under it.
    assert not ((listed == 0).any(axis=1) & (listed > 0).any(axis=1)).any()
    ratio = guarantee.level_for(joint, listed).witness.ratio
    exact = unary_level(joint, guarantee, encoding).witness.ratio
    assert ratio is not None
    assert ratio <= exact
    error = max(
        abs(Fraction(int(w), DENOMINATOR) - p)
        for row, exact_row in zip(listed, definition(encoding), strict=True)
        for w, p in zip(row, exact_row, strict=True)
    )
    assert error <= Fraction(len(listed), DENOMINATOR)
    if weight > 2**60:
        assert float(ratio - 1) == pytest.approx(float(exact - 1), rel=1e-9, abs=1e-12)


def information(joint: Joint, encoding: UnaryEncoding) -> flint.arb:
    """I(X;Y) over all sets, as an interval that holds it."""
    p = [Fraction(int(count), joint.n) for count in joint.counts.sum(axis=0)]
    total = flint.arb(0)
    for row in definition(encoding):
        marginal = sum((a * b for a, b in zip(p, row, strict=True)), Fraction(0))
        for chance, q in zip(p, row, strict=True):
            if chance > 0:
                total += ball(chance * q) * ball(q / marginal).log()
    return total


def ball(value: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


@settings(max_examples=80)
@given(joints(max_inputs=6), weights)
def test_the_bounds_on_the_utility_hold_it(joint: Joint, weight: int) -> None:
    encoding = UnaryEncoding.of(joint, weight)
    lower, upper = unary_utility(joint, encoding)
    flint.ctx.prec = 300
    truth = information(joint, encoding)
    assert bool(flint.arb(lower) <= truth)
    assert bool(truth <= flint.arb(upper))
    assert upper - lower <= (1.1e-9 if joint.n <= 2**20 else 2e-6)


def test_the_utility_tends_to_half_of_what_there_is_to_tell() -> None:
    joint = Joint.from_counts([[30, 10, 20, 5, 0], [10, 30, 20, 0, 0]])
    bounds = [unary_utility(joint, UnaryEncoding.at(joint, alpha)) for alpha in (0, 0.5, 1, 2, 5, 12, 40)]
    assert bounds[0] == (0.0, pytest.approx(0.0, abs=1e-14))
    assert all(one[1] < other[0] for one, other in itertools.pairwise(bounds))
    assert bounds[-1] == pytest.approx((joint.entropy / 2, joint.entropy / 2), abs=1e-12)


def test_two_hundred_inputs_take_no_time() -> None:
    random = np.random.default_rng(7)
    joint = Joint.from_counts(random.integers(0, 9000, (15, 200)))
    started = time.process_time()
    for guarantee in (LIP(1.0), LDP(1.0)):
        encoding = unary_encoding(joint, guarantee)
        assert unary_level(joint, guarantee, encoding).value == pytest.approx(1.0, rel=1e-12)
        assert unary_level(joint, guarantee, encoding).value <= 1.0
        lower, upper = unary_utility(joint, encoding)
        assert 0.1 < lower < upper < lower + 1e-7
    assert time.process_time() - started < 1.0


def test_a_fitted_protocol_lists_every_set() -> None:
    joint = Joint.from_counts([[30, 10, 20, 0], [10, 30, 20, 0]], inputs=["a", "b", "c", "never"])
    protocol = funnel.fit("oue", joint, LIP(0.3))
    assert protocol.outputs.labels[:6] == ("{}", "{a}", "{b}", "{c}", "{never}", "{a, b}")
    assert len(protocol.outputs) == 16
    assert (protocol.weights[:, 3] == protocol.marginal).all()
    assert LIP(0.3).level(joint, protocol).value == pytest.approx(0.3, rel=1e-9)
    utility = funnel.measures.mutual_information(joint, protocol)
    lower, upper = unary_utility(joint, unary_encoding(joint, LIP(0.3)))
    assert lower - 1e-12 <= utility <= upper + 1e-12
    assert funnel.Protocol.from_json(protocol.to_json()).digest == protocol.digest


@pytest.mark.parametrize("text", ["mi:0.02", "chi2-lift:0.3,0.3", "srlip:0.4", "alip:0.5,inf", "perfect"])
def test_every_kind_of_guarantee_is_met(text: str) -> None:
    symbols = tuple(itertools.product(("a", "b"), ("c", "d")))
    counts = np.array([[30, 10, 20, 5], [10, 30, 20, 9]])
    joint = Joint(counts, Alphabet.of(None, 2, "s"), Alphabet(("x", "z"), symbols))
    guarantee = funnel.parse_guarantee(text)
    protocol = funnel.fit("oue", joint, guarantee)
    assert guarantee.holds(joint, protocol)
    if guarantee.budget > 0:
        assert guarantee.level(joint, protocol).value == pytest.approx(guarantee.budget, rel=1e-6)
    assert protocol.outputs.symbols[5] == ("{a, a}", "{c, d}")


def test_sets_too_improbable_for_the_weights_are_no_outputs() -> None:
    joint = Joint.from_counts([[3, 5, 8], [3, 5, 8]])
    protocol = funnel.fit("oue", joint, LIP(1.0))
    assert protocol.outputs.labels == ("{}", "{X0}", "{X1}", "{X2}")
    assert protocol.weights.any(axis=1).all()


def test_too_many_inputs_to_list_are_refused_with_what_to_use() -> None:
    joint = Joint.from_counts(np.ones((2, LARGEST_LISTED + 1), dtype=np.int64))
    with pytest.raises(
        SpecError, match=r"11 symbols has 2\^11 possible outputs.*; use grr or optimal .*unary_encoding"
    ):
        funnel.fit("oue", joint, LIP(1.0))
    row = next(row for row in funnel.plan(joint, LIP(1.0), ("grr", "oue")) if row.mechanism == "oue")
    assert row.protocol is None
    assert row.reason is not None
    assert "too many to list" in row.reason


def test_ten_inputs_are_listed_fast() -> None:
    joint = Joint.from_counts(np.random.default_rng(3).integers(0, 3000, (7, LARGEST_LISTED)))
    started = time.process_time()
    assert len(funnel.fit("oue", joint, LDP(0.5)).outputs) == 1024
    assert time.process_time() - started < 1.0


def test_what_needs_a_list_or_another_joint_law_is_refused() -> None:
    joint = Joint.from_counts([[3, 0, 5], [4, 0, 1]])
    encoding = UnaryEncoding.at(joint, 1.0)
    with pytest.raises(SpecError, match="known only from a list"):
        unary_encoding(joint, funnel.parse_guarantee("mi:0.1"))
    with pytest.raises(DataError, match="over 3 symbols of X"):
        unary_level(Joint.from_counts([[3, 2], [1, 2]]), LIP(1.0), encoding)
    with pytest.raises(DataError, match="'X1' occurs"):
        unary_utility(Joint.from_counts([[3, 1, 5], [4, 0, 1]]), encoding)
    for weight in (0, 2**62 + 1):
        with pytest.raises(SpecError, match=r"from 1 to 2\^62"):
            UnaryEncoding.of(joint, weight)
    with pytest.raises(SpecError, match="alpha >= 0"):
        UnaryEncoding.at(joint, math.nan)
    with pytest.raises(SpecError, match="must sum to exactly"):
        UnaryEncoding(joint.inputs, 1, np.array([1, 2, 3], dtype=np.uint64))
    with pytest.raises(SpecError, match="one unsigned 64-bit integer for each of 3"):
        UnaryEncoding(joint.inputs, 1, np.array([DENOMINATOR], dtype=np.uint64))
