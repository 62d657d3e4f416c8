"""What a format of sources has to do, and what those of typed columns share: many files, types that agree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import ClassVar, Protocol, TypeVar

import pyarrow as pa
import pyarrow.types as pt

from funnel.errors import DataError
from funnel.readers.formats.loaded import LABEL, LABELS
from funnel.readers.opened_source import Source, SourceSpec
from funnel.readers.source_files import SourceFile, SourceFiles, find_files
from funnel.storage import base_name, explained, failures, is_url
from funnel.wording import listed, nearest


def agreed(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """The type to read a column as that has these types in two files; None if they mean different things.

    All ways to store text agree, as do integers of all widths; a column of nulls alone agrees with everything.
    """
    first, second = _values(first), _values(second)
    if first.equals(second) or pt.is_null(second):
        return first
    if pt.is_null(first):
        return second
    if pt.is_integer(first) and pt.is_integer(second) and not (pt.is_uint64(first) or pt.is_uint64(second)):
        return pa.int64()
    return None


def _values(kind: pa.DataType) -> pa.DataType:
    """The type of the values, however they are stored."""
    if pt.is_dictionary(kind):
        kind = kind.value_type
    if pt.is_large_string(kind) or pt.is_string_view(kind):
        return pa.string()
    return kind


def alike(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """An array as the agreed type; text as dictionary<int32, string>, so that repeated text is not stored again."""
    if not pt.is_string(kind):
        values = array.dictionary_decode() if pt.is_dictionary(array.type) else array
        return values if values.type.equals(kind) else values.cast(kind)
    if not pt.is_dictionary(array.type):
        return array.cast(pa.string()).dictionary_encode()
    indices = array.indices.cast(pa.int32())
    return pa.DictionaryArray.from_arrays(indices, array.dictionary.cast(pa.string()))


def gathered(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order with small batches joined, up to ``rows`` rows each.

    A dataset of many small files would otherwise be handled a few rows at a time.
    """
    waiting: list[pa.RecordBatch] = []
    n_waiting = 0
    for batch in batches:
        if n_waiting and n_waiting + batch.num_rows > rows:
            yield _joined(waiting)
            waiting, n_waiting = [], 0
        if batch.num_rows:
            waiting.append(batch)
            n_waiting += batch.num_rows
    if waiting:
        yield _joined(waiting)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (whole,) = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks().to_batches()
    return whole


T = TypeVar("T")


class FormatError(Exception):
    """A file that a format knows, and does not read, with what is to be done."""


class Format(ABC):
    """A way to store records.

    Attributes
    ----------
    name : str
        As ``format`` in ``[source]`` says it.
    suffixes : tuple of str
        How names of such files end, in lower case.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def open(self, spec: SourceSpec, address: str) -> Source:
        """Open the source of a spec at an address, and check that it has the columns of the spec.

        Raises
        ------
        DataError
            If there is none, it is not of this format, or it does not fit the spec: one sentence without any row.
        """


class OpenFile(Protocol):
    """An opened file of typed columns."""

    @property
    def schema(self) -> pa.Schema:
        """All its columns."""

    @property
    def rows(self) -> int | None:
        """Its rows, where it tells before it is read."""

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Its rows with these columns and perhaps others, in any order; errors are those of the library."""

    def close(self) -> None:
        """Close it."""


class Columnar(Format):
    """A format whose files hold typed columns: one file is a source, and so are all files of a folder or pattern."""

    @abstractmethod
    def open_file(self, address: str, texts: Sequence[str] = ()) -> OpenFile:
        """Open a file; errors are those of the library.

        Parameters
        ----------
        address : str
            Path or URL.
        texts : sequence of str
            Columns of text that may be read as dictionaries.
        """

    def open(self, spec: SourceSpec, address: str) -> Source:
        files = find_files(address, self.name, self.suffixes)
        first = files.files[0]
        types: dict[str, pa.DataType] = {}
        said: dict[str, dict[bytes, bytes]] = {}
        all_names: tuple[str, ...] = ()
        rows: int | None = 0
        for file in files.files:
            with closing(self._opened(file.address)) as opened:
                full, file_rows = opened.schema, opened.rows
            shown = file.name if files.dataset else base_name(file.address)
            stated = file.partition if files.dataset else {}
            names = (*full.names, *stated)
            check_columns(spec, shown, names)
            for column in spec.columns:
                told = {} if column in stated or files.dataset else full.field(column).metadata or {}
                if not told.keys().isdisjoint((LABEL, LABELS)):
                    said[column] = told
                kind = pa.string() if column in stated else full.field(column).type
                types[column] = _merged(types[column], kind, column, shown, first.name) if column in types else kind
            all_names = all_names or names
            rows = None if rows is None or file_rows is None else rows + file_rows
        schema = pa.schema(
            [pa.field(name, _read_as(types[name], files), metadata=said.get(name)) for name in spec.columns]
        )

        def read(columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
            if files.dataset:
                return gathered(self._of_dataset(files, schema, columns, batch_rows), batch_rows)
            return self._of_file(first, schema, columns, batch_rows)

        def now() -> str:
            return find_files(address, self.name, self.suffixes).digest()

        return Source(files, self.name, base_name(address), all_names, schema, rows, read, now)

    def _of_dataset(
        self, files: SourceFiles, schema: pa.Schema, columns: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        types = [schema.field(name).type for name in columns]
        for file in files.files:
            stated = file.partition
            stored = [name for name in columns if name not in stated]
            for batch in self._of_file(file, schema, stored, batch_rows):
                arrays = [
                    _constant(stated[name], batch.num_rows) if name in stated else batch.column(name)
                    for name in columns
                ]
                same = self._guarded(file.address, lambda arrays=arrays: [*map(alike, arrays, types)])  # type: ignore[misc]
                yield pa.RecordBatch.from_arrays(same, names=list(columns))

    def _of_file(
        self, file: SourceFile, schema: pa.Schema, columns: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        texts = [name for name in columns if pa.types.is_string(schema.field(name).type)]
        with closing(self._opened(file.address, texts)) as opened:
            batches = opened.batches(list(columns), batch_rows)
            while True:
                batch = self._guarded(file.address, lambda: next(batches, None))
                if batch is None:
                    return
                yield batch.select(list(columns))

    def _opened(self, address: str, texts: Sequence[str] = ()) -> OpenFile:
        problem = f"is not {self._article} file, or it was cut short; check the path, or set format in [source]"
        return self._guarded(address, lambda: self.open_file(address, texts), problem)

    @property
    def _article(self) -> str:
        return f"an {self.name}" if self.name[0] in "aeiou" else f"a {self.name}"

    def _guarded(self, address: str, action: Callable[[], T], problem: str = "") -> T:
        """The result of a pyarrow call; its errors become one sentence of ours, since they may quote the data."""
        problem = problem or f"cannot be read to its end as {self.name}; it is damaged, make it anew"
        try:
            return action()
        except FormatError as error:
            sentence = f"{address} {error}"
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


def check_columns(spec: SourceSpec, shown: str, names: Sequence[str]) -> None:
    """Refuse a source that lacks a column of the spec, or has it twice.

    Raises
    ------
    DataError
        With the name most like it.
    """
    for column in spec.columns:
        if column not in names:
            near = nearest(column, names)
            hint = f"did you mean {near!r}? Its columns are" if near else "its columns are"
            raise DataError(f"{shown} has no column {column!r}; {hint} {listed(names)}")
        if list(names).count(column) > 1:
            raise DataError(
                f"{shown} has {list(names).count(column)} columns named {column!r}; rename all but one of them"
            )


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
