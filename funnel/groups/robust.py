"""Robust groups: a bound for the whole record that holds in the population, by people who did not make the protocol.

The posterior of the secret after outputs h is ``P(s | h) ∝ E[w(h | R) 1{S = s}]``. People estimate it only if the
weights do not depend on the same people. So some make a tree of outputs, and the others, whom nothing was made from,
say between which limits the share of each secret is after each output. The number of limits is known before they are
asked, so all of them hold together with probability 1 - α, and whatever is cut off the tree then, those of what is
left hold.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from funnel.disclosure.rules import Rules
from funnel.errors import DataError, SpecError
from funnel.groups.effective import Shown
from funnel.groups.foreseen import Foreseen
from funnel.groups.growing import Tree, grow
from funnel.groups.halves import SHARE, Halves
from funnel.groups.making import Schedule
from funnel.groups.posteriors import Bound, statements
from funnel.groups.protocol import GroupedProtocol
from funnel.groups.proving import Cell, Provers, cells_of
from funnel.groups.pruning import prune
from funnel.groups.purposes import INFORMATION, Purpose, Told
from funnel.groups.records import Records
from funnel.guarantees.base import Guarantee
from funnel.guarantees.exact import log_above
from funnel.guarantees.ralip import RALIP
from funnel.guarantees.rldp import RLDP
from funnel.guarantees.rlip import RLIP
from funnel.guarantees.robust import RobustRatio
from funnel.joint import Joint
from funnel.progress import Progress, quiet
from funnel.solver.budget import Budget

KINDS: Final = (RLIP, RALIP, RLDP)
# Cells that are foreseen where a tree is made: limits depend on the logarithm of their number.
_FORESEEN = 1000


@dataclass(frozen=True)
class Proven:
    """What a bound in the population rests on.

    Attributes
    ----------
    seed : str
        What tells who made the protocol and who proved it (`funnel.groups.halves`).
    share : float
        Of people, for making.
    made_from, proving : int
        People.
    significance : float
        What all limits together may miss the population's law with.
    cells : int
        Outputs, and unions of them, that limits were stated for before anybody was asked.
    leaves : int
        Of these, what a record can end with; each is proven.
    tail : Fraction
        What each limit may miss what it limits with.
    """

    seed: str
    share: float
    made_from: int
    proving: int
    significance: float
    cells: int
    leaves: int
    tail: Fraction


@dataclass(frozen=True, eq=False)
class RobustlyMade:
    """A grouped protocol with the proof that it holds in the population.

    Attributes
    ----------
    protocol : GroupedProtocol
    level : float
        The largest of all leaves, nats, rounded up.
    prefixes : tuple of int
    groups : tuple of tuple of str
    schedule : Schedule
    tried : tuple of (Told, groups, Schedule)
        What each way would tell those who made it if all of it were proven; best first. None for one way.
    proven : Proven
    """

    protocol: GroupedProtocol
    level: float
    prefixes: tuple[int, ...]
    schedule: Schedule
    tried: tuple[tuple[Told, tuple[tuple[str, ...], ...], Schedule], ...]
    proven: Proven


def robust_kind(guarantee: Guarantee) -> RobustRatio | None:
    """The guarantee, if it is one over limits that hold in the population; None if it is nominal.

    Raises
    ------
    SpecError
        If it is robust in another way.
    """
    if not isinstance(guarantee, RobustRatio):
        return None
    if not isinstance(guarantee, KINDS) or not guarantee.over_boxes:
        raise SpecError(f"groups of columns are published under rlip, ralip or rldp over boxes, not under {guarantee}")
    return guarantee


def made_by_some(joint: Joint, halves: Halves) -> Records:
    """The records of those who make, for whatever is chosen."""
    return Records.of(Joint(halves.making, joint.secret, joint.inputs).occurring)


def new_seed() -> str:
    """A seed that nobody chose."""
    return secrets.token_hex(16)


def make_robustly(
    records: Records,
    halves: Halves,
    ways: Sequence[tuple[tuple[str, ...], ...]],
    guarantee: RobustRatio,
    schedules: Sequence[Schedule],
    people: int,
    budget: Budget,
    progress: Progress = quiet,
    rules: Rules | None = None,
    purpose: Purpose = INFORMATION,
) -> RobustlyMade:
    """Make a tree for every way to publish, take the best for its purpose, and cut it back to what is proven.

    Parameters
    ----------
    records : Records
    halves : Halves
    ways : sequence of groups
        Known from those who make.
    guarantee : RobustRatio
    schedules : sequence of Schedule
    people : int
        Expected ones of those who make, for a channel.
    budget : Budget
    progress : Progress
    rules : Rules, optional
        That the table of the secret and what a channel reads has to keep.
    purpose : Purpose

    Raises
    ------
    DataError
        If a value of the secret has fewer than two people.
    """
    joint = records.joint
    sizes = joint.counts.sum(axis=1).tolist()
    if (alone := np.flatnonzero(~halves.making.any(axis=1))).size:
        value = joint.secret.labels[int(alone[0])]
        raise DataError(
            f"too few records have {', '.join(joint.secret.columns)} {value!r} for some to make a protocol and others "
            "to prove it; group the value, leave it out, or use a guarantee that is not robust"
        )
    some = made_by_some(joint, halves)
    foreseen_tail = _tail(guarantee, len(joint.secret), _FORESEEN)
    # Nothing of those who prove may be known where the tree is made, their secrets included.
    made_from = int(halves.making.sum())
    expected = [int(size) * joint.n // made_from for size in halves.making.sum(axis=1)]
    foreseen = Foreseen(
        Bound.of(guarantee.sides, expected, foreseen_tail), halves.proving / made_from, float(foreseen_tail)
    )
    # As those who make see it, whoever else there is.
    makers = replace(records, joint=Joint(halves.making, joint.secret, joint.inputs))
    trials = [(way, one) for way in ways for one in (schedules if len(way) > 1 else schedules[:1])]
    grown: list[tuple[Told, tuple[tuple[str, ...], ...], Schedule, Tree]] = []
    for number, (way, one) in enumerate(trials):
        part = budget.part(1 / (len(trials) - number))
        tree = grow(records, halves.making, some, way, foreseen, one, people, part, quiet, rules, purpose.numbers)
        told = Told(0.0, 0.0)
        if len(trials) > 1:
            foretold = prune(makers, tree, None, str(guarantee), people).protocol
            told = purpose.told(Shown.of(some.joint, foretold))
        grown.append((told, way, one, tree))
        progress("ways to publish the groups", number + 1, len(trials))
    grown.sort(key=lambda way: -way[0].worth)
    _, _, schedule, tree = grown[0]
    tail = _tail(guarantee, len(joint.secret), tree.cells)
    provers = Provers(halves, joint.counts, Bound.of(guarantee.sides, sizes, tail))
    pruned = prune(records, tree, cells_of(tree, provers), str(guarantee), people, rules)
    proven = Proven(
        halves.seed,
        SHARE,
        made_from,
        halves.proving,
        guarantee.alpha,
        tree.cells,
        len(pruned.leaves),
        tail,
    )
    return RobustlyMade(
        pruned.protocol,
        max((_level(guarantee, leaf) for leaf in pruned.leaves), default=0.0),
        tuple(pruned.prefixes),
        schedule,
        tuple((told, way, one) for told, way, one, _ in grown if len(trials) > 1),
        proven,
    )


def _tail(guarantee: RobustRatio, number: int, cells: int) -> Fraction:
    """What each limit of so many secrets may miss.

    Besides the cells the shares of the secrets have a part of α, and one is for words that are not real numbers but
    have 64 bits: one of them decides otherwise with probability people · cells / 2^64.
    """
    return Fraction(repr(float(guarantee.alpha))) / (statements(guarantee.sides, number) * (cells + 2))


def _level(guarantee: RobustRatio, leaf: Cell) -> float:
    budgets = dict(guarantee.sides.finite())
    levels = []
    for kind, ratio in (*leaf.ratios, *leaf.counted):
        nats = float("inf") if ratio is None else log_above(max(ratio, Fraction(1)))
        levels.append(guarantee.as_level(nats, budgets[kind]))
    return max(levels)
