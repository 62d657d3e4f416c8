"""Ratios that floats cannot tell apart, or tell apart wrongly: integers decide among them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from funnel import ALIP, LDP, LIP, SRLIP, Alphabet, Joint, L1Lift, Protocol
from funnel.guarantees import Chi2Lift, Guarantee
from funnel.guarantees.lift_bounds import LiftBound
from tests.brute import given_secret

FULL = 2**63


def nearly_alike(seed: int, outputs: int = 6) -> tuple[Joint, Protocol]:
    """A channel whose outputs differ in the last bits of weights around 2^59, which doubles cannot hold."""
    random = np.random.default_rng(seed)
    joint = Joint.from_counts(
        random.integers(1, 2000, size=(3, 4)), inputs=[("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]
    )
    row = random.integers(2**57, 2**60, size=4)
    weights = np.array([row + random.integers(-300, 300, size=4) for _ in range(outputs)], dtype=np.uint64)
    rest = np.array([FULL - int(total) for total in weights.sum(axis=0)], dtype=np.uint64)
    # What is left is cut into pieces that are nearly flat: no ratio of theirs is large.
    flat = int(rest.min()) // 2
    weights = np.vstack([weights, np.full(4, flat, dtype=np.uint64), rest - np.uint64(flat)])
    protocol = Protocol(weights, weights[:, 0], joint.inputs, Alphabet.of(None, len(weights), "Y"))
    return joint, protocol


def rank(joint: Joint, protocol: Protocol, ratio: dict[int, Fraction]) -> int:
    """How many outputs come within a relative 10^-12 of the largest ratio."""
    largest = max(ratio.values())
    return sum(value >= largest * (1 - Fraction(1, 10**12)) for value in ratio.values())


def worst_ratios(joint: Joint, protocol: Protocol, guarantee: Guarantee) -> dict[int, Fraction]:
    """The worst ratio of every output, in fractions."""
    distribution, marginal = given_secret(joint, protocol)
    found: dict[int, Fraction] = {}
    for y, average in enumerate(marginal):
        given = [value for (z, _), value in distribution.items() if z == y]
        if isinstance(guarantee, LDP):
            found[y] = max(given) / min(given)
        else:
            found[y] = max(max(given) / average, average / min(given))
    return found


@pytest.mark.parametrize("guarantee", [LIP(1.0), LDP(1.0), ALIP(1.0, 1.0)], ids=str)
def test_the_largest_of_ratios_that_floats_confuse(guarantee: Guarantee) -> None:
    confused = 0
    for seed in range(60):
        joint, protocol = nearly_alike(seed)
        ratios = worst_ratios(joint, protocol, guarantee)
        confused += rank(joint, protocol, ratios) > 1
        witness = guarantee.level(joint, protocol).witness
        assert witness.ratio == max(ratios.values())
        assert ratios[witness.output] == witness.ratio
    assert confused > 20


def test_side_channels_are_compared_as_exactly() -> None:
    """The same records twice, in columns that say the same: SRLIP is LIP, whatever floats make of it."""
    for seed in range(20):
        joint, protocol = nearly_alike(seed)
        constant = Alphabet(("one", "X"), tuple(("-", f"{x}") for x in range(4)))
        joint = Joint.from_counts(joint.counts, joint.secret, constant)
        protocol = Protocol(protocol.weights, protocol.marginal, constant, protocol.outputs)
        assert SRLIP(1.0).level(joint, protocol).witness.ratio == LIP(1.0).level(joint, protocol).witness.ratio


@pytest.mark.parametrize("guarantee", [L1Lift(1.0, 1.0), Chi2Lift(1.0, 1.0)], ids=str)
@pytest.mark.parametrize("inverse", [False, True])
def test_the_largest_of_averages_that_floats_confuse(guarantee: LiftBound, inverse: bool) -> None:
    confused = 0
    for seed in range(60):
        joint, protocol = nearly_alike(seed)
        distribution, marginal = given_secret(joint, protocol)
        prior = [Fraction(int(size), joint.n) for size in joint.counts.sum(axis=1)]
        measures = {}
        for y, average in enumerate(marginal):
            lifts = [distribution[y, s] / average for s in range(len(prior))]
            measures[y] = guarantee.measure([1 / lift for lift in lifts] if inverse else lifts, prior)
        confused += rank(joint, protocol, measures) > 1
        output, measure = guarantee._worst(joint, protocol.weights, inverse)
        assert measure == max(measures.values())
        assert measures[output] == measure
    assert confused > 20


def test_ties_everywhere_are_decided_by_a_few_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A channel that tells next to nothing: floats confuse all outputs, and each used to cost sums of Python integers.

    The largest is found all the same, whatever the size of the stacks that are compared at once.
    """
    compared: list[Fraction] = []

    def counted(numerator: int, denominator: int = 1) -> Fraction:
        compared.append(Fraction(numerator, denominator))
        return compared[-1]

    random = np.random.default_rng(7)
    joint = Joint.from_counts(random.integers(1, 10**6, size=(3, 5)))
    row = 2**55 + random.integers(0, 2**20, size=(250, 5)).astype(np.uint64)
    weights = np.vstack([row, np.array([[FULL - int(total) for total in row.sum(axis=0)]], dtype=np.uint64)])
    exact = [[Fraction(sum(int(n) * int(w) for n, w in zip(counts, out, strict=True)), int(counts.sum()))
              for counts in [*joint.counts, joint.counts.sum(axis=0)]] for out in weights]  # fmt: skip
    most = max(
        max(value / distribution[-1], distribution[-1] / value) for distribution in exact for value in distribution[:-1]
    )
    for stack in (1, 100, 2**21):
        monkeypatch.setattr("funnel.guarantees.events._STACK", stack)
        monkeypatch.setattr("funnel.guarantees.events.Fraction", counted)
        compared.clear()
        witness = LIP(1.0).worst(joint, weights)
        assert witness.ratio == most
    # In one stack, extended precision leaves only what it cannot tell apart.
    assert len(compared) < 300
