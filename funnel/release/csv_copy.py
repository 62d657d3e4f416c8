"""Whether the csv of a release says what its parquet file says, by reading both in bounded memory."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pyarrow as pa

from funnel.release.csv_cells import guarded
from funnel.tables import open_paged


def csv_difference(table: Path, copy: Path) -> str | None:
    """What differs first, without any value; None if both hold the same rows in the same order.

    Cells may be guarded against spreadsheets or, as in earlier releases, not.

    Parameters
    ----------
    table : Path
        Parquet.
    copy : Path
        Its csv, with a header.

    Notes
    -----
    O(rows) time, memory for one batch.
    """
    try:
        with copy.open(encoding="utf-8", newline="") as opened:
            for number, (row, cells) in enumerate(zip_longest(_rows(table), csv.reader(opened, strict=True))):
                if row is None or cells is None:
                    return f"it has {'more' if row is None else 'fewer'} rows than the parquet file"
                if len(row) != len(cells) or any(c not in (v, guarded(v)) for v, c in zip(row, cells, strict=True)):
                    return f"its {f'row {number:,}' if number else 'header'} is not that of the parquet file"
    except (OSError, UnicodeDecodeError, csv.Error, pa.ArrowException) as error:
        return f"it cannot be read ({type(error).__name__})"
    return None


def _rows(table: Path) -> Iterator[tuple[str, ...]]:
    with open_paged(table) as file:
        yield tuple(file.schema_arrow.names)
        for batch in file.iter_batches():
            yield from zip(*([str(value) for value in column.to_pylist()] for column in batch.columns), strict=True)
