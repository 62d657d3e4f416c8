"""The axis of factors: logarithmic, so that twice as likely and half as likely are equally far from no change."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from funnel.report.number_texts import superscript

_NICE = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)
# A tick label needs about this share of half the axis, also on a phone.
_APART = 0.27


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis from ÷ to ×, or from 1 upwards; places are in per cent of its width.

    Attributes
    ----------
    half_width : float
        In nats.
    both_sides : bool
    """

    half_width: float
    both_sides: bool

    def place(self, factor: float) -> float:
        """Where a factor is, to a tenth of a per cent; at an end where it is beyond that."""
        log = math.log(factor) if 0 < factor < math.inf else math.copysign(math.inf, factor - 1)
        inside = max(-self.half_width, min(self.half_width, log)) / self.half_width
        return round(50 * (1 + inside) if self.both_sides else 100 * max(0.0, inside), 1)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Place and label of round factors."""
        upward = ticks(self.half_width)
        found = [(self.place(factor), label) for factor, label in upward]
        if not self.both_sides:
            return found
        return [(100 - place, label.replace("×", "÷")) for place, label in reversed(found[1:])] + found


def reach(factors: Iterable[float], limits: Iterable[float]) -> float:
    """Half-width of an axis, in nats: shows every factor that is neither zero nor infinite, and near limits."""
    largest = max((abs(math.log(factor)) for factor in factors if 0 < factor < math.inf), default=0.0)
    wanted = max((abs(math.log(limit)) for limit in limits if 0 < limit < math.inf), default=0.0)
    shown = min(wanted, max(6 * largest, 1.0))
    return max(1.12 * largest, 1.12 * shown, 0.02)


def ticks(half_width: float) -> list[tuple[float, str]]:
    """Round factors from 1 upwards, and their labels, a readable distance apart."""
    candidates = list(_NICE) + [10.0**power for power in range(4, 101)]
    chosen: list[tuple[float, str]] = []
    last = half_width * 1.3
    for factor in sorted(candidates, reverse=True):
        place = math.log(factor)
        if place <= half_width and last - place >= _APART * half_width and place >= 0.3 * half_width:
            chosen.append(
                (factor, f"×\u00a0{factor:g}" if factor < 1e6 else f"×\u00a010{superscript(round(math.log10(factor)))}")
            )
            last = place
    return [(1.0, "no change"), *reversed(chosen)]
