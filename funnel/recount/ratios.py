"""Ratios of probabilities in whole numbers, the inequalities that a promise asks of them, and information in nats.

Single releases and histories ask the same: a single release is a history of one step.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol

from flint import arb, ctx

from funnel.errors import SpecError
from funnel.recount.channel import Channel
from funnel.recount.intervals import at_most_exp, ball, below, exact_fraction, float_above, fraction_above, log_above
from funnel.recount.packed import ONE
from funnel.recount.promise import Promise

_KINDS = ("lip", "alip", "pml", "ldp", "perfect")
_BITS_OF_EXP = 256


@dataclass(frozen=True)
class Ratio:
    """The largest of some ratios of probabilities.

    Attributes
    ----------
    value : Fraction or None
        At least 1; None where it is infinite.
    excess : int
        It may be smaller: by at most this part of `ONE`, relatively.
    """

    value: Fraction | None = Fraction(1)
    excess: int = 0

    @cached_property
    def upper(self) -> Fraction | None:
        """What it is at most, whichever of the numbers between its limits it was made of; None if that is infinite."""
        if self.value is None or self.excess >= ONE:
            return None
        above, below = self.value.as_integer_ratio()
        return Fraction(above * ONE, below * (ONE - self.excess)) if self.excess else self.value

    @property
    def nats(self) -> float:
        """Its logarithm, rounded up."""
        return math.inf if self.upper is None else log_above(self.upper)

    def within(self, nats: Fraction) -> bool:
        """Whether it is at most e^nats."""
        return self.value is not None and at_most_exp(self.value, nats)


def larger(best: Ratio, above: int, below: int) -> Ratio:
    """The larger of the best ratio so far and ``above/below``, compared across; infinite for ``below`` = 0."""
    if best.value is None or above * best.value.denominator <= best.value.numerator * below:
        return best
    return Ratio(Fraction(above, below) if below else None)


def worse(one: Ratio, other: Ratio) -> Ratio:
    """The larger of two ratios."""
    mine, theirs = one.upper, other.upper
    return one if mine is None or (theirs is not None and mine >= theirs) else other


def scaled(nats: float, side: Fraction | None, budget: Fraction) -> float:
    """A leakage on the side of one of two budgets as a level: what the larger one would have to be, rounded up."""
    if side is None or nats == 0:
        return 0.0
    if side == budget:
        return nats
    return math.inf if side == 0 or math.isinf(nats) else fraction_above(Fraction(nats) * budget / side)


@dataclass(frozen=True)
class Side:
    """One kind of inequality.

    Attributes
    ----------
    name : str
        "lift", "inverse" or "odds".
    nats : Fraction
        Its budget.
    """

    name: str
    nats: Fraction

    @cached_property
    def limits(self) -> tuple[Fraction, Fraction]:
        """Rationals below and above e^nats, equal to it for 0."""
        if self.nats == 0:
            return Fraction(1), Fraction(1)
        with ctx.workprec(_BITS_OF_EXP):
            grown = ball(self.nats).exp()
            return exact_fraction(grown.lower()), exact_fraction(grown.upper())

    def terms(self, masses: Sequence[int], shares: Sequence[int]) -> list[tuple[int, int]]:
        """``(A, B)`` of every inequality, both times one positive number that depends on the masses' sum alone.

        Parameters
        ----------
        masses : sequence of int
            N_s, in proportion to the posterior.
        shares : sequence of int
            In proportion to the prior.
        """
        known = [s for s, share in enumerate(shares) if share]
        if self.name == "odds":
            return [(masses[s] * shares[t], masses[t] * shares[s]) for s in known for t in known if s != t]
        whole, total = sum(masses), sum(shares)
        if self.name == "lift":
            return [(masses[s] * total, shares[s] * whole) for s in known]
        return [(shares[s] * whole, masses[s] * total) for s in known]


def largest(side: Side, posteriors: Iterable[Sequence[int]], shares: Sequence[int]) -> Ratio:
    """The largest ``A/B`` of a side over posteriors, as of `Side.terms`."""
    best = Ratio()
    for masses in posteriors:
        for up, down in side.terms(masses, shares):
            best = larger(best, up, down)
    return best


def sides_of(promise: Promise, factor: Fraction = Fraction(1)) -> tuple[Side, ...]:
    """The inequalities of a promise, with its budgets times a factor.

    Raises
    ------
    SpecError
        If it says nothing about posteriors of the secret.
    """
    kind = promise.kind.removeprefix("r") if promise.distributions == "boxes" else promise.kind
    if kind not in _KINDS:
        raise SpecError(
            f"{promise.kind} is no bound on what is learned of the secret from everything that was published; "
            f"use one of {', '.join(_KINDS)}"
        )
    if kind == "ldp":
        return (Side("odds", promise.number("epsilon") * factor),)
    if kind == "alip":
        sides = (("lift", promise.numbers["upper"]), ("inverse", promise.numbers["lower"]))
        return tuple(Side(name, nats * factor) for name, nats in sides if nats is not None)
    nats = Fraction(0) if kind == "perfect" else promise.number("epsilon") * factor
    if kind == "pml":
        return (Side("lift", nats),)
    return Side("lift", nats), Side("inverse", nats)


LIFTS = Side("lift", Fraction(0)), Side("inverse", Fraction(0))
"""Both lifts, whatever their budgets are."""


class Leakage(Protocol):
    """What a side measures."""

    @property
    def nats(self) -> float:
        """The least budget that it is within, rounded up."""
        ...

    def within(self, nats: Fraction) -> bool:
        """Whether it is at most a budget."""
        ...


def level_above(promise: Promise, sides: Sequence[Side], worst: Sequence[Leakage]) -> float:
    """The level of a promise that these ratios amount to, in nats, rounded up.

    Of two budgets it is what the larger one would have to be while they keep their proportion.
    """
    levels = (scaled(one.nats, side.nats, promise.budget) for side, one in zip(sides, worst, strict=True))
    return max(levels, default=0.0)


@dataclass(frozen=True)
class PlainInformation:
    """What a release says about the published columns, in nats.

    Attributes
    ----------
    utility : float
        I(X;Y).
    entropy : float
        H(X).
    share : float
        Their quotient; 1 where there is nothing to say.
    """

    utility: float
    entropy: float
    share: float


def plain_information(channel: Channel) -> PlainInformation:
    """I(X;Y), H(X) and their quotient; O(a b c)."""
    records = channel.records
    total = channel.n * channel.denominator
    terms = []
    for y in range(len(channel.weights)):
        # P(u, y) = N[u] / total.
        joint = channel.masses_by_input(y)
        whole = sum(mass for _, mass in joint)
        terms += [mass / total * _log_of_quotient(mass * channel.n, whole * records[u]) for u, mass in joint]
    utility, entropy = max(0.0, math.fsum(terms)), plain_entropy(records)
    return PlainInformation(utility, entropy, utility / entropy if entropy else 1.0)


def plain_entropy(records: Collection[int]) -> float:
    """H of how many records have each value, in nats."""
    n = sum(records)
    return math.fsum(size / n * math.log(n / size) for size in records if size)


def _log_of_quotient(above: int, below: int) -> float:
    """ln(above / below) to full precision, near 1 too, where the quotient itself has lost its digits."""
    return math.log1p((above - below) / below) if 2 * abs(above - below) < below else math.log(above / below)


@dataclass(frozen=True)
class SecretInformation:
    """I(S;Y) of a channel.

    Attributes
    ----------
    joint : tuple of tuple of int
        Masses of the outputs that occur and the secrets that occur.
    """

    joint: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, channel: Channel) -> SecretInformation:
        """That of the channel's exact distribution."""
        return cls(tuple(tuple(masses[s] for s in channel.secrets) for masses in channel.outputs()))

    @property
    def nats(self) -> float:
        """In nats, rounded up."""
        return 0.0 if self._independent else float_above(self._value)

    def within(self, nats: Fraction) -> bool:
        """Whether it is at most a bound, exactly: unless it is 0 it is no rational number, so an interval decides."""
        return self._independent or (nats > 0 and not below(nats, self._value))

    @property
    def _independent(self) -> bool:
        total, secrets = sum(map(sum, self.joint)), [sum(column) for column in zip(*self.joint, strict=True)]
        return all(
            mass * total == sum(masses) * secret
            for masses in self.joint
            for mass, secret in zip(masses, secrets, strict=True)
        )

    def _value(self) -> arb:
        """``H(S) + H(Y) - H(S, Y)``."""
        secrets = [sum(column) for column in zip(*self.joint, strict=True)]
        outputs = [sum(masses) for masses in self.joint]
        return _entropy(secrets) + _entropy(outputs) - _entropy([mass for masses in self.joint for mass in masses])


def _entropy(masses: Sequence[int]) -> arb:
    """Of the distribution in proportion to whole numbers, at the precision that is set."""
    total = sum(masses)
    sums = sum((arb(mass) * arb(mass).log() for mass in masses if mass), arb(0))
    return arb(total).log() - sums / arb(total)
