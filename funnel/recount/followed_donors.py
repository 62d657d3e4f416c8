"""Followed donors a second time: what versions of whole records about the same people tell of every secret.

From the tables, what was published for each person, and the weights of the channels alone. Beliefs are sums over all
that is hidden together: the secrets of a person in all versions, their class, and the secret and class of a donor.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from funnel.errors import DataError
from funnel.recount.history_bounds import HistoryFinding, judge_history
from funnel.recount.path_distributions import HistoryDistribution
from funnel.recount.promise import Promise, read_promise
from funnel.recount.ratios import Ratio, level_above, sides_of, worse

Record = tuple[str, ...]
History = tuple[tuple[str, int], ...]
Cell = tuple[str, int]
# Secrets of a person, their class, and the cell of a donor; None where the record is the person's own.
State = tuple[tuple[str, ...], int, Cell | None]
Weights = Sequence[Sequence[int]]
_WHOLE = 1 << 63
# A fair release is refused less often than this, by any of its draws that is looked at.
_RARELY = 1e-10
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
        People whose history is outside by itself for a secret, and those of them for whom some output is.
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
    """

    complaints: tuple[str, ...]
    figures: DonorFigures


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
        self._place = {version.name: place for place, version in enumerate(versions)}
        self._cells = [
            {key: (secret, self._names.index(class_of(record))) for key, (secret, record) in version.people.items()}
            for version in versions
        ]
        self._secrets = sorted({secret for cells in self._cells for secret, _ in cells.values()})
        self._sizes = [Counter(cells.values()) for cells in self._cells]
        self._histories: dict[str, History] = {}
        # Whose record was published last, by key.
        self._followed: dict[str, str] = {}
        self._after: dict[History, dict[State, int]] = {}
        self._moves: dict[tuple[int, int], _PlainMoves] = {}

    def version(self, t: int) -> DonorFindings:
        """What is found of the version with a number, once those before are."""
        version = self._versions[t]
        having = Counter(self._histories.get(key, ()) for key in version.people)
        complaints: list[str] = []
        worst = [Ratio() for _ in sides_of(self._promise)]
        moved, outside, unchanged, off = 0, 0, 0.0, [0.0] * self._k
        for history, people in having.items():
            weights = version.channels.get(history)
            if weights is None or not self._is_channel(weights, history):
                raise DataError("a history has no channel whose weights add up to one, or one that cannot be")
            states = self._before(history, t)
            found = self._judged(history, t, states, weights)
            if not all(one.holds for one in found):
                complaints.append(f"a history of {len(history)} versions leaves the bound with some output")
            for one in found:
                worst = worst if one.moved else [*map(worse, worst, one.worst)]
            moved += people * any(one.moved for one in found)
            outside += people * any(one.moved and one.outside for one in found)
            own, by_class = self._published(history, states, weights)
            unchanged += people * own
            off = [one + people * more for one, more in zip(off, by_class, strict=True)]
            self._publish(history, t, states, weights)
        if max(map(abs, off)) > 1:
            complaints.append("published records of a class are not as common as own ones would be")
        complaints += self._drawn(t)
        level = level_above(self._promise, sides_of(self._promise), worst)
        figures = DonorFigures(level, moved, outside, unchanged / len(version.people))
        return DonorFindings((*complaints, *_differing(figures, version.declared)), figures)

    def _is_channel(self, weights: Weights, history: History) -> bool:
        k = self._k
        shaped = len(weights) == 2 * k and all(len(row) == 2 * k + 1 and min(row) >= 0 for row in weights)
        if not shaped or any(sum(column) != _WHOLE for column in zip(*weights, strict=True)):
            return False
        # Who goes on is of the class that is read, and a first record begins.
        return all(
            not weight or (bool(history) and x in (y, k + y)) for y in range(k) for x, weight in enumerate(weights[y])
        )

    def _before(self, history: History, t: int) -> dict[tuple[State, int], int]:
        """What is believed before a version, with what the channel reads; whole numbers up to a factor."""
        if not history:
            return {(((s,), c, None), c): people for (s, c), people in self._sizes[t].items()}
        name, output = history[-1]
        moves, k = self._between(self._place[name], t), self._k
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

    def _between(self, v: int, t: int) -> _PlainMoves:
        if (v, t) not in self._moves:
            self._moves[v, t] = _PlainMoves(self._cells[v], self._cells[t], self._sizes[v], self._sizes[t])
        return self._moves[v, t]

    def _judged(
        self, history: History, t: int, states: Mapping[tuple[State, int], int], weights: Weights
    ) -> list[HistoryFinding]:
        """What an observer learns of the secret of every version."""
        sides, inputs = sides_of(self._promise), 2 * self._k + 1
        rows = tuple(tuple((x, weight) for x, weight in enumerate(row) if weight) for row in weights)
        places = [*(self._place[name] for name, _ in history), t]
        found = []
        for u, place in enumerate(places):
            cells = [0] * (len(self._secrets) * inputs)
            for ((path, _, _), x), mass in states.items():
                cells[self._secrets.index(path[u]) * inputs + x] += mass
            prior = self._prior(place, places[u - 1] if u else None)
            found.append(judge_history(sides, sides, HistoryDistribution(0, cells, 0), rows, prior))
        return found

    def _prior(self, u: int, came_from: int | None) -> list[int]:
        """How common each secret is among the people of a version who came to it from another one, or all of them."""
        cells, before = self._cells[u], None if came_from is None else self._cells[came_from]
        counted = Counter(secret for key, (secret, _) in cells.items() if before is None or key in before)
        return [counted[secret] for secret in self._secrets]

    def _published(
        self, history: History, states: Mapping[tuple[State, int], int], weights: Weights
    ) -> tuple[float, list[float]]:
        """The probability of an own record, and by how much that of each class is off."""
        k, total = self._k, sum(states.values())
        reads: Counter[int] = Counter()
        for (_, x), mass in states.items():
            reads[x] += mass
        due = sum(reads[c] for c in range(k))
        if not due:
            # The record is known not to be the person's own: nothing is owed for it.
            return 0.0, [0.0] * k
        stays = [weights[c if history else k + c][c] * reads[c] for c in range(k)]
        published = [sum((weights[c][x] + weights[k + c][x]) * reads[x] for x in reads) for c in range(k)]
        off = [one / (total * _WHOLE) - reads[c] / due for c, one in enumerate(published)]
        return sum(stays) / (total * _WHOLE), off

    def _publish(self, history: History, t: int, states: Mapping[tuple[State, int], int], weights: Weights) -> None:
        """What is believed once each output is published that somebody got."""
        version, k = self._versions[t], self._k
        seen = {y for key, y in version.outputs.items() if self._histories.get(key, ()) == history}
        for y in seen:
            after: dict[State, int] = defaultdict(int)
            new = {cell: people for cell, people in self._sizes[t].items() if cell[1] == y % k}
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
            self._after[(*history, (version.name, y))] = {state: mass // factor for state, mass in after.items()}

    def _drawn(self, t: int) -> list[str]:
        """What is wrong with what was drawn and published; remembers whose records are published, and as what."""
        version, cells, k = self._versions[t], self._cells[t], self._k
        found: list[str] = []
        drawn: dict[tuple[History, int], Counter[int]] = defaultdict(Counter)
        begun: list[str] = []
        later: list[str] = []
        standing: set[str] = set()
        for key, (_, of) in cells.items():
            history, before = self._histories.get(key, ()), self._followed.get(key, key)
            own = before == key
            x = cells[before][1] + (0 if own else k) if before in cells else 2 * k
            y, now = version.outputs[key], version.stands_for[key]
            stays = not history and y == k + of
            if not version.channels[history][y][x]:
                found.append("an output was drawn that has no weight")
            if now not in cells or cells[now][1] != y % k:
                found.append("a record is published as one of a class that it is not of")
                continue
            if (y < k or stays) != (now == before) or (now == key and not own):
                found.append("a record goes on as that of another person, or begins as that of the same one")
            if version.released[key] != (*version.people[now][1], self._class_of(version.people[now][1])):
                found.append("a published record is not that of the person it stands for")
            drawn[history, x][y] += 1
            if now not in (before, key):
                (later if history else begun).append(now)
            if not history or now == before:
                standing.add(now)
            self._followed[key], self._histories[key] = now, (*history, (version.name, y))
        everybody = Counter(c for _, c in cells.values())
        left = Counter(c for key, (_, c) in cells.items() if key not in standing)
        # Where there is nobody else but a person and who stood for them, anybody of the class may begin.
        if any(one in standing and left[cells[one][1]] > 2 for one in later):
            found.append("a record begins as that of a person who is published already")
        if _is_uneven(begun, cells, everybody) or _is_uneven(later, cells, left):
            found.append("donors of a class are not drawn evenly")
        return [*dict.fromkeys(found), *_unlikely(drawn, version.channels)]


def _is_uneven(begun: Sequence[str], cells: Mapping[str, Cell], sizes: Mapping[int, int]) -> bool:
    """Whether one person is a donor more often than by chance, if each is drawn from all but two of so many."""
    times = Counter(cells[one][1] for one in begun)
    for one, load in Counter(begun).items():
        c = cells[one][1]
        log = math.log(math.comb(times[c], load)) + math.log(max(1, sizes[c])) - load * math.log(max(1, sizes[c] - 2))
        if log < math.log(_RARELY):
            return True
    return False


class _PlainMoves:
    """What is known of two versions: who changes from which cell to which, and how many leave."""

    def __init__(
        self, was: Mapping[str, Cell], now: Mapping[str, Cell], before: Mapping[Cell, int], after: Mapping[Cell, int]
    ) -> None:
        both: dict[Cell, Counter[Cell]] = defaultdict(Counter)
        for key, cell in was.items():
            if key in now:
                both[cell][now[key]] += 1
        rows = {cell: both[cell] or Counter(after) for cell in {*before, *after}}
        self.scale = math.lcm(*(row.total() for row in rows.values()))
        """What every row of the kernel adds up to."""
        self.kernel = {
            cell: {to: people * (self.scale // row.total()) for to, people in row.items()} for cell, row in rows.items()
        }
        self._both, self._before = both, before

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


def _unlikely(drawn: Mapping[tuple[History, int], Counter[int]], channels: Mapping[History, Weights]) -> list[str]:
    """Whether what was drawn is less likely than chance allows, of all histories and what was read together.

    By types: m draws come to shares q with a probability of at most ``e^(-m D(q, p))``, and to one of at most
    ``C(m + b - 1, b - 1)`` shares of b outputs.
    """
    log = 0.0
    for (history, x), counts in drawn.items():
        m = counts.total()
        possible = {y: row[x] / _WHOLE for y, row in enumerate(channels[history]) if row[x]}
        log += math.log(math.comb(m + len(possible) - 1, len(possible) - 1))
        log -= math.fsum(count * math.log(count / (m * possible[y])) for y, count in counts.items() if y in possible)
    return ["outputs are not drawn as the channels say"] if log < math.log(_RARELY) else []
