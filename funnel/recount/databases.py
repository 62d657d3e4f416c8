"""The rows of a table or query by the driver of its database, read again: cells as texts that the database made."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import time
from typing import Any, TypeVar
from urllib.parse import quote

from funnel.errors import DataError, PipelineError
from funnel.recount.cells import Kind
from funnel.spec import ReleaseSpec

T = TypeVar("T")

# Made once: it takes as long to make as to use a thousand times.
_ENCODED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_ROWS = 1 << 14
_EPOCH = "CAST(CAST(extract(epoch FROM {}) * 1000000 AS bigint) AS text)"
# By the name of a type: its kind, and how PostgreSQL is asked for its text.
_TYPES = {
    "bool": (Kind("truth"), "CAST({} AS text)"),
    **dict.fromkeys(("int2", "int4", "int8"), (Kind("whole"), "CAST({} AS text)")),
    **dict.fromkeys(("float4", "float8"), (Kind("float"), "CAST({} AS text)")),
    "date": (Kind("date"), "to_char({}, 'YYYY-MM-DD')"),
    "time": (Kind("time"), "CAST({} AS text)"),
    "timestamp": (Kind("micros"), _EPOCH),
    "timestamptz": (Kind("micros", "UTC"), _EPOCH),
    "numeric": (Kind("text"), "CASE WHEN {0} = 'NaN' THEN NULL ELSE CAST({0} AS text) END"),
    **dict.fromkeys(("uuid", "inet"), (Kind("text"), "CAST({} AS text)")),
}
_TEXT = (Kind("text"), "CAST({} AS text)")


class Rows:
    """All rows of the source of a spec, as they were when a transaction began, in the order of what they say."""

    def __init__(self, spec: ReleaseSpec, connection: Any) -> None:
        self._spec, self._connection = spec, connection
        self._sqlite = spec.database.backend == "sqlite"
        self._columns = sorted({*spec.columns, *(spec.record_key or ()), *(spec.unit or ()), *spec.source.where})
        if spec.source.query is not None:
            self._table = f"({spec.source.query.strip().rstrip(';')}\n) source"
        else:
            schema, point, table = (spec.source.table or "").rpartition(".")
            self._table = f"{_name(schema) if point else ''}{point}{_name(table)} source"
        self._kinds: dict[str, tuple[Kind, str]] | None = None
        self._digest: str | None = None

    def names(self) -> tuple[str, ...]:
        """All columns, in their order."""
        return tuple(name for name, _ in self._described())

    def kinds(self) -> dict[str, Kind]:
        """What the columns hold.

        Raises
        ------
        DataError
            If one is not there, or there twice, or holds what has no categories.
        """
        return {column: kind for column, (kind, _) in self._known().items()}

    def digest(self) -> str:
        """SHA-256 of what was read, in the form in which a snapshot states that of its source.

        Raises
        ------
        DataError
            If it was not read to its end.
        """
        if self._digest is None:
            raise DataError(f"{self._spec.source_title} was not read to its end, so it has no digest")
        return self._digest

    def all(self, columns: Sequence[str] = ()) -> Iterator[list[tuple[str | None, ...]]]:
        """The cells of some columns, some rows at a time.

        Raises
        ------
        DataError
            If they cannot be read to their end.
        """
        known = self._known()
        total = hashlib.sha256()
        total.update(_line([[column, str(known[column][0])] for column in self._columns]))
        places = [self._columns.index(column) for column in columns]
        finals = [_FINAL.get(known[column][0].name, str) for column in self._columns]
        cells = [known[column][1].format(f"source.{_name(column)}") for column in self._columns]
        by = "{} COLLATE BINARY" if self._sqlite else 'CAST({} AS text) COLLATE "C"'
        order = ", ".join(
            by.format(known[c][1].format(f"source.{_name(c)}") if known[c][0].name == "text" else f"source.{_name(c)}")
            for c in self._columns
        )
        for chunk in self._query(f"SELECT {', '.join(cells)} FROM {self._table} ORDER BY {order}"):
            rows = [
                tuple([None if cell is None else final(cell) for cell, final in zip(row, finals, strict=True)])
                for row in chunk
            ]
            total.update(b"".join(map(_line, rows)))
            yield [tuple([row[place] for place in places]) for row in rows]
        digest = total.hexdigest()
        if self._digest not in (None, digest):
            raise DataError(f"{self._spec.source_title} changed while it was counted again; try again")
        self._digest = digest

    def _known(self) -> dict[str, tuple[Kind, str]]:
        if self._kinds is None:
            described = self._described()
            for column in self._columns:
                if (found := [name for name, _ in described].count(column)) != 1:
                    raise DataError(f"{self._spec.source_title} has the column {column!r} {found} times, not once")
            of = dict(described)
            self._kinds = {
                column: self._met(column) if self._sqlite else self._typed(column, of[column])
                for column in self._columns
            }
        return self._kinds

    def _described(self) -> list[tuple[str, Any]]:
        _, described = self._fetched(f"SELECT * FROM {self._table} LIMIT 0")
        return [(str(entry[0]), entry[1]) for entry in described]

    def _typed(self, column: str, oid: int) -> tuple[Kind, str]:
        ((name, category),), _ = self._fetched(f"SELECT typname, typcategory FROM pg_type WHERE oid = {int(oid)}")
        found = _TEXT if category in ("S", "E") else _TYPES.get(name)
        if found is None:
            raise DataError(f"column {column!r} is of a type that the second reader cannot tell the values of")
        return found

    def _met(self, column: str) -> tuple[Kind, str]:
        cell = f"source.{_name(column)}"
        rows, _ = self._fetched(f"SELECT DISTINCT typeof({cell}) FROM {self._table}")
        met = {kind for (kind,) in rows} - {"null"}
        if met <= {"integer"}:
            return Kind("whole" if met else "nothing"), "{}"
        if met <= {"integer", "real"}:
            return Kind("float"), "{}"
        if met == {"text"}:
            return Kind("text"), "{}"
        raise DataError(f"column {column!r} holds values of several types, or binary ones")

    def _fetched(self, statement: str) -> tuple[list[tuple[Any, ...]], Sequence[Any]]:
        """All rows that answer a statement, and what the database says of their columns."""

        def fetched() -> tuple[list[tuple[Any, ...]], Sequence[Any]]:
            with closing(self._connection.cursor()) as cursor:
                cursor.execute(statement)
                return [tuple(row) for row in cursor.fetchall()], cursor.description

        return _guarded(self._spec, fetched)

    def _query(self, statement: str) -> Iterator[list[Any]]:
        # A cursor with a name is one of the server's, which sends some rows at a time.
        cursor = self._connection.cursor() if self._sqlite else self._connection.cursor("recount")
        with closing(cursor):
            _guarded(self._spec, lambda: cursor.execute(statement))
            while rows := _guarded(self._spec, lambda: cursor.fetchmany(_ROWS)):
                yield rows


# How numbers are written in the digest, and times, of which the database leaves out zeros at the end.
_FINAL: dict[str, Callable[[Any], str]] = {
    "float": lambda cell: repr(float(cell)),
    "time": lambda cell: time.fromisoformat(cell).isoformat(),
}


@contextmanager
def opened(spec: ReleaseSpec) -> Iterator[Rows]:
    """The rows of the source of a spec, in a transaction that only reads.

    Raises
    ------
    DataError
        If the database cannot be reached, or the rows cannot be read; no row and no password is quoted.
    PipelineError
        If the package for PostgreSQL is not installed.
    """
    with closing(_guarded(spec, lambda: _connection(spec))) as connection:
        yield Rows(spec, connection)


def _guarded(spec: ReleaseSpec, action: Callable[[], T]) -> T:
    """The result of something that a database is asked for."""
    kinds: tuple[type[Exception], ...] = (sqlite3.Error, ValueError)
    if spec.database.backend != "sqlite":
        try:
            import psycopg
        except ImportError:
            raise PipelineError(
                "the source is in PostgreSQL, and the package for that is not installed: pip install 'funnel[postgres]'"
            ) from None
        kinds = (psycopg.Error, ValueError)
    try:
        return action()
    except kinds as error:
        name = type(error).__name__
    # Raised outside the handler: the original message may quote a cell or the URL.
    raise DataError(f"{spec.source_title} of {spec.database} cannot be read by the second reader ({name})")


def _connection(spec: ReleaseSpec) -> Any:
    database = spec.database
    if database.file is not None:
        if not database.file.is_file():
            raise DataError(f"there is no database {database.file}, so it cannot be counted again")
        connection = sqlite3.connect(f"file:{quote(str(database.file))}?mode=ro", uri=True, isolation_level=None)
        connection.execute("BEGIN")
        return connection
    import psycopg

    address = database.url.replace("postgresql+psycopg://", "postgresql://", 1)
    given = psycopg.conninfo.conninfo_to_dict(address).get("options") or ""
    connected = psycopg.connect(
        address, options=f"{given} -c datestyle=ISO,YMD -c timezone=UTC -c extra_float_digits=1".strip()
    )
    connected.read_only = True
    connected.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    return connected


def _name(name: str) -> str:
    return '"' + '""'.join(name.split('"')) + '"'


def _line(values: Sequence[object]) -> bytes:
    return _ENCODED(values).encode() + b"\n"
