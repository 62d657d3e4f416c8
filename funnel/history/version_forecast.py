"""Outlook: what a version would keep given everything published before it, weighed before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from funnel.errors import SolverError, SpecError
from funnel.guarantees.base import Guarantee
from funnel.history.following import follow
from funnel.history.kept_rows import KeptRows
from funnel.history.movement import new_people
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.history.reserve import RESERVES, ReserveCost, cost_of
from funnel.history.schedule import schedule_cost
from funnel.history.step import Step
from funnel.joint import FloatArray, Joint
from funnel.measures.utilities import INFORMATION, Utility
from funnel.progress import Progress, quiet
from funnel.protocol import Protocol
from funnel.solver.budget import Budget

# Shares of the budget that a first version may begin with, to have something left to say later.
BEGINNINGS = (0.9, 0.75, 0.5)
# Reserves that are compared where people have several rows, each of which takes a step of its own.
UNIT_RESERVES = (1.0, 0.9)


@dataclass(frozen=True)
class Beginning:
    """A first version at a part of the budget, and a second one about the same values at all of it.

    Attributes
    ----------
    begin : float
        Share of the budget that the first version uses.
    first, both : float
        What the first version keeps, and what both keep together, as shares of H(X).
    one_shot : float
        An upper bound on what a single version at the whole budget keeps, as a share of H(X).
    """

    begin: float
    first: float
    both: float
    one_shot: float

    @property
    def lost(self) -> float:
        """What it costs to begin with less, once everything is said."""
        return max(0.0, self.one_shot - self.both)


@dataclass(frozen=True, eq=False)
class Outlook:
    """What is to be expected of the next version of a register.

    Attributes
    ----------
    guarantee : str
    versions : int
        Published about these people so far.
    people, new : int
        In this version, and those of them who have no history.
    histories : int
        Different ones; the empty one counts.
    mechanism : str
        Of the protocol that is aimed at.
    alone : float
        What that protocol would keep if the version stood alone, as a share of H(X).
    reserve : float
        That the spec asks for.
    costs : tuple of ReserveCost
        Of that reserve and of others, the largest first.
    beginnings : tuple of Beginning
        For a first version; empty for a later one, and where nothing could be computed.
    unit : tuple of str
        Columns that say whose a row is, where people have several; empty otherwise.
    rows : int
        Of these people; as many as people where they have one each.
    """

    guarantee: str
    versions: int
    people: int
    new: int
    histories: int
    mechanism: str
    alone: float
    reserve: float
    costs: tuple[ReserveCost, ...]
    beginnings: tuple[Beginning, ...]
    unit: tuple[str, ...] = ()
    rows: int = 0

    @property
    def asked(self) -> ReserveCost:
        """Under the reserve of the spec."""
        return next(cost for cost in self.costs if cost.reserve == self.reserve)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; shares are of H(X)."""
        return {
            "versions": self.versions,
            "people": self.people,
            "rows": self.rows or self.people,
            "unit": list(self.unit) or None,
            "new": self.new,
            "histories": self.histories,
            "mechanism": self.mechanism,
            "share_alone": self.alone,
            "share": self.asked.kept,
            "level": self.asked.step.level.value,
            "moved": self.asked.moved,
            "outside": self.asked.outside,
            "reserve": self.reserve,
            "reserves": [
                {
                    "reserve": cost.reserve,
                    "share": cost.kept,
                    "moved": cost.moved,
                    "outside": cost.outside,
                    "moved_next": cost.moved_next,
                }
                for cost in self.costs
            ],
            "beginnings": [{**asdict(one), "lost": one.lost} for one in self.beginnings],
        }


def first_people(joint: Joint) -> Observed:
    """The people of a first version: nothing was published about anybody."""
    a = len(joint.inputs)
    return Observed(joint, {}, np.zeros(a, dtype=np.int64), np.arange(a, dtype=np.int64), joint.counts.sum(axis=0))


def outlook(
    past: Past,
    observed: Observed,
    guarantee: Guarantee,
    target: Protocol,
    reserve: float = 1.0,
    reserves: Sequence[float] = RESERVES,
    *,
    worth: FloatArray | None = None,
    right: bool = False,
    utility: Utility = INFORMATION,
    time_limit: float | None = None,
    progress: Progress = quiet,
    kept: KeptRows | None = None,
    targets: Mapping[float, Protocol] | None = None,
) -> Outlook:
    """Weigh the next version of a register; nothing is drawn.

    Parameters
    ----------
    past : Past
    observed : Observed
        The people of the version; of a first one `first_people`.
    guarantee : Guarantee
        The declared bound.
    target : Protocol
        That the version would aim at.
    reserve : float
        That the spec asks for.
    reserves : sequence of float
        To compare with it.
    worth, right, utility, kept
        As of `funnel.history.following.follow`, so that the forecast is of the version that a release makes.
    time_limit : float, optional
        For listing vertices, as for `funnel.optimal`.
    progress : callable
    targets : dict of float to Protocol, optional
        What it would aim at under some of the reserves, where that is another one.

    Raises
    ------
    SpecError, DataError, SolverError
        As `funnel.history.following.follow`.

    Notes
    -----
    One step for every reserve; for a first version, where a step is quick, also one schedule for every `BEGINNINGS`.
    """

    def weigh(share: float) -> Step:
        return follow(
            past,
            observed,
            guarantee,
            "planned",
            target=target if targets is None else targets.get(share, target),
            worth=worth,
            reserve=share,
            # As it would be released.
            read_alone=True,
            right=right,
            utility=utility,
            progress=progress,
            kept=kept,
        )

    found = forecast_units(past, weigh, (), guarantee, target, reserve, reserves, progress=progress)
    return (
        found if len(past) else replace(found, beginnings=_beginnings(observed.joint, guarantee, time_limit, progress))
    )


def forecast_units(
    past: Past,
    weigh: Callable[[float], Step],
    unit: tuple[str, ...],
    guarantee: Guarantee,
    target: Protocol,
    reserve: float = 1.0,
    reserves: Sequence[float] = UNIT_RESERVES,
    *,
    rows: int | None = None,
    progress: Progress = quiet,
) -> Outlook:
    """The same of a version that somebody weighs: where people have several rows, what follows one is drawn for that.

    Parameters
    ----------
    weigh : callable
        Decides and draws the version under a reserve; what it drew is thrown away.
    unit : tuple of str
        Columns that say whose a row is.
    rows : int, optional
        In the version, where the step is about other counts.
    """
    costs = []
    for share in sorted({reserve, *reserves}, reverse=True):
        progress(f"weighing a reserve of {share:g}", 0, None)
        costs.append(cost_of(weigh(share)))
    asked = next(cost for cost in costs if cost.reserve == reserve).step
    return Outlook(
        str(guarantee),
        versions_in(past),
        asked.opening.joint.n,
        new_people(asked.opening.observed),
        asked.histories,
        target.mechanism,
        asked.alone / asked.entropy if asked.entropy > 0 else 0.0,
        reserve,
        tuple(costs),
        (),
        unit,
        asked.joint.n if rows is None else rows,
    )


def versions_in(past: Past) -> int:
    """Versions, each once however many rows people have in it."""
    return sum(chapter.row == 1 for chapter in past.chapters)


def _beginnings(
    joint: Joint, guarantee: Guarantee, time_limit: float | None, progress: Progress
) -> tuple[Beginning, ...]:
    """What it costs to begin with a smaller budget; nothing where a schedule cannot be computed."""
    found = []
    for begin in BEGINNINGS if joint.entropy > 0 else ():
        progress(f"weighing to begin with {begin:g} of the bound", 0, None)
        try:
            cost = schedule_cost(joint, guarantee, (begin, 1.0), Budget.of(time_limit))
        except (SolverError, SpecError):
            # Too many vertices to list, or a bound that cannot grow: nothing is known of it then.
            return ()
        first, both = (kept / joint.entropy for kept in cost.kept)
        found.append(Beginning(begin, first, both, cost.one_shot[-1] / joint.entropy))
    return tuple(found)
