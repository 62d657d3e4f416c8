"""The published records read back by other readers: their counts, and whether the csv says what the parquet says."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from funnel.errors import DataError
from funnel.recount.rows import connect, csv_rows, parquet_cells, parquet_rows

Symbol = tuple[str, ...]


def recount_published(path: Path, columns: Sequence[str]) -> dict[Symbol, int]:
    """Rows of every released symbol of a parquet file.

    Parameters
    ----------
    path : Path
    columns : sequence of str
        The published columns, in the order of the symbols.

    Raises
    ------
    DataError
        If the file cannot be read, lacks a column, has one twice, or a cell is no text.
    """
    counts: dict[Symbol, int] = {}
    with tempfile.TemporaryDirectory(prefix="funnel-recount-") as folder, connect(Path(folder)) as database:
        for cells, number in parquet_cells(database, path, path.name, columns):
            counts[_texts(cells, path.name)] = number
    return counts


def first_csv_difference(csv_path: Path, parquet_path: Path, columns: Sequence[str]) -> int | None:
    """The first row, counted from 1, in which a released csv says something else than the parquet file; None if none.

    Both are read in their order, in bounded memory. A value that a spreadsheet would run as a formula stands in the csv
    with an apostrophe before it; the csv is right only if all of these are there, and no other.

    Raises
    ------
    DataError
        If a file cannot be read, or its columns are not exactly those named, in their order.
    """
    with tempfile.TemporaryDirectory(prefix="funnel-recount-") as folder, connect(Path(folder)) as database:
        # Names of columns are cells too.
        theirs = _flat(csv_rows(csv_path, csv_path.name, [*map(in_csv, columns)], only=True))
        ours = _flat(parquet_rows(database, parquet_path, parquet_path.name, columns, only=True))
        number = 0
        while True:
            number += 1
            cells, row = next(theirs, None), next(ours, None)
            if row is None and cells is None:
                return None
            if row is None or cells is None or cells != tuple(map(in_csv, _texts(row, parquet_path.name))):
                return number


def in_csv(value: str) -> str:
    """A released value as a cell of the csv has to say it.

    An apostrophe comes before a value whose first character that is no apostrophe is one of ``= + - @``, a tab or a
    line break, unless the value is a plain number.
    """
    bare = value.lstrip("'")
    if bare[:1] not in ("=", "+", "-", "@", "\t", "\r", "\n"):
        return value
    number = re.fullmatch(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", value)
    return "'" + value if number is None else value


def _flat(chunks: Iterator[list[tuple[str | None, ...]]] | Iterator[list[Symbol]]) -> Iterator[tuple[str | None, ...]]:
    for chunk in chunks:
        yield from chunk


def _texts(cells: tuple[str | None, ...], shown: str) -> Symbol:
    texts = tuple(cell for cell in cells if cell is not None)
    if len(texts) != len(cells):
        raise DataError(f"{shown} has a cell without a value, which no release has")
    return texts
