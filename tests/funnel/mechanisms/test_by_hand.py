"""Mechanisms on distributions small enough for work by hand: secret and input are equal in four records of five."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import xlogy

import funnel
from funnel import LIP, SRLIP, Alphabet, Joint, MutualInformation, PerfectPrivacy
from funnel.measures import mutual_information, secret_information

PAIR = Joint.from_counts([[4, 1], [1, 4]])
TWO_PAIRS = Joint.from_counts([[4, 1, 4, 1, 5], [1, 4, 1, 4, 5]])


def entropy(*distribution: float) -> float:
    assert sum(distribution) == pytest.approx(1)
    return -float(xlogy(distribution, distribution).sum())


def shift(epsilon: float) -> float:
    """How far a posterior of x may be from ½: P(s|y) = ½ ± 0.6 d, and 1 - 1.2 d >= e^-ε is the tighter side."""
    return -math.expm1(-epsilon) / 1.2


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", ["grr", "optimal", "subset-random-response"])
def test_a_symmetric_pair(name: str, epsilon: float) -> None:
    """Both outputs as far from the prior as the bound allows: here randomised response is optimal."""
    protocol = funnel.fit(name, PAIR, LIP(epsilon))
    d = shift(epsilon)
    assert np.sort(protocol.matrix.ravel()) == pytest.approx([0.5 - d, 0.5 - d, 0.5 + d, 0.5 + d], abs=1e-4)
    assert mutual_information(PAIR, protocol) == pytest.approx(math.log(2) - entropy(0.5 + d, 0.5 - d), abs=2e-6)


def test_conditional_reporting_of_a_symmetric_pair() -> None:
    """PF (30) = ε: (0.2 g + 1) / (0.5 g + 1) = e^-ε for g = e^α - 1."""
    epsilon = 0.5
    protocol = funnel.fit("conditional-reporting", PAIR, LIP(epsilon))
    growth = 1 + (1 - math.exp(-epsilon)) / (0.5 * math.exp(-epsilon) - 0.2)
    truth, lie = growth / (growth + 1), 1 / (growth + 1)
    # Inputs (s, x) in the order (0, 0), (0, 1), (1, 0), (1, 1); a lie about s = 0 is a draw for s = 1.
    first = [truth + 0.2 * lie, 0.2 * lie, truth + 0.8 * lie, 0.8 * lie]
    assert protocol.matrix[0] == pytest.approx(first)
    assert LIP(1.0).level(PAIR, protocol).value == pytest.approx(epsilon)


def test_a_protocol_that_sees_the_secret_can_hide_it_and_still_tell_something() -> None:
    """Y = X ⊕ S says nothing about S, and is a report of X that is right in four records of five."""
    blind = funnel.optimal(PAIR, PerfectPrivacy())
    seeing = funnel.optimal(PAIR, PerfectPrivacy(), gap=1e-4, reads_secret=True)
    assert blind.utility == 0
    assert PerfectPrivacy().holds(PAIR, seeing.protocol)
    assert secret_information(PAIR, seeing.protocol) == pytest.approx(0, abs=1e-12)
    assert seeing.utility >= math.log(2) - entropy(0.2, 0.8) - 1e-4
    protocol = funnel.fit("optimal-with-secret", PAIR, PerfectPrivacy())
    assert mutual_information(PAIR, protocol) == pytest.approx(seeing.utility, abs=2e-4)


def test_pairs_that_cancel() -> None:
    """x0 and x1 betray opposite secrets, so do x2 and x3; x4 betrays none and stays as it is."""
    epsilon, third = 0.1, 1 / 3
    for name, utility in {
        "watchdog": entropy(2 * third, third),
        "watchdog-uniform": entropy(2 * third, third),
        "subset-merging": math.log(3),
        "subset-random-response": math.log(3)
        + 2 * third * (math.log(2) - entropy(0.5 + shift(epsilon), 0.5 - shift(epsilon))),
    }.items():
        protocol = funnel.fit(name, TWO_PAIRS, LIP(epsilon))
        assert mutual_information(TWO_PAIRS, protocol) == pytest.approx(utility, abs=1e-6), name
    merged = funnel.fit("subset-merging", TWO_PAIRS, LIP(epsilon)).matrix
    assert merged.tolist() == [[0, 0, 0, 0, 1], [1, 1, 0, 0, 0], [0, 0, 1, 1, 0]]
    one = funnel.fit("watchdog", TWO_PAIRS, LIP(epsilon)).matrix
    assert one.tolist() == [[0, 0, 0, 0, 1], [1, 1, 1, 1, 0]]
    uniform = funnel.fit("watchdog-uniform", TWO_PAIRS, LIP(epsilon)).matrix
    assert sorted(uniform.tolist()) == sorted([[0, 0, 0, 0, 1]] + [[0.25, 0.25, 0.25, 0.25, 0]] * 4)


def test_agglomeration_of_pairs_that_cancel() -> None:
    """Each merge that hides anything hides all there is of one pair; nothing is told afterwards."""
    protocol = funnel.fit("agglomeration", TWO_PAIRS, MutualInformation(0.0))
    assert secret_information(TWO_PAIRS, protocol) == pytest.approx(0, abs=1e-12)
    assert mutual_information(TWO_PAIRS, protocol) == pytest.approx(math.log(3))
    # With a bound that one pair alone keeps, the other is left as it is: 1/3 (ln 2 - h(0.2)) = 0.064.
    half = funnel.fit("agglomeration", TWO_PAIRS, MutualInformation(0.07))
    assert len(half.outputs) == 4
    assert secret_information(TWO_PAIRS, half) == pytest.approx((math.log(2) - entropy(0.2, 0.8)) / 3)
    assert funnel.fit("agglomeration", TWO_PAIRS, MutualInformation(0.13)).outputs.labels == TWO_PAIRS.inputs.labels


def test_a_column_that_has_nothing_to_do_with_the_secret_is_published_as_it_is() -> None:
    symbols = tuple(itertools.product("ab", "uv"))
    joint = Joint.from_counts([[4, 4, 1, 1], [1, 1, 4, 4]], inputs=Alphabet(("telling", "idle"), symbols))
    epsilon = 0.5
    d = shift(epsilon)
    expected = 2 * math.log(2) - entropy(0.5 + d, 0.5 - d)
    product = funnel.fit("side-channel-product", joint, SRLIP(epsilon))
    assert mutual_information(joint, product) == pytest.approx(expected, abs=1e-4)
    assert funnel.optimal(joint, SRLIP(epsilon)).utility == pytest.approx(expected, abs=2e-6)
    idle = product.matrix.reshape(-1, 2, 2)
    assert ((idle > 0).sum(axis=2) == 1).all(), "an output that two values of the idle column share"
