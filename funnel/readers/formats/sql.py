"""A table or a query of a database, by SQLAlchemy: read once, in one transaction, into an unnamed file of this machine.

Rows of a database have no order, and a table that is being used is never twice the same. So all that is read comes from
one snapshot of the database, ordered by what it says; later passes read the copy.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import pyarrow as pa
from pyarrow import ipc

from funnel.databases import Database
from funnel.errors import DataError, SpecError
from funnel.readers.formats.columnar import Format, check_columns
from funnel.readers.opened_source import Source, SourceSpec

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

T = TypeVar("T")

# Made once: it takes as long to make as to use a thousand times.
_ENCODED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_FETCHED_ROWS = 1 << 14
_PATIENCE = 30
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class _Kind:
    """What a column holds: its name in the digest, its type here, and a cell as text that loses nothing."""

    name: str
    type: pa.DataType
    text: Callable[[Any], str] = str


_TEXT = _Kind("text", pa.string())
_WHOLE = _Kind("whole", pa.int64())
_FLOAT = _Kind("float", pa.float64(), repr)
_NOTHING = _Kind("nothing", pa.null())
_POSTGRES = {
    "bool": _Kind("truth", pa.bool_(), lambda value: "true" if value else "false"),
    **dict.fromkeys(("int2", "int4", "int8"), _WHOLE),
    **dict.fromkeys(("float4", "float8"), _FLOAT),
    "date": _Kind("date", pa.date32(), date.isoformat),
    "time": _Kind("time", pa.time64("us"), time.isoformat),
    "timestamp": _Kind("micros", pa.timestamp("us"), lambda value: str((value - _EPOCH) // _MICROSECOND)),
    "timestamptz": _Kind(
        "micros UTC",
        pa.timestamp("us", "UTC"),
        lambda value: str((value.astimezone(UTC).replace(tzinfo=None) - _EPOCH) // _MICROSECOND),
    ),
    # Read as text: their scale and precision are theirs to choose row by row.
    **dict.fromkeys(("numeric", "uuid", "inet"), _TEXT),
}
# How a session writes what is ordered as text.
_SETTINGS = ("SET TIME ZONE 'UTC'", "SET datestyle TO 'ISO, YMD'", "SET extra_float_digits TO 1")


class Sql(Format):
    """A table or a query of PostgreSQL or SQLite."""

    name = "sql"

    def open(self, spec: SourceSpec, address: str) -> Source:
        reading = _Reading(spec, spec.database)

        def looked(connection: Connection) -> tuple[tuple[str, ...], dict[str, _Kind]]:
            names = reading.names(connection)
            check_columns(spec, reading.title, names)
            return names, reading.kinds(connection, spec.columns)

        names, kinds = reading.within(looked)
        schema = pa.schema([(column, kind.type) for column, kind in kinds.items()])
        return Source(reading, self.name, reading.title, names, schema, None, reading.batches, reading.digest)


class _Copy:
    """What was read: a file without a name, which is gone with this object or this process; and its digest."""

    def __init__(self, folder: Path) -> None:
        with tempfile.TemporaryFile(dir=folder if folder.is_dir() else None) as file:
            self._handle = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._handle)
        self.sha256 = ""

    def open(self, mode: str = "rb") -> IO[Any]:
        """A way of its own to the file, so that two passes do not move each other."""
        return Path(f"/dev/fd/{self._handle}").open(mode)


class _Reading:
    """The rows of one table or query, at one moment."""

    def __init__(self, spec: SourceSpec, database: Database) -> None:
        self._spec, self._database = spec, database
        self.title = spec.source_title
        self._origin = _origin(spec)

    @property
    def address(self) -> str:
        return f"{self._database}, {self.title}"

    def digest(self) -> str:
        """SHA-256 of the names and kinds of the columns, by name, then of every row: lines of JSON."""
        return self._copy.sha256

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        with self._copy.open() as stream, ipc.open_stream(stream) as reader:
            for batch in reader:
                for start in range(0, batch.num_rows, batch_rows):
                    yield batch.slice(start, batch_rows).select(list(columns))

    @cached_property
    def _copy(self) -> _Copy:
        return self.within(self._copied)

    def _copied(self, connection: Connection) -> _Copy:
        copy, total = _Copy(self._spec.workspace_folder), hashlib.sha256()
        of_column = self.kinds(connection, sorted(set(self._spec.columns)))
        kinds = list(of_column.values())
        total.update(_line([[column, kind.name] for column, kind in of_column.items()]))
        schema = pa.schema([(column, kind.type) for column, kind in of_column.items()])
        options = ipc.IpcWriteOptions(compression="lz4")
        with copy.open("wb") as stream, ipc.new_stream(stream, schema, options=options) as writer:
            for rows in self._rows(connection, of_column):
                columns = [_typed(cells, kind) for cells, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
                total.update(b"".join(map(_line, zip(*map(_texts, columns, kinds), strict=True))))
                arrays = [pa.array(cells, kind.type) for cells, kind in zip(columns, kinds, strict=True)]
                writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
        copy.sha256 = total.hexdigest()
        return copy

    def within(self, action: Callable[[Connection], T]) -> T:
        """What an action comes to in a transaction that only reads, and sees the database as it is at its first look.

        Raises
        ------
        DataError
            For whatever goes wrong in it; nothing of the database, and no password, is quoted.
        """
        engine = _engine(self._database)
        try:
            with engine.connect() as connection:
                if self._database.backend == "postgresql":
                    connection = connection.execution_options(
                        isolation_level="REPEATABLE READ", postgresql_readonly=True, no_parameters=True
                    )
                    for statement in _SETTINGS:
                        connection.exec_driver_sql(statement)
                else:
                    connection.exec_driver_sql("BEGIN")
                return action(connection)
        except (*_errors(self._database), ValueError, OverflowError, pa.ArrowException) as error:
            sentence = self._explained(error)
        finally:
            engine.dispose()
        # Raised outside the handler: the original message may quote the URL or a row.
        raise DataError(sentence)

    def names(self, connection: Connection) -> tuple[str, ...]:
        """All columns of the table or query."""
        return tuple(str(entry[0]) for entry in self._described(connection))

    def kinds(self, connection: Connection, columns: Sequence[str]) -> dict[str, _Kind]:
        """What columns hold.

        Raises
        ------
        DataError
            If one of them has no categories.
        """
        if not columns:
            return {}
        if self._database.backend == "sqlite":
            return self._kinds_met(connection, columns)
        of_name = {str(entry[0]): int(entry[1]) for entry in self._described(connection)}
        ids = ", ".join(map(str, sorted(set(of_name.values()))))
        asked = f"SELECT oid::bigint, typname, typcategory FROM pg_type WHERE oid IN ({ids})"
        types = {int(oid): (str(name), str(category)) for oid, name, category in connection.exec_driver_sql(asked)}
        return {column: self._postgres_kind(column, *types[of_name[column]]) for column in columns}

    def _postgres_kind(self, column: str, type_name: str, category: str) -> _Kind:
        # Strings and enumerations.
        kind = _TEXT if category in "SE" else _POSTGRES.get(type_name)
        if kind is None:
            raise DataError(
                f"column {column!r} of {self.title} is of type {type_name}, which has no categories; publish or "
                "protect columns of text, numbers, booleans or dates, or cast it in a query"
            )
        return kind

    def _kinds_met(self, connection: Connection, columns: Sequence[str]) -> dict[str, _Kind]:
        """The kinds of columns of SQLite, which has types of cells rather than of columns."""
        kinds = ("integer", "real", "text", "blob")
        asked = [f"max(typeof(source.{_quoted(column)}) = '{kind}')" for column in columns for kind in kinds]
        (row,) = connection.exec_driver_sql(f"SELECT {', '.join(asked)} FROM {self._origin}").all()
        found = {}
        for place, column in enumerate(columns):
            whole, real, text, blob = row[4 * place : 4 * place + 4]
            if blob or (text and (whole or real)):
                holds = "binary data" if blob else "texts as well as numbers"
                raise DataError(f"column {column!r} of {self.title} holds {holds}; cast it to one type in a query")
            found[column] = _TEXT if text else _FLOAT if real else _WHOLE if whole else _NOTHING
        return found

    def _described(self, connection: Connection) -> Sequence[Sequence[Any]]:
        result = connection.exec_driver_sql(f"SELECT * FROM {self._origin} LIMIT 0")
        described: Sequence[Sequence[Any]] = result.cursor.description if result.cursor is not None else ()
        return described

    def _rows(self, connection: Connection, kinds: dict[str, _Kind]) -> Iterator[Sequence[Sequence[Any]]]:
        if self._database.backend == "postgresql":
            chosen = [_postgres_cell(column, kind) for column, kind in kinds.items()]
            order = [f'CAST({cell} AS text) COLLATE "C"' for cell in chosen]
        else:
            chosen = [f"source.{_quoted(column)}" for column in kinds]
            order = [f"{cell} COLLATE BINARY" for cell in chosen]
        statement = f"SELECT {', '.join(chosen)} FROM {self._origin} ORDER BY {', '.join(order)}"
        streamed = connection.execution_options(stream_results=True, max_row_buffer=_FETCHED_ROWS)
        yield from streamed.exec_driver_sql(statement).partitions(_FETCHED_ROWS)

    def _explained(self, error: Exception) -> str:
        """What went wrong, made of the class of the error, and of what the database says of the query itself."""
        where = f"{self.title} of {self._database}"
        if isinstance(error, (ValueError, OverflowError, pa.ArrowException)):
            return f"{where} has a value that cannot be read; cast it to text in a query"
        origin = getattr(error, "orig", None) or error
        state = getattr(origin, "sqlstate", None) or ""
        said = getattr(getattr(origin, "diag", None), "message_primary", None) or ""
        if isinstance(origin, sqlite3.Error):
            said = str(origin)
            if not said.startswith(("no such table", "no such column", "near ")):
                said = ""
        elif not state.startswith("42"):
            said = ""
        if said:
            return f"{where} cannot be read: {' '.join(said.split())[:200]}; check table or query in [source]"
        if type(origin).__name__ == "DataError":
            return (
                f"{where} has a value that cannot be read, such as a date outside the years 1 to 9999; cast it to text "
                "in a query"
            )
        code = f", {state}" if state else ""
        return (
            f"{where} cannot be read ({type(origin).__name__}{code}); check that the database is there, and its user "
            "and password (PGPASSWORD or ~/.pgpass)"
        )


def _origin(spec: SourceSpec) -> str:
    """What to select from, named ``source``."""
    if spec.source.query is not None:
        return f"(\n{spec.source.query.strip().rstrip(';')}\n) AS source"
    return ".".join(map(_quoted, str(spec.source.table).split("."))) + " AS source"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _postgres_cell(column: str, kind: _Kind) -> str:
    cell = f"source.{_quoted(column)}"
    if kind is not _TEXT:
        return cell
    # Of numbers without a fixed scale, NaN is missing.
    return f"NULLIF(CAST({cell} AS text), CASE WHEN pg_typeof({cell}) = 'numeric'::regtype THEN 'NaN' END)"


def _typed(cells: Sequence[Any], kind: _Kind) -> Sequence[Any]:
    return cells if kind is not _FLOAT else [None if cell is None else float(cell) for cell in cells]


def _texts(cells: Sequence[Any], kind: _Kind) -> list[str | None]:
    return [None if cell is None else kind.text(cell) for cell in cells]


def _line(values: Sequence[object]) -> bytes:
    return _ENCODED(values).encode() + b"\n"


def _engine(database: Database) -> Engine:
    try:
        from sqlalchemy import NullPool, create_engine
        from sqlalchemy.engine import make_url
    except ImportError:
        raise SpecError(
            "a database is read with SQLAlchemy, which is not installed; install it with pip install 'funnel[pipeline]'"
        ) from None
    if (file := database.file) is not None:
        if not file.is_file():
            raise DataError(f"there is no database {file}; check path in [source] of the spec")

        def connected() -> sqlite3.Connection:
            return sqlite3.connect(
                f"file:{quote(str(file))}?mode=ro", uri=True, isolation_level=None, timeout=_PATIENCE
            )

        return create_engine("sqlite://", creator=connected, poolclass=NullPool, hide_parameters=True)
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise SpecError(
            "the source is in PostgreSQL, and the package for that is not installed: pip install 'funnel[postgres]'"
        ) from None
    url = make_url(database.url).set(drivername="postgresql+psycopg")
    patience = {} if "connect_timeout" in url.query else {"connect_timeout": _PATIENCE}
    return create_engine(url, poolclass=NullPool, hide_parameters=True, connect_args=patience)


def _errors(database: Database) -> tuple[type[Exception], ...]:
    from sqlalchemy.exc import SQLAlchemyError

    if database.backend == "sqlite":
        return SQLAlchemyError, sqlite3.Error
    import psycopg

    return SQLAlchemyError, psycopg.Error
