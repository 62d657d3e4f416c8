"""The cells of a file by other readers than the release was made with: csv, and tables of DuckDB with types."""

from __future__ import annotations

import atexit
import contextlib
import csv
import gzip
import io
import os
import shutil
import tempfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from funnel.errors import DataError, PipelineError
from funnel.recount.cells import TEXT, Kind

if TYPE_CHECKING:
    import duckdb

# Rows of a csv file, and distinct combinations of a parquet file, that are in memory at once.
ROWS = 1 << 16
# A row that the release was made from has at most 4 MB.
_LONGEST = 1 << 23
_MEMORY = "1GB"
# What a file that is packed, or is not there, may end in.
_UNREADABLE = (OSError, EOFError, RuntimeError, zlib.error, zipfile.BadZipFile)

# The columns' cells as texts that lose nothing, or None for null; with the number of rows that have them.
Cells = tuple[str | None, ...]

KINDS = {
    "VARCHAR": "text",
    "JSON": "text",
    "BOOLEAN": "truth",
    "FLOAT": "float",
    "DOUBLE": "float",
    "DATE": "date",
    "TIME": "time",
    "TIME_NS": "time",
    "TIME WITH TIME ZONE": "time",
    "TIMESTAMP": "micros",
    "TIMESTAMP_S": "micros",
    "TIMESTAMP_MS": "micros",
    "TIMESTAMP_NS": "nanos",
    "TIMESTAMP WITH TIME ZONE": "micros",
    "TIMESTAMPTZ_NS": "nanos",
    '"NULL"': "text",
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT"), "whole"
    ),
}
EXPRESSIONS = {
    "float": "CAST(CAST({} AS DOUBLE) AS VARCHAR)",
    # Times are written to microseconds.
    "time": "left(CAST({} AS VARCHAR), 15)",
    "micros": "CAST(epoch_us({}) AS VARCHAR)",
    "nanos": "CAST(epoch_ns({}) AS VARCHAR)",
}


def connect() -> duckdb.DuckDBPyConnection:
    """A connection to the one database in memory of this process; what is made in it is temporary, and ends with it.

    Raises
    ------
    PipelineError
        If DuckDB is not installed.
    """
    database = _database(os.getpid())
    try:
        found = database.cursor()
        found.execute("SELECT 1").fetchall()
    except failure():
        # What ends a database for good, such as a full disk, is of one reading and not of those after it.
        _database.cache_clear()
        found = _database(os.getpid()).cursor()
    return found


@cache
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """The database of a process, whose threads do not outlive a fork; what does not fit in memory is in a folder."""
    try:
        import duckdb
    except ImportError:
        raise PipelineError("a release is judged with DuckDB; install it with pip install 'funnel[pipeline]'") from None
    folder = Path(tempfile.mkdtemp(prefix="funnel-recount-"))
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": _MEMORY,
        "temp_directory": str(folder / "spilled"),
        # Nothing is fetched from anywhere.
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        # A file is read again whenever it is asked for.
        "enable_external_file_cache": False,
    }
    database = duckdb.connect(config=settings)
    atexit.register(_end, process, database, folder)
    return database


def _end(process: int, database: duckdb.DuckDBPyConnection, folder: Path) -> None:
    if process == os.getpid():
        _database.cache_clear()
        database.close()
        shutil.rmtree(folder, ignore_errors=True)


class FileReader(ABC):
    """Reads files of one format: the kinds of columns, and cells as texts that lose nothing.

    ``file`` is where a file is at hand, ``shown`` its name for messages. Every method raises a DataError if the file
    cannot be read, lacks a column that is asked for or has it twice, or a column holds what has no categories.
    """

    @abstractmethod
    def names(self, file: Path, shown: str) -> tuple[str, ...]:
        """All columns of a file, in their order."""

    @abstractmethod
    def kinds(self, file: Path, shown: str, columns: Sequence[str]) -> dict[str, Kind]:
        """What columns hold, of those named that the file has."""

    @abstractmethod
    def cells(self, file: Path, shown: str, columns: Sequence[str]) -> Iterator[tuple[Cells, int]]:
        """Combinations of cells with numbers of rows, some perhaps more than once."""

    @abstractmethod
    def rows(self, file: Path, shown: str, columns: Sequence[str]) -> Iterator[Sequence[Cells]]:
        """The rows in their order, some at a time."""


class TypedReader(FileReader):
    """Reads files of columns with types, as tables of DuckDB."""

    def __init__(self, database: duckdb.DuckDBPyConnection) -> None:
        self.database = database

    @abstractmethod
    def layout(self, file: Path, shown: str, columns: Sequence[str]) -> dict[str, tuple[int, Kind]]:
        """Of columns named that a file has: the number k of the name ck that it has in the table, and its kind."""

    @abstractmethod
    def table(self, file: Path, shown: str, columns: Sequence[str]) -> str:
        """The table of a file in a query, columns by the names c0, c1, …: names that differ in case are one to SQL."""

    def failures(self) -> tuple[type[Exception], ...]:
        """What reading a file may raise."""
        return (failure(),)

    def kinds(self, file: Path, shown: str, columns: Sequence[str]) -> dict[str, Kind]:
        return {column: kind for column, (_, kind) in self.layout(file, shown, columns).items()}

    def cells(self, file: Path, shown: str, columns: Sequence[str]) -> Iterator[tuple[Cells, int]]:
        for rows in self._answers(file, shown, columns, ["count(*)"], "GROUP BY ALL"):
            for row in rows:
                yield row[:-1], row[-1]

    def rows(self, file: Path, shown: str, columns: Sequence[str]) -> Iterator[Sequence[Cells]]:
        return self._answers(file, shown, columns, [], "")

    def _answers(
        self, file: Path, shown: str, columns: Sequence[str], more: Sequence[str], group: str
    ) -> Iterator[list[Any]]:
        """Columns of a file, and more, by a query: some rows at a time."""
        layout = self.layout(file, shown, columns)
        for column in columns:
            if column not in layout:
                raise DataError(f"{shown} has no column {column!r}, so it cannot be counted again")
        places = [layout[column] for column in columns]
        chosen = [EXPRESSIONS.get(kind.name, "CAST({} AS VARCHAR)").format(f"c{place}") for place, kind in places]
        # Known before: a reading that is given up may end when nothing can be imported any more.
        failed, failures = False, self.failures()
        try:
            table = self.table(file, shown, columns)
            found = self.database.execute(f"SELECT {', '.join([*chosen, *more])} FROM {table} {group}")
            while rows := found.fetchmany(ROWS):
                yield rows
        except failures:
            failed = True
        if failed:
            # Raised outside the handler: the original message may quote a cell.
            raise DataError(f"{shown} cannot be read to its end by the second reader, so the release cannot be judged")


@dataclass(frozen=True)
class CsvReader(FileReader):
    """Reads csv files, packed ones too, as the ending of their name says; an empty cell is an empty text."""

    delimiter: str
    encoding: str

    def kinds(self, file: Path, shown: str, columns: Sequence[str]) -> dict[str, Kind]:
        return dict.fromkeys(columns, TEXT)

    def cells(self, file: Path, shown: str, columns: Sequence[str]) -> Iterator[tuple[Cells, int]]:
        for chunk in self.rows(file, shown, columns):
            yield from Counter(chunk).items()

    def names(self, file: Path, shown: str) -> tuple[str, ...]:
        with contextlib.closing(self._records(file, shown)) as records:
            (header,) = next(records)
        if not header:
            raise DataError(f"{shown} has no header that the second reader can read, so it cannot be counted again")
        return tuple(header)

    def rows(self, file: Path, shown: str, columns: Sequence[str]) -> Iterator[Sequence[Cells]]:
        records = self._records(file, shown)
        (header,) = next(records)
        for column in columns:
            if header.count(column) != 1:
                raise DataError(f"{shown} has the column {column!r} {header.count(column)} times, not once")
        chosen = [header.index(column) for column in columns]
        pick = itemgetter(*chosen) if len(chosen) > 1 else lambda row: (row[chosen[0]],)
        for rows in records:
            if set(map(len, rows)) != {len(header)}:
                raise DataError(f"a row of {shown} has another number of values than its header")
            yield list(map(pick, rows))

    def _records(self, file: Path, shown: str) -> Generator[list[list[str]]]:
        """The header alone, empty where there is none; then the rows, some at a time."""
        sentence = ""
        before = csv.field_size_limit(_LONGEST)
        try:
            with _unpacked(file, shown) as packed, self._text(packed) as stream:
                reader = filter(None, csv.reader(stream, delimiter=self.delimiter))
                yield [next(reader, [])]
                while rows := list(islice(reader, ROWS)):
                    yield rows
        except UnicodeError:
            sentence = f"{shown} is not text in {self.encoding}"
        except csv.Error:
            sentence = f"{shown} cannot be read as csv by the second reader"
        except _UNREADABLE:
            sentence = f"{shown} cannot be read"
        finally:
            csv.field_size_limit(before)
        if sentence:
            raise DataError(f"{sentence}, so it cannot be counted again")

    def _text(self, packed: IO[bytes]) -> io.TextIOWrapper:
        return io.TextIOWrapper(packed, "utf-8-sig" if self.encoding == "utf-8" else self.encoding, newline="")


def unknown_type(column: str, shown: str) -> DataError:
    """The error of a column that holds what has no categories."""
    return DataError(f"column {column!r} of {shown} is of a type that the second reader cannot tell the values of")


@contextlib.contextmanager
def _unpacked(file: Path, shown: str) -> Iterator[IO[bytes]]:
    """A file, or what is in it if its name says that it is packed."""
    if shown.lower().endswith(".zip"):
        with zipfile.ZipFile(file) as archive:
            found = [name for name in archive.namelist() if name[-1:] != "/" and name.split("/")[0] != "__MACOSX"]
            if len(found) != 1:
                raise DataError(f"{shown} holds {len(found)} files rather than one, so it cannot be counted again")
            with archive.open(found[0]) as member:
                yield member
    else:
        with gzip.open(file) if shown.lower().endswith(".gz") else file.open("rb") as stream:
            yield cast(IO[bytes], stream)


def failure() -> type[Exception]:
    import duckdb

    return duckdb.Error
