"""Whether the table of a release is, byte for byte, what funnel writes for its rows: as parquet and as csv."""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from funnel.audit.check import FALSE_ALARM, Found, Result, State, check, unchecked
from funnel.audit.files import opened
from funnel.audit.pages import Layout, walk_pages
from funnel.audit.released_columns import ReleasedColumns
from funnel.errors import DataError
from funnel.recount.published import csv_line, in_csv
from funnel.tables import open_paged

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext

# How funnel writes a released table. Said here again: what is checked is not asked how it should be.
_GROUP_ROWS, _PART_ROWS = 1 << 20, 1 << 21
WRITTEN: dict[str, Any] = {"compression": "zstd", "write_batch_size": 1 << 16}
_READ_ROWS = 1 << 16
_LIBRARY = re.compile(r"parquet-cpp-arrow version ([0-9][0-9.]*)")


@dataclass(frozen=True, eq=False)
class Table:
    """A released table that could be read in full.

    Attributes
    ----------
    counts : ndarray of int64, shape (b,)
        Records by output symbol.
    alike : ndarray of int64, shape (different records,)
        Records that are equal to each other.
    repeats : int
        Records that are equal to the one before them.
    """

    counts: npt.NDArray[np.int64]
    alike: npt.NDArray[np.int64]
    repeats: int

    @property
    def rows(self) -> int:
        """Records released."""
        return int(self.counts.sum())


def check_table(path: Path, columns: ReleasedColumns) -> tuple[Result, Result, Table | None]:
    """Read the released parquet file: whether all its records are outputs, and it is written as funnel writes it.

    Returns
    -------
    values, parquet : Result
    Table or None
        None where the rows cannot be told.

    Notes
    -----
    O(rows) time; memory for one row group.
    """
    categories = [list(of_column) for of_column in columns.texts.values()]
    read = _read_table(path, columns.names, categories)
    if isinstance(read, str):
        return Result("values", State.FAILED, read), Result("parquet", State.FAILED, read), None
    counts = np.zeros(len(columns.outputs), dtype=np.int64)
    strange = 0
    for row, number in read.counted.items():
        known = min(row) >= 0
        y = columns.output(tuple(categories[j][code] for j, code in enumerate(row))) if known else None
        if y is None:
            strange += number
        else:
            counts[y] += number
    if strange or not counts.sum():
        why = f"{strange:,} records have values that the protocol cannot produce" if strange else "there is no record"
        unknown = "what funnel would write cannot be told, since not every record is an output of the protocol"
        unlike = Result("parquet", State.FAILED, f"records.parquet: {unknown}")
        return Result("values", State.FAILED, why), unlike, None
    values = Result("values", State.PASSED, f"{counts.sum():,} records, all of them outputs of the protocol")
    alike = np.array(list(read.counted.values()), dtype=np.int64)
    if not _are_as_written(read.layout.groups):
        parquet = Result("parquet", State.FAILED, "its row groups are not of the sizes that funnel writes")
    else:
        parquet = encoding_check("parquet", read.differs, read.layout)
    return values, parquet, Table(counts, alike, read.repeats)


@dataclass(frozen=True, eq=False)
class _ReadTable:
    """Rows by codes (-1 for what is no category), and where the file differs from one that is written for them."""

    counted: Counter[tuple[int, ...]]
    repeats: int
    differs: int | None
    layout: Layout


def _read_table(path: Path, names: tuple[str, ...], categories: list[list[str]]) -> _ReadTable | str:
    """What is in a file; or why that cannot be told."""
    try:
        # Twice, since it is read and compared at different places at a time.
        with opened(path) as file, opened(path) as again:
            # A page holds the texts of a dictionary, or pieces of indices; what is larger is never decompressed.
            texts = sum(len(text.encode()) + 4 for values in categories for text in values)
            layout = walk_pages(file, (1 << 24) + 2 * texts)
            if layout.rows != sum(layout.groups):
                raise DataError("its row groups do not hold as many rows as it says")
            file.seek(0)
            sink = Compared(again)
            counted, repeats = _read(file, sink, layout, names, categories)
            return _ReadTable(counted, repeats, sink.difference(), layout)
    except UNREADABLE as error:
        return f"{path.name}: {unreadable(error)}"


UNREADABLE = (DataError, OSError, pa.ArrowException, MemoryError, ValueError)
"""What reading a table that somebody made may raise."""


def unreadable(error: Exception) -> str:
    """Why a table cannot be read."""
    return str(error) if isinstance(error, DataError) else f"it cannot be read ({type(error).__name__})"


def _read(
    file: IO[bytes], sink: Compared, layout: Layout, wanted: tuple[str, ...], categories: list[list[str]]
) -> tuple[Counter[tuple[int, ...]], int]:
    """Rows by their codes, and how many repeat the one before; written again to what they are compared with."""
    counted: Counter[tuple[int, ...]] = Counter()
    with open_paged(file) as table:
        names = tuple(table.schema_arrow.names)
        if names != wanted:
            raise DataError(f"its columns are {', '.join(names)}, not {', '.join(wanted)}")
        schema = pa.schema(
            [
                pa.field(name, pa.dictionary(_index_type(len(values)), pa.string()), nullable=False)
                for name, values in zip(names, categories, strict=True)
            ]
        )
        repeats, last = 0, np.full((len(names), 1), -1)
        # Ended also where reading fails, while what it is compared with is still open.
        with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, **WRITTEN) as writer:
            sets = [pa.array(values, pa.string()) for values in categories]
            for piece in regrouped(table, layout.groups):
                codes = _codes(piece, sets)
                rows = np.concatenate([last, np.stack(codes)], axis=1)
                repeats, last = repeats + int((rows[:, 1:] == rows[:, :-1]).all(axis=0).sum()), rows[:, -1:]
                found, numbers = np.unique(np.stack(codes), axis=1, return_counts=True)
                for row, number in zip(found.T.tolist(), numbers.tolist(), strict=True):
                    counted[tuple(row)] += number
                # Once it differs there is no need to write on, but all rows are counted.
                if sink.differs is None and not (found < 0).any():
                    columns = [
                        pa.DictionaryArray.from_arrays(
                            pa.array(column, field.type.index_type), pa.array(values, pa.string())
                        )
                        for column, field, values in zip(codes, schema, categories, strict=True)
                    ]
                    writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema), row_group_size=len(codes[0]))
    return counted, repeats


def encoding_check(name: str, differs: int | None, layout: Layout) -> Result:
    """What it means that a file is, or from some byte on is not, what was just written for its rows."""
    if differs is None:
        return Result(name, State.PASSED, "to the byte what funnel writes for these rows; nothing is hidden in it")
    written = _LIBRARY.fullmatch(layout.created_by)
    if written is not None and written[1] != pa.__version__ and layout.metadata == ("ARROW:schema",):
        return unchecked(
            name,
            f"it was written by pyarrow {written[1]}, and this is {pa.__version__}, which writes other bytes for the "
            f"same rows: every byte belongs to a page or the footer, but install pyarrow=={written[1]} to compare them",
        )
    return Result(name, State.FAILED, f"it is not what funnel writes for its rows, from byte {differs:,} on")


def _index_type(count: int) -> pa.DataType:
    return next(t for t, limit in ((pa.int8(), 128), (pa.int16(), 32768), (pa.int32(), 1 << 31)) if count <= limit)


def _codes(piece: pa.Table, sets: Sequence[pa.Array]) -> list[npt.NDArray[np.int64]]:
    """Positions of the values of every column; -1 for what is no category."""
    return [
        pc.fill_null(pc.index_in(column.cast(pa.string()), value_set=values), -1).to_numpy().astype(np.int64)
        for column, values in zip(piece.columns, sets, strict=True)
    ]


def regrouped(file: pq.ParquetFile, sizes: Iterable[int]) -> Iterator[pa.Table]:
    """The rows of a file in pieces of these sizes, and what is left."""
    held: list[pa.Table] = []
    rows, wanted = 0, iter(sizes)
    size = next(wanted, 0)
    for batch in file.iter_batches(_READ_ROWS):
        held.append(pa.Table.from_batches([batch]))
        rows += batch.num_rows
        while size and rows >= size:
            whole = pa.concat_tables(held)
            yield whole.slice(0, size)
            held, rows, size = [whole.slice(size)], rows - size, next(wanted, 0)
    if rows:
        yield pa.concat_tables(held)


def _are_as_written(sizes: Sequence[int]) -> bool:
    """Whether funnel cuts so many rows into row groups of such sizes.

    Rows in the order of the source are cut evenly. Rows in random order go to parts by random bits, so the size of each
    is binomial; by Hoeffding's inequality it is within the limit but for a probability of `FALSE_ALARM`.
    """
    n = sum(sizes)
    if sizes and all(size == _GROUP_ROWS for size in sizes[:-1]) and 0 < sizes[-1] <= _GROUP_ROWS:
        return True
    parts = 1 << max(0, math.ceil(math.log2(max(1, n) / _PART_ROWS)))
    limit = math.sqrt(n * math.log(2 * parts / FALSE_ALARM) / 2)
    return len(sizes) == parts and (parts == 1 or all(abs(size - n / parts) <= limit for size in sizes))


class Compared(io.RawIOBase):
    """A file to write to that keeps nothing, and notes where it first differs from another one."""

    def __init__(self, other: IO[bytes]) -> None:
        self._other = other
        self._at = 0
        self.differs: int | None = None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, content: Any) -> int:
        block = bytes(content)
        if self.differs is None:
            there = self._other.read(len(block))
            if there != block:
                same = next((i for i, (a, b) in enumerate(zip(block, there, strict=False)) if a != b), len(there))
                self.differs = self._at + same
        self._at += len(block)
        return len(block)

    def difference(self) -> int | None:
        """Where the two differ first; None if they are the same."""
        if self.differs is None and self._other.read(1):
            self.differs = self._at
        return self.differs


@check("values", "public")
def check_values(known: AuditContext) -> Result:
    """Every record has a published value of the protocol."""
    return known.read_table[0]


@check("parquet", "public")
def check_parquet(known: AuditContext) -> Result:
    """The parquet file is byte for byte as funnel writes it."""
    return known.read_table[1]


@check("csv", "csv")
def check_copy(known: AuditContext) -> Found:
    """The csv holds the rows of the parquet file, in their order, and nothing else."""
    if "table" not in known.has:
        yield "the parquet file that it has to say the same as cannot be read"
        return ""
    try:
        if (differs := csv_difference(known.folder.data, known.folder.csv)) is not None:
            yield differs
    except UNREADABLE as error:
        yield unreadable(error)
    return "to the byte the rows of the parquet file, in their order"


def csv_difference(table: Path, copy: Path) -> str | None:
    """Where a csv is not, byte for byte, what funnel writes for the rows of a parquet file; None if it is."""
    with opened(table) as source, opened(copy) as file, open_paged(source) as parquet:
        for number, line in enumerate(_lines(parquet)):
            if file.read(len(line)) != line:
                row = f"row {number:,}" if number else "header"
                return f"its {row} is not that of the parquet file, as funnel writes it"
        return "it has more than the rows of the parquet file" if file.read(1) else None


def _lines(table: pq.ParquetFile) -> Iterator[bytes]:
    known: dict[tuple[Any, ...], bytes] = {}
    rows: Iterator[tuple[Any, ...]] = (
        row
        for batch in table.iter_batches(batch_size=_READ_ROWS)
        for row in zip(*(column.cast(pa.string()).to_pylist() for column in batch.columns), strict=True)
    )
    for row in chain([tuple(table.schema_arrow.names)], rows):
        if row not in known:
            known[row] = csv_line(in_csv(str(cell)) for cell in row)
        yield known[row]
