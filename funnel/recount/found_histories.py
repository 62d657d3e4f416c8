"""Found histories: what the second computation finds in a register, history by history, version and observer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from funnel.recount.balance import Json, is_invariant
from funnel.recount.chapters import Chapter
from funnel.recount.expected import Attending
from funnel.recount.found_rows import RowHistories, row_complaints
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.history_bounds import Tally
from funnel.recount.movers import MOVER_STAYER, observer_complaints, secret_complaints
from funnel.recount.promise import Promise, read_promise
from funnel.recount.register_files import Entry
from funnel.recount.rounded import open_complaints

# A level that is found twice, by floats with a proven error and by whole numbers.
_LEVEL = 1e-7
# Less of a person than this is what sums of shares are off by.
_FEW = 1e-6
# Second, third, … rows of people that are put right on average, at least.
_FEWEST = 100


@dataclass(frozen=True)
class ObserverHistories:
    """What a version tells one observer of people about whom other versions told something before.

    Attributes
    ----------
    observer : str
    secret_of : str or None
        The earlier version whose secret it is told of, of people who were in it; None for the secret now.
    bounded : bool
        Whether this secret is bounded for this observer.
    level : float
        The largest level over all outputs that people can get, of all histories that are not moved; nats, rounded up.
        With noise, of those that somebody has, or that are expected.
    moved, outside : float
        People whose history by itself is outside the bound, as frequencies changed or as earlier values go with a later
        secret; and those who can get an output that is outside of it, of whom all are moved if it is bounded for this
        observer. Shares of all where people are expected.
    moved_level : float or None
        The largest level over all outputs that people who are moved can get, in nats, rounded up; None if nobody is.
    followed_level : float
        As ``level``, of all histories that the version has a channel for: with noise, also those that nobody has.
    """

    observer: str
    secret_of: str | None
    bounded: bool
    level: float
    moved: float
    outside: float
    moved_level: float | None
    followed_level: float

    @property
    def of_all(self) -> float:
        """The largest level of all histories, moved or not."""
        return max(self.level, self.moved_level or 0.0)


@dataclass(frozen=True)
class ObservedHistories:
    """What a version tells the observers that it is bounded for: the most of all of them.

    Attributes
    ----------
    observers : tuple of ObserverHistories
        For each observer of whom it is known, and the secret of each version: first those that are bounded.
    """

    observers: tuple[ObserverHistories, ...]

    @property
    def bounded_for(self) -> tuple[ObserverHistories, ...]:
        """The observers and secrets that are bounded."""
        return tuple(one for one in self.observers if one.bounded)

    @property
    def level(self) -> float:
        """As of an observer."""
        return max(one.level for one in self.bounded_for)

    @property
    def moved(self) -> float:
        """As of an observer."""
        return max(one.moved for one in self.bounded_for)

    @property
    def outside(self) -> float:
        """As of an observer."""
        return max(one.outside for one in self.bounded_for)

    @property
    def moved_level(self) -> float | None:
        """As of an observer."""
        return max((one.moved_level for one in self.bounded_for if one.moved_level is not None), default=None)

    @property
    def followed_level(self) -> float:
        """As of an observer."""
        return max(one.followed_level for one in self.bounded_for)


@dataclass(frozen=True)
class ExpectedHistories(ObservedHistories):
    """What a version tells of people that public tables lead one to expect.

    Attributes
    ----------
    histories : int
        That are predicted.
    others : float
        Share of the expected people whose histories are not predicted.
    unpredicted, silent : int
        People who have another history than these, and those of them who drew from what tells nothing.
    left_open : float or None
        Share of those whose history may be outside by itself, under true tables that noise does not rule out; None
        where that is not asked.
    """

    histories: int
    others: float
    unpredicted: int
    silent: int
    left_open: float | None = None


@dataclass(frozen=True)
class VersionHistories(ObservedHistories):
    """What a version tells of people about whom other versions told something before.

    Attributes
    ----------
    name : str
        Of the version in the register.
    promise : Promise
        The bound on everything published.
    histories : int
        Different histories that people had before it.
    people : int
        Records of the version.
    by_output : tuple of int, length b
        How many people got an output.
    by_channel : mapping of (channel, input) to int
        How many people drew from a channel with an input.
    by_row : mapping of (row, channel) to int
        How many drew the first, second, … row of a person from a channel.
    missing : int
        People who were counted then and are forgotten.
    complaints : tuple of str
        In what way files do not agree, as parts of sentences.
    broken : tuple of str
        In what way the bound is not kept.
    followed : int
        Histories that it has a channel for: with noise, also those that nobody has.
    expected : ExpectedHistories or None
        With noise: the same of the people that public tables lead one to expect.
    noise : sequence of (float, mapping of str to sequence of int)
        Scale and noise of tables of changes, of tables of rows and of means, by names of tables.
    own : float or None
        Where whole records are published: the share of them that are expected to be people's own.
    rare : int or None
        Where these are of people with several rows: rows of people with a rare number of rows.
    rows : tuple of RowHistories
        Row by row, in that case.
    """

    name: str
    promise: Promise
    histories: int
    people: int
    by_output: tuple[int, ...]
    by_channel: Mapping[tuple[int, int], int]
    by_row: Mapping[tuple[int, int], int]
    missing: int
    complaints: tuple[str, ...]
    broken: tuple[str, ...]
    followed: int
    expected: ExpectedHistories | None = None
    noise: Sequence[tuple[float, Mapping[str, Sequence[int]]]] = ()
    own: float | None = None
    rare: int | None = None
    rows: tuple[RowHistories, ...] = ()

    def few_complaints(self, entry: Entry, protocol: Json) -> Iterator[str]:
        """Second, third, … rows that tell of their values where there are few: to put those right would tell them.

        Parameters
        ----------
        entry : Entry
            The version in the register.
        protocol : JSON object
            Content of its ``protocol.json``.
        """
        chapter = entry.chapter
        if not is_invariant(protocol) or entry.protected:
            return
        # Who is forgotten since may have had any of them.
        rows = Counter(dict.fromkeys((row for row, _ in self.by_row), self.missing))
        for (row, _), count in self.by_row.items():
            rows[row] += count
        telling = {row for row, k in self.by_row if row > 1 and rows[row] < _FEWEST and chapter.tells(k)}
        if telling:
            yield f"tells of row {min(telling)} of people, which fewer than {_FEWEST} have"


@dataclass(frozen=True)
class RegisterHistories:
    """What was found in a register.

    Attributes
    ----------
    entries : tuple of Entry
    versions : tuple of VersionHistories
        In the order of publication; those that were asked for.
    complaints : tuple of str
        About the register as a whole.
    heads : tuple of str
        SHA-256 of all its heads, the newest last.
    """

    entries: tuple[Entry, ...]
    versions: tuple[VersionHistories, ...]
    complaints: tuple[str, ...]
    heads: tuple[str, ...]

    def entry(self, name: str) -> Entry | None:
        """The entry of a version; None if the register does not know it."""
        return next((one for one in self.entries if one.chapter.name == name), None)

    def version(self, name: str) -> VersionHistories | None:
        """What was found of a version; None if the register does not know it."""
        return next((one for one in self.versions if one.name == name), None)


def entry_complaints(
    entries: Sequence[Entry],
    promise: Promise,
    public: PublicFrequencies | None,
    observers: Sequence[str] | None,
    secrets: str | None,
    robust: bool,
) -> Iterator[str]:
    """What the last entry of a register is bounded for that is not what its version promises, as parts of sentences.

    Parameters
    ----------
    entries : sequence of Entry
        In the order of publication.
    promise : Promise
        That the version makes.
    public : PublicFrequencies or None
        Its public frequencies, where noise protects the exact ones.
    observers, secrets
        As its spec names them; None where it does not.
    robust : bool
        Whether the bound is to hold under every set of tables that noise, or a sample, leaves open.
    """
    entry = entries[-1]
    if read_promise(entry.chapter.guarantee) != promise:
        yield "is of another bound"
    yield from open_complaints(entry, public, robust)
    yield from observer_complaints(entries, observers)
    yield from secret_complaints(entry, secrets, robust)


def stated_complaints(stated: Mapping[str, Any], found: VersionHistories, since: int = 0) -> Iterator[str]:
    """What was stated of the histories of a version and its observers that is not what is found, as sentences.

    Parameters
    ----------
    stated : mapping
        From findings, or from a record, which says less.
    found : VersionHistories
    since : int
        People who were forgotten since: nobody can tell any more what became of them.
    """
    # Without noise all histories are known that anybody had.
    yield from _of_people(stated, found, None, since)
    histories = found.followed if since > 0 else found.histories
    if stated["histories"] is None or not found.histories <= stated["histories"] <= histories:
        yield f"its people had {found.histories:,} histories, and another number was stated"
    if "own" in stated and not _is_share(stated["own"], found.own, since / max(1, found.people + found.missing)):
        yield f"{found.own!r} of its records are expected to be people's own, and another share was stated"
    if "rare" in stated and since <= 0:
        yield from row_complaints(stated["rows"], stated["rare"], found.rows, found.rare)
    if "observers" in stated:
        named = [(one["observer"], one["secret_of"], one["bounded"]) for one in stated["observers"]]
        if named != [(one.observer, one.secret_of, one.bounded) for one in found.observers]:
            yield "other observers and secrets were stated, or others that are bounded"
        for told, one in zip(stated["observers"], found.observers, strict=False):
            of_secret = "" if one.secret_of is None else f" of the secret in {one.secret_of}"
            yield from _of_people(told, one, f"for {one.observer}{of_secret}", since)


def _is_share(stated: float | None, found: float | None, room: float) -> bool:
    """Whether a share is the one that was found, up to that of people of whom nobody can tell any more."""
    return stated is found if stated is None or found is None else abs(stated - found) <= room + _LEVEL


def _of_people(
    stated: Mapping[str, Any], found: VersionHistories | ObserverHistories, whose: str | None, since: int
) -> Iterator[str]:
    over = whose or "over all histories"
    if not is_level(stated["level"], found.level, found.followed_level if since > 0 else found.level):
        yield f"the level {over} is {found.level:.12g} nats, and another one was stated"
    for name, what in (("moved", "before it"), ("outside", "with it")):
        known, number = getattr(found, name), stated[name]
        if number is None or not known <= number <= known + since:
            yield f"{known:,} of its people are {name} {whose or what}, and another number was stated"
    if since <= 0 and "moved_level" in stated:
        told, known = stated["moved_level"], found.moved_level
        if not (told is None if known is None else is_level(told, known)):
            yield f"the level of the moved {over} is {known!r}, and another one was stated"


def is_level(stated: object, found: float, most: float | None = None, close: float = _LEVEL) -> bool:
    """Whether a level is one from that which was found to the most that it may be, but for what floats cannot tell.

    None is stated where a secret is ruled out, and the level is infinite.
    """
    told = math.inf if stated is None else stated
    low, high = found, found if most is None else most
    low -= 0.0 if math.isinf(low) else close * max(1.0, low)
    return isinstance(told, float) and low <= told <= high + close * max(1.0, high)


@dataclass
class Decided:
    """What an observer learns: of all histories, of those that somebody had, and of those that are predicted.

    Of the secret in an earlier version, of those with people who were in it.
    """

    observer: str
    secret_of: str | None
    bounded: bool
    every: Tally
    real: Tally
    predicted: Tally
    unsure: float | None

    def broken(self) -> Iterator[str]:
        """In what way the bound is not kept, where there is one for this observer."""
        whose = "" if self.secret_of is None else f", of the secret in {self.secret_of}"
        observer, _, known = self.observer.partition(", knowing ")
        whose += ", for who knows who changed" if observer == MOVER_STAYER else ""
        whose += f", for who knows {known}" if known else ""
        return (f"{said}{whose}" for said in self.every.broken() if self.bounded)

    def figures(self) -> ObserverHistories:
        """Of histories that somebody had."""
        return self._figures(self.real, lambda people: ceil(people - _FEW))

    def expected(self, everybody: float) -> ObserverHistories:
        """Of histories that are predicted, of so many people."""
        return self._figures(self.predicted, lambda people: people / everybody)

    def _figures(self, of: Tally, shown: Callable[[float], float]) -> ObserverHistories:
        who = self.observer, self.secret_of, self.bounded
        people = shown(of.moved), shown(of.outside)
        return ObserverHistories(*who, of.level(), *people, of.moved_level, self.every.level())


def expected_histories(
    found: Sequence[Decided], attending: Attending, chapter: Chapter, people: Mapping[int, int]
) -> ExpectedHistories:
    """What is found of people whom public tables lead one to expect; and of real ones, counted by their history."""
    others = {node: count for node, count in people.items() if node not in attending.people}
    everybody = attending.everybody
    unsure = next((one.unsure for one in found if one.unsure is not None), None)
    return ExpectedHistories(
        observers=tuple(one.expected(everybody) for one in found),
        histories=len(attending.people),
        others=attending.others / everybody,
        unpredicted=sum(others.values()),
        silent=sum(count for node, count in others.items() if not chapter.tells(chapter.followed[node])),
        left_open=None if unsure is None else unsure / everybody,
    )
