"""Making: stage after stage, channels for all prefixes there are, under one bound for everything a record shows.

A prefix h is what the columns so far have been published as, with the outputs behind the labels. Its law P(s, x | h) is
that of the records themselves, each weighed by how likely it shows h. The condition of a stage is the cone of the
guarantee with the posterior of the secret given h (METHOD section 9): ``M P(S, X|h) T <= 0`` for every row T of the
channel of h, so that ``M P(S|h, y) <= 0`` for every output y. Saying nothing is always allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from funnel.disclosure.rules import Rules
from funnel.groups.aims import Numbers, aim_of
from funnel.groups.labels import stage_labels
from funnel.groups.library import SHRUNK, Channel, counted, information, keeps, shared_channels, whole_numbers
from funnel.groups.pooling import ClassRules, shared_rows
from funnel.groups.protocol import SILENT, UNIT, GroupedProtocol, Stage, StageChannel
from funnel.groups.reading import Reading
from funnel.groups.records import Records
from funnel.guarantees.base import PosteriorGuarantee
from funnel.joint import FloatArray, IntArray
from funnel.progress import Progress
from funnel.solver.budget import Budget

Flags = npt.NDArray[np.bool_]

# Channels are judged for so much less of the budget than may be used, and made for so much less: whole numbers must
# meet what doubles were optimised for.
_JUDGED, _MADE = 1e-7, 2e-6
# Prefixes that fewer people are expected to have than this share of what a channel is made for say nothing more.
_THINNEST = 0.1


@dataclass(frozen=True)
class Schedule:
    """How the stages share the budget and what they know.

    Attributes
    ----------
    first : float
        The share of the budget that the first stage may use; the last one may use all, and those between grow evenly.
    classes : int
        Classes of a later column that a stage reads besides its own; 1 for none.
    """

    first: float
    classes: int

    def radii(self, stages: int) -> list[float]:
        """The share of the budget of every stage."""
        return [1.0 if stages == 1 else self.first + (1 - self.first) * k / (stages - 1) for k in range(stages)]

    def __str__(self) -> str:
        ahead = f", {self.classes} classes ahead" if self.classes > 1 else ", nothing ahead"
        return f"from {self.first:g} of the bound{ahead}"


@dataclass(frozen=True, eq=False)
class Made:
    """A grouped protocol and what it tells.

    Attributes
    ----------
    protocol : GroupedProtocol
    told : tuple of float
        What every stage adds to I(X;Y), nats.
    prefixes : tuple of int
        Prefixes of which something is said, by stage.
    shared : tuple of float
        The share of all people who are expected to draw by a row that several combinations have in common, by stage.
    """

    protocol: GroupedProtocol
    told: tuple[float, ...]
    prefixes: tuple[int, ...]
    shared: tuple[float, ...]


@dataclass(eq=False)
class _Prefix:
    """Records that may show a prefix, (k,), and how likely each does; the channel of it and what follows.

    ``left`` are the values that it leaves of columns that are yet to come, as far as outputs before said so. Where
    people are too few it does not speak any more: nothing but that is published.
    """

    rows: IntArray
    shows: FloatArray
    left: dict[str, Flags] = field(default_factory=dict)
    speaks: bool = True
    channel: int = -1
    following: tuple[_Prefix | None, ...] = ()


def make(
    records: Records,
    groups: Sequence[Sequence[str]],
    guarantee: PosteriorGuarantee,
    schedule: Schedule,
    people: int,
    budget: Budget,
    progress: Progress,
    rules: Rules | None = None,
    numbers: Numbers = MappingProxyType({}),
) -> Made:
    """A grouped protocol for a table.

    Parameters
    ----------
    records : Records
    groups : sequence of sequence of str
        In the order in which they are published.
    guarantee : PosteriorGuarantee
    schedule : Schedule
    people : int
        Channels are made for prefixes that so many people are expected to have, or more; others use those of theirs
        that are proven for them, or say nothing.
    budget : Budget
    progress : Progress
    rules : Rules, optional
        That the table of the secret and what a channel reads has to keep, of all who draw from that channel.
    numbers : mapping, optional
        Of the columns whose variance is to be explained; stages without any of them tell information.
    """
    prior = records.joint.p_secret
    seen = prior > 0
    counts = records.joint.counts[seen].astype(np.float64)
    stages: list[Stage] = []
    told: list[float] = []
    spoken: list[int] = []
    shared: list[float] = []
    there = np.flatnonzero(counts.any(axis=0))
    root = _Prefix(there, np.ones(len(there)))
    level = [root]
    levels = [level]
    later = [column for group in groups for column in group]
    for number, (group, radius) in enumerate(zip(groups, schedule.radii(len(groups)), strict=True)):
        later = later[len(group) :]
        reading = Reading.of(records, group, later, schedule.classes)
        cones = tuple(
            guarantee.with_budget(guarantee.budget * radius * share).posterior_cone(prior[seen])
            for share in (1 - _JUDGED, 1 - _MADE, *SHRUNK)
        )
        speaking = np.array([place for place, prefix in enumerate(level) if prefix.speaks], dtype=np.int64)
        laws = np.zeros((len(speaking), len(counts), reading.size))
        for law, place in zip(laws, speaking.tolist(), strict=True):
            law[:] = _law(level[place], counts, reading)
        sizes = laws.sum(axis=(1, 2))
        enough = np.flatnonzero(sizes >= people)
        asked = None if rules is None else ClassRules.of(rules, counts.sum(axis=1), reading.folds)
        aim = aim_of(records, reading, numbers)
        part = budget.part(1 / (len(groups) - number))
        channels, assigned = shared_channels(laws[enough], cones, part, rules=asked, aim=aim)
        of_law = np.full(len(speaking), SILENT, dtype=np.int64)
        of_law[enough] = assigned
        few = np.flatnonzero((sizes < people) & (sizes >= _THINNEST * people))
        # Few people use what was made for more of them, and no channel is there for few alone.
        usable = np.unique(assigned[assigned != SILENT])
        if len(few) and len(usable):
            some = [channels[place] for place in usable.tolist()]
            worth = np.array([one.worth(laws[few], cones[0], counted(one, aim, asked)) for one in some])
            of_law[few] = np.where(worth.max(axis=0) > 0, usable[worth.argmax(axis=0)], SILENT)
            for place in usable.tolist():
                # What many people may tell is not made a breach by few.
                if asked is not None and not keeps(channels[place], laws[of_law == place], asked):
                    of_law[few[of_law[few] == place]] = SILENT
        for place in speaking[sizes < _THINNEST * people].tolist():
            level[place].speaks = False
        spoken.append(int((of_law != SILENT).sum()))
        told.append(_told(channels, of_law, laws) / records.joint.n)
        shared.append(_shared(channels, of_law, laws, reading.folds) / records.joint.n)
        marginals = [
            _marginal(channel, laws[of_law == place].sum(axis=(0, 1))) for place, channel in enumerate(channels)
        ]
        of_prefix = np.full(len(level), SILENT, dtype=np.int64)
        of_prefix[speaking] = of_law
        for silent in _fill_in(level, of_prefix, reading, records, len(channels)):
            channels.append(silent)
            marginals.append(np.array([UNIT], dtype=np.int64))
        level = _next_level(level, of_prefix, channels, reading, hides=rules is not None)
        levels.append(level)
        stages.append(_stage(records, reading, channels, marginals))
        progress(f"channels for {', '.join(group)}", number + 1, len(groups))
    stages = _with_classes(stages, levels)
    protocol = GroupedProtocol(records.columns, tuple(stages), str(guarantee), people)
    return Made(protocol, tuple(told), tuple(spoken), tuple(shared))


def _law(prefix: _Prefix, counts: FloatArray, reading: Reading) -> FloatArray:
    """People by secret and input that are expected to have a prefix, (c, a)."""
    inputs = reading.inputs[prefix.rows]
    people = counts[:, prefix.rows] * prefix.shows
    return np.stack([np.bincount(inputs, weights=row, minlength=reading.size) for row in people])


def _marginal(channel: Channel, people: FloatArray) -> IntArray:
    """The law of the output as weights (b,) that sum to 2^44, for people with these inputs, (a,)."""
    # Where a prefix shares the channel of others, these may be nobody.
    law = channel.rows @ (people if people.any() else channel.inputs)
    return np.asarray(whole_numbers((law / law.sum())[:, None])[:, 0])


def _fill_in(
    level: list[_Prefix], of_prefix: IntArray, reading: Reading, records: Records, first: int
) -> list[Channel]:
    """Channels of one output for prefixes of which nothing is said here: they name the values that are left.

    That is a function of the prefix, so it says nothing new.
    """
    known: dict[bytes, int] = {}
    channels: list[Channel] = []
    for place in np.flatnonzero(of_prefix == SILENT).tolist():
        prefix = level[place]
        if not prefix.speaks and not prefix.left:
            continue
        possible = np.ones(len(reading.symbols), dtype=np.bool_)
        for j, column in enumerate(reading.columns):
            if column in prefix.left:
                values = records.values[records.place(column)]
                left = {value for value, there in zip(values, prefix.left[column].tolist(), strict=True) if there}
                possible &= np.array([symbol[j] in left for symbol in reading.symbols])
        if not possible.any():
            # What was said to be left rules each other out: whoever it is, nobody can show that.
            continue
        if possible.tobytes() not in known:
            known[possible.tobytes()] = first + len(channels)
            channels.append(Channel.silent(np.repeat(possible, reading.folds)))
        of_prefix[place] = known[possible.tobytes()]
    return channels


def _told(channels: list[Channel], of_law: IntArray, laws: FloatArray) -> float:
    """What a stage adds to the information, nats times people."""
    told = 0.0
    for place, channel in enumerate(channels):
        told += information(channel.rows, laws[of_law == place].sum(axis=1))
    return told


def _shared(channels: list[Channel], of_law: IntArray, laws: FloatArray, folds: int) -> float:
    """People who are expected to draw by a row that several combinations have in common."""
    people = 0.0
    for place, channel in enumerate(channels):
        behind = laws[of_law == place].sum(axis=(0, 1))
        people += float(behind[shared_rows(channel.weights, folds)].sum())
    return people


def _next_level(
    level: list[_Prefix], of_prefix: IntArray, channels: list[Channel], reading: Reading, hides: bool
) -> list[_Prefix]:
    """All prefixes that follow those of which more may be said.

    Where it is to be hidden whether few people or nobody can show a prefix, that of nobody says what one of few would.
    """
    following: list[_Prefix] = []
    for prefix, place in zip(level, of_prefix.tolist(), strict=True):
        prefix.channel = place
        if place == SILENT:
            continue
        after: list[_Prefix | None] = []
        left = {column: flags for column, flags in prefix.left.items() if column not in reading.columns}
        for row in channels[place].rows:
            shows = row[reading.inputs[prefix.rows]] * prefix.shows
            some = shows > 0
            if some.any() or hides:
                speaks = prefix.speaks and bool(some.any())
                after.append(_Prefix(prefix.rows[some], shows[some], _left(left, row > 0, reading), speaks))
            else:
                after.append(None)
        prefix.following = tuple(after)
        following += [one for one in after if one is not None]
    return following


def _left(left: dict[str, Flags], possible: Flags, reading: Reading) -> dict[str, Flags]:
    """What is left of columns to come after an output that these inputs, (a,), may have."""
    if reading.ahead is None:
        return left
    classes = np.unique(np.flatnonzero(possible) % reading.folds)
    flags = np.isin(np.array(reading.ahead.classes), classes)
    if flags.all():
        return left
    column = reading.ahead.column
    return {**left, column: flags & left[column] if column in left else flags}


def _stage(records: Records, reading: Reading, channels: list[Channel], marginals: list[IntArray]) -> Stage:
    """A stage with its channels, and no classes yet."""
    values = [records.values[records.place(column)] for column in reading.columns]
    places = [{value: place for place, value in enumerate(of_column)} for of_column in values]
    codes = np.array(
        [[place[text] for place, text in zip(places, symbol, strict=True)] for symbol in reading.symbols],
        dtype=np.int64,
    )
    codes = np.repeat(codes, reading.folds, axis=0)
    made = tuple(
        StageChannel.of(stage_labels(values, codes, channel.weights > 0), channel.weights, marginal)
        for channel, marginal in zip(channels, marginals, strict=True)
    )
    return Stage(reading.columns, reading.symbols, reading.ahead, made, ())


def _with_classes(stages: list[Stage], levels: list[list[_Prefix]]) -> list[Stage]:
    """Stages whose prefixes are merged into classes where all that follows is the same, from the last stage on."""
    numbers: dict[int, int] = {}
    made: list[Stage] = []
    for stage, level in zip(reversed(stages), reversed(levels[:-1]), strict=True):
        classes: dict[tuple[int, tuple[int, ...]], int] = {}
        here: dict[int, int] = {}
        first = len(made) == len(stages) - 1
        for prefix in level:
            if prefix.channel == SILENT:
                continue
            after = tuple(SILENT if one is None else numbers.get(id(one), SILENT) for one in prefix.following)
            says_nothing = stage.channels[prefix.channel].labels == (stage.nothing,) and after == (SILENT,)
            if first or not says_nothing:
                here[id(prefix)] = classes.setdefault((prefix.channel, after), len(classes))
        numbers = here
        made.append(_with_used(stage, list(classes)))
    made.reverse()
    return made


def _with_used(stage: Stage, classes: list[tuple[int, tuple[int, ...]]]) -> Stage:
    """A stage with its classes, and only the channels that they draw from."""
    used = sorted({channel for channel, _ in classes})
    numbers = {channel: number for number, channel in enumerate(used)}
    return Stage(
        stage.columns,
        stage.symbols,
        stage.ahead,
        tuple(stage.channels[channel] for channel in used),
        tuple((numbers[channel], following) for channel, following in classes),
    )
