"""Donor observer: what versions of whole records about the same people tell of every secret, computed a second time.

Beliefs are sums over all that is hidden together: of every version so far the secret of a person in it, with their
secret and class now, and the secret and class of a donor. They grow with the number of versions, not with that of all
sequences of secrets.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache

from funnel.recount.chapters import WHOLE
from funnel.recount.drawn_donors import Weights
from funnel.recount.history_bounds import HistoryFinding, judge_history
from funnel.recount.path_distributions import HistoryDistribution
from funnel.recount.ratios import Side

History = tuple[tuple[str, int], ...]
Cell = tuple[str, int]
# The secret of a person in some version, their cell now, and that of a donor; None where the record is their own.
State = tuple[str, Cell, Cell | None]
Beliefs = Sequence[Mapping[tuple[State, int], int]]
"""What is believed of the secret of every version in turn, with what a channel reads; each up to a factor."""
FEWEST_DONORS = 3
"""People of a class whose records may begin, with fewer of whom no record begins as one of it in a later version."""


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
        self._after: dict[History, list[dict[State, int]]] = {}

    def begins(self, name: str) -> None:
        """The next version is of this name."""
        self._place[name] = len(self._place)

    @property
    def _t(self) -> int:
        return len(self._place) - 1

    def states(self, history: History) -> Beliefs:
        """What is believed before a version, with what the channel reads; whole numbers up to a factor."""
        if not history:
            return [{((s, (s, c), None), c): people for (s, c), people in self._sizes[self._t].items() if people}]
        name, output = history[-1]
        moves = self._moves(self._place[name], self._t)
        own = []
        for after in self._after[history]:
            own.append(defaultdict[State, int](int))
            for (secret, cell, donor), mass in after.items():
                for to, share in moves.kernel[cell].items():
                    own[-1][secret, to, donor] += mass * share
        now = defaultdict[State, int](int)
        for (_, cell, donor), mass in own[-1].items():
            now[cell[0], cell, donor] += mass
        return [self._with_donors(one, moves, output % self._k) for one in (*own, now)]

    def _with_donors(self, own: Mapping[State, int], moves: PlainMoves, of_class: int) -> dict[tuple[State, int], int]:
        """The same once donors have moved too, of whom those of a class have left as often as people of it do."""
        found, k = defaultdict[tuple[State, int], int](int), self._k
        there, before = moves.staying(of_class)
        for (secret, cell, donor), mass in own.items():
            if donor is None:
                found[(secret, cell, None), cell[1]] += mass * moves.scale * before
                continue
            found[(secret, cell, donor), 2 * k] += mass * moves.scale * (before - there)
            for to, share in moves.kernel[donor].items():
                found[(secret, cell, to), k + to[1]] += mass * share * there
        return {state: mass for state, mass in found.items() if mass}

    def judged(
        self,
        history: History,
        states: Beliefs,
        weights: Weights,
        sides: Sequence[Side],
        node: int = 0,
    ) -> list[tuple[int, HistoryFinding, HistoryDistribution]]:
        """What an observer learns of the secret of every version that is in a history, and of this one."""
        inputs = 2 * self._k + 1
        rows = tuple(tuple((x, weight) for x, weight in enumerate(row) if weight) for row in weights)
        places = [*(self._place[name] for name, _ in history), self._t]
        found = []
        number = {secret: s for s, secret in enumerate(self._secrets)}
        for u, (place, believed) in enumerate(zip(places, states, strict=True)):
            cells = [0] * (len(self._secrets) * inputs)
            for ((secret, _, _), x), mass in believed.items():
                cells[number[secret] * inputs + x] += mass
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

    def published(self, history: History, states: Beliefs, weights: Weights) -> tuple[float, list[list[float]]]:
        """The probability of an own record, and that of every class of a person and output."""
        k, total = self._k, sum(states[-1].values())
        reads: dict[tuple[int, int], int] = defaultdict(int)
        for ((_, (_, c), _), x), mass in states[-1].items():
            reads[c, x] += mass
        table = [[0] * (2 * k) for _ in range(k)]
        for (c, x), mass in reads.items():
            for y in range(2 * k):
                table[c][y] += mass * weights[y][x]
        own = sum(weights[c if history else k + c][c] * reads[c, c] for c in range(k))
        whole = total * WHOLE
        return own / whole, [[one / whole for one in row] for row in table]

    def off(self, states: Beliefs, table: Sequence[Sequence[float]]) -> list[float]:
        """By how much records of each class are expected more often than own ones would be."""
        k, due = self._k, [0] * self._k
        for ((_, (_, c), donor), _), mass in states[-1].items():
            due[c] += mass if donor is None else 0
        # Where the record is known not to be the person's own, nothing is owed for it.
        if not any(due):
            return [0.0] * k
        return [math.fsum(row[y] + row[k + y] for row in table) - due[y] / sum(due) for y in range(k)]

    def most_off(self, off: Sequence[float], donors: Sequence[int]) -> float:
        """By how many records classes are off at most, those together that begin in the place of each other."""
        together = [0.0] * self._k
        for c, one in zip(self._in_place(donors), off, strict=True):
            together[c] += one
        return max(map(abs, together))

    def _in_place(self, donors: Sequence[int]) -> list[int]:
        """The class as which records begin instead of each: the one most like it where fewer than three may begin."""
        sizes, secrets, found = [0] * self._k, Counter[str](), [*range(self._k)]
        for (s, c), people in self._sizes[self._t].items():
            sizes[c] += people
            secrets[s] += people
        cells = self._sizes[self._t]
        for c in (c for c in found if sizes[c] and donors[c] < FEWEST_DONORS):
            apart = {
                j: max(
                    abs(Fraction(cells.get((s, c), 0), sizes[c]) - Fraction(cells.get((s, j), 0), sizes[j])) / n
                    for s, n in secrets.items()
                    if n
                )
                for j in range(self._k)
                if donors[j] >= FEWEST_DONORS
            }
            found[c] = min(apart, key=lambda j: (apart[j], j), default=c)
        return found

    def publish(self, history: History, states: Beliefs, weights: Weights, outputs: Iterable[int]) -> None:
        """What is believed once each of some outputs is published."""
        name = list(self._place)[-1]
        for y in outputs:
            self._after[(*history, (name, y))] = [self._told(history, one, weights[y], y) for one in states]

    def _told(
        self, history: History, states: Mapping[tuple[State, int], int], row: Sequence[int], y: int
    ) -> dict[State, int]:
        """The same of one version's secret, for an output with these weights."""
        k, after = self._k, defaultdict[State, int](int)
        new = {cell: people for cell, people in self._sizes[self._t].items() if cell[1] == y % k and people}
        for ((secret, cell, donor), x), mass in states.items():
            told = mass * row[x]
            if not told:
                continue
            if y < k:
                after[secret, cell, donor] += told
            elif not history and cell[1] == y - k:
                after[secret, cell, None] += told * sum(new.values())
            else:
                for of, people in new.items():
                    after[secret, cell, of] += told * people
        factor = math.gcd(*after.values()) or 1
        return {state: mass // factor for state, mass in after.items()}


def is_channel(weights: Weights, k: int, later: bool) -> bool:
    """Whether these are weights (2k, 2k + 1) of a channel: who goes on is of the class read, a first record begins."""
    shaped = len(weights) == 2 * k and all(len(row) == 2 * k + 1 and min(row) >= 0 for row in weights)
    if not shaped or any(sum(column) != WHOLE for column in zip(*weights, strict=True)):
        return False
    return all(not weight or (later and x in (y, k + y)) for y in range(k) for x, weight in enumerate(weights[y]))


ALONE = "records begin as those of a class that has too few people for that"


def begins_alone(weights: Weights, donors: Sequence[int], later: bool) -> bool:
    """Whether a record may begin as one of a class of which there may be nobody else."""
    k = len(donors)
    return any(any(weights[k + c]) for c, n in enumerate(donors) if 0 < n < FEWEST_DONORS) if later else False


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
