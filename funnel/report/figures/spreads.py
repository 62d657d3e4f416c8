"""The chart of factors: a line for each name, with a dot for each factor, between the limits of the guarantee."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from funnel.release.report_parts import Level, Spread
from funnel.report.figures.axis import Axis, reach


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
