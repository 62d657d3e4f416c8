"""Source: a parquet or csv file whose columns fit the spec, read in batches of bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from funnel.errors import DataError
from funnel.source import delimited
from funnel.spec import ReleaseSpec
from funnel.wording import listed, nearest, same_name

BATCH_ROWS = 1 << 17
_BUFFER_BYTES = 1 << 20

T = TypeVar("T")


@dataclass(frozen=True)
class Source:
    """An opened, checked source; made by `open_source`.

    Attributes
    ----------
    path : Path
    format : "parquet" or "csv"
    names : tuple of str
        All columns of the file, in its order.
    schema : pyarrow.Schema
        The columns the spec needs, with their types; text for every column of a csv file.
    n_rows : int or None
        Rows of a parquet file; a csv file does not tell before it is read.
    delimiter : str
        Between the values of a csv file.
    """

    path: Path
    format: str
    names: tuple[str, ...]
    schema: pa.Schema
    n_rows: int | None
    delimiter: str = ","

    def batches(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Stream the named columns, in this order, at most ``batch_rows`` rows at a time.

        Memory is bounded by the batch, never by the file. Empty cells of a csv file are empty texts.

        Raises
        ------
        DataError
            If the file is damaged or a column is not one the source was opened for; no row is quoted.
        """
        for column in columns:
            if column not in self.schema.names:
                raise DataError(f"{self.path.name} was not opened for the column {column!r}; name it in the spec")
        if self.format == "csv":
            yield from delimited.batches(self.path, columns, self.delimiter, batch_rows)
        else:
            yield from self._parquet_batches(columns, batch_rows)

    def _parquet_batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        texts = [name for name in columns if pa.types.is_string(self.schema.field(name).type)]
        with _parquet(self.path, read_dictionary=texts) as file:
            batches = file.iter_batches(batch_size=batch_rows, columns=list(columns))
            while True:
                batch = _guarded(self.path, lambda: next(batches, None))
                if batch is None:
                    return
                yield batch.select(list(columns))


def open_source(spec: ReleaseSpec, path: str | os.PathLike[str] | None = None) -> Source:
    """Open the source of a spec, or a snapshot of it at ``path``, and check that it has the columns of the spec.

    Raises
    ------
    DataError
        If the file is missing, is not a file of its format, or lacks a column or has it twice: one sentence that
        names the file and the problem.
    """
    file = Path(path) if path is not None else spec.source_path
    if file.is_dir():
        raise DataError(f"the source {file} is a folder; name one {spec.source.format} file")
    if not file.exists():
        raise DataError(f"there is no source file {file}; check path in [source] of the spec")
    if not file.is_file():
        raise DataError(f"the source {file} is not a regular file; name one {spec.source.format} file")
    if spec.source.format == "csv":
        names = delimited.header(file, spec.source.delimiter)
        _check_header(spec, file, names)
        schema = pa.schema([(name, pa.string()) for name in spec.columns])
        return Source(file, "csv", names, schema, None, spec.source.delimiter)
    with _parquet(file) as opened:
        full, rows = opened.schema_arrow, opened.metadata.num_rows
    _check_columns(spec, file, full.names)
    schema = pa.schema([pa.field(name, full.field(name).type) for name in spec.columns])
    return Source(file, "parquet", tuple(full.names), schema, rows)


def _check_columns(spec: ReleaseSpec, file: Path, names: Sequence[str]) -> None:
    for column in spec.columns:
        if column not in names:
            near = nearest(column, names)
            hint = f"did you mean {near!r}? Its columns are" if near else "its columns are"
            raise DataError(f"{file.name} has no column {column!r}; {hint} {listed(names)}")
        if list(names).count(column) > 1:
            raise DataError(
                f"{file.name} has {list(names).count(column)} columns named {column!r}; rename all but one of them"
            )


def _check_header(spec: ReleaseSpec, file: Path, names: Sequence[str]) -> None:
    """As `_check_columns`, but a first line that may be a record of a headerless file is not quoted."""
    if any(column in names for column in spec.columns):
        _check_columns(spec, file, names)
        return
    for column in spec.columns:
        near = next((name for name in names if same_name(name, column)), None)
        if near is not None:
            raise DataError(f"{file.name} has no column {column!r}; did you mean {near!r}?")
    raise DataError(
        f"the first line of {file.name} names none of the columns {listed(spec.columns)}; a csv source needs a header "
        f"line with column names, separated by {spec.source.delimiter!r} (else set delimiter in [source])"
    )


def _parquet(file: Path, read_dictionary: Sequence[str] = ()) -> pq.ParquetFile:
    # Buffered and without prefetching: pages come one by one, not a whole row group at once.
    return _guarded(
        file,
        lambda: pq.ParquetFile(
            file, read_dictionary=list(read_dictionary), buffer_size=_BUFFER_BYTES, pre_buffer=False
        ),
        "is not a parquet file, or it was cut short; check the path, or set format in [source]",
    )


def _guarded(
    file: Path,
    action: Callable[[], T],
    problem: str = "cannot be read to its end as parquet; it is damaged, make it anew",
) -> T:
    """The result of a pyarrow call; its errors become one sentence of ours, since they may quote the data."""
    try:
        return action()
    except PermissionError:
        sentence = f"{file} cannot be read: permission denied"
    except FileNotFoundError:
        sentence = f"there is no source file {file} any more; run again when it is back"
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        sentence = f"{file} {problem}"
    # Raised outside the handler, so that no traceback carries the original message.
    raise DataError(sentence)
