"""Workbooks of Excel: one sheet, by default the first, whose first row has the names of the columns."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, TypeVar

from funnel.readers.formats.columnar import Columnar, FormatError
from funnel.readers.formats.loaded import Loaded
from funnel.readers.opened_source import Source, SourceSpec
from funnel.storage import open_binary
from funnel.wording import did_you_mean, listed

T = TypeVar("T")
# Rows that are compared with that of the names.
_FIRST = 20


class Excel(Columnar):
    """Workbooks; the sheet is held in memory, with the values that formulas had when it was saved."""

    name = "excel"
    suffixes = (".xlsx", ".xlsm")

    def __init__(self, sheet: str | None = None) -> None:
        self._sheet = sheet

    def open(self, spec: SourceSpec, address: str) -> Source:
        if spec.source.table != self._sheet:
            return Excel(spec.source.table).open(spec, address)
        return super().open(spec, address)

    def open_file(self, address: str, texts: Sequence[str] = ()) -> Loaded:
        def rows_of(book: Any) -> list[tuple[Any, ...]] | None:
            if self._sheet is not None and self._sheet not in book.sheetnames:
                return None
            sheet = book.worksheets[0] if self._sheet is None else book[self._sheet]
            return list(sheet.iter_rows(values_only=True))

        names, rows = _read(address, lambda book: (tuple(book.sheetnames), rows_of(book)))
        if rows is None:
            near = did_you_mean(str(self._sheet), names)
            raise FormatError(f"has no sheet {self._sheet!r}{near}; it has {listed(names)}: correct table in [source]")
        return Loaded(*_columns(rows))

    def filled_sheets(self, address: str) -> tuple[tuple[str, ...], str]:
        """The names of the sheets that have two rows of several cells, as a table has; and that of the first.

        Raises
        ------
        DataError
            If it cannot be read as a workbook.
        """

        def is_filled(sheet: Any) -> bool:
            filled = (row for row in sheet.iter_rows(values_only=True) if sum(cell is not None for cell in row) > 1)
            return len([*islice(filled, 2)]) == 2

        def filled(book: Any) -> tuple[tuple[str, ...], str]:
            sheets = book.worksheets
            return tuple(sheet.title for sheet in sheets if is_filled(sheet)), sheets[0].title

        return self._guarded(address, lambda: _read(address, filled))


def _read(address: str, of_book: Callable[[Any], T]) -> T:
    """What is read of a workbook.

    Raises
    ------
    FormatError
        If it is none, or the package that reads them is missing.
    """
    try:
        import openpyxl
    except ImportError:
        raise FormatError(
            "is a workbook of Excel, which needs a further package; install it with pip install 'funnel[excel]'"
        ) from None
    found: list[T] = []
    failures = (zipfile.BadZipFile, KeyError, ValueError, IndexError, TypeError, EOFError)
    # What it says may quote a cell.
    with open_binary(address) as stream, suppress(*failures):
        found.append(of_book(openpyxl.load_workbook(stream, read_only=True, data_only=True)))
    if not found:
        raise FormatError("cannot be read as a workbook of Excel; check the path, or set format in [source]")
    return found[0]


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
