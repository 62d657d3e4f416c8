"""Followed donors a second time: what versions of whole records about the same people tell of every secret.

From the tables, what was published for each person, and the weights of the channels alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from funnel.errors import DataError
from funnel.recount.donor_observer import ALONE, DonorObserver, History, PlainMoves, begins_alone, is_channel
from funnel.recount.drawn_donors import DonorDraws, Weights
from funnel.recount.promise import Promise, read_promise
from funnel.recount.ratios import Ratio, level_above, sides_of, worse

Record = tuple[str, ...]
_FLOATS = 1e-9


@dataclass(frozen=True)
class DonorVersion:
    """What was published in one version, and from what.

    Attributes
    ----------
    name : str
    people : mapping of key to (secret, record)
        The table.
    released : mapping of key to record
        What was published for each person: a record, and the name of its class.
    outputs : mapping of key to int
        Less than k where the same person goes on, of that class; k more where another record begins.
    stands_for : mapping of key to key
        Whose record it is.
    channels : mapping of history to weights
        Rows of 2k outputs, each with 2k + 1 weights: for an own record of each class, for a donor's, and for a donor
        who is gone.
    declared : DonorFigures
    """

    name: str
    people: Mapping[str, tuple[str, Record]]
    released: Mapping[str, Record]
    outputs: Mapping[str, int]
    stands_for: Mapping[str, str]
    channels: Mapping[History, Weights]
    declared: DonorFigures


@dataclass(frozen=True)
class DonorFigures:
    """What is said of one version.

    Attributes
    ----------
    level : float
        Over all outputs and secrets of histories that are within the bound by themselves, nats.
    moved, outside : int
        The most people whose history is outside by itself for the secret of a version, and of those of them for whom
        some output is.
    unchanged : float
        The share of records that are expected to be people's own.
    """

    level: float
    moved: int
    outside: int
    unchanged: float


@dataclass(frozen=True)
class DonorFindings:
    """What is found of one version.

    Attributes
    ----------
    complaints : tuple of str
        What is wrong, in sentences; empty where nothing is.
    figures : DonorFigures
    off : float
        By how many records a class is expected to be published more or less often than own records would be, at most.
    """

    complaints: tuple[str, ...]
    figures: DonorFigures
    off: float


def judge_donors(
    promise: str, class_of: Callable[[Record], str], names: Sequence[str], versions: Sequence[DonorVersion]
) -> tuple[DonorFindings, ...]:
    """Judge every version, by everything that was published up to it.

    Parameters
    ----------
    promise : str
        Such as ``"lip:1.0"``.
    class_of : callable
        The class of a record.
    names : sequence of str
        Of the classes.
    versions : sequence of DonorVersion
        In the order of publication.

    Raises
    ------
    DataError
        If a history of somebody has no channel, or one whose weights do not add up to one.
    """
    judging = _Judging(read_promise(promise), class_of, names, versions)
    return tuple(judging.version(place) for place in range(len(versions)))


class _Judging:
    """Versions that are judged one after the other."""

    def __init__(
        self,
        promise: Promise,
        class_of: Callable[[Record], str],
        names: Sequence[str],
        versions: Sequence[DonorVersion],
    ) -> None:
        self._promise, self._names, self._versions = promise, list(names), versions
        self._class_of, self._k = class_of, len(names)
        self._cells = [
            {key: (secret, self._names.index(class_of(record))) for key, (secret, record) in version.people.items()}
            for version in versions
        ]
        self._secrets = sorted({secret for cells in self._cells for secret, _ in cells.values()})
        sizes = [Counter(cells.values()) for cells in self._cells]
        self._histories: dict[str, History] = {}
        # Whose record was published last, by key.
        self._followed: dict[str, str] = {}

        def moves(v: int, t: int) -> PlainMoves:
            was, now = self._cells[v], self._cells[t]
            both = Counter((cell, now[key]) for key, cell in was.items() if key in now)
            return PlainMoves(both, sizes[v], sizes[t])

        self._observer = DonorObserver(self._k, self._secrets, sizes, moves)

    def version(self, t: int) -> DonorFindings:
        """What is found of the version with a number, once those before are."""
        version, observer = self._versions[t], self._observer
        observer.begins(version.name)
        having = Counter(self._histories.get(key, ()) for key in version.people)
        complaints: list[str] = []
        sides = sides_of(self._promise)
        worst = [Ratio() for _ in sides]
        moved, outside = Counter[int](), Counter[int]()
        unchanged, off = 0.0, [0.0] * self._k
        of_class = Counter(c for _, c in self._cells[t].values())
        donors = [of_class[c] for c in range(self._k)]
        for history, people in having.items():
            weights = version.channels.get(history)
            if weights is None or not is_channel(weights, self._k, bool(history)):
                raise DataError("a history has no channel whose weights add up to one, or one that cannot be")
            if begins_alone(weights, donors, bool(history)):
                complaints.append(ALONE)
            states = observer.states(history)
            found = observer.judged(history, states, weights, sides)
            if not all(one.holds for _, one, _ in found):
                complaints.append(f"a history of {len(history)} versions leaves the bound with some output")
            for place, one, _ in found:
                worst = worst if one.moved else [*map(worse, worst, one.worst)]
                moved[place] += people * one.moved
                outside[place] += people * (one.moved and one.outside)
            own, table = observer.published(history, states, weights)
            unchanged += people * own
            off = [one + people * more for one, more in zip(off, observer.off(states, table), strict=True)]
            seen = {y for key, y in version.outputs.items() if self._histories.get(key, ()) == history}
            observer.publish(history, states, weights, seen)
        most_off = observer.most_off(off, donors)
        if most_off > 1:
            complaints.append("published records of a class are not as common as own ones would be")
        complaints += self._drawn(t)
        level = level_above(self._promise, sides, worst)
        figures = DonorFigures(level, max(moved.values()), max(outside.values()), unchanged / len(version.people))
        return DonorFindings((*complaints, *_differing(figures, version.declared)), figures, most_off)

    def _drawn(self, t: int) -> list[str]:
        """What is wrong with what was drawn and published; remembers whose records are published, and as what."""
        version, cells = self._versions[t], self._cells[t]
        drawn = DonorDraws(
            {key: of for key, (_, of) in cells.items()},
            {key: self._followed.get(key, key) for key in cells},
            version.outputs,
            version.stands_for,
            {key: version.channels[self._histories.get(key, ())] for key in cells},
            {key for key in cells if not self._histories.get(key, ())},
        )
        found = list(drawn.complaints(self._k))
        for key in cells:
            now = version.stands_for[key]
            if now in cells and version.released[key] != (
                *version.people[now][1],
                self._class_of(version.people[now][1]),
            ):
                found.append("a published record is not that of the person it stands for")
                break
        for key in cells:
            self._histories[key] = (*self._histories.get(key, ()), (version.name, version.outputs[key]))
            self._followed[key] = version.stands_for[key]
        return found


def _differing(found: DonorFigures, declared: DonorFigures) -> list[str]:
    """Which figures are not those that are declared."""
    of_floats = ((found.level, declared.level), (found.unchanged, declared.unchanged))
    alike = all(math.isclose(one, other, abs_tol=_FLOATS) for one, other in of_floats)
    if alike and (found.moved, found.outside) == (declared.moved, declared.outside):
        return []
    return [f"declared are {declared}, and found {found}"]
