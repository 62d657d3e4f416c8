"""Tables as streams of record batches: pandas, Arrow tables or a parquet file, and only the columns that are read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

_BUFFER_BYTES = 1 << 20


class ArrowStream(Protocol):
    """A table of any library that offers the Arrow PyCapsule interface, such as of polars or DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule with a stream of record batches."""


def read_batches(
    table: pd.DataFrame | pa.Table | ArrowStream | str | os.PathLike[str], columns: list[str], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Stream columns of a table; a file in batches of at most ``batch_rows`` rows.

    Raises
    ------
    DataError
        If the table is none of these, the file cannot be read, or a column is missing, there twice, or of mixed types.
    """
    if isinstance(table, str | os.PathLike):
        yield from _read_parquet(os.fspath(table), columns, batch_rows)
    elif isinstance(table, pa.Table):
        _require(columns, table.column_names)
        yield from table.select(columns).to_batches()
    elif hasattr(table, "__arrow_c_stream__") and not hasattr(table, "iloc"):
        yield from _of_stream(table, columns)
    elif hasattr(table, "iloc"):
        frame: Any = table
        _require(columns, list(frame.columns))
        yield from pa.table({name: _from_pandas(frame[name], name) for name in columns}).to_batches()
    else:
        raise DataError(
            "a table is one of pandas, pyarrow, polars, DuckDB or another library of Arrow tables, or the path of a "
            f"parquet file, not {type(table).__name__}; a lazy one has to be collected first"
        )


def _of_stream(table: ArrowStream, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The batches of a table of another library, by the Arrow PyCapsule interface; none is kept."""
    if isinstance(table, pa.RecordBatchReader):
        raise DataError("a RecordBatchReader can be read only once, and a table is read several times; pass read_all()")
    try:
        reader = pa.RecordBatchReader.from_stream(table)
        _require(columns, reader.schema.names)
        for batch in reader:
            yield batch.select(columns)
    except (pa.ArrowException, NotImplementedError) as error:
        raise DataError(
            f"a table of {type(table).__module__.partition('.')[0]} cannot be read as an Arrow stream; "
            "pass it as a pyarrow table"
        ) from error


def open_paged(source: str | os.PathLike[str] | IO[bytes], read_dictionary: Sequence[str] = ()) -> pq.ParquetFile:
    """Open a parquet file to be read page by page, so that memory grows neither with its row groups nor with the file.

    By default the library prefetches all columns that are read and holds what it has fetched until the file is closed.

    Parameters
    ----------
    source : path or opened file
    read_dictionary : sequence of str
        Text columns to be read as dictionaries.
    """
    return pq.ParquetFile(source, read_dictionary=list(read_dictionary), buffer_size=_BUFFER_BYTES, pre_buffer=False)


def arrow_numbers(values: npt.NDArray[np.integer[Any]]) -> pa.Array:
    """The numbers of an array as an Arrow array, without a copy.

    Unlike `pyarrow.array` this does not import pandas, which costs a worker a third of a second and 25 MB.
    """
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def numbers_of(column: pa.Array) -> npt.NDArray[np.integer[Any]]:
    """The whole numbers of an Arrow array without nulls, without a copy; pandas is not imported either."""
    numbers: npt.NDArray[Any] = np.from_dlpack(column)
    return numbers


def positions_of(coded: pa.DictionaryArray, column: str) -> npt.NDArray[np.integer[Any]]:
    """The position of every row's value in the dictionary of a column without nulls.

    Raises
    ------
    DataError
        If there is no such entry in the dictionary; the column is named.
    """
    indices = numbers_of(coded.indices)
    # Seen without a sign, negative ones are the largest.
    if len(indices) and int(indices.view(f"u{indices.itemsize}").max()) >= len(coded.dictionary):
        raise DataError(f"column {column!r} refers to categories that its dictionary lacks; make it anew")
    return indices


def arrow_texts(texts: Sequence[str]) -> pa.StringArray:
    """Some texts as an Arrow array; as `arrow_numbers`, without importing pandas."""
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))


def _read_parquet(path: str, columns: list[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
    if not Path(path).exists():
        raise DataError(f"there is no file {path}; check the path")
    try:
        with open_paged(path) as file:
            _require(columns, file.schema_arrow.names)
            yield from file.iter_batches(batch_size=batch_rows, columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            f"{path} cannot be read as parquet; check the file, or read another format first, as by pandas.read_csv"
        ) from error


def _from_pandas(column: pd.Series, name: str) -> pa.Array | pa.ChunkedArray:
    categories = getattr(column.dtype, "categories", None)
    if str(column.dtype if categories is None else categories.dtype).startswith(("interval", "period")):
        # Arrow would make records of intervals, and nothing of periods.
        column = column.astype("category")
        column = column.cat.rename_categories([*map(str, column.cat.categories)])
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, OverflowError):
        # Not chained: pyarrow quotes the value it stumbled over.
        raise DataError(f"column {name!r} mixes types that do not fit one column; convert it to text") from None


def _require(columns: list[str], present: list[str]) -> None:
    for column in columns:
        if not isinstance(column, str):
            raise DataError(f"column {column!r} is named by a {type(column).__name__}; name columns by texts")
        if present.count(column) != 1:
            state = "is more than once in" if column in present else "is not in"
            raise DataError(f"column {column!r} {state} the table, which has {', '.join(map(str, present))}")


def even_tables(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of exactly ``rows`` rows; only the last one may be shorter."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        while count >= rows:
            table = pa.Table.from_batches(held)
            yield table.slice(0, rows)
            held, count = table.slice(rows).to_batches(), count - rows
    if count:
        yield pa.Table.from_batches(held)
