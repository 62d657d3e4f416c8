"""Workbooks of Excel: the first sheet, whose first row has the names of the columns."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from funnel.readers.formats.columnar import Columnar, FormatError
from funnel.readers.formats.loaded import Loaded
from funnel.storage import open_binary

# Rows that are compared with that of the names.
_FIRST = 20


class Excel(Columnar):
    """Workbooks; the first sheet is held in memory, with the values that formulas had when it was saved."""

    name = "excel"
    suffixes = (".xlsx", ".xlsm")

    def open_file(self, address: str, texts: Sequence[str] = ()) -> Loaded:
        try:
            import openpyxl
        except ImportError:
            raise FormatError(
                "is a workbook of Excel, which needs a further package; install it with pip install 'funnel[excel]'"
            ) from None
        rows: list[tuple[Any, ...]] | None = None
        failures = (zipfile.BadZipFile, KeyError, ValueError, IndexError, TypeError, EOFError)
        # What it says may quote a cell.
        with open_binary(address) as stream, suppress(*failures):
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            rows = list(book.worksheets[0].iter_rows(values_only=True))
        if rows is None:
            raise FormatError("cannot be read as a workbook of Excel; check the path, or set format in [source]")
        return Loaded(*_columns(rows))


def _columns(rows: Sequence[Sequence[Any]]) -> tuple[dict[str, list[Any]], dict[str, dict[Any, str]]]:
    """The columns by their names; those without a name, and rows without a cell, are left out.

    Raises
    ------
    FormatError
        If the first row has no names, or names a column twice.
    """
    header = [None if name is None else str(name).strip() for name in (rows[0] if rows else ())]
    filled = [row for row in rows[1:] if any(cell is not None for cell in row)]
    named = [name for name in header if name]
    widest = max((sum(cell is not None for cell in row) for row in filled[:_FIRST]), default=0)
    if 2 * len(named) <= widest and len(named) < widest - 1:
        raise FormatError(
            f"has {len(named)} names in its first row and {widest} cells in others, as where a title is above the "
            "names of the columns; take the rows above these out"
        )
    if len(set(named)) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise FormatError(f"has two columns named {twice!r} in its first row; rename one of them")
    places = {name: place for place, name in enumerate(header) if name}
    return {name: [row[place] if place < len(row) else None for row in filled] for name, place in places.items()}, {}
