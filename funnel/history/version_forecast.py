"""Forecast of a version: what it would keep given all published before, at several reserves; nothing is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from funnel.errors import SolverError, SpecError
from funnel.guarantees.base import Guarantee
from funnel.history.distributions import Kernel
from funnel.history.following import VersionTerms
from funnel.history.history_status import stand
from funnel.history.movement import new_people
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.history.schedule import schedule_cost
from funnel.history.step import Step
from funnel.joint import Joint
from funnel.progress import Progress
from funnel.protocol import DENOMINATOR, Protocol
from funnel.solver.budget import Budget

# What a plan shows.
RESERVES = (1.0, 0.95, 0.9, 0.8)
# A forecast needs no proof: how closely a lift has to keep to its bound in it.
_CLOSE = 1e-9
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
class VersionForecast:
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
    def declared(self) -> ReserveCost:
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
            "share": self.declared.kept,
            "level": self.declared.step.level.value,
            "moved": self.declared.moved,
            "outside": self.declared.outside,
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


def forecast_version(
    past: Past,
    observed: Observed,
    terms: VersionTerms,
    reserves: Sequence[float] = RESERVES,
    time_limit: float | None = None,
    targets: Mapping[float, Protocol] | None = None,
) -> VersionForecast:
    """Weigh the next version of a register; nothing is drawn.

    Parameters
    ----------
    past : Past
    observed : Observed
        The people of the version; of a first one `first_people`.
    terms : VersionTerms
        Those of the version that a release makes.
    reserves : sequence of float
        To compare with the one of the terms.
    time_limit : float, optional
        For listing vertices, as for `funnel.optimal`.
    targets : dict of float to Protocol, optional
        What it would aim at under some of the reserves, where that is another one.

    Raises
    ------
    SpecError, DataError, SolverError
        As `funnel.history.following.VersionTerms.decide`.

    Notes
    -----
    One step for every reserve; for a first version, where a step is quick, also one schedule for every `BEGINNINGS`.
    """

    def weigh(share: float) -> Step:
        target = terms.target if targets is None else targets.get(share, terms.target)
        return replace(terms, reserve=share, target=target).decide(past, observed)

    found = forecast_units(past, weigh, (), terms, reserves)
    if len(past):
        return found
    return replace(found, beginnings=_beginnings(observed.joint, terms.guarantee, time_limit, terms.progress))


def forecast_units(
    past: Past,
    weigh: Callable[[float], Step],
    unit: tuple[str, ...],
    terms: VersionTerms,
    reserves: Sequence[float] = UNIT_RESERVES,
    rows: int | None = None,
) -> VersionForecast:
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
    for share in sorted({terms.reserve, *reserves}, reverse=True):
        terms.progress(f"weighing a reserve of {share:g}", 0, None)
        costs.append(cost_of(weigh(share)))
    step = next(cost for cost in costs if cost.reserve == terms.reserve).step
    return VersionForecast(
        str(terms.guarantee),
        versions_in(past),
        step.opening.joint.n,
        new_people(step.opening.observed),
        step.histories,
        terms.aim.mechanism,
        step.alone / step.entropy if step.entropy > 0 else 0.0,
        terms.reserve,
        tuple(costs),
        (),
        unit,
        step.joint.n if rows is None else rows,
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


@dataclass(frozen=True, eq=False)
class ReserveCost:
    """A version under one reserve, and what would become of its people if the same changes came again.

    Attributes
    ----------
    reserve : float
    step : Step
        The version as it would be published.
    kept : float
        I(X;W) as a share of H(X); 0 where H(X) is 0.
    moved, outside : int
        As of the step: what this version can no longer help.
    moved_next : float or None
        How many people to expect beyond the declared bound by frequencies alone before the next version, if people
        change once more as they did since the version before. None where nothing is known of changes: in a first
        version, or where its values were other ones.
    """

    reserve: float
    step: Step
    kept: float
    moved: int
    outside: int
    moved_next: float | None


def cost_of(step: Step) -> ReserveCost:
    """What a version keeps under its reserve; nothing is forecast where people have several rows."""
    kept = step.utility / step.entropy if step.entropy > 0 else 0.0
    following = None if step.waves else moved_next(step)
    return ReserveCost(step.reserve, step, kept, step.moved, step.outside, following)


def moved_next(step: Step) -> float | None:
    """How many people the frequencies alone would move beyond the bound, if they changed again as they last did.

    Everybody's history after this version is weighed by its probability, ``n_h P(y|h)``; the distribution of changes
    since the latest version before it, with the same values, is applied to ``P(s, x | h, y)``.
    """
    if not len(step.past) or not step.observed.changes:
        return None
    latest = max(step.observed.changes)
    joint, changes = step.joint, step.observed.changes[latest]
    before = step.past.chapters[latest].joint
    if (before.secret, before.inputs) != (joint.secret, joint.inputs):
        return None
    status = stand(step.past, step.observed, step.guarantee)
    rows = step.library.astype(np.float64) / DENOMINATOR
    again = Kernel(joint.counts.size, joint, changes)
    stayed = np.bincount(changes.after, changes.records, joint.counts.size)
    prior = again.after(stayed[None] / stayed.sum()).reshape(joint.counts.shape).sum(axis=1)
    seen = prior > 0
    expected = 0.0
    channels = step.channels_of(status.nodes)
    for distribution, people, channel in zip(status.distributions.values, status.people, channels, strict=True):
        # P(s, x, y | h), (b, c, a), and what becomes of it.
        masses = distribution[None] * rows[channel][:, None, :]
        outputs = masses.sum(axis=(1, 2))
        masses, outputs = masses[outputs > 0], outputs[outputs > 0]
        secrets = again.after(masses.reshape(len(masses), -1)).reshape(masses.shape).sum(axis=2)
        lifts = secrets[:, seen] / outputs[:, None] / prior[seen]
        _, outside = status.allowed.within(lifts.T[None], _CLOSE)
        expected += float(people * outputs[outside[0]].sum() / outputs.sum())
    return expected * step.observed.weight
