"""The largest of some ratios of probabilities, in whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from funnel.recount.channel import Channel
from funnel.recount.intervals import at_most_exp, fraction_above, log_above


@dataclass(frozen=True)
class Ratio:
    """The largest of some ratios of probabilities.

    Attributes
    ----------
    value : Fraction or None
        At least 1; None where it is infinite.
    """

    value: Fraction | None = Fraction(1)

    @property
    def nats(self) -> float:
        """Its logarithm, rounded up."""
        return math.inf if self.value is None else log_above(self.value)

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
    if one.value is None or (other.value is not None and one.value >= other.value):
        return one
    return other


def largest_lifts(channel: Channel) -> tuple[Ratio, Ratio]:
    """The largest ``P(y|s)/P(y)`` and the largest ``P(y)/P(y|s)`` over outputs and secrets that occur."""
    up = down = Ratio()
    for masses in channel.outputs():
        whole = sum(masses)
        for s in channel.secrets:
            # P(y|s)/P(y) = (N_s / n_s) / (N / n).
            part, average = masses[s] * channel.n, whole * channel.sizes[s]
            up = larger(up, part, average)
            down = larger(down, average, part)
    return up, down


def largest_odds(channel: Channel) -> Ratio:
    """The largest ``P(y|s)/P(y|s')`` over outputs and secrets that occur."""
    worst = Ratio()
    for masses in channel.outputs():
        given = {s: Fraction(masses[s], channel.sizes[s]) for s in channel.secrets}
        high, low = max(given, key=given.__getitem__), min(given, key=given.__getitem__)
        worst = larger(worst, masses[high] * channel.sizes[low], masses[low] * channel.sizes[high])
    return worst


def scaled(nats: float, side: Fraction | None, budget: Fraction) -> float:
    """A leakage on the side of one of two budgets as a level: what the larger one would have to be, rounded up."""
    if side is None or nats == 0:
        return 0.0
    if side == budget:
        return nats
    return math.inf if side == 0 or math.isinf(nats) else fraction_above(Fraction(nats) * budget / side)
