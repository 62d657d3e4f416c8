"""A row of whole numbers most of which are zero: what it holds are the others, and it reads like any other row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import overload


class SparseRow(Sequence[int]):
    """A row of whole numbers as those that are not zero, by their places.

    Parameters
    ----------
    entries : mapping of int to int
        The numbers that are not zero, by places below ``width``.
    width : int
        How long the row is.
    """

    __slots__ = ("entries", "width")

    def __init__(self, entries: Mapping[int, int], width: int) -> None:
        self.entries = dict(sorted(entries.items()))
        self.width = width

    def __len__(self) -> int:
        return self.width

    def __iter__(self) -> Iterator[int]:
        return (self.entries.get(place, 0) for place in range(self.width))

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[int, ...]: ...
    def __getitem__(self, place: int | slice) -> int | tuple[int, ...]:
        if isinstance(place, slice):
            return tuple(self.entries.get(one, 0) for one in range(self.width)[place])
        return self.entries.get(range(self.width)[place], 0)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SparseRow):
            return (self.width, self.entries) == (other.width, other.entries)
        return isinstance(other, tuple) and tuple(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))


Row = Sequence[int]


def entries_of(row: Row) -> Iterable[tuple[int, int]]:
    """The numbers of a row that are not zero, with their places, rising."""
    return row.entries.items() if isinstance(row, SparseRow) else ((x, n) for x, n in enumerate(row) if n)


def columns_of(rows: Sequence[Row], width: int) -> list[Row]:
    """The columns of a table of rows of one kind; of sparse rows as sparse rows."""
    if not any(isinstance(row, SparseRow) for row in rows):
        return list(zip(*rows, strict=True))
    columns: list[dict[int, int]] = [{} for _ in range(width)]
    for y, row in enumerate(rows):
        for x, number in entries_of(row):
            columns[x][y] = number
    return [SparseRow(column, len(rows)) for column in columns]


def spread(row: Row, places: Mapping[int, Sequence[int]], width: int) -> SparseRow:
    """A row over other places: every entry at all the places that its own one becomes."""
    return SparseRow({there: number for x, number in entries_of(row) for there in places.get(x, ())}, width)
