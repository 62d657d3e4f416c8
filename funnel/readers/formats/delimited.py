"""Csv and other delimited text, perhaps packed: its header, and its rows in batches, errors in our own words."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
from collections import deque
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.csv as pacsv

from funnel.errors import DataError
from funnel.readers.formats.columnar import Format, check_columns
from funnel.readers.formats.packed import GZIP, ZIP, guarded, open_unpacked
from funnel.readers.opened_source import Source, SourceSpec
from funnel.readers.source_files import find_files
from funnel.storage import base_name
from funnel.wording import listed, same_name

_BLOCK_BYTES = 1 << 22
PACKED = (GZIP, ZIP)
_COPIED_BYTES = 1 << 16
# The last ones that were read; threads of those before have ended long since.
_HELD: deque[pa.NativeFile] = deque(maxlen=16)


class Delimited(Format):
    """One file of text with a record a line, whose values are all text."""

    name = "csv"
    suffixes = (".csv", ".tsv")

    def open(self, spec: SourceSpec, address: str) -> Source:
        files = find_files(address, self.name)
        file, delimiter = files.files[0].address, spec.source.delimiter
        encoding = spec.source.encoding
        names = header(file, delimiter, encoding)
        _check_header(spec, base_name(file), names)
        schema = pa.schema([(name, pa.string()) for name in spec.columns])

        def read(columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
            return batches(file, columns, delimiter, batch_rows, encoding)

        def now() -> str:
            return find_files(address, self.name).digest()

        return Source(files, self.name, base_name(address), names, schema, None, read, now)


def _check_header(spec: SourceSpec, shown: str, names: Sequence[str]) -> None:
    """As `check_columns`, but a first line that may be a record of a headerless file is not quoted."""
    if not spec.columns or any(column in names for column in spec.columns):
        check_columns(spec, shown, names)
        return
    for column in spec.columns:
        near = next((name for name in names if same_name(name, column)), None)
        if near is not None:
            raise DataError(f"{shown} has no column {column!r}; did you mean {near!r}?")
    raise DataError(
        f"the first line of {shown} names none of the columns {listed(spec.columns)}; a csv source needs a header "
        f"line with column names, separated by {spec.source.delimiter!r} (else set delimiter in [source])"
    )


def header(file: str, delimiter: str = ",", encoding: str = "utf-8") -> tuple[str, ...]:
    """The column names in the first line that is not blank.

    Raises
    ------
    DataError
        If the file is empty, is not UTF-8 text or cannot be read.
    """
    sentence = f"{file} is empty; a csv source needs a header line with column names"

    def first() -> bytes:
        with contextlib.closing(open_unpacked(file)) as stream:
            # A line longer than a block cannot be read anyway; a binary file must not be slurped in search of one.
            return stream.read(_BLOCK_BYTES)

    block = guarded(file, first)
    try:
        # A block may end within a character.
        start = codecs.getincrementaldecoder(encoding)().decode(block, final=len(block) < _BLOCK_BYTES)
        start = start.removeprefix("\ufeff")
        for names in csv.reader(io.StringIO(start, newline=""), delimiter=delimiter, strict=True):
            if names:
                return tuple(names)
    except UnicodeError:
        sentence = f"{_no_text(file, encoding)}, or set format if it is not csv"
    except csv.Error:
        sentence = f"the header line of {file} is not valid csv; check its quotation marks"
    raise DataError(sentence)


def batches(
    file: str, columns: Sequence[str], delimiter: str, batch_rows: int, encoding: str = "utf-8"
) -> Iterator[pa.RecordBatch]:
    """Stream columns as text; an empty cell is an empty text.

    Raises
    ------
    DataError
        If a row has too few or too many values, a quotation is never closed, or the text is not UTF-8.
    """
    with contextlib.closing(guarded(file, lambda: _QuoteCounter(file, encoding))) as stream:
        # The reader has a thread that reads ahead, and may be the last to let go of what it read from. Where that is an
        # object of Python's while the interpreter ends, the process dies: so it is held here, and copies blocks.
        ahead = pa.BufferedInputStream(pa.PythonFile(stream, mode="r"), _COPIED_BYTES)
        _HELD.append(ahead)
        reader: pacsv.CSVStreamingReader | None = None

        def next_batch() -> pa.RecordBatch | str | None:
            nonlocal reader
            try:
                if reader is None:
                    reader = _open(ahead, columns, delimiter)
                return reader.read_next_batch()
            except StopIteration:
                return None
            except UnicodeError:
                return _no_text(file, encoding)
            except pa.ArrowException as error:
                return _sentence(file, str(error))

        while (batch := guarded(file, next_batch)) is not None:
            if isinstance(batch, str):
                # Raised outside the handler: the original message quotes the row.
                raise DataError(batch)
            for start in range(0, batch.num_rows, batch_rows):
                yield batch.slice(start, batch_rows).select(list(columns))
        if stream.quotes % 2:
            raise DataError(
                f"{file} has an odd number of quotation marks, so that a quoted value is never closed; close it, or "
                "double the marks inside values"
            )


def _open(stream: pa.NativeFile, columns: Sequence[str], delimiter: str) -> pacsv.CSVStreamingReader:
    return pacsv.open_csv(
        stream,
        # One thread: only then do errors tell the number of the row.
        read_options=pacsv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
        parse_options=pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(
            include_columns=list(columns),
            column_types={name: pa.string() for name in columns},
            strings_can_be_null=False,
        ),
    )


def _sentence(file: str, message: str) -> str:
    """What a pyarrow message says, from its numbers only: the rest may quote a row."""
    if found := re.match(r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", message):
        where = f"row {found[1]} (with the header as row 1)" if found[1] else "a row"
        mend = "correct it"
        if found[1] == "2":
            mend += ", or take lines above the names of the columns, such as a title, out of the file"
        return f"{where} of {file} has {found[3]} values where the header has {found[2]}; {mend}"
    if "straddles" in message:
        return f"{file} has a row of more than {_BLOCK_BYTES >> 20} MB, as when a quotation mark is never closed"
    if "UTF8" in message or "UTF-8" in message:
        return _no_text(file, "utf-8")
    return f"{file} cannot be read as csv; check that it is text with one record a line"


def _no_text(file: str, encoding: str) -> str:
    if encoding == "utf-8":
        return f"{file} is not UTF-8 text; save it as UTF-8, or set encoding in [source], for instance to cp1252"
    return f"{file} is not text in {encoding}; check encoding in [source]"


class _QuoteCounter(io.RawIOBase):
    """A binary file that counts the quotation marks read from it, since the csv reader accepts one left open."""

    def __init__(self, file: str, encoding: str) -> None:
        super().__init__()
        self.quotes = 0
        self._stream = open_unpacked(file)
        self._decoder = None if encoding == "utf-8" else codecs.getincrementaldecoder(encoding)()
        start = self._next(len(codecs.BOM_UTF8))
        # What is unpacked cannot be read again.
        self._start = start.removeprefix(codecs.BOM_UTF8)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        block, self._start = self._start, b""
        # The csv reader takes a short block for a whole one, and what unpacks gives what it has.
        while len(block) < size and (more := self._next(size - len(block))):
            block += more
        # What is decoded can be longer than it was.
        block, self._start = block[:size], block[size:]
        self.quotes += block.count(b'"')
        return block

    def _next(self, size: int) -> bytes:
        """About so many bytes of the file as UTF-8, none only at its end."""
        block = self._stream.read(size)
        while self._decoder is not None:
            text = self._decoder.decode(block, final=not block)
            if text or not block:
                return text.encode()
            block = self._stream.read(size)
        return block

    def close(self) -> None:
        self._stream.close()
        super().close()
