"""Found histories: what the second computation finds in a register, by version and by observer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from funnel.recount.promise import Promise
from funnel.recount.register_files import Entry


@dataclass(frozen=True)
class VersionHistories:
    """What a version tells of people about whom other versions told something before.

    Attributes
    ----------
    name : str
        Of the version in the register.
    promise : Promise
        The bound on everything published.
    level : float
        The largest level over all outputs that people can get, of all histories that are not moved; nats, rounded up.
        With noise, of those that somebody has.
    histories : int
        Different histories that people had before it.
    people, moved, outside : int
        Records of the version; those of its people whose history by itself is outside the bound, as frequencies changed
        or as earlier values go with a later secret; and those of them who can get an output that is outside of it.
    by_output : tuple of int, length b
        How many people got an output.
    by_channel : mapping of (channel, input) to int
        How many people drew from a channel with an input.
    missing : int
        People who were counted then and are forgotten.
    complaints : tuple of str
        In what way files do not agree, as parts of sentences.
    broken : tuple of str
        In what way the bound is not kept.
    followed : (float, int)
        Level and number of all histories that it has a channel for: with noise, also those that nobody has.
    expected : ExpectedHistories or None
        With noise: the same of the people that public tables lead one to expect.
    moved_level : float or None
        The largest level over all outputs that people who are moved can get, in nats, rounded up; None if nobody is.
    observers : tuple of ObserverHistories
        The same for each observer of whom it is known; what stands above is the most of those that it is bounded for.
    noise : sequence of (float, mapping of str to sequence of int)
        Scale and noise of tables of changes, of tables of rows and of means, by names of tables; of the last version.
    """

    name: str
    promise: Promise
    level: float
    histories: int
    people: int
    moved: int
    outside: int
    by_output: tuple[int, ...]
    by_channel: Mapping[tuple[int, int], int]
    missing: int
    complaints: tuple[str, ...]
    broken: tuple[str, ...]
    followed: tuple[float, int]
    moved_level: float | None
    observers: tuple[ObserverHistories, ...]
    expected: ExpectedHistories | None = None
    noise: Sequence[tuple[float, Mapping[str, Sequence[int]]]] = ()


@dataclass(frozen=True)
class ObserverHistories:
    """What a version tells one observer of people about whom other versions told something before.

    Attributes
    ----------
    observer : str
    bounded : bool
        Whether the version is bounded for this observer.
    level : float
    moved, outside : int
        Of an observer that it is not bounded for, ``outside`` counts people who are not moved as well.
    moved_level : float or None
        As of `VersionHistories`.
    followed : float
        The level of all histories that the version has a channel for.
    """

    observer: str
    bounded: bool
    level: float
    moved: int
    outside: int
    moved_level: float | None
    followed: float


@dataclass(frozen=True)
class ExpectedHistories:
    """What a version tells of people that public tables lead one to expect.

    Attributes
    ----------
    histories : int
        That are predicted.
    level : float
        The largest of these, of those that are not moved; nats, rounded up.
    moved, outside, others : float
        Shares of the expected people; the last of those with histories that are not predicted.
    left_open : float or None
        Share of those whose history may be outside by itself, under true tables that noise does not rule out; None
        where that is not asked.
    observers : tuple of ExpectedObserver
        The same for each observer of whom public tables tell it.
    """

    histories: int
    level: float
    moved: float
    outside: float
    others: float
    left_open: float | None = None
    observers: tuple[ExpectedObserver, ...] = ()


@dataclass(frozen=True)
class ExpectedObserver:
    """What a version tells one observer of people that public tables lead one to expect.

    Attributes
    ----------
    observer : str
    bounded : bool
    level, of_all : float
        Of histories that are not moved, and of all; nats, rounded up.
    outside : float
        Share of the expected people.
    """

    observer: str
    bounded: bool
    level: float
    of_all: float
    outside: float


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
