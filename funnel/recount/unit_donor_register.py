"""Unit donor register: what whole records of several rows of the people of a register tell, and how they were drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from funnel.errors import DataError
from funnel.recount.chapters import NEW, Tree
from funnel.recount.donor_observer import Cell
from funnel.recount.donor_register import NOBODY, asked_secrets, dense, is_other_channel
from funnel.recount.found_histories import VersionHistories
from funnel.recount.found_rows import RowHistories
from funnel.recount.history_bounds import Tally
from funnel.recount.movers import class_complaints
from funnel.recount.promise import Promise
from funnel.recount.ratios import sides_of
from funnel.recount.register_files import Entry
from funnel.recount.register_people import (
    counted_complaints,
    order_complaints,
    unfollowed,
    unit_complaints,
)
from funnel.recount.register_tables import asked, require_columns
from funnel.recount.unit_donors import Row, RowMoves, RowObserver, UnitJudging

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb


@dataclass
class _OfRow:
    """What is found so far of the first rows of people, the second ones, …."""

    tally: Tally
    units: int = 0
    histories: int = 0
    own: float = 0.0


@dataclass(frozen=True)
class UnitDonorRegister:
    """A register of whole records of several rows of a person; ``coming`` where its version is not published yet."""

    database: duckdb.DuckDBPyConnection
    tree: Tree
    entries: tuple[Entry, ...]
    missing: Sequence[int]
    coming: bool

    def versions(self, promises: Sequence[Promise]) -> Iterator[VersionHistories]:
        """The version that there is, with what it promises.

        Raises
        ------
        DataError
            If there are several.
        """
        if len(self.entries) > 1:
            raise DataError("nothing is proven of whole records of several rows of a person in more than one version")
        yield self._version(self.entries[0], promises[0])

    @property
    def _entry(self) -> Entry:
        return self.entries[0]

    @cached_property
    def _nodes(self) -> dict[Row, int]:
        """The history after every row."""
        rows = asked(self.database, self._entry.rows, "SELECT high, low, row, node FROM read_parquet($FILE)")
        return {((high, low), row): node for high, low, row, node in rows}

    @cached_property
    def _judging(self) -> UnitJudging:
        chapter, tree, nodes = self._entry.chapter, self.tree, self._nodes
        cells = {
            ((high, low), row): self._cell(cell)
            for high, low, row, cell in asked(
                self.database, self._entry.rows, "SELECT high, low, row, cell FROM read_parquet($FILE)"
            )
        }
        donors = asked(self.database, self._donors, "SELECT * FROM read_parquet($FILE)")
        stands_for = {
            ((high, low), row): None if (of_high, of_low) == NOBODY else ((of_high, of_low), of_row)
            for high, low, row, of_high, of_low, of_row in donors
        }
        if not stands_for.keys() == cells.keys() or not cells.keys() >= {*stands_for.values()} - {None}:
            raise DataError("the donors of a register are not those of its rows; restore it from a backup")
        channels = {k: dense(rows, 2 * chapter.a + 1) for k, rows in chapter.channels.items()}
        return UnitJudging(
            chapter.a,
            chapter.name,
            self._observer(),
            tree.depths[0],
            cells,
            {row: tree.outputs[node] for row, node in nodes.items() if node != NEW},
            stands_for,
            {tree.history(node): channels[number] for node, number in chapter.followed.items()},
        )

    @property
    def _donors(self) -> Path:
        assert self._entry.donors is not None
        return self._entry.donors

    def _cell(self, number: int) -> Cell:
        return str(number // self._entry.chapter.a), number % self._entry.chapter.a

    def _observer(self) -> RowObserver:
        """The observer, by the counts that the version states."""
        chapter = self._entry.chapter
        first = Counter({self._cell(z): n for z, n in enumerate(chapter.beginning) if n})
        changes = chapter.changes.get(0, {})
        pairs = {(self._cell(before), self._cell(after)): n for (before, after), n in changes.items()}
        cells = {*first, *(cell for pair in pairs for cell in pair)}
        return RowObserver(
            chapter.a, [*map(str, range(chapter.c))], first, RowMoves(pairs, cells, first), self.tree.depths[0]
        )

    def _version(self, entry: Entry, promise: Promise) -> VersionHistories:
        chapter, judging, k = entry.chapter, self._judging, entry.chapter.a
        decided = asked_secrets(self.tree, self.entries, entry, promise)
        table, sides = [[0.0] * (2 * k) for _ in range(k)], sides_of(promise)
        of_row = [_OfRow(Tally(self.tree, promise, sides)) for _ in range(judging.deepest)]
        complaints: list[str] = []
        for found in judging.histories(sides):
            row = of_row[len(found.history)]
            for _, finding, distribution in found.found:
                decided[0].every.add(distribution, finding, 0)
                decided[0].real.add(distribution, finding, found.rows)
                row.tally.add(distribution, finding, found.rows)
                if finding.moved:
                    complaints.append("a history of rows is outside the bound by itself")
            row.histories, row.units, row.own = (
                row.histories + 1,
                row.units + found.rows,
                row.own + found.rows * found.own,
            )
            table = [
                [one + found.rows * more for one, more in zip(before, rows, strict=True)]
                for before, rows in zip(table, found.table, strict=True)
            ]
        complaints += self._complaints(entry, table)
        drawn = Counter(judging.outputs.values())
        for rare in judging.cells.keys() - judging.outputs.keys():
            drawn[k + judging.cells[judging.stands_for[rare] or rare][1]] += 1
        return VersionHistories(
            name=chapter.name,
            promise=promise,
            histories=len(chapter.followed),
            people=len(judging.cells),
            by_output=tuple(drawn[y] for y in range(chapter.b)),
            by_channel={},
            by_row={},
            missing=self.missing[0],
            complaints=tuple(dict.fromkeys(complaints)),
            broken=tuple(said for one in decided.values() for said in one.broken()),
            followed=len(chapter.followed),
            observers=tuple(one.figures() for one in decided.values()),
            own=sum(row.own for row in of_row) / sum(chapter.counts),
            rare=len(judging.cells) - len(judging.outputs),
            rows=tuple(
                RowHistories(row.units, row.histories, row.tally.level(), row.own / max(1, row.units)) for row in of_row
            ),
        )

    def _complaints(self, entry: Entry, table: Sequence[Sequence[float]]) -> Iterator[str]:
        judging, gone = self._judging, self.missing[0]
        yield from order_complaints(self.database, entry)
        yield from class_complaints(self.database, (), entry)
        yield from unit_complaints(self.database, self.tree, entry)
        wrong, last = unfollowed(self.database, self.tree, (), entry)
        if wrong:
            yield f"{wrong:,} people have a history that is not that of people of whom nothing was published"
        yield from counted_complaints(self.database, (), entry, last, self.missing, self.coming)
        require_columns(self.database, self._donors)
        had = {self.tree.parents[node] for node in self._nodes.values() if node != NEW}
        if not had <= {*entry.chapter.followed} or (had != {*entry.chapter.followed} and not gone):
            yield "it has channels for other histories than its people had"
        known = self.coming or not gone
        if known and is_other_channel(entry, self._with_rare(table)):
            yield "the effective channel is not what the channels of its people come to"
        if judging.most_off > 1:
            yield "published records of a class are not as common as own ones would be"
        k = entry.chapter.a
        common = judging.common({z % k for z, n in enumerate(entry.chapter.counts) if n})
        if common != judging.outputs.keys() if known else not common <= judging.outputs.keys():
            yield "rows are drawn by channels of which too few units have so many, or others are not"
        yield from judging.rare_complaints()
        yield from judging.complaints

    def _with_rare(self, table: Sequence[Sequence[float]]) -> list[list[float]]:
        """The same with rows of rare numbers, each published as one of any class by how common that is."""
        judging, k = self._judging, len(table)
        common = Counter(judging.cells[row][1] for row in judging.outputs)
        rare = Counter(cell[1] for row, cell in judging.cells.items() if row not in judging.outputs)
        begins = [common[y] / common.total() for y in range(k)]
        return [
            [*row[:k], *(one + rare[c] * share for one, share in zip(row[k:], begins, strict=True))]
            for c, row in enumerate(table)
        ]
