"""Chapters: what one version told the people of a register, as plain whole numbers, and the tree of their histories."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from funnel.errors import DataError
from funnel.recount.channel import Symbols
from funnel.recount.move_distribution import MoveDistribution
from funnel.recount.packed import ONE, divided_up

WHOLE = 2**63
NEW = 0
"""The node of the empty history: people about whom nothing was published."""

# A cell, and whether a person with it ever had other values till then.
State = tuple[int, bool]
# For every output the inputs that can give it, with their weights of 2^63.
Rows = tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True)
class Chapter:
    """One version of a register.

    A cell is ``s * a + x``; a node is a history: the node 0 is the empty one, and the nodes of a version are numbered
    from ``first``.

    Attributes
    ----------
    ordinal : int
        Its place among the versions, from 0.
    name : str
    secret, inputs, outputs : tuple of tuple of str
    counts : tuple of int, length c a
        Records by cell.
    changes : mapping of ordinal to mapping of (cell there, cell here) to int
        People in an earlier version and in this one.
    channels : mapping of int to Rows
        Distinct channels R.
    followed : mapping of node to int
        The channel that people with a history draw from.
    first : int
    parents, drawn : tuple of int
        Of the nodes of this version: the history before, and the output.
    guarantee : str
        The declared bound, as text.
    reserve : Fraction
        The share of the budget that is used up while frequencies may still move.
    units : tuple of int, length c a, or None
        Where people have several rows: how many of them have which cell in their first one. ``counts`` are of rows, a
        change from the version to itself is one from a row of a person to the next, and a history that is followed may
        be of the version itself.
    distributions : mapping of ordinal to MoveDistribution
        In the place of ``changes``, where these are known with noise alone: the distribution that stands for them.
    classes : mapping of ordinal to mapping of (state there, state here) to int, or None
        The same changes by whether people ever had other values till then, where that is counted.
    read : int or None
        How many inputs channels read, where these are not those of the cells.

    Raises
    ------
    DataError
        If a number lies outside of what it counts, weights do not add up to 2^63, or a history has no channel.
    """

    ordinal: int
    name: str
    secret: Symbols
    inputs: Symbols
    outputs: Symbols
    counts: tuple[int, ...]
    changes: Mapping[int, Mapping[tuple[int, int], int]]
    channels: Mapping[int, Rows]
    followed: Mapping[int, int]
    first: int
    parents: tuple[int, ...]
    drawn: tuple[int, ...]
    guarantee: str
    reserve: Fraction = Fraction(1)
    units: tuple[int, ...] | None = None
    distributions: Mapping[int, MoveDistribution] = field(default_factory=dict)
    classes: Mapping[int, Mapping[tuple[State, State], int]] | None = None
    read: int | None = None

    def __post_init__(self) -> None:
        wrong = next(self._complaints(), None)
        if wrong is not None:
            raise DataError(f"the register is damaged: in version {self.name!r} {wrong}; restore it from a backup")

    def _complaints(self) -> Iterator[str]:
        if len(self.counts) != self.c * self.a or min(self.counts, default=-1) < 0 or not sum(self.counts):
            yield "the counts do not fit the alphabets"
        several = self.units is not None
        if self.units is not None and (
            len(self.units) != len(self.counts) or any(map(int.__gt__, self.units, self.counts))
        ):
            yield "the first rows of people are more than all rows"
        if any(not 0 <= v < self.ordinal + several for v in (*self.changes, *self.distributions)):
            yield "changes are counted from a version that is not earlier"
        if any(count <= 0 for table in self.changes.values() for count in table.values()):
            yield "a change is counted that nobody made"
        if any(not 0 <= after < self.c * self.a for table in self.changes.values() for _, after in table):
            yield "a change leads to a value that does not exist"
        for rows in self.channels.values():
            totals = [0] * (self.read or self.a)
            for row in rows:
                for x, weight in row:
                    if not 0 <= x < len(totals) or not 0 < weight <= WHOLE:
                        yield "a channel has a weight outside of its range"
                        return
                    totals[x] += weight
            if len(rows) != self.b or any(total != WHOLE for total in totals):
                yield "the weights of a channel do not add up to 2^63 for every input"
        if any(channel not in self.channels for channel in self.followed.values()):
            yield "a history draws from a channel that is not there"
        if len(self.parents) != len(self.drawn) or any(not 0 <= y < self.b for y in self.drawn):
            yield "a history ends with an output that does not exist"
        if any(parent not in self.followed for parent in self.parents):
            yield "a history goes on from one that has no channel"
        if any(not 0 <= node < self.first + several * len(self.parents) for node in self.followed):
            yield "a history is followed that did not exist before"
        if any(parent >= self.first + place for place, parent in enumerate(self.parents)):
            yield "a history goes on from a later one"
        if len(set(zip(self.parents, self.drawn, strict=True))) != len(self.parents):
            yield "a history is there twice"
        if not 0 < self.reserve <= 1:
            yield "the reserve is not in (0, 1]"

    @property
    def c(self) -> int:
        """Values of the secret."""
        return len(self.secret)

    @property
    def a(self) -> int:
        """Inputs."""
        return len(self.inputs)

    @property
    def b(self) -> int:
        """Outputs."""
        return len(self.outputs)

    @cached_property
    def _places(self) -> tuple[dict[tuple[str, ...], int], dict[tuple[str, ...], int]]:
        secret, inputs = ({symbol: place for place, symbol in enumerate(of)} for of in (self.secret, self.inputs))
        return secret, inputs

    def cell(self, secret: tuple[str, ...], symbol: tuple[str, ...]) -> int:
        """The cell of a secret and an input; -1 where the version has no such values."""
        s, x = self._places[0].get(secret), self._places[1].get(symbol)
        return -1 if s is None or x is None else s * self.a + x

    @property
    def beginning(self) -> tuple[int, ...]:
        """People by cell, length c a: by that of their first row, where they have several."""
        return self.counts if self.units is None else self.units

    def tells(self, channel: int) -> bool:
        """Whether what a channel publishes depends on what somebody has."""
        rows = [[weight for _, weight in row] for row in self.channels[channel] if row]
        return any(len(row) < (self.read or self.a) or len(set(row)) > 1 for row in rows)

    @cached_property
    def has_members(self) -> bool:
        """Whether rows of a person have secrets of their own."""
        return any(before // self.a != after // self.a for before, after in self.changes.get(self.ordinal, {}))

    def shares(self, earlier: int | None, row: int = 1, inside: frozenset[int] | None = None) -> tuple[int, ...]:
        """Whom the prior counts, by secret, length c: people in an earlier version and in this one; None: all.

        Of a later row with a secret of its own: what follows from these and from the changes from a row to the next, in
        the same proportions. Where inputs are given, of people with one of these.
        """
        if earlier is not None and earlier in self.distributions:
            moved = self.distributions[earlier]
            return moved.by_secret if inside is None else self._by_secret(moved.by_cell, inside)
        cells = [Fraction(count) for count in self.beginning]
        if earlier is not None:
            cells = [Fraction()] * len(cells)
            for (_, after), count in self._changes(earlier).items():
                cells[after] += count
        for _ in range(row - 1):
            cells = self.within.carried(self.within.divided(cells, Fraction), len(cells))
        common = math.lcm(*(share.denominator for share in cells))
        return self._by_secret([int(share * common) for share in cells], inside)

    def _by_secret(self, cells: Sequence[int], inside: frozenset[int] | None) -> tuple[int, ...]:
        """Sums by secret of numbers by cell, of some inputs or of all."""
        some = range(self.a) if inside is None else sorted(inside)
        return tuple(sum(cells[s * self.a + x] for x in some) for s in range(self.c))

    def secrets_ahead(
        self, rows: int, inside: frozenset[int] | None = None, exactly: bool = False
    ) -> tuple[list[list[Any]], int]:
        """P(secret so many rows later | cell), numbers (c a, c) out of 2^BITS rounded up, and their `excess`.

        Or fractions in the same proportions. Where inputs are given, with one of these in that row.
        """
        ahead: list[list[Any]] = [
            [ONE if cell // self.a == s and (inside is None or cell % self.a in inside) else 0 for s in range(self.c)]
            for cell in range(self.c * self.a)
        ]
        excess = 0
        for _ in range(rows):
            new: list[list[Any]] = []
            for cell in range(len(ahead)):
                row, size = self.within.row(cell)
                sums = [sum(count * ahead[after][s] for after, count in row.items()) for s in range(self.c)]
                new.append([Fraction(total) / size if exactly else divided_up(total, size) for total in sums])
            ahead = new
            excess += 0 if exactly else divided_up(ONE, min(n for numbers in ahead for n in numbers if n))
        return ahead, excess

    def carrying(self, earlier: int) -> Carrying | MoveDistribution:
        """How the distribution of a history that ends in an earlier version or row is carried to this one."""
        return self.distributions[earlier] if earlier in self.distributions else self._counted(earlier)

    @cached_property
    def within(self) -> Carrying:
        """The same from a row to the next of a person, where that is counted."""
        return self._counted(self.ordinal)

    def _counted(self, earlier: int) -> Carrying:
        rows: dict[int, dict[int, int]] = {}
        for (before, after), count in self._changes(earlier).items():
            rows.setdefault(before, {})[after] = count
        shared = self.shares(earlier)
        other = {cell: n for cell, n in enumerate(self.beginning) if n and shared[cell // self.a]}
        return Carrying(rows, other)

    def _changes(self, earlier: int) -> Mapping[tuple[int, int], int]:
        if not self.changes.get(earlier):
            raise DataError(
                f"the register is damaged: version {self.name!r} has no changes from version number {earlier}, which "
                "people come from; restore it from a backup"
            )
        return self.changes[earlier]


@dataclass(frozen=True)
class Carrying:
    """The distribution of a cell given a cell of an earlier version, in whole numbers.

    Attributes
    ----------
    rows : mapping of cell to mapping of cell to int
        For cells that people in both versions had: where how many of them are.
    other : mapping of cell to int
        For all other cells: the records of the later version whose secret people in both versions have.
    common : int
        What the records of all rows are multiples of, and `divided` leaves aside.
    """

    rows: Mapping[int, Mapping[int, int]]
    other: Mapping[int, int]
    common: ClassVar[int] = 1

    @cached_property
    def sizes(self) -> Mapping[int, int]:
        """People of every row."""
        return {before: sum(row.values()) for before, row in self.rows.items()}

    @cached_property
    def size(self) -> int:
        """Records of `other`."""
        return sum(self.other.values())

    @cached_property
    def largest(self) -> int:
        """The most records of a row."""
        return max(self.size, *self.sizes.values())

    def row(self, cell: int) -> tuple[Mapping[int, int], int]:
        """Records from a cell before to every cell now, and how many these are."""
        return self.rows.get(cell, self.other), self.sizes.get(cell, self.size)

    def divided(self, numbers: Sequence[Any], by: Callable[[Any, int], Any] = divided_up) -> list[Any]:
        """Numbers by cell before, each by the records of its row, rounded up or not; last that of all without a row.

        A cell that has a row is 0 there, and those that have none are 0 but for the last.
        """
        found = [by(n, self.sizes[cell]) if cell in self.sizes else 0 for cell, n in enumerate(numbers)]
        others = sum(n for cell, n in enumerate(numbers) if cell not in self.sizes)
        return [*found, by(others, self.size) if others else 0]

    def carried(self, parts: Sequence[Any], cells: int) -> list[Any]:
        """``Σ_before parts[before] · records(before -> after)``, by cell now; exactly."""
        found = [0] * cells
        for before, row in self.rows.items():
            for after, count in row.items():
                found[after] += count * parts[before]
        for after, count in self.other.items():
            found[after] += count * parts[-1]
        return found


@dataclass(frozen=True)
class Tree:
    """Histories of all versions; entry n of each list is of the node n, and that of node 0 says nothing.

    Raises
    ------
    DataError
        If versions or nodes are not numbered without a gap.
    """

    chapters: Sequence[Chapter]

    def __post_init__(self) -> None:
        number = 1
        for place, chapter in enumerate(self.chapters):
            if chapter.ordinal != place or chapter.first != number:
                raise DataError(
                    f"the register is damaged: version {chapter.name!r} does not follow the versions before it; "
                    "restore it from a backup"
                )
            number += len(chapter.parents)

    @cached_property
    def parents(self) -> list[int]:
        """The history before."""
        return [NEW, *(parent for chapter in self.chapters for parent in chapter.parents)]

    @cached_property
    def outputs(self) -> list[int]:
        """What was published last."""
        return [NEW, *(y for chapter in self.chapters for y in chapter.drawn)]

    @cached_property
    def versions(self) -> list[int | None]:
        """The version that it was published in; None for new people."""
        return [None, *(chapter.ordinal for chapter in self.chapters for _ in chapter.parents)]

    @cached_property
    def rows(self) -> list[int]:
        """Which row of the person in that version it was; 1 where people have one each, 0 for new people."""
        found = [0]
        for node in range(1, len(self.parents)):
            parent = self.parents[node]
            found.append(found[parent] + 1 if self.versions[parent] == self.versions[node] else 1)
        return found

    def name(self, node: int) -> str:
        """How histories name the version, and from the second row of a person on the row too."""
        version = self.versions[node]
        assert version is not None
        name, row = self.chapters[version].name, self.rows[node]
        return name if row == 1 else f"{name}#{row}"

    def goes_on(self, before: int, after: int) -> bool:
        """Whether a node is there, and is of the history that goes on from another one."""
        return 0 < after < len(self.parents) and self.parents[after] == before

    def next_row(self, node: int, version: int) -> int:
        """Which row of the person in a version comes after a history."""
        return self.rows[node] + 1 if self.versions[node] == version else 1

    @cached_property
    def depths(self) -> list[int]:
        """By version, how many rows of a person there are at most."""
        found = [1] * len(self.chapters)
        for version, row in zip(self.versions[1:], self.rows[1:], strict=True):
            assert version is not None
            found[version] = max(found[version], row)
        return found

    def until(self, node: int, version: int) -> int:
        """What a history was once a version was published."""
        while (last := self.versions[node]) is not None and last > version:
            node = self.parents[node]
        return node

    def origin(self, node: int, version: int) -> int | None:
        """The version that a history ended in before any row of this one; None for people who were new in it."""
        while self.versions[node] == version:
            node = self.parents[node]
        return self.versions[node]

    def history(self, node: int) -> tuple[tuple[str, int], ...]:
        """The pairs of version and output that lead to a node."""
        found: list[tuple[str, int]] = []
        while node != NEW:
            found.append((self.name(node), self.outputs[node]))
            node = self.parents[node]
        return tuple(reversed(found))

    def last_used(self) -> dict[int, int]:
        """For every history that people go on from: the last version that they do so in."""
        return {node: chapter.ordinal for chapter in self.chapters for node in chapter.followed}
