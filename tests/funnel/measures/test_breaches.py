"""ρ1-to-ρ2 privacy breaches against all subsets of secrets, in fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from funnel import Joint, Protocol, SpecError, measures
from tests.brute import given_secret
from tests.funnel.measures.channels import channels, protocol_of

probabilities = st.one_of(
    st.fractions(0, 1, max_denominator=20), st.sampled_from([0.1, 0.3, 0.7, 0.999]), st.floats(0.001, 0.999)
)


@st.composite
def limits(draw: st.DrawFn) -> tuple[float | Fraction, float | Fraction]:
    low, high = sorted([draw(probabilities), draw(probabilities)])
    assume(0 < as_written(low) < as_written(high) < 1)
    return low, high


def as_written(value: float | Fraction) -> Fraction:
    return Fraction(str(value))


def properties(joint: Joint, protocol: Protocol) -> list[tuple[int, tuple[int, ...], Fraction, Fraction]]:
    """Output, property, prior and posterior, for every output that occurs and every set of secrets that do."""
    law, marginal = given_secret(joint, protocol)
    prior = {s: Fraction(int(total), joint.n) for s, total in enumerate(joint.counts.sum(axis=1)) if total}
    return [
        (
            y,
            subset,
            sum((prior[s] for s in subset), Fraction(0)),
            sum((prior[s] * law[y, s] for s in subset), Fraction(0)) / mass,
        )
        for y, mass in enumerate(marginal)
        if mass
        for size in range(len(prior) + 1)
        for subset in itertools.combinations(prior, size)
    ]


@settings(max_examples=50)
@given(channels(max_secrets=6), limits())
def test_breaches_are_those_among_all_properties(
    channel: tuple[Joint, Protocol], rho: tuple[float | Fraction, float | Fraction]
) -> None:
    low, high = (as_written(value) for value in rho)
    everything = properties(*channel)
    upward = {(y, Q): (prior, post) for y, Q, prior, post in everything if prior <= low and post > high}
    downward = {(y, Q): (prior, post) for y, Q, prior, post in everything if prior >= high and post < low}
    for direction, found, expected in (
        ("upward", measures.upward_breach(*channel, *rho), upward),
        ("downward", measures.downward_breach(*channel, *rho), downward),
    ):
        assert (found is None) == (not expected)
        if found is not None:
            assert found.direction == direction
            assert (found.prior, found.posterior) == expected[found.output, found.secrets]


@settings(max_examples=50)
@given(channels(), limits())
def test_lifts_exclude_breaches(
    channel: tuple[Joint, Protocol], rho: tuple[float | Fraction, float | Fraction]
) -> None:
    """ALIP proposition A1, and each of its halves for upward breaches."""
    low, high = (as_written(value) for value in rho)
    law, marginal = given_secret(*channel)
    lifts = [value / marginal[y] for (y, _), value in law.items() if marginal[y]]
    rises, falls = max(lifts) <= high / low, min(lifts) >= (1 - high) / (1 - low)
    assert measures.breaches_excluded(*channel, *rho) == (rises and falls)
    if rises or falls:
        assert measures.upward_breach(*channel, *rho) is None
    if rises and falls:
        assert measures.downward_breach(*channel, *rho) is None


def test_a_property_of_several_secrets_is_found_where_no_single_secret_is_breached() -> None:
    joint = Joint.from_counts([[3, 1], [3, 1], [3, 1], [1, 7]])
    protocol = protocol_of(joint, np.eye(2))
    breach = measures.upward_breach(joint, protocol, 0.6, 0.8)
    assert breach == measures.Breach("upward", 0, (0, 1, 2), Fraction(12, 20), Fraction(9, 10))
    assert measures.downward_breach(joint, protocol, 0.2, 0.4) == measures.Breach(
        "downward", 0, (3,), Fraction(8, 20), Fraction(1, 10)
    )
    assert measures.upward_breach(joint, protocol, 0.6, 0.9) is None
    assert not measures.breaches_excluded(joint, protocol, 0.6, 0.8)


def test_limits_are_the_decimal_numbers_they_print_as() -> None:
    """Seven records in ten are a prior of 0.7, though the double 0.7 is less; and 0.9 is not more than 0.9."""
    joint = Joint.from_counts([[9, 5], [1, 5]])
    assert Fraction(14, 20) > Fraction(0.7)
    protocol = protocol_of(joint, np.eye(2))
    assert measures.upward_breach(joint, protocol, 0.7, 0.899) is not None
    assert measures.upward_breach(joint, protocol, 0.7, 0.9) is None
    assert measures.upward_breach(joint, protocol, np.float64(0.7), Fraction(899, 1000)) is not None


def test_a_protocol_that_tells_nothing_breaches_nothing() -> None:
    joint = Joint.from_counts([[9, 5], [1, 5], [0, 0]])
    protocol = protocol_of(joint, np.full((3, 2), 1 / 3))
    for rho in ((0.1, 0.11), (0.5, 0.50001), (0.7, 0.71)):
        assert measures.breaches_excluded(joint, protocol, *rho)
        assert measures.upward_breach(joint, protocol, *rho) is None
        assert measures.downward_breach(joint, protocol, *rho) is None


@pytest.mark.parametrize(
    ("rho1", "rho2", "name"),
    [
        (0, 0.5, "rho1 must be a number"),
        (-0.1, 0.5, "rho1 must be a number"),
        (0.1, 1, "rho2 must be a number"),
        (0.1, 1.5, "rho2 must be a number"),
        (math.nan, 0.5, "rho1 must be a number"),
        (0.5, math.inf, "rho2 must be a number"),
        (True, 0.5, "rho1 must be a number"),
        ("0.1", 0.5, "rho1 must be a number"),
        (0.1, None, "rho2 must be a number"),
        (Fraction(0), 0.5, "rho1 must be a number"),
        (0.5, 0.5, "rho1 must be below rho2"),
        (0.5, 0.1, "rho1 must be below rho2"),
    ],
)
def test_limits_out_of_range_are_refused(rho1: float, rho2: float, name: str) -> None:
    joint = Joint.from_counts([[1, 2], [3, 4]])
    protocol = protocol_of(joint, np.eye(2))
    for decision in (measures.upward_breach, measures.downward_breach, measures.breaches_excluded):
        with pytest.raises(SpecError, match=f"^{name}"):
            decision(joint, protocol, rho1, rho2)
