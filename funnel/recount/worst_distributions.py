"""The largest ratios of probabilities over a box of laws, in whole numbers, by the duals of the worst cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from funnel.recount.channel import Channel
from funnel.recount.distribution_box import UNIT, DistributionBox
from funnel.recount.envelopes import largest_mean, smallest_mean
from funnel.recount.ratios import Ratio, larger


@dataclass(frozen=True)
class Reach:
    """How likely an output can be given each secret: limits of P(y|s), attained, times UNIT and the denominator."""

    least: tuple[int, ...]
    most: tuple[int, ...]


def largest_odds_over_distributions(channel: Channel, box: DistributionBox) -> Ratio:
    """The largest ``P(y|s)/P(y|t)`` over outputs, secrets s other than t, and laws in the box.

    The conditional laws of two secrets vary by themselves, so it is the most that s allows over the least that t does.
    """
    worst = Ratio()
    for reach in _reaches(channel, box):
        for s, most in enumerate(reach.most):
            for t, least in enumerate(reach.least):
                if s != t:
                    worst = larger(worst, most, least)
    return worst


def largest_lifts_over_distributions(channel: Channel, box: DistributionBox) -> tuple[Ratio, Ratio]:
    """The largest ``P(y|s)/P(y)`` and ``P(y)/P(y|s)`` over outputs, secrets and laws in the box.

    ``P(y|s)/P(y) = m_s / Σ_t p_t m_t`` grows with m_s and falls with every other m_t, whatever p is: so m_s is as large
    as it can be, the others as small, and p makes the mean smallest. The other ratio is the other way round.
    """
    up = down = Ratio()
    for reach in _reaches(channel, box):
        for s in range(channel.c):
            high = [
                most if t == s else least for t, (least, most) in enumerate(zip(reach.least, reach.most, strict=True))
            ]
            low = [
                least if t == s else most for t, (least, most) in enumerate(zip(reach.least, reach.most, strict=True))
            ]
            up = larger(up, high[s] * UNIT, smallest_mean(high, box.secrets, UNIT))
            down = larger(down, largest_mean(low, box.secrets, UNIT), low[s] * UNIT)
    return up, down


def _reaches(channel: Channel, box: DistributionBox) -> Iterator[Reach]:
    for y in range(len(channel.weights)):
        rows = [channel.row(y, s) for s in range(channel.c)]
        most = tuple(largest_mean(row, limits, UNIT) for row, limits in zip(rows, box.inputs, strict=True))
        if any(most):
            least = tuple(smallest_mean(row, limits, UNIT) for row, limits in zip(rows, box.inputs, strict=True))
            yield Reach(least, most)
