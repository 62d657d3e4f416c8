"""Charts by budget: what every mechanism keeps below the most that any could, and what stays unchanged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from funnel.report.number_texts import percent
from funnel.tradeoff.sweep import Sweep
from funnel.tradeoff.unchanged_by_budget import UnchangedCurve

# The area that is drawn in, in units of the picture; labels stand around it.
WIDTH, HEIGHT = 640, 360
LEFT, TOP, RIGHT, BOTTOM = 52, 12, 20, 46
# More lines than this cannot be told apart; the table has all.
_MOST = 8
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Line:
    """What a curve is drawn of: budget, share, and what that point says when looked at."""

    name: str
    points: tuple[tuple[float, float, str], ...]


@dataclass(frozen=True)
class Dot:
    """A point of a curve: its place, and what it says when looked at."""

    x: float
    y: float
    said: str


@dataclass(frozen=True)
class Curve:
    """A line of the chart: its name, its place in the key, and its points from left to right."""

    name: str
    number: int
    dots: tuple[Dot, ...]

    @property
    def path(self) -> str:
        """As points of a polyline."""
        return _path([(dot.x, dot.y) for dot in self.dots])


@dataclass(frozen=True)
class TradeoffChart:
    """A chart as the template draws it, in units of its view box."""

    curves: tuple[Curve, ...]
    frontier: str
    shaded: str
    budgets: tuple[tuple[float, str], ...]
    shares: tuple[tuple[float, str], ...]
    chosen: float
    left_out: int
    description: str


# What is done with what there is of each utility, and what that is.
_DONE = {"information": ("kept", "information"), "variance": ("explained", "the variance")}
_VERB = {"kept": "keep", "explained": "explain"}


def tradeoff_chart(found: Sweep, chosen: float, utility: str = "information") -> TradeoffChart:
    """The chart of a sweep; ``chosen`` is the budget of the spec (nats), ``utility`` what shares are of."""
    done, share = _DONE.get(utility, _DONE["information"])
    shown = found.mechanisms[:_MOST]
    lines = [
        Line(
            name,
            tuple(
                (one.budget, one.kept or 0.0, f"{name}, {one.guarantee}: {percent(one.kept)} {done}")
                for one in found.of(name)
            ),
        )
        for name in shown
    ]
    description = (
        f"Chart of the share of {share} that {len(shown)} mechanisms {_VERB[done]}, by budget. The table below gives "
        "the numbers."
    )
    left_out = len(found.mechanisms) - len(shown)
    return _chart(found.budgets, lines, found.frontier(), chosen, left_out, description)


def unchanged_chart(found: UnchangedCurve, chosen: float) -> TradeoffChart:
    """The chart of what stays unchanged: whole records, and single columns; ``chosen`` is the budget of the spec."""
    usable = found.usable
    whole = [(one.budget, one.share or 0.0, f"{one.guarantee}: {percent(one.share)} unchanged") for one in usable]
    lines = [Line("whole records", tuple(whole))]
    # A single column stays where the whole record does.
    columns = found.columns if len(found.columns) > 1 else ()
    for place, column in enumerate(columns[: _MOST - 1]):
        kept = [(one, one.columns[place]) for one in usable]
        lines.append(
            Line(
                column,
                tuple(
                    (one.budget, share, f"{column}, {one.guarantee}: {percent(share)} unchanged") for one, share in kept
                ),
            )
        )
    # The certificate is about what the protocol is chosen by.
    certified = [(one.budget, one.most) for one in usable if found.weights == "share" and one.most is not None]
    description = "Chart of the share of records that stay unchanged, by budget. The table below gives the numbers."
    left_out = len(columns) + 1 - len(lines)
    return _chart([point.budget for point in found.points], lines, certified, chosen, left_out, description)


def _chart(
    all_budgets: Sequence[float],
    lines: Sequence[Line],
    certified: Sequence[tuple[float, float]],
    chosen: float,
    left_out: int,
    description: str,
) -> TradeoffChart:
    """A chart of lines below what is certified to be the most, of budgets and shares."""
    budgets = [budget for budget in all_budgets if budget > 0]
    low, high = (math.log(min(budgets)), math.log(max(budgets))) if budgets else (0.0, 0.0)

    def x(budget: float) -> float:
        part = 0.5 if high == low or budget <= 0 else (math.log(budget) - low) / (high - low)
        return round(LEFT + part * (WIDTH - LEFT - RIGHT), 1)

    def y(share: float) -> float:
        return round(TOP + (1 - share) * (HEIGHT - TOP - BOTTOM), 1)

    curves = tuple(
        Curve(line.name, number, tuple(Dot(x(budget), y(share), said) for budget, share, said in line.points))
        for number, line in enumerate(lines, start=1)
    )
    bounds = [(x(budget), y(share)) for budget, share in certified]
    # Between two budgets nothing keeps more than at the larger one can be kept: steps, not slopes, are certified.
    most = bounds[:1] + [place for (left, _), (right, top) in pairwise(bounds) for place in ((left, top), (right, top))]
    area = [(most[0][0], TOP), *most, (most[-1][0], TOP)] if len(most) > 1 else []
    return TradeoffChart(
        curves,
        _path(most) if len(most) > 1 else "",
        _path(area),
        tuple((x(budget), f"{budget:g}") for budget in all_budgets),
        tuple((y(share), f"{100 * share:.0f}\u00a0%") for share in _SHARES),
        x(chosen),
        left_out,
        description,
    )


def _path(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in places)
