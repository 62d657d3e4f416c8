"""History tallies: what is found of the histories of a version one by one, and what it comes to for each observer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from funnel.recount.chapters import Tree
from funnel.recount.expected import Attending
from funnel.recount.found_histories import ExpectedHistories, ObserverHistories
from funnel.recount.history_bounds import HistoryFinding, Worst
from funnel.recount.known_groups import Group
from funnel.recount.movers import MOVER_STAYER
from funnel.recount.path_laws import HistoryDistribution
from funnel.recount.promise import Promise
from funnel.recount.ratios import Side, level_above

# Less of a person than this is what sums of shares are off by.
_FEW = 1e-6


class Tally:
    """What was found of the histories of a version so far."""

    def __init__(self, tree: Tree, promise: Promise, sides: Sequence[Side]) -> None:
        self._tree, self._promise, self._sides = tree, promise, sides
        self._worst: list[Worst | None] = [None] * len(sides)
        self._moved_worst: list[Worst] | None = None
        self._failed: dict[str, list[int]] = {}
        # Of one history there may be several secrets, of the rows of a person; of each group that is known some people.
        self._moved: dict[tuple[int, Group | None], float] = {}
        self._outside: dict[tuple[int, Group | None], float] = {}

    def add(self, law: HistoryDistribution, found: HistoryFinding, people: float) -> None:
        """One history more, that so many people have."""
        node, these = law.node, (law.node, law.group)
        if found.outside:
            self._outside[these] = people * law.share
        if found.moved:
            self._moved[these] = people * law.share
            self._moved_worst = _furthest(self._moved_worst or [None] * len(found.worst), found.worst)
        else:
            self._worst = [*_furthest(self._worst, found.worst)]
        if not found.holds:
            what = "is outside the bound by itself, and an output tells more than it does"
            self.fail(what if found.moved else "leaves the bound with some output", node)
        elif not found.reserved:
            self.fail("uses up the reserve", node)

    def fail(self, what: str, node: int) -> None:
        """A history that breaks the bound, and how."""
        self._failed.setdefault(what, []).append(node)

    @property
    def moved(self) -> float:
        """People whose history is outside by itself."""
        return sum(self._moved.values())

    @property
    def outside(self) -> float:
        """People with an output outside."""
        return sum(self._outside.values())

    def level(self) -> float:
        """Of histories that are not moved."""
        known = [one if one is not None else Worst() for one in self._worst]
        return level_above(self._promise, self._sides, known)

    @property
    def moved_level(self) -> float | None:
        """Of histories that are moved; None if there is none."""
        return None if self._moved_worst is None else level_above(self._promise, self._sides, self._moved_worst)

    def broken(self) -> Iterator[str]:
        """Sentences about histories that break the bound."""
        for what, nodes in self._failed.items():
            more = f" (and so do {len(nodes) - 1:,} more)" if len(nodes) > 1 else ""
            versions = len(self._tree.history(nodes[0]))
            yield f"the history of number {nodes[0]}, of {versions} versions, {what}{more}"


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


def expected_histories(found: Sequence[Decided], attending: Attending) -> ExpectedHistories:
    """What is found of people whom public tables lead one to expect."""
    everybody = attending.everybody
    unsure = next((one.unsure for one in found if one.unsure is not None), None)
    return ExpectedHistories(
        observers=tuple(one.expected(everybody) for one in found),
        histories=len(attending.people),
        others=attending.others / everybody,
        left_open=None if unsure is None else unsure / everybody,
    )


def _furthest(known: Sequence[Worst | None], found: Sequence[Worst]) -> list[Worst]:
    """The larger of what is known and what was found, by side."""
    return [new if old is None or _larger(new, old) else old for old, new in zip(known, found, strict=True)]


def _larger(one: Worst, other: Worst) -> bool:
    mine, theirs = one.ratio, other.ratio
    return theirs is not None and (mine is None or mine > theirs)
