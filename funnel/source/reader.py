"""Source: parquet or csv whose columns fit the spec, one file or many, read in batches of bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from funnel.errors import DataError
from funnel.source import delimited
from funnel.source.files import SourceFile, SourceFiles, find_files
from funnel.source.types import agreed, alike, gathered
from funnel.spec import ReleaseSpec
from funnel.storage import base_name, explained, failures, is_url, local_path, open_binary
from funnel.tables import open_paged
from funnel.wording import listed, nearest, same_name

BATCH_ROWS = 1 << 17

T = TypeVar("T")


@dataclass(frozen=True)
class Source:
    """An opened, checked source; made by `open_source`.

    Attributes
    ----------
    files : SourceFiles
        The one file, or all files of a dataset.
    format : "parquet" or "csv"
    names : tuple of str
        All columns, in the order of the (first) file; those stated by names of folders last.
    schema : pyarrow.Schema
        The columns the spec needs, with their types; text for every column of a csv file or stated by folders.
    n_rows : int or None
        Rows of a parquet source; a csv file does not tell before it is read.
    delimiter : str
        Between the values of a csv file.
    """

    files: SourceFiles
    format: str
    names: tuple[str, ...]
    schema: pa.Schema
    n_rows: int | None
    delimiter: str = ","

    @property
    def address(self) -> str:
        """Path or URL of the source."""
        return self.files.address

    @property
    def name(self) -> str:
        """The last part of the address."""
        return base_name(self.address)

    def digest(self) -> str:
        """SHA-256 of what is at the address now: files that came or went since the source was opened count.

        Raises
        ------
        DataError
            If a file cannot be read.
        """
        return find_files(self.address, self.format).digest()

    def batches(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Stream the named columns, in this order, at most ``batch_rows`` rows at a time.

        Memory is bounded by the batch, never by a file, and one file is open at a time. Empty cells of a csv file are
        empty texts.

        Raises
        ------
        DataError
            If a file is damaged or a column is not one the source was opened for; no row is quoted.
        """
        for column in columns:
            if column not in self.schema.names:
                raise DataError(f"{self.name} was not opened for the column {column!r}; name it in the spec")
        if self.format == "csv":
            yield from delimited.batches(self.address, columns, self.delimiter, batch_rows)
        elif self.files.dataset:
            yield from gathered(self._dataset_batches(columns, batch_rows), batch_rows)
        else:
            yield from self._parquet_batches(self.files.files[0], columns, batch_rows)

    def _dataset_batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        types = [self.schema.field(name).type for name in columns]
        for file in self.files.files:
            stated = file.partition
            stored = [name for name in columns if name not in stated]
            for batch in self._parquet_batches(file, stored, batch_rows):
                arrays = [
                    _constant(stated[name], batch.num_rows) if name in stated else batch.column(name)
                    for name in columns
                ]
                same = _guarded(file.address, lambda arrays=arrays: [*map(alike, arrays, types)])  # type: ignore[misc]
                yield pa.RecordBatch.from_arrays(same, names=list(columns))

    def _parquet_batches(self, file: SourceFile, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        texts = [name for name in columns if pa.types.is_string(self.schema.field(name).type)]
        with closing(_Parquet(file.address, texts)) as opened:
            batches = opened.file.iter_batches(batch_size=batch_rows, columns=list(columns))
            while True:
                batch = _guarded(file.address, lambda: next(batches, None))
                if batch is None:
                    return
                yield batch.select(list(columns))


def open_source(spec: ReleaseSpec, path: str | os.PathLike[str] | None = None) -> Source:
    """Open the source of a spec, or a snapshot of it at ``path``, and check that it has the columns of the spec.

    Raises
    ------
    DataError
        If there is no file, one is not of its format, lacks a column or has it twice, or two files disagree about
        the type of a column: one sentence that names the file and the problem.
    """
    files = find_files(os.fspath(path) if path is not None else spec.source_address, spec.source.format)
    first = files.files[0]
    if spec.source.format == "csv":
        names = delimited.header(first.address, spec.source.delimiter)
        _check_header(spec, base_name(first.address), names)
        schema = pa.schema([(name, pa.string()) for name in spec.columns])
        return Source(files, "csv", names, schema, None, spec.source.delimiter)
    types: dict[str, pa.DataType] = {}
    all_names: tuple[str, ...] = ()
    rows = 0
    for file in files.files:
        with closing(_Parquet(file.address)) as opened:
            full, file_rows = opened.file.schema_arrow, opened.file.metadata.num_rows
        shown = file.name if files.dataset else base_name(file.address)
        stated = file.partition if files.dataset else {}
        names = (*full.names, *stated)
        _check_columns(spec, shown, names)
        for column in spec.columns:
            kind = pa.string() if column in stated else full.field(column).type
            types[column] = _merged(types[column], kind, column, shown, first.name) if column in types else kind
        all_names = all_names or names
        rows += file_rows
    schema = pa.schema([pa.field(name, _read_as(types[name], files)) for name in spec.columns])
    return Source(files, "parquet", all_names, schema, rows)


def _merged(before: pa.DataType, kind: pa.DataType, column: str, shown: str, first: str) -> pa.DataType:
    merged = agreed(before, kind)
    if merged is None:
        raise DataError(
            f"{shown} has the column {column!r} as {kind}, but {first} or a file after it has it as {before}; give it "
            "one type in all files"
        )
    return merged


def _read_as(kind: pa.DataType, files: SourceFiles) -> pa.DataType:
    """The type batches have: of a dataset the agreed one, also where there is a single file in it."""
    merged = agreed(kind, kind) if files.dataset else kind
    return kind if merged is None else merged


def _constant(value: str | None, rows: int) -> pa.Array:
    return pa.nulls(rows, pa.string()) if value is None else pa.repeat(pa.scalar(value, pa.string()), rows)


def _check_columns(spec: ReleaseSpec, shown: str, names: Sequence[str]) -> None:
    for column in spec.columns:
        if column not in names:
            near = nearest(column, names)
            hint = f"did you mean {near!r}? Its columns are" if near else "its columns are"
            raise DataError(f"{shown} has no column {column!r}; {hint} {listed(names)}")
        if list(names).count(column) > 1:
            raise DataError(
                f"{shown} has {list(names).count(column)} columns named {column!r}; rename all but one of them"
            )


def _check_header(spec: ReleaseSpec, shown: str, names: Sequence[str]) -> None:
    """As `_check_columns`, but a first line that may be a record of a headerless file is not quoted."""
    if any(column in names for column in spec.columns):
        _check_columns(spec, shown, names)
        return
    for column in spec.columns:
        near = next((name for name in names if same_name(name, column)), None)
        if near is not None:
            raise DataError(f"{shown} has no column {column!r}; did you mean {near!r}?")
    raise DataError(
        f"the first line of {shown} names none of the columns {listed(spec.columns)}; a csv source needs a header "
        f"line with column names, separated by {spec.source.delimiter!r} (else set delimiter in [source])"
    )


class _Parquet:
    """An opened parquet file, to be closed."""

    def __init__(self, address: str, read_dictionary: Sequence[str] = ()) -> None:
        # A path is read by the library itself, faster than through an open file.
        self._stream = _guarded(address, lambda: open_binary(address)) if is_url(address) else None
        try:
            self.file = _guarded(
                address,
                lambda: open_paged(self._stream or local_path(address) or address, read_dictionary),
                "is not a parquet file, or it was cut short; check the path, or set format in [source]",
            )
        except DataError:
            if self._stream is not None:
                self._stream.close()
            raise

    def close(self) -> None:
        """Close the file, and the stream it is read from."""
        self.file.close(force=True)
        if self._stream is not None:
            self._stream.close()


def _guarded(
    address: str,
    action: Callable[[], T],
    problem: str = "cannot be read to its end as parquet; it is damaged, make it anew",
) -> T:
    """The result of a pyarrow call; its errors become one sentence of ours, since they may quote the data."""
    try:
        return action()
    except FileNotFoundError:
        sentence = f"there is no source file {address} any more; run again when it is back"
    except (pa.ArrowException, UnicodeDecodeError):
        sentence = f"{address} {problem}"
    except failures() as error:
        # The library reports damage as an OSError without a number.
        damaged = type(error) is OSError and error.errno is None and not is_url(address)
        sentence = f"{address} {problem}" if damaged else explained(error, address)
    # Raised outside the handler, so that no traceback carries the original message.
    raise DataError(sentence)
