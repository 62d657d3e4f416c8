"""First rows: what public counts are of where people have several rows, counted anew from the register."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from funnel.errors import DataError
from funnel.recount.register_files import read_entry
from funnel.recount.register_people import asked, first_rows
from funnel.recount.rows import connect

FirstRows = Mapping[tuple[tuple[str, ...], tuple[str, ...]], int]
"""People by secret and published values of their first row; people who are forgotten are in no table."""


def first_row_counts(folder: Path) -> FirstRows:
    """Of the folder of an entry.

    Raises
    ------
    DataError
        If it is no entry, or its rows cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="funnel-first-rows-") as scratch, connect(Path(scratch)) as database:
        entry = read_entry(database, folder)
        chapter = entry.chapter
        cells = asked(database, entry.rows, f"SELECT cell, count(*) FROM {first_rows(entry)} GROUP BY cell")
    if any(not 0 <= cell < len(chapter.counts) for cell, _ in cells):
        raise DataError(f"the rows of {folder} have values that do not exist; restore the register from a backup")
    return {(chapter.secret[cell // chapter.a], chapter.inputs[cell % chapter.a]): int(n) for cell, n in cells}
