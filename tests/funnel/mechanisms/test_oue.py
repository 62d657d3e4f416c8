"""Unary encoding: its weights against the definition in fractions, and the protocol that lists every set."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import LDP, LIP, Alphabet, Joint, SpecError
from funnel.mechanisms.oue import LARGEST_LISTED, listed_sets, listed_weights
from funnel.protocol import DENOMINATOR, exact_sums
from tests.strategies import joints


def definition(size: int, q: Fraction) -> list[list[Fraction]]:
    """P(Y = A|x) as a product over the bits (PF equation (27)), one row a set."""

    def bit(x: int, z: int, is_set: bool) -> Fraction:
        chance = Fraction(1, 2) if x == z else q
        return chance if is_set else 1 - chance

    return [
        [math.prod((bit(x, z, z in members) for z in range(size)), start=Fraction(1)) for x in range(size)]
        for members in listed_sets(size)
    ]


@settings(max_examples=60)
@given(st.integers(1, 6), st.one_of(st.just(0.0), st.floats(0, 50)))
def test_listed_weights_are_the_encoding_rounded_so_that_no_quotient_rises(size: int, alpha: float) -> None:
    weights = listed_weights(size, alpha)
    assert set(exact_sums(weights)) == {DENOMINATOR}
    # A set that some inputs exclude would tell the others for certain.
    assert not ((weights == 0).any(axis=1) & (weights > 0).any(axis=1)).any()
    lie = math.exp(-alpha)
    q = Fraction(max(1, round(DENOMINATOR * (lie / (1 + lie)))), DENOMINATOR)
    growth = (1 - q) / q
    for row, exact in zip(weights.tolist(), definition(size, q), strict=True):
        assert max(abs(Fraction(w, DENOMINATOR) - p) for w, p in zip(row, exact, strict=True)) <= Fraction(
            len(weights), DENOMINATOR
        )
        if row[0]:
            assert Fraction(max(row), min(row)) <= growth


def test_eight_inputs_and_the_equation_of_the_paper() -> None:
    """PF (29): max |ln (1 + (e^α - 1) p(A|s)) / (1 + (e^α - 1) p(A))| over sets and secrets."""
    counts = np.array([[9, 4, 1, 0, 7, 2, 30, 5], [1, 6, 8, 3, 2, 2, 2, 40], [0, 5, 5, 9, 1, 1, 1, 1]])
    joint = Joint.from_counts(counts)
    alpha = 1.7
    k = math.expm1(alpha)
    expected = max(
        abs(math.log((1 + k * given[list(members)].sum()) / (1 + k * joint.p_input[list(members)].sum())))
        for members in listed_sets(8)
        for given in joint.input_given_secret
    )
    assert LIP(1.0).level_for(joint, listed_weights(8, alpha)).value == pytest.approx(expected, rel=1e-12)


@settings(max_examples=20)
@given(joints(min_inputs=2), st.sampled_from([LIP(0.3), LDP(1.0)]))
def test_the_strongest_encoding_holds_and_a_stronger_one_does_not(joint: Joint, guarantee: funnel.Guarantee) -> None:
    protocol = funnel.fit("oue", joint, guarantee)
    assert guarantee.holds(joint, protocol)
    level = guarantee.level(joint, protocol).value
    # Where even the sets that are nearly certain meet the bound, there is nothing to calibrate.
    most = guarantee.level_for(joint, listed_weights(len(joint.inputs), 64.0)).value
    if most > guarantee.budget:
        assert level == pytest.approx(guarantee.budget, rel=1e-6)


def test_a_fitted_protocol_lists_every_set() -> None:
    joint = Joint.from_counts([[30, 10, 20, 0], [10, 30, 20, 0]], inputs=["a", "b", "c", "never"])
    protocol = funnel.fit("oue", joint, LIP(0.3))
    assert protocol.outputs.labels[:6] == ("{}", "{a}", "{b}", "{c}", "{never}", "{a, b}")
    assert len(protocol.outputs) == 16
    assert (protocol.weights[:, 3] == protocol.marginal).all()
    assert LIP(0.3).level(joint, protocol).value == pytest.approx(0.3, rel=1e-9)
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
    with pytest.raises(SpecError, match=r"11 symbols has 2\^11 possible outputs.*; use grr$"):
        funnel.fit("oue", joint, LIP(1.0))


def test_as_many_inputs_as_are_listed() -> None:
    joint = Joint.from_counts(np.random.default_rng(3).integers(0, 3000, (7, LARGEST_LISTED)))
    assert len(funnel.fit("oue", joint, LDP(0.5)).outputs) == 1024
