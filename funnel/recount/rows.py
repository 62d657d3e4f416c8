"""The cells of a file by other readers than the release was made with: parquet by DuckDB, csv by the standard one."""

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
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from funnel.errors import DataError, PipelineError
from funnel.recount.cells import Kind
from funnel.recount.zones import zones_of

if TYPE_CHECKING:
    import duckdb

# Rows of a csv file, and distinct combinations of a parquet file, that are in memory at once.
ROWS = 1 << 16
# A row that the release was made from has at most 4 MB.
_LONGEST = 1 << 23
_MEMORY = "1GB"

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
    return _database(os.getpid()).cursor()


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
        database.close()
        shutil.rmtree(folder, ignore_errors=True)


def parquet_names(database: duckdb.DuckDBPyConnection, file: Path, shown: str) -> tuple[str, ...]:
    """The columns of a parquet file, in their order.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    return tuple(name for name, _ in _top_level(_schema(database, file, shown)))


def parquet_kinds(
    database: duckdb.DuckDBPyConnection, file: Path, shown: str, columns: Sequence[str]
) -> dict[str, Kind]:
    """What the columns of a parquet file hold, of those named that it has.

    Raises
    ------
    DataError
        If it cannot be read, a column is there twice, or holds what has no categories.
    """
    return {column: kind for column, (_, kind) in _layout(database, file, shown, columns).items()}


def parquet_cells(
    database: duckdb.DuckDBPyConnection, file: Path, shown: str, columns: Sequence[str]
) -> Iterator[tuple[Cells, int]]:
    """The distinct combinations of cells of a parquet file, with their numbers of rows.

    Raises
    ------
    DataError
        If it cannot be read to its end, or lacks a column.
    """
    chosen = _chosen(database, file, shown, columns)
    for rows in _answers(database, file, shown, f"SELECT {', '.join([*chosen, 'count(*)'])}", "GROUP BY ALL"):
        for row in rows:
            yield row[:-1], row[-1]


def parquet_rows(
    database: duckdb.DuckDBPyConnection, file: Path, shown: str, columns: Sequence[str]
) -> Iterator[list[Cells]]:
    """The rows of a parquet file in their order, some at a time.

    Raises
    ------
    DataError
        As `parquet_cells`.
    """
    chosen = _chosen(database, file, shown, columns)
    return _answers(database, file, shown, f"SELECT {', '.join(chosen)}", "")


def csv_cells(
    file: Path, shown: str, columns: Sequence[str], delimiter: str, encoding: str = "utf-8"
) -> Iterator[tuple[Cells, int]]:
    """As `parquet_cells` for a csv file; combinations may come more than once, and an empty cell is an empty text.

    Raises
    ------
    DataError
        If it is not UTF-8 text, a row does not fit the header, a column is missing or there twice, or it is packed,
        as the ending of ``shown`` says, and cannot be unpacked.
    """
    for chunk in csv_rows(file, shown, columns, delimiter, encoding=encoding):
        yield from Counter(chunk).items()


def csv_names(file: Path, shown: str, delimiter: str, encoding: str = "utf-8") -> tuple[str, ...]:
    """The columns of a csv file, as its header has them.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    sentence = f"{shown} has no header that the second reader can read, so it cannot be counted again"
    header: list[str] = []
    before = csv.field_size_limit(_LONGEST)
    with contextlib.suppress(UnicodeError, csv.Error, OSError, EOFError, RuntimeError, zlib.error, zipfile.BadZipFile):
        written = "utf-8-sig" if encoding == "utf-8" else encoding
        with _unpacked(file, shown) as packed, io.TextIOWrapper(packed, written, newline="") as stream:
            header = next(filter(None, csv.reader(stream, delimiter=delimiter)), [])
    csv.field_size_limit(before)
    if not header:
        raise DataError(sentence)
    return tuple(header)


def csv_rows(
    file: Path, shown: str, columns: Sequence[str], delimiter: str = ",", encoding: str = "utf-8"
) -> Iterator[list[tuple[str, ...]]]:
    """The rows of a csv file in their order, some at a time.

    Raises
    ------
    DataError
        As `csv_cells`.
    """
    sentence = ""
    before = csv.field_size_limit(_LONGEST)
    try:
        written = "utf-8-sig" if encoding == "utf-8" else encoding
        with _unpacked(file, shown) as packed, io.TextIOWrapper(packed, written, newline="") as stream:
            reader = filter(None, csv.reader(stream, delimiter=delimiter))
            header = next(reader, [])
            for column in columns:
                if header.count(column) != 1:
                    raise DataError(f"{shown} has the column {column!r} {header.count(column)} times, not once")
            chosen = [header.index(column) for column in columns]
            pick = itemgetter(*chosen) if len(chosen) > 1 else lambda row: (row[chosen[0]],)
            while rows := list(islice(reader, ROWS)):
                if set(map(len, rows)) != {len(header)}:
                    raise DataError(f"a row of {shown} has another number of values than its header")
                yield list(map(pick, rows))
    except UnicodeError:
        sentence = f"{shown} is not text in {encoding}"
    except csv.Error:
        sentence = f"{shown} cannot be read as csv by the second reader"
    except (OSError, EOFError, RuntimeError, zlib.error, zipfile.BadZipFile):
        sentence = f"{shown} cannot be read"
    finally:
        csv.field_size_limit(before)
    if sentence:
        raise DataError(f"{sentence}, so it cannot be counted again")


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


def _chosen(database: duckdb.DuckDBPyConnection, file: Path, shown: str, columns: Sequence[str]) -> list[str]:
    """What to select for columns: by their place, as names that differ in case alone are one name to SQL."""
    layout = _layout(database, file, shown, columns)
    for column in columns:
        if column not in layout:
            raise DataError(f"{shown} has no column {column!r}, so it cannot be counted again")
    places = [layout[column] for column in columns]
    return [EXPRESSIONS.get(kind.name, "CAST({} AS VARCHAR)").format(f"c{place}") for place, kind in places]


def _answers(
    database: duckdb.DuckDBPyConnection, file: Path, shown: str, select: str, group: str
) -> Iterator[list[Any]]:
    """What a query over a parquet file answers, some rows at a time."""
    aliases = ", ".join(f"c{k}" for k in range(len(parquet_names(database, file, shown))))
    # Known before: a reading that is given up may end when nothing can be imported any more.
    failed, failures = False, failure()
    try:
        found = database.execute(f"{select} FROM {_table(file)} AS source({aliases}) {group}")
        while rows := found.fetchmany(ROWS):
            yield rows
    except failures:
        failed = True
    if failed:
        # Raised outside the handler: the original message may quote a cell.
        raise DataError(f"{shown} cannot be read to its end by the second reader, so the release cannot be judged")


def _schema(
    database: duckdb.DuckDBPyConnection, file: Path, shown: str
) -> list[tuple[str, int | None, str | None, int | None]]:
    """Name, number of children, logical type and precision of all nodes of the schema, a tree in order."""
    nodes = "SELECT name, num_children, logical_type, precision FROM parquet_schema(?)"
    return _query(database, shown, nodes, [_escaped(file)])


def _query(database: duckdb.DuckDBPyConnection, shown: str, query: str, names: list[str]) -> list[Any]:
    """All rows that answer a question about a file itself."""
    with contextlib.suppress(failure()):
        return database.execute(query, names).fetchall()
    # Raised outside the handler: the original message may quote the file.
    raise DataError(f"{shown} cannot be read as parquet by the second reader, so the release cannot be judged")


def _layout(
    database: duckdb.DuckDBPyConnection, file: Path, shown: str, columns: Sequence[str]
) -> dict[str, tuple[int, Kind]]:
    """Place and kind of the columns of a parquet file, of those named that it has."""
    fields = _top_level(_schema(database, file, shown))
    described = _query(database, shown, f"DESCRIBE SELECT * FROM {_table(file)}", [])
    stored = "SELECT value FROM parquet_kv_metadata(?) WHERE key = 'ARROW:schema'"
    zones = zones_of(_query(database, shown, stored, [_escaped(file)]), shown)
    if len(fields) != len(described):
        raise DataError(f"{shown} has a schema that two of its readers see in two ways, so it cannot be counted again")
    layout: dict[str, tuple[int, Kind]] = {}
    for place, ((name, wide), entry) in enumerate(zip(fields, described, strict=True)):
        if name not in columns:
            continue
        if name in layout:
            raise DataError(f"{shown} has the column {name!r} more than once")
        kind = "decimal" if entry[1].startswith("DECIMAL(") else KINDS.get(entry[1])
        if kind is None or wide:
            raise DataError(f"column {name!r} of {shown} is of a type that the second reader cannot tell the values of")
        zoned = entry[1] in ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")
        layout[name] = (place, Kind(kind, zones.get(name, "UTC") if zoned else None))
    return layout


def _top_level(schema: list[tuple[str, int | None, str | None, int | None]]) -> list[tuple[str, bool]]:
    """Names of the columns, and whether a decimal is wider than the second reader's."""
    columns = []
    place = 1
    for _ in range(schema[0][1] or 0):
        name, _, logical, precision = schema[place]
        columns.append((name, "Decimal" in (logical or "") and (precision or 0) > 38))
        open_ = 1
        while open_:
            open_ += (schema[place][1] or 0) - 1
            place += 1
    return columns


def _table(file: Path) -> str:
    return f"read_parquet('{_escaped(file).replace(chr(39), chr(39) * 2)}', hive_partitioning = false)"


def _escaped(file: Path) -> str:
    """A path whose name is no pattern."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(file))


def failure() -> type[Exception]:
    import duckdb

    return duckdb.Error
