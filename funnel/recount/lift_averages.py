"""The levels of bounds on averages of lifts (l1, χ², α) and of their inverses, computed a second time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from funnel.recount.channel import Channel
from funnel.recount.intervals import ball, below, float_above


@dataclass(frozen=True)
class Average:
    """What is averaged over the secrets, and what it is compared with.

    Attributes
    ----------
    of : callable
        The summand of a lift l, to be weighted with p_s.
    least : int
        The sum where the output tells nothing: the smallest that there is, and all that a budget of 0 allows.
    limit : callable
        The bound on the sum as a function of the budget in nats.
    nats : callable
        Its inverse: the budget for which the sum is the bound.
    """

    of: Callable[[Fraction], Fraction]
    least: int
    limit: Callable[[arb], arb]
    nats: Callable[[arb], arb]


def average_of(kind: str, order: int) -> Average:
    """ALIP (31)–(36) with the bounds of its section 6.2."""
    if kind == "l1-lift":
        return Average(lambda lift: abs(lift - 1), 0, lambda nats: nats.exp() - 1, lambda value: value.log1p())
    if kind == "chi2-lift":
        return Average(
            lambda lift: (lift - 1) ** 2, 0, lambda nats: (nats.exp() - 1) ** 2, lambda value: value.sqrt().log1p()
        )
    return Average(lambda lift: lift**order, 1, lambda nats: (nats * order).exp(), lambda value: value.log() / order)


@dataclass(frozen=True)
class WorstAverage:
    """The largest average over outputs; ``value`` None where it is infinite."""

    average: Average
    value: Fraction | None

    def within(self, nats: Fraction) -> bool:
        """Whether it is at most what the budget allows."""
        value = self.value
        if value is None or value == self.average.least:
            return value is not None
        # Beyond 0 the bound is transcendental, and the sum is not.
        return nats > 0 and below(value, lambda: self.average.limit(ball(nats)))

    @property
    def nats(self) -> float:
        """The budget that allows it, rounded up."""
        value = self.value
        if value is None:
            return math.inf
        return 0.0 if value == self.average.least else float_above(lambda: self.average.nats(ball(value)))


def worst_averages(channel: Channel, average: Average) -> tuple[WorstAverage, WorstAverage]:
    """The largest ``Σ_s p_s f(l(s,y))`` and the largest ``Σ_s p_s f(1/l(s,y))`` over outputs."""
    shares = {s: Fraction(channel.sizes[s], channel.n) for s in channel.secrets}
    found: list[Fraction | None] = [Fraction(average.least)] * 2
    for masses in channel.outputs():
        lifts = channel.lifts(masses)
        for side, inverse in enumerate((False, True)):
            best = found[side]
            if best is None or (inverse and min(lifts.values()) == 0):
                found[side] = None
                continue
            parts = (shares[s] * average.of(1 / lift if inverse else lift) for s, lift in lifts.items())
            found[side] = max(best, sum(parts, Fraction(0)))
    return WorstAverage(average, found[0]), WorstAverage(average, found[1])
