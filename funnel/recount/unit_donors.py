"""Unit donors a second time: what published rows of units tell of the secret of each row, drawn or to come.

From the rows, what was published for each, and the weights of the channels alone. Rows are told in the order in which
they were drawn.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from funnel.errors import DataError
from funnel.recount.donor_observer import Beliefs, Cell, DonorObserver, History, PlainMoves, is_channel
from funnel.recount.drawn_donors import DonorDraws, Weights, is_uneven
from funnel.recount.followed_donors import DonorFigures, DonorFindings, Record
from funnel.recount.history_bounds import HistoryFinding, judge_history
from funnel.recount.path_distributions import HistoryDistribution
from funnel.recount.promise import read_promise
from funnel.recount.ratios import Ratio, Side, level_above, sides_of, worse

# What tells units apart.
Unit = Any
# A row: its unit, and which of the unit's rows it is, from 1.
Row = tuple[Unit, int]
_FEWEST, _FLOATS = 3, 1e-9


@dataclass(frozen=True)
class UnitRelease:
    """What was published of rows of units, and from what.

    Attributes
    ----------
    name : str
        Histories name the row numbered m ``name#m``, and the first one ``name``.
    rows : mapping of row to (secret, record)
    released : mapping of row to record
        A record, and the name of its class.
    outputs : mapping of row to int
        Of units whose number of rows is common.
    stands_for : mapping of row to row
    channels : mapping of history to weights
    declared : DonorFigures
    """

    name: str
    rows: Mapping[Row, tuple[str, Record]]
    released: Mapping[Row, Record]
    outputs: Mapping[Row, int]
    stands_for: Mapping[Row, Row]
    channels: Mapping[History, Weights]
    declared: DonorFigures


class RowMoves(PlainMoves):
    """How a row follows another in units: no donor leaves in between."""

    def __init__(self, pairs: Mapping[tuple[Cell, Cell], int], cells: Set[Cell], first: Mapping[Cell, int]):
        followed: dict[Cell, Counter[Cell]] = defaultdict(Counter)
        for (was, now), n in pairs.items():
            followed[was][now] += n
        # What no row follows is like anybody's first row, of the same secret where units have one.
        shared = all(was[0] == now[0] for was, now in pairs)
        rows = {
            cell: followed[cell] or Counter({to: n for to, n in first.items() if not shared or to[0] == cell[0]})
            for cell in cells
        }
        self.scale = math.lcm(*(row.total() for row in rows.values()))
        self.kernel = {
            cell: {to: n * (self.scale // row.total()) for to, n in row.items()} for cell, row in rows.items()
        }

    def staying(self, c: int) -> tuple[int, int]:
        """Donors have as many rows as the unit, of whichever class they are."""
        del c
        return 1, 1


class RowObserver(DonorObserver):
    """What an observer believes of units after each row, of rows to come too.

    Parameters
    ----------
    classes : int
    secrets : sequence of str
    first : mapping of cell to int
        Units by the cell of their first row.
    moves : RowMoves
    rows : int
        Of the unit that has most.
    """

    def __init__(self, classes: int, secrets: Sequence[str], first: Mapping[Cell, int], moves: RowMoves, rows: int):
        sizes = [dict(first)]
        for _ in range(rows - 1):
            following = defaultdict[Cell, int](int)
            for cell, mass in sizes[-1].items():
                for to, share in moves.kernel[cell].items():
                    following[to] += mass * share
            factor = math.gcd(*following.values())
            sizes.append({cell: mass // factor for cell, mass in following.items()})
        super().__init__(classes, secrets, sizes, lambda v, t: moves)
        self._common = sizes
        # How likely each secret is so many rows later, by the cell now; each up to a factor.
        self._later = [{cell: [int(cell[0] == secret) for secret in secrets] for cell in moves.kernel}]
        for _ in range(rows - 1):
            last = self._later[-1]
            self._later.append(
                {
                    cell: [sum(share * last[to][s] for to, share in row.items()) for s in range(len(secrets))]
                    for cell, row in moves.kernel.items()
                }
            )

    def judged(
        self, history: History, states: Beliefs, weights: Weights, sides: Sequence[Side], node: int = 0
    ) -> list[tuple[int, HistoryFinding, HistoryDistribution]]:
        """What an observer learns of the secret of every row, drawn or not."""
        found = super().judged(history, states, weights, sides, node)
        inputs, secrets = 2 * self._k + 1, range(len(self._secrets))
        rows = tuple(tuple((x, weight) for x, weight in enumerate(row) if weight) for row in weights)
        now = defaultdict[tuple[Cell, int], int](int)
        for ((_, cell, _), x), mass in states[-1].items():
            now[cell, x] += mass
        for u in range(len(history) + 1, len(self._common)):
            given, cells = self._later[u - len(history)], [0] * (len(self._secrets) * inputs)
            for (cell, x), mass in now.items():
                for s in secrets:
                    cells[s * inputs + x] += mass * given[cell][s]
            distribution = HistoryDistribution(node, cells, 0)
            found.append((u, judge_history(sides, sides, distribution, rows, self._prior(u, None)), distribution))
        return found

    def _prior(self, u: int, came_from: int | None) -> list[int]:
        """How common each secret is in a row, whichever row it follows."""
        counted: Counter[str] = Counter()
        for (secret, _), mass in self._common[u].items():
            counted[secret] += mass
        return [counted[secret] for secret in self._secrets]


@dataclass(frozen=True)
class JudgedHistory:
    """What is found of the rows of units with one history, so many of them.

    Attributes
    ----------
    history : History
    rows : int
    found : list of (int, HistoryFinding, HistoryDistribution)
        For the secret of each row, drawn or not.
    own : float
        The probability of an own record.
    table : list of list of float, k × 2k
        That of each class and output.
    """

    history: History
    rows: int
    found: Sequence[tuple[int, HistoryFinding, HistoryDistribution]]
    own: float
    table: Sequence[Sequence[float]]


@dataclass
class UnitJudging:
    """Rows of units that are judged, one after the other.

    Attributes
    ----------
    classes : int
    name : str
        Histories name the row numbered m ``name#m``, and the first one ``name``.
    observer : RowObserver
    deepest : int
        Rows of the unit that has most, of those whose number of rows is common.
    cells : mapping of row to cell
    outputs : mapping of row to int
        Of units whose number of rows is common.
    stands_for : mapping of row to row, or None
        None where that is of a unit of whom nobody knows any more.
    channels : mapping of history to weights
    complaints : dict of str
        What is wrong so far.
    """

    classes: int
    name: str
    observer: RowObserver
    deepest: int
    cells: Mapping[Row, Cell]
    outputs: Mapping[Row, int]
    stands_for: Mapping[Row, Row | None]
    channels: Mapping[History, Weights]
    complaints: dict[str, None] = field(default_factory=dict)
    most_off: float = 0.0

    def __post_init__(self) -> None:
        self.sizes = Counter(unit for unit, _ in self.cells)
        self._known: dict[int, list[History]] = defaultdict(list)
        self._goes_on: dict[History, set[int]] = defaultdict(set)
        for history in self.channels:
            self._known[len(history)].append(history)
            if history:
                self._goes_on[history[:-1]].add(history[-1][1])

    def histories(self, sides: Sequence[Side]) -> Iterator[JudgedHistory]:
        """What is found of every history, row after row.

        Raises
        ------
        DataError
            If a history of a unit has no channel, or one whose weights do not add up to one.
        """
        observer = self.observer
        histories: dict[Unit, History] = {unit: () for unit, _ in self.outputs}
        standing: dict[Unit, Unit | None] = {unit: unit for unit in histories}
        for row in range(1, self.deepest + 1):
            name = self.name if row == 1 else f"{self.name}#{row}"
            observer.begins(name)
            here = [unit for unit, place in self.outputs if place == row]
            having, off = Counter(histories[unit] for unit in here), [0.0] * self.classes
            if having.keys() - self.channels.keys():
                raise DataError("a history has no channel")
            for history in self._known[row - 1]:
                weights, rows = self.channels[history], having[history]
                if not is_channel(weights, self.classes, bool(history)):
                    raise DataError("a channel has weights that do not add up to one, or is one that cannot be")
                states = observer.states(history)
                own, table = observer.published(history, states, weights)
                off = [one + rows * more for one, more in zip(off, observer.off(states, table), strict=True)]
                yield JudgedHistory(history, rows, observer.judged(history, states, weights, sides), own, table)
                observer.publish(history, states, weights, self._goes_on[history])
            self.most_off = max(self.most_off, *map(abs, off))
            self._drawn(row, here, histories, standing)
            for unit in here:
                of = self.stands_for[unit, row]
                histories[unit] = (*histories[unit], (name, self.outputs[unit, row]))
                standing[unit] = None if of is None else of[0]

    def _drawn(
        self, row: int, here: Sequence[Unit], histories: Mapping[Unit, History], standing: Mapping[Unit, Unit | None]
    ) -> None:
        """Whether the rows in one place are drawn as their channels say, and donors evenly of units with as many."""
        who = {unit: self.stands_for[unit, row] for unit in here}
        for m in {self.sizes[unit] for unit in here}:
            units = [unit for unit in here if self.sizes[unit] == m]
            draws = DonorDraws(
                {unit: self.cells[unit, row][1] for unit in units},
                {unit: standing[unit] for unit in units},
                {unit: self.outputs[unit, row] for unit in units},
                {unit: None if (of := who[unit]) is None else of[0] for unit in units},
                {unit: self.channels[histories[unit]] for unit in units},
                {unit for unit in units if row == 1},
                {unit for unit in units if standing[unit] is None},
            )
            self.complaints |= dict.fromkeys(draws.complaints(self.classes))
        if any(of is not None and of[1] != row for of in who.values()):
            self.complaints["a record is that of another row of a unit"] = None

    def common(self, there: Iterable[int]) -> set[Row]:
        """Rows of units whose number of rows is not rare: three or more have a row of each class in each place."""
        counts = Counter((self.sizes[unit], place, c) for (unit, place), (_, c) in self.cells.items())
        found = {
            m
            for m in set(self.sizes.values())
            if all(counts[m, place, c] >= _FEWEST for place in range(1, m + 1) for c in there)
        }
        return {row for row in self.cells if self.sizes[row[0]] in found}

    def rare_complaints(self) -> Iterator[str]:
        """Rows of rare numbers of rows that are not those of anybody else."""
        rare = [of for row, of in self.stands_for.items() if row not in self.outputs and of is not None]
        if not self.outputs.keys() >= set(rare) or is_uneven(rare, dict.fromkeys(rare, 0), {0: len(self.outputs) + 2}):
            yield "rows of units with a rare number of rows are not those of anybody else"


def judge_units(
    promise: str, class_of: Callable[[Record], str], names: Sequence[str], release: UnitRelease
) -> DonorFindings:
    """Judge published rows of units.

    Parameters
    ----------
    promise : str
        Such as ``"lip:1.0"``.
    class_of : callable
        The class of a record.
    names : sequence of str
        Of the classes.
    release : UnitRelease

    Raises
    ------
    DataError
        If a history of a unit has no channel, or one whose weights do not add up to one.
    """
    number, sides = {name: c for c, name in enumerate(names)}, sides_of(read_promise(promise))
    cells = {row: (secret, number[class_of(record)]) for row, (secret, record) in release.rows.items()}
    drawn = {row: cells[row] for row in release.outputs}
    first = Counter(cell for (_, place), cell in drawn.items() if place == 1)
    pairs = Counter(
        (cell, drawn[unit, place + 1]) for (unit, place), cell in drawn.items() if (unit, place + 1) in drawn
    )
    deepest, secrets = max(place for _, place in drawn), sorted({secret for secret, _ in cells.values()})
    observer = RowObserver(len(names), secrets, first, RowMoves(pairs, {*drawn.values()}, first), deepest)
    judging = UnitJudging(
        len(names), release.name, observer, deepest, cells, release.outputs, release.stands_for, release.channels
    )
    worst, unchanged, complaints = [Ratio() for _ in sides], 0.0, judging.complaints
    for found in judging.histories(sides):
        unchanged += found.rows * found.own
        for _, one, _ in found.found:
            if one.moved or one.outside:
                complaints[f"a history of {len(found.history)} rows leaves the bound with some output"] = None
            worst = [*map(worse, worst, one.worst)]
    if judging.most_off > 1:
        complaints["published records of a class are not as common as own ones would be"] = None
    if release.outputs.keys() != judging.common({c for _, c in cells.values()}):
        complaints["rows are drawn by channels of which too few units have so many, or others are not"] = None
    complaints |= dict.fromkeys(judging.rare_complaints())
    for row, of in release.stands_for.items():
        record = release.rows[of][1]
        if release.released[row] != (*record, class_of(record)):
            complaints["a published record is not that of the row it stands for"] = None
    figures = DonorFigures(level_above(read_promise(promise), sides, worst), 0, 0, unchanged / len(cells))
    declared = release.declared
    alike = ((figures.level, declared.level), (figures.unchanged, declared.unchanged))
    if not all(math.isclose(one, other, abs_tol=_FLOATS) for one, other in alike):
        complaints[f"declared are {declared}, and found {figures}"] = None
    return DonorFindings(tuple(complaints), figures, judging.most_off)
