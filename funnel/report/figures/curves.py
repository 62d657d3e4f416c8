"""The chart of a trade-off: what every mechanism keeps by budget, below the most that any could."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from funnel.report.numbers import percent
from funnel.tradeoff import Sweep

# The area that is drawn in, in units of the picture; labels stand around it.
WIDTH, HEIGHT = 640, 360
LEFT, TOP, RIGHT, BOTTOM = 52, 12, 20, 46
# More lines than this cannot be told apart; the table has all.
_MOST = 8
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Dot:
    """A point of a curve: its place, and what it says when looked at."""

    x: float
    y: float
    said: str


@dataclass(frozen=True)
class Curve:
    """A mechanism: its name, its place in the key, and its points from left to right."""

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
    budgets = [budget for budget in found.budgets if budget > 0]
    low, high = (math.log(min(budgets)), math.log(max(budgets))) if budgets else (0.0, 0.0)

    def x(budget: float) -> float:
        part = 0.5 if high == low or budget <= 0 else (math.log(budget) - low) / (high - low)
        return round(LEFT + part * (WIDTH - LEFT - RIGHT), 1)

    def y(share: float) -> float:
        return round(TOP + (1 - share) * (HEIGHT - TOP - BOTTOM), 1)

    shown = found.mechanisms[:_MOST]
    curves = tuple(
        Curve(
            name,
            number,
            tuple(
                Dot(x(one.budget), y(one.kept or 0.0), f"{name}, {one.guarantee}: {percent(one.kept)} {done}")
                for one in found.of(name)
            ),
        )
        for number, name in enumerate(shown, start=1)
    )
    bounds = [(x(budget), y(share)) for budget, share in found.frontier()]
    # Between two budgets nothing keeps more than at the larger one can be kept: steps, not slopes, are certified.
    most = bounds[:1] + [place for (left, _), (right, top) in pairwise(bounds) for place in ((left, top), (right, top))]
    area = [(most[0][0], TOP), *most, (most[-1][0], TOP)] if len(most) > 1 else []
    return TradeoffChart(
        curves,
        _path(most) if len(most) > 1 else "",
        _path(area),
        tuple((x(budget), f"{budget:g}") for budget in found.budgets),
        tuple((y(share), f"{100 * share:.0f}\u00a0%") for share in _SHARES),
        x(chosen),
        len(found.mechanisms) - len(shown),
        f"Chart of the share of {share} that {len(shown)} mechanisms {_VERB[done]}, by budget. The table below gives "
        "the numbers.",
    )


def _path(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in places)
