"""What the bound of a release of groups costs: ways to publish the columns, by budget, and every column left out."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np

from funnel.disclosure.groups import may_be_together, rules_given_prefixes
from funnel.disclosure.rules import Rules
from funnel.errors import FunnelError, SpecError
from funnel.groups import Schedule, publish_groups
from funnel.groups.aims import Numbers
from funnel.groups.purposes import mean_explained, values_of
from funnel.groups.records import Records
from funnel.guarantees import Guarantee, parse_guarantee
from funnel.joint import Joint
from funnel.numbers import numbers_for
from funnel.progress import Progress, quiet
from funnel.release.cache import Cache
from funnel.release.grouping import choice_of, known_groups
from funnel.sampling.engine import Workers
from funnel.spec import ReleaseSpec
from funnel.tradeoff.alternatives import Alternative, without
from funnel.tradeoff.sweep import Point, Sweep, digest_of, remembered, varied
from funnel.wording import toml_text

PARTS = (0.25, 0.5, 1.0, 1.5, 2.0)
"""Budgets that are looked at, as parts of the one of the spec."""
SECONDS = 60.0
"""Seconds for the channels of one point, as work that is counted."""
# Channels of a point are for so many prefixes at most: of a release there are more, and it keeps more.
_PREFIXES = 200
# One for all points, so that they can be compared: what the search of a release begins with.
_SCHEDULE = Schedule(0.9, 4)
_UNDER_RULES = Schedule(0.6, 4)
GIVEN, CHOSEN, SINGLY = "groups of the spec", "groups that funnel chooses", "one column after the other"
ALONE = "every column by itself (GRR), at most"

Groups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Way:
    """A way to publish the columns, and the line that asks for it.

    Attributes
    ----------
    name : str
        As of the points of the sweep.
    groups : tuple of tuple of str
        In their order.
    line : str
    """

    name: str
    groups: Groups
    line: str


@dataclass(frozen=True, eq=False)
class GroupedTradeoff:
    """What is kept of the columns of a spec by other budgets, in other groups, and without one of them.

    Attributes
    ----------
    sweep : Sweep
        By way, those of `ways` and `ALONE`, of which only a bound from above is known.
    ways : tuple of Way
    alternatives : tuple of Alternative
        What the spec says first, then every column left out, by what is kept.
    people : int
        For prefixes of so many people channels were made, all the same in every point; a release takes fewer.
    """

    sweep: Sweep
    ways: tuple[Way, ...]
    alternatives: tuple[Alternative, ...]
    people: int


def groups_tradeoff(
    spec: ReleaseSpec,
    joint: Joint,
    guarantee: Guarantee,
    chosen: Groups,
    workers: Workers,
    cache: Cache | None = None,
    *,
    parts: Sequence[float] = PARTS,
    seconds: float = SECONDS,
    progress: Progress = quiet,
) -> GroupedTradeoff:
    """Make protocols of groups at several budgets, of several ways, and without every column.

    Parameters
    ----------
    spec : ReleaseSpec
    joint : Joint
        Exact counts (c, records).
    guarantee : Guarantee
        LIP, ALIP or LDP.
    chosen : tuple of tuple of str
        The groups that a release would have.
    workers, cache, progress
        As for `funnel.tradeoff.sweep`: what was made of the same counts by the same code is taken from the cache.
    parts : sequence of float
        Of the budget.
    seconds : float
        For the channels of each point, as work that is counted.

    Notes
    -----
    O(ways × budgets + columns) protocols, each for prefixes of at least 1/200 of the people.
    """
    people = max(spec.groups.people, joint.n // _PREFIXES)
    of_release = Way(CHOSEN if choice_of(spec) != "given" else GIVEN, chosen, _line(chosen))
    purpose = json.dumps([spec.utility, numbers_for(spec, values_of(joint.inputs))])
    singly: Groups = tuple((column,) for column in (spec.publish if choice_of(spec) == "order" else _in_order(chosen)))
    ways = [of_release]
    if choice_of(spec) == "given":
        found = remembered(
            _groups_chosen,
            [(joint, str(guarantee), spec, people, seconds)],
            [[digest_of(joint), str(guarantee), spec.digest, people, seconds, purpose]],
            _Chosen,
            workers,
            cache,
            progress,
        )
        other = tuple(tuple(group) for group in json.loads(found[0].groups))
        if other and other != chosen:
            ways.append(Way(CHOSEN, other, _line(other)))
    if singly not in [way.groups for way in ways]:
        ways.append(Way(SINGLY, singly, _line(singly)))
    budgets = varied(guarantee, parts)
    tables = {way.name: (joint, json.dumps(way.groups)) for way in ways}
    asked = rules_given_prefixes(spec)
    rules = None if asked is None else astuple(asked)
    tasks = [
        (*tables[way.name], way.name, str(one), people, seconds, rules, purpose) for way in ways for one in budgets
    ]
    left = [] if len(spec.publish) < 2 else list(without(spec, joint))
    tasks += [
        (
            table.joint,
            json.dumps(_less(chosen, table.said.column)),
            table.said.column,
            str(guarantee),
            people,
            seconds,
            rules,
            purpose,
        )
        for table in left
    ]
    digests = {id(one): digest_of(one) for one in dict.fromkeys(task[0] for task in tasks)}
    keys: list[list[object]] = [[digests[id(task[0])], *task[1:]] for task in tasks]
    points = remembered(_groups_point, tasks, keys, Point, workers, cache, progress)
    swept = points[: len(ways) * len(budgets)]
    if spec.utility == "information":
        swept += [_alone(joint, one) for one in budgets]
    as_it_is = next(p for p in swept if (p.mechanism, p.budget) == (of_release.name, guarantee.budget))
    said = Alternative("as it is", "", (), 0.0, False, "", None, None, 0.0)
    lines = [replace(table.said, lines=_without_line(spec, chosen, table.said.column)) for table in left]
    others = [
        _told(said_of, point, table.joint, spec.utility)
        for said_of, point, table in zip(lines, points[len(ways) * len(budgets) :], left, strict=True)
    ]
    return GroupedTradeoff(
        Sweep(str(guarantee), tuple(one.budget for one in budgets), tuple(swept)),
        tuple(ways),
        (_told(said, as_it_is, joint, spec.utility), *sorted(others, key=lambda one: -(one.nats or one.kept or 0.0))),
        people,
    )


def _told(said: Alternative, point: Point, joint: Joint, utility: str) -> Alternative:
    nats = None if point.kept is None or utility != "information" else point.kept * joint.entropy
    return replace(said, kept=point.kept, nats=nats, entropy=joint.entropy)


def _groups_point(
    joint: Joint,
    groups: str,
    name: str,
    text: str,
    people: int,
    seconds: float,
    rules: tuple[int, float, float] | None,
    purpose: str,
) -> Point:
    """One way at one budget, by whatever worker."""
    guarantee = parse_guarantee(text)
    utility, numbers = _purpose(purpose, joint)
    if utility == "variance" and not numbers:
        return Point(name, text, guarantee.budget, None, None, None, "no column of numbers is left")
    try:
        made = publish_groups(
            joint,
            json.loads(groups),
            guarantee,
            people=people,
            schedule=_schedule(utility, rules is not None),
            time_limit=seconds,
            rules=None if rules is None else Rules(*rules),
            utility=utility,
            numbers=numbers,
        )
    except SpecError as error:
        return Point(name, text, guarantee.budget, None, None, None, str(error))
    kept = min(1.0, made.utility / made.entropy) if made.entropy else 1.0
    if made.worth is not None:
        kept = made.worth
    elif made.explained:
        kept = mean_explained(made.explained)
    return Point(name, text, guarantee.budget, kept, made.level if math.isfinite(made.level) else None, None, None)


def _schedule(utility: str, under_rules: bool) -> Schedule:
    usual = _UNDER_RULES if under_rules else _SCHEDULE
    return replace(usual, classes=1) if utility == "estimation" else usual


def _purpose(purpose: str, joint: Joint) -> tuple[str, Numbers | None]:
    """The utility, and the numbers of the columns that are there."""
    utility, numbers = json.loads(purpose)
    if numbers is None:
        return utility, None
    return utility, {column: of for column, of in numbers.items() if column in joint.inputs.columns}


@dataclass(frozen=True)
class _Chosen:
    """Groups that were found, as JSON; none where the columns cannot be published in groups."""

    groups: str


def _groups_chosen(joint: Joint, text: str, spec: ReleaseSpec, people: int, seconds: float) -> _Chosen:
    rules = rules_given_prefixes(spec)
    try:
        made = publish_groups(
            joint,
            "auto",
            parse_guarantee(text),
            people=people,
            schedule=_schedule(spec.utility, rules is not None),
            time_limit=seconds,
            utility=spec.utility,
            numbers=numbers_for(spec, values_of(joint.inputs)),
            together=may_be_together(spec, joint),
            rules=rules,
        )
    except FunnelError:
        return _Chosen("[]")
    return _Chosen(json.dumps(made.groups))


def _alone(joint: Joint, guarantee: Guarantee) -> Point:
    """Every column by itself, by randomised response with an equal part of the bound: what it keeps at most.

    Answers that each keep LDP of ε/k keep LDP of ε together, and so every bound on lifts between e^-ε and e^ε. What
    they tell of the record is at most what each tells of its column, added up.
    """
    limits = guarantee.lift_limits
    whole = guarantee.budget if limits is None else min(math.log(limits[1]), -math.log(max(limits[0], 1e-300)))
    records, nats = Records.of(joint), 0.0
    budget = whole / len(records.columns)
    people = joint.counts.sum(axis=0)
    for place, values in enumerate(records.values):
        law = np.bincount(records.codes[:, place], weights=people, minlength=len(values)) / joint.n
        flip = 1.0 / (math.exp(budget) + len(values) - 1)
        keep = math.exp(budget) * flip
        shown = law * (keep - flip) + flip
        row = keep * math.log(keep) + (len(values) - 1) * flip * math.log(flip)
        nats += max(0.0, float(-(shown * np.log(shown)).sum()) + row)
    kept = min(1.0, nats / joint.entropy) if joint.entropy else 1.0
    return Point(ALONE, str(guarantee), guarantee.budget, kept, None, None, None)


def _in_order(groups: Groups) -> tuple[str, ...]:
    return tuple(column for group in groups for column in group)


def _less(groups: Groups, column: str) -> Groups:
    """The groups without a column."""
    left = (tuple(other for other in group if other != column) for group in groups)
    return tuple(group for group in left if group)


def _line(groups: Groups) -> str:
    written = ", ".join(f"[{', '.join(map(toml_text, group))}]" for group in groups)
    return f"publish = [{written}]"


def _without_line(spec: ReleaseSpec, chosen: Groups, column: str) -> str:
    """What to write so that a column is left out."""
    if spec.groups.is_auto:
        names = ", ".join(map(toml_text, (*spec.groups.without, column)))
        return f"[groups]\nwithout = [{names}]"
    if choice_of(spec) == "order":
        return f"publish = [{', '.join(toml_text(one) for one in spec.publish if one != column)}]"
    return _line(_less(known_groups(spec), column))
