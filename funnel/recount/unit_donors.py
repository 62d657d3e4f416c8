"""Unit donors a second time: what published rows of units tell of the secret of each row, drawn or to come.

From the rows, what was published for each, and the weights of the channels alone. Rows are told in the order in which
they were drawn.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from funnel.errors import DataError
from funnel.recount.donor_observer import Beliefs, Cell, DonorObserver, History, PlainMoves, is_channel
from funnel.recount.drawn_donors import DonorDraws, Weights, is_uneven
from funnel.recount.followed_donors import DonorFigures, DonorFindings, Record
from funnel.recount.history_bounds import HistoryFinding, judge_history
from funnel.recount.path_distributions import HistoryDistribution
from funnel.recount.promise import read_promise
from funnel.recount.ratios import Ratio, Side, level_above, sides_of, worse

# A row: its unit, and which of the unit's rows it is, from 1.
Row = tuple[str, int]
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

    def __init__(self, pairs: Mapping[tuple[Cell, Cell], int], cells: Mapping[Cell, int], first: Mapping[Cell, int]):
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
    judging = _Judging(promise, class_of, list(names), release)
    return judging.found()


@dataclass
class _Judging:
    """A release that is judged, with what is wrong so far."""

    promise: str
    class_of: Callable[[Record], str]
    names: list[str]
    release: UnitRelease
    complaints: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = self.release.rows
        self.cells: dict[Row, Cell] = {
            row: (secret, self.names.index(self.class_of(record))) for row, (secret, record) in rows.items()
        }
        self.sizes = Counter(unit for unit, _ in rows)
        common = set(self._common())
        self.common = {row for row in rows if self.sizes[row[0]] in common}

    def _common(self) -> Iterator[int]:
        """Numbers of rows that are not rare: three units or more have a row of each class in each place."""
        there = {c for _, c in self.cells.values()}
        counts = Counter((self.sizes[unit], place, c) for (unit, place), (_, c) in self.cells.items())
        for m in set(self.sizes.values()):
            if all(counts[m, place, c] >= _FEWEST for place in range(1, m + 1) for c in there):
                yield m

    def found(self) -> DonorFindings:
        """What is found."""
        release, sides = self.release, sides_of(read_promise(self.promise))
        observer, deepest = self._observer()
        worst, unchanged, most_off = [Ratio() for _ in sides], 0.0, 0.0
        histories: dict[str, History] = {unit: () for unit, _ in self.common}
        standing = {unit: unit for unit in histories}
        for row in range(1, deepest + 1):
            name = release.name if row == 1 else f"{release.name}#{row}"
            observer.begins(name)
            here = [unit for unit, place in self.common if place == row]
            off = [0.0] * len(self.names)
            for history, people in Counter(histories[unit] for unit in here).items():
                weights = release.channels.get(history)
                if weights is None or not is_channel(weights, len(self.names), bool(history)):
                    raise DataError("a history has no channel whose weights add up to one, or one that cannot be")
                states = observer.states(history)
                for _, one, _ in observer.judged(history, states, weights, sides):
                    if one.moved or one.outside:
                        self.complaints[f"a history of {len(history)} rows leaves the bound with some output"] = None
                    worst = [*map(worse, worst, one.worst)]
                own, table = observer.published(history, states, weights)
                unchanged += people * own
                off = [one + people * more for one, more in zip(off, observer.off(states, table), strict=True)]
                seen = {release.outputs[unit, row] for unit in here if histories[unit] == history}
                observer.publish(history, states, weights, seen)
            most_off = max(most_off, *map(abs, off))
            self._drawn(row, here, histories, standing)
            for unit in here:
                histories[unit] = (*histories[unit], (name, release.outputs[unit, row]))
                standing[unit] = release.stands_for[unit, row][0]
        if most_off > 1:
            self.complaints["published records of a class are not as common as own ones would be"] = None
        self._others()
        level = level_above(read_promise(self.promise), sides, worst)
        return self._compared(DonorFigures(level, 0, 0, unchanged / len(self.cells)), most_off)

    def _observer(self) -> tuple[RowObserver, int]:
        """The observer, and the most rows of a unit."""
        cells = {row: self.cells[row] for row in self.common}
        first = Counter(cell for (_, place), cell in cells.items() if place == 1)
        pairs = Counter(
            (cell, cells[unit, place + 1]) for (unit, place), cell in cells.items() if (unit, place + 1) in cells
        )
        deepest = max(place for _, place in cells)
        secrets = sorted({secret for secret, _ in cells.values()})
        return RowObserver(
            len(self.names), secrets, first, RowMoves(pairs, Counter(cells.values()), first), deepest
        ), deepest

    def _compared(self, found: DonorFigures, most_off: float) -> DonorFindings:
        declared = self.release.declared
        alike = ((found.level, declared.level), (found.unchanged, declared.unchanged))
        if not all(math.isclose(one, other, abs_tol=_FLOATS) for one, other in alike):
            self.complaints[f"declared are {declared}, and found {found}"] = None
        return DonorFindings(tuple(self.complaints), found, most_off)

    def _drawn(
        self, row: int, here: Sequence[str], histories: Mapping[str, History], standing: Mapping[str, str]
    ) -> None:
        """Whether the rows in one place are drawn as their channels say, and donors evenly of units with as many."""
        release = self.release
        for m in {self.sizes[unit] for unit in here}:
            units = [unit for unit in here if self.sizes[unit] == m]
            draws = DonorDraws(
                {unit: self.cells[unit, row][1] for unit in units},
                {unit: standing[unit] for unit in units},
                {unit: release.outputs[unit, row] for unit in units},
                {unit: release.stands_for[unit, row][0] for unit in units},
                {unit: release.channels[histories[unit]] for unit in units},
                {unit for unit in units if row == 1},
            )
            self.complaints |= dict.fromkeys(draws.complaints(len(self.names)))
        if any(release.stands_for[unit, row][1] != row for unit in here):
            self.complaints["a record is that of another row of a unit"] = None

    def _others(self) -> None:
        """Whether records are those of the rows that they stand for, and those of rare numbers of rows anybody's."""
        release = self.release
        if release.outputs.keys() != self.common:
            self.complaints["rows are drawn by channels of which too few units have so many, or others are not"] = None
        for row, of in release.stands_for.items():
            record = release.rows[of][1]
            if release.released[row] != (*record, self.class_of(record)):
                self.complaints["a published record is not that of the row it stands for"] = None
        rare = [of for row, of in release.stands_for.items() if row not in self.common]
        if not self.common.issuperset(rare) or is_uneven(rare, dict.fromkeys(rare, 0), {0: len(self.common) + 2}):
            self.complaints["rows of units with a rare number of rows are not those of anybody else"] = None
