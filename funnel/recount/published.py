"""The published records read back by another reader: their counts, and how a csv has to say values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from funnel.errors import DataError
from funnel.recount.arrow_files import ParquetReader
from funnel.recount.rows import connect

Symbol = tuple[str, ...]


def count_published(path: Path, columns: Sequence[str]) -> dict[Symbol, int]:
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
    with connect() as database:
        for cells, number in ParquetReader(database).cells(path, path.name, columns):
            counts[_texts(cells, path.name)] = number
    return counts


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


def csv_line(cells: Iterable[Any]) -> bytes:
    """A line of a csv as funnel writes it: texts in quotation marks, numbers without, and nothing for None."""
    return (",".join(map(_csv_cell, cells)) + "\n").encode()


def _csv_cell(cell: Any) -> str:
    if isinstance(cell, str):
        return '"' + cell.replace('"', '""') + '"'
    return "" if cell is None else repr(cell)


def _texts(cells: tuple[str | None, ...], shown: str) -> Symbol:
    texts = tuple(cell for cell in cells if cell is not None)
    if len(texts) != len(cells):
        raise DataError(f"{shown} has a cell without a value, which no release has")
    return texts
