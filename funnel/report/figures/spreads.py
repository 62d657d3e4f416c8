"""The chart of factors: a line for each name, with a dot for each factor, with ÷ 2 and × 2 equally far."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from funnel.release.report_parts import Level, Spread
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


@dataclass(frozen=True)
class Line:
    """One line of a chart: its name, where it starts, its dots, and whether something lies beyond an end of the axis.

    A line starts at its first dot, or at no change where that is the end of the axis.
    """

    label: str
    start: float
    dots: tuple[float, ...]
    below: bool
    above: bool

    @property
    def width(self) -> float:
        """From the start to the last dot."""
        return round(max(self.dots) - self.start, 1)


@dataclass(frozen=True)
class SpreadChart:
    """A chart as the template draws it: all places in per cent of its width."""

    lines: tuple[Line, ...]
    ticks: tuple[tuple[float, str], ...]
    limits: tuple[tuple[float, str], ...]
    description: str


def spread_chart(
    spreads: Sequence[Spread], limits: tuple[float, float] | None, both_sides: bool, things: str
) -> SpreadChart:
    """The chart of some spreads.

    Parameters
    ----------
    spreads : sequence of Spread
        Factors that are zero or infinite have no place on the axis: an arrow at its end stands for them.
    limits : tuple of two floats, or None
        Least and largest factor allowed; zero and infinity are no limits.
    both_sides : bool
        Whether factors below 1 are shown.
    things : str
        What a line stands for, in the plural.
    """
    factors = [_number(value) for spread in spreads for value in spread.values]
    bounds = [limit for limit in limits or () if 0 < limit < math.inf]
    axis = Axis(reach(factors, bounds), both_sides)
    # Two limits at one place, of a bound that allows no change at all, are named once.
    named = {axis.place(limit): f"limit {_factor(limit)}" for limit in bounds if abs(math.log(limit)) < axis.half_width}
    lines = tuple(_line(spread, axis) for spread in spreads)
    description = f"Chart of {len(lines):,} {things}, from no change outwards"
    return SpreadChart(
        lines,
        tuple(axis.ticks),
        tuple(named.items()),
        f"{description}{', with the limits of the guarantee' if named else ''}. The table below gives the numbers.",
    )


def _line(spread: Spread, axis: Axis) -> Line:
    values = [_number(value) for value in spread.values]
    dots = {axis.place(value) for value in values if 0 < value < math.inf}
    start = min(dots, default=0.0) if axis.both_sides else 0.0
    return Line(spread.label, start, tuple(sorted(dots)), 0.0 in values, math.inf in values)


def _number(value: Level) -> float:
    return math.inf if isinstance(value, str) else value


def _factor(limit: float) -> str:
    return f"×\u00a0{limit:.3g}" if limit >= 1 else f"÷\u00a0{1 / limit:.3g}"
