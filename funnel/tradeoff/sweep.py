"""Sweep: every mechanism at several budgets, side by side on all cores, each kept once it is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeVar

from funnel.errors import SpecError
from funnel.guarantees import Guarantee, parse_guarantee
from funnel.joint import Joint
from funnel.measures.utilities import INFORMATION, Utility
from funnel.mechanisms import mechanism, names
from funnel.planning import PlanRow, plan
from funnel.tradeoff.trials import Trials

PARTS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
"""Budgets that are looked at, as parts of the one of the spec."""
SECONDS = 0.25
"""Seconds for one optimisation of one point, as work that is counted."""

P = TypeVar("P", bound=Any)


@dataclass(frozen=True)
class Point:
    """One mechanism at one budget.

    Attributes
    ----------
    mechanism : str
    guarantee : str
    budget : float
        Nats.
    kept : float or None
        I(X;Y) / H(X); None where the mechanism cannot be used, for ``reason``.
    level : float or None
        Exact, nats.
    most : float or None
        Share that no protocol which reads the same exceeds, where that is certified.
    reason : str or None
    unchanged : float or None
        Share of the records that an invariant protocol leaves wholly unchanged.
    """

    mechanism: str
    guarantee: str
    budget: float
    kept: float | None
    level: float | None
    most: float | None
    reason: str | None
    unchanged: float | None = None


@dataclass(frozen=True)
class Sweep:
    """All points of one guarantee, by mechanism as they are registered and by ascending budget.

    Attributes
    ----------
    guarantee : str
        As the spec, or the command, has it.
    budgets : tuple of float
        Nats, ascending; the one of the guarantee is among them.
    points : tuple of Point
    """

    guarantee: str
    budgets: tuple[float, ...]
    points: tuple[Point, ...]

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Those that can be used at some budget, the one that keeps most in all first."""
        usable = [name for name in dict.fromkeys(point.mechanism for point in self.points) if self.of(name)]
        return tuple(sorted(usable, key=lambda name: -sum(point.kept or 0.0 for point in self.of(name))))

    def of(self, name: str) -> tuple[Point, ...]:
        """The points of a mechanism where it can be used, by ascending budget."""
        return tuple(point for point in self.points if point.mechanism == name and point.kept is not None)

    def at(self, budget: float) -> tuple[Point, ...]:
        """All points of one budget."""
        return tuple(point for point in self.points if point.budget == budget)

    def best(self, budget: float) -> Point | None:
        """What keeps most at one budget; None where nothing can be used."""
        usable = [point for point in self.at(budget) if point.kept is not None]
        return max(usable, key=lambda point: point.kept or 0.0, default=None)

    def frontier(self) -> tuple[tuple[float, float], ...]:
        """Budget and the least certified bound on what is kept there, where there is one, by ascending budget."""
        found = ((budget, [one.most for one in self.at(budget) if one.most is not None]) for budget in self.budgets)
        return tuple((budget, min(1.0, *most)) for budget, most in found if most)


def sweep(
    joint: Joint,
    guarantee: Guarantee,
    trials: Trials,
    *,
    reads_secret: bool = False,
    parts: Sequence[float] = PARTS,
    seconds: float = SECONDS,
    utility: Utility = INFORMATION,
) -> Sweep:
    """Fit every mechanism that may be used at several budgets.

    Parameters
    ----------
    joint : Joint
        Public counts (c, a).
    guarantee : Guarantee
        Several numbers keep their proportion. Where there is no budget to vary, such as for perfect privacy, it is
        looked at as it is.
    trials : Trials
    reads_secret : bool
        Whether protocols that read the secret may be used.
    parts : sequence of float
        Of the budget.
    seconds : float
        For each point, as work that is counted: the same points on every machine.
    utility : Utility
        What mechanisms are compared by.

    Raises
    ------
    SpecError
        If the guarantee cannot be asked of this joint distribution at all.
    PipelineError
        If workers keep dying.

    Notes
    -----
    O(mechanisms × budgets) fits of at most ``seconds`` each.
    """
    budgets = varied(guarantee, parts)
    chosen = [one for one in names() if reads_secret or not mechanism(one).reads_secret]
    # Optima take longest, so they begin first.
    chosen.sort(key=lambda name: not mechanism(name).optimises)
    tasks = [(joint, str(one), name, seconds, utility) for name in chosen for one in budgets]
    found = trials.results(_point, tasks, Point)
    order = {name: place for place, name in enumerate(names())}
    points = sorted(found, key=lambda point: (order[point.mechanism], point.budget))
    curves = groupby(points, key=lambda point: point.mechanism)
    kept = (one for _, curve in curves for one in rising(list(curve), lambda point: point.kept))
    return Sweep(str(guarantee), tuple(one.budget for one in budgets), tuple(kept))


def rising(points: Sequence[P], worth: Callable[[P], float | None]) -> list[P]:
    """Points of one mechanism by ascending budget, none of which is worth less than one before it.

    A protocol that meets a guarantee meets it under every larger budget too, so it takes the place of one that a search
    of the same work found there and that is worth less.

    Parameters
    ----------
    points : sequence of dataclasses with ``guarantee``, ``budget`` and ``most``
        By ascending budget.
    worth : callable
        What is kept of a point; None where there is no protocol, which is left as it is.
    """
    found: list[P] = []
    best: P | None = None
    for point in points:
        here, before = worth(point), None if best is None else worth(best)
        if best is not None and here is not None and before is not None and here < before:
            point = replace(best, guarantee=point.guarantee, budget=point.budget, most=point.most)
        if here is not None:
            best = point
        found.append(point)
    return found


def varied(guarantee: Guarantee, parts: Sequence[float]) -> list[Guarantee]:
    """The guarantee with parts of its budget, ascending, its own among them; as it is where it has none to vary."""
    if guarantee.is_perfect or not math.isfinite(guarantee.budget):
        return [guarantee]
    # As decimal numbers that people would write, and the one of the spec as it is.
    budgets = {part: float(f"{part * guarantee.budget:.4g}") for part in sorted({*parts, 1.0})}
    made: list[Guarantee] = []
    for part, budget in budgets.items():
        try:
            one = guarantee if part == 1.0 else guarantee.with_budget(budget)
        except SpecError:
            # Not every budget is one: some have a largest.
            continue
        made.append(one)
    return made


def _point(joint: Joint, text: str, name: str, seconds: float, utility: Utility = INFORMATION) -> Point:
    """One mechanism at one budget, by whatever worker."""
    guarantee = parse_guarantee(text)
    (row,) = plan(joint, guarantee, [name], mechanism(name).reads_secret, seconds, utility=utility)
    return point_of(row, guarantee, joint, utility)


def point_of(row: PlanRow, guarantee: Guarantee, joint: Joint, utility: Utility = INFORMATION) -> Point:
    """A row of a plan as a point; what cannot be used keeps nothing."""
    usable = row.reason is None
    certified = row.bound if usable and not row.reads_secret else None
    whole = utility.whole(joint)
    return Point(
        mechanism=row.mechanism,
        guarantee=str(guarantee),
        budget=guarantee.budget,
        kept=row.share if usable else None,
        level=row.level if row.level is not None and math.isfinite(row.level) else None,
        most=None if certified is None or whole == 0 else min(1.0, certified / whole),
        reason=row.reason,
        unchanged=row.unchanged if usable else None,
    )
