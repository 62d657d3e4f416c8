"""Followed donors a second time: what versions of whole records about the same people tell of every secret.

From the tables, what was published for each person, and the weights of the channels alone. Beliefs are sums over all
that is hidden together: the secrets of a person in all versions, their class, and the secret and class of a donor.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from funnel.errors import DataError
from funnel.recount.chapters import WHOLE
from funnel.recount.drawn_donors import DonorDraws, Weights
from funnel.recount.history_bounds import HistoryFinding, judge_history
from funnel.recount.path_distributions import HistoryDistribution
from funnel.recount.promise import Promise, read_promise
from funnel.recount.ratios import Ratio, Side, level_above, sides_of, worse

Record = tuple[str, ...]
History = tuple[tuple[str, int], ...]
Cell = tuple[str, int]
# Secrets of a person, their class, and the cell of a donor; None where the record is the person's own.
State = tuple[tuple[str, ...], int, Cell | None]
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


class DonorObserver:
    """What an observer believes of the people with every history, version after version.

    Parameters
    ----------
    classes : int
    secrets : sequence of str
        All values.
    sizes : sequence of mapping of cell to int
        The people of every version.
    moves : callable
        Given the numbers of two versions what is known of how people change between them.
    """

    def __init__(
        self,
        classes: int,
        secrets: Sequence[str],
        sizes: Sequence[Mapping[Cell, int]],
        moves: Callable[[int, int], PlainMoves],
    ) -> None:
        self._k, self._secrets, self._sizes, self._moves = classes, secrets, sizes, cache(moves)
        self._place: dict[str, int] = {}
        self._after: dict[History, dict[State, int]] = {}

    def begins(self, name: str) -> None:
        """The next version is of this name."""
        self._place[name] = len(self._place)

    @property
    def _t(self) -> int:
        return len(self._place) - 1

    def states(self, history: History) -> dict[tuple[State, int], int]:
        """What is believed before a version, with what the channel reads; whole numbers up to a factor."""
        if not history:
            return {(((s,), c, None), c): people for (s, c), people in self._sizes[self._t].items() if people}
        name, output = history[-1]
        moves, k = self._moves(self._place[name], self._t), self._k
        there, before = moves.staying(output % k)
        found: dict[tuple[State, int], int] = defaultdict(int)
        own: dict[State, int] = defaultdict(int)
        for (path, c, donor), mass in self._after[history].items():
            for (s, to), share in moves.kernel[path[-1], c].items():
                own[(*path, s), to, donor] += mass * share
        for (path, c, donor), mass in own.items():
            if donor is None:
                found[(path, c, None), c] += mass * moves.scale * before
                continue
            found[(path, c, donor), 2 * k] += mass * moves.scale * (before - there)
            for cell, share in moves.kernel[donor].items():
                found[(path, c, cell), k + cell[1]] += mass * share * there
        return {state: mass for state, mass in found.items() if mass}

    def judged(
        self,
        history: History,
        states: Mapping[tuple[State, int], int],
        weights: Weights,
        sides: Sequence[Side],
        node: int = 0,
    ) -> list[tuple[int, HistoryFinding, HistoryDistribution]]:
        """What an observer learns of the secret of every version that is in a history, and of this one."""
        inputs = 2 * self._k + 1
        rows = tuple(tuple((x, weight) for x, weight in enumerate(row) if weight) for row in weights)
        places = [*(self._place[name] for name, _ in history), self._t]
        found = []
        for u, place in enumerate(places):
            cells = [0] * (len(self._secrets) * inputs)
            for ((path, _, _), x), mass in states.items():
                cells[self._secrets.index(path[u]) * inputs + x] += mass
            prior = self._prior(place, places[u - 1] if u else None)
            distribution = HistoryDistribution(node, cells, 0)
            found.append((place, judge_history(sides, sides, distribution, rows, prior), distribution))
        return found

    def _prior(self, u: int, came_from: int | None) -> list[int]:
        """How common each secret is among the people of a version who came to it from another one, or all of them."""
        counted: Counter[str] = Counter()
        for (secret, _), people in (self._sizes[u] if came_from is None else self._moves(came_from, u).now).items():
            counted[secret] += people
        return [counted[secret] for secret in self._secrets]

    def published(
        self, history: History, states: Mapping[tuple[State, int], int], weights: Weights
    ) -> tuple[float, list[list[float]]]:
        """The probability of an own record, and that of every class of a person and output."""
        k, total = self._k, sum(states.values())
        reads: dict[tuple[int, int], int] = defaultdict(int)
        for ((_, c, _), x), mass in states.items():
            reads[c, x] += mass
        table = [[0] * (2 * k) for _ in range(k)]
        for (c, x), mass in reads.items():
            for y in range(2 * k):
                table[c][y] += mass * weights[y][x]
        own = sum(weights[c if history else k + c][c] * reads[c, c] for c in range(k))
        whole = total * WHOLE
        return own / whole, [[one / whole for one in row] for row in table]

    def off(self, states: Mapping[tuple[State, int], int], table: Sequence[Sequence[float]]) -> list[float]:
        """By how much records of each class are expected more often than own ones would be."""
        k, due = self._k, [0] * self._k
        for ((_, c, donor), _), mass in states.items():
            due[c] += mass if donor is None else 0
        # Where the record is known not to be the person's own, nothing is owed for it.
        if not any(due):
            return [0.0] * k
        return [math.fsum(row[y] + row[k + y] for row in table) - due[y] / sum(due) for y in range(k)]

    def publish(
        self, history: History, states: Mapping[tuple[State, int], int], weights: Weights, outputs: Iterable[int]
    ) -> None:
        """What is believed once each of some outputs is published."""
        k, name = self._k, list(self._place)[-1]
        for y in outputs:
            after: dict[State, int] = defaultdict(int)
            new = {cell: people for cell, people in self._sizes[self._t].items() if cell[1] == y % k and people}
            for ((path, c, donor), x), mass in states.items():
                told = mass * weights[y][x]
                if not told:
                    continue
                if y < k:
                    after[path, c, donor] += told
                elif not history and c == y - k:
                    after[path, c, None] += told * sum(new.values())
                else:
                    for cell, people in new.items():
                        after[path, c, cell] += told * people
            factor = math.gcd(*after.values()) or 1
            self._after[(*history, (name, y))] = {state: mass // factor for state, mass in after.items()}


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
        for history, people in having.items():
            weights = version.channels.get(history)
            if weights is None or not is_channel(weights, self._k, bool(history)):
                raise DataError("a history has no channel whose weights add up to one, or one that cannot be")
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
        most_off = max(map(abs, off))
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


def is_channel(weights: Weights, k: int, later: bool) -> bool:
    """Whether these are weights (2k, 2k + 1) of a channel: who goes on is of the class read, a first record begins."""
    shaped = len(weights) == 2 * k and all(len(row) == 2 * k + 1 and min(row) >= 0 for row in weights)
    if not shaped or any(sum(column) != WHOLE for column in zip(*weights, strict=True)):
        return False
    return all(not weight or (later and x in (y, k + y)) for y in range(k) for x, weight in enumerate(weights[y]))


class PlainMoves:
    """What is known of two versions: who changes from which cell to which, and how many leave."""

    def __init__(
        self, both: Mapping[tuple[Cell, Cell], int], before: Mapping[Cell, int], after: Mapping[Cell, int]
    ) -> None:
        moved: dict[Cell, Counter[Cell]] = defaultdict(Counter)
        self.now: Counter[Cell] = Counter()
        """The people in both, by their cell now."""
        for (was, now), people in both.items():
            moved[was][now] += people
            self.now[now] += people
        # No secret that only new people have may come from nowhere.
        kept = {secret for secret, _ in self.now}
        everybody = Counter({cell: people for cell, people in after.items() if people and cell[0] in kept})
        rows = {cell: moved[cell] or everybody for cell in {*before, *after}}
        self.scale = math.lcm(*(row.total() for row in rows.values()))
        """What every row of the kernel adds up to."""
        self.kernel = {
            cell: {to: people * (self.scale // row.total()) for to, people in row.items()} for cell, row in rows.items()
        }
        self._both, self._before = moved, before

    def staying(self, c: int) -> tuple[int, int]:
        """How many people of a class are there still, and how many there were."""
        there = sum(row.total() for cell, row in self._both.items() if cell[1] == c)
        return there, sum(people for cell, people in self._before.items() if cell[1] == c)


def _differing(found: DonorFigures, declared: DonorFigures) -> list[str]:
    """Which figures are not those that are declared."""
    of_floats = ((found.level, declared.level), (found.unchanged, declared.unchanged))
    alike = all(math.isclose(one, other, abs_tol=_FLOATS) for one, other in of_floats)
    if alike and (found.moved, found.outside) == (declared.moved, declared.outside):
        return []
    return [f"declared are {declared}, and found {found}"]
