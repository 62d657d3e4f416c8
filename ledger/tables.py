"""The database of a ledger: its table and triggers, its connection, and what of a failure is reported."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    Index,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    insert,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from funnel.errors import LedgerError
from funnel.pipeline.ledger.address import Address

# The newest version of the database that this code knows.
VERSION = 1
VERSION_TABLE = "funnel_ledger_version"
_FIRST_BYTES = b"SQLite format 3\0"
# The execution option of a transaction that writes.
WRITING = "funnel_writing"
# Seconds until a server that does not answer counts as gone.
_CONNECT = 10
# Seconds that a writer waits for another one.
_BUSY = 30

_ALL = MetaData()
ENTRIES = Table(
    "funnel_ledger",
    _ALL,
    Column("serial", BigInteger, primary_key=True, autoincrement=False),
    Column("previous", String(64), nullable=False, unique=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("content", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("series", Text, nullable=False),
    Column("register", Text),
    Column("version", Text),
    Index("funnel_ledger_series", "series", "serial"),
    Index("funnel_ledger_register", "register", "serial"),
)
_VERSIONS = Table(VERSION_TABLE, _ALL, Column("version_num", String(32), primary_key=True))

# Triggers that refuse to change, remove or reorder entries.
_SQLITE = (
    """
    CREATE TRIGGER funnel_ledger_keeps_content BEFORE UPDATE ON funnel_ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: no entry is changed'); END
    """,
    """
    CREATE TRIGGER funnel_ledger_keeps_entries BEFORE DELETE ON funnel_ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: no entry is removed'); END
    """,
    # INSERT OR REPLACE removes a row without the trigger above, which is what this one sees.
    """
    CREATE TRIGGER funnel_ledger_goes_on BEFORE INSERT ON funnel_ledger
    WHEN NEW.serial IS NOT (SELECT COALESCE(MAX(serial), 0) + 1 FROM funnel_ledger)
        OR EXISTS (SELECT 1 FROM funnel_ledger WHERE serial = NEW.serial - 1 AND digest IS NOT NEW.previous)
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: an entry follows the last one'); END
    """,
)

_POSTGRES = (
    """
    CREATE FUNCTION funnel_ledger_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'the ledger is append-only: no entry is changed or removed'; END $$
    """,
    """
    CREATE TRIGGER funnel_ledger_keeps_entries BEFORE UPDATE OR DELETE OR TRUNCATE ON funnel_ledger
    FOR EACH STATEMENT EXECUTE FUNCTION funnel_ledger_is_append_only()
    """,
    """
    CREATE FUNCTION funnel_ledger_follows() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE last record;
    BEGIN
        EXECUTE format('SELECT serial, digest FROM %I.%I ORDER BY serial DESC LIMIT 1', TG_TABLE_SCHEMA, TG_TABLE_NAME)
        INTO last;
        IF NEW.serial <> COALESCE(last.serial, 0) + 1 OR NEW.previous <> COALESCE(last.digest, NEW.previous) THEN
            RAISE EXCEPTION 'the ledger is append-only: an entry follows the last one';
        END IF;
        RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER funnel_ledger_goes_on BEFORE INSERT ON funnel_ledger
    FOR EACH ROW EXECUTE FUNCTION funnel_ledger_follows()
    """,
)


def engine_of(address: Address, read_only: bool) -> Engine:
    """How a ledger is connected to; nothing is opened yet.

    Every connection is a new one: a release needs few, and one that was kept may be dead when it is needed.
    """
    if address.is_server:
        return _server(address, read_only)
    return _file(address, read_only)


def _server(address: Address, read_only: bool) -> Engine:
    defaults: dict[str, Any] = {
        "connect_timeout": _CONNECT,
        "application_name": "funnel",
        # A network that swallows packets is noticed in two minutes, not in two hours.
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 60_000,
    }
    given = {name: value for name, value in defaults.items() if name not in address.url.query}
    # What failed statements were about is nobody's business who reads the log.
    engine = create_engine(address.url, poolclass=NullPool, connect_args=given, hide_parameters=True)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        with connection.cursor() as cursor:
            # An entry that was acknowledged is on disk, whatever is the default of the server.
            durable = "SELECT set_config('synchronous_commit', 'on', false)"
            cursor.execute(f"{durable} WHERE current_setting('synchronous_commit') = 'off'")
            # The server notices a holder of a lock that is gone, and ends none that only computes.
            for name, value in (
                ("tcp_keepalives_idle", "30"),
                ("tcp_keepalives_interval", "10"),
                ("tcp_keepalives_count", "3"),
                ("idle_session_timeout", "0"),
            ):
                cursor.execute(
                    "SELECT set_config(name, %s, false) FROM pg_settings WHERE name = %s",
                    (value, name),
                )
            if read_only:
                cursor.execute("SELECT set_config('default_transaction_read_only', 'on', false)")
        connection.commit()

    return engine


def _file(address: Address, read_only: bool) -> Engine:
    def connect() -> sqlite3.Connection:
        uri = f"{Path(str(address.file)).as_uri()}?mode={'ro' if read_only else 'rw'}"
        # Transactions are begun by the listener below: the module would begin them too late.
        connection = sqlite3.connect(uri, uri=True, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        # One file, of which a copy is a whole backup while nobody writes; an entry that was acknowledged survives a
        # power cut, the removal of the journal too (decision 0035).
        for pragma in ("synchronous = EXTRA", "trusted_schema = OFF"):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # Two writers that both began to read could both be refused to write.
        writing = connection.get_execution_options().get(WRITING, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


def make_file(path: Path) -> None:
    """Make the file of a ledger, readable by its owner alone, if there is none.

    Raises
    ------
    LedgerError
        If it cannot be made, or is something else than a ledger.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            first = os.read(descriptor, len(_FIRST_BYTES))
        finally:
            os.close(descriptor)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise LedgerError(
            f"the ledger {path} cannot be written: {reason}; give permission, or name another place in [ledger]"
        ) from error
    if first not in (b"", _FIRST_BYTES):
        raise LedgerError(f"{path} is no ledger, or it is damaged; restore it from a backup")


@contextmanager
def plain_failures(address: Address, doing: str) -> Iterator[None]:
    """Inside, every failure of the database becomes a `LedgerError` of one sentence, without a password in it.

    Parameters
    ----------
    address : Address
    doing : str
        What could not be done, such as ``"cannot be read"``.
    """
    try:
        yield
    except SQLAlchemyError as error:
        raise LedgerError(_sentence(address, doing, error)) from None


def _sentence(address: Address, doing: str, error: SQLAlchemyError) -> str:
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    said = address.cleaned(str(cause).partition("\nCONTEXT:")[0]) or type(cause).__name__
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    if address.is_server and (lost or "connection" in said.lower()):
        remedy = "see that the database is up and run it again: what was entered before is kept"
    else:
        remedy = "give permission or make room, or restore it from a backup, then run it again"
    return f"the ledger {address} {doing}: {said.rstrip('.')}; {remedy}"


def version_of(connection: Connection, place: str) -> int | None:
    """The version of an open database; None if there is no ledger in it yet.

    Raises
    ------
    LedgerError
        If it does not say of which version it is.
    """
    there = {name for name in (VERSION_TABLE, ENTRIES.name) if connection.dialect.has_table(connection, name)}
    if not there:
        return None
    found = connection.execute(select(_VERSIONS.c.version_num)).scalars().all() if len(there) == 2 else []
    if len(found) != 1 or not str(found[0]).isdecimal():
        raise LedgerError(
            f"the ledger {place} does not say of which version it is; restore it from a backup, or name another "
            "database in [ledger]"
        )
    return int(found[0])


def begin(connection: Connection) -> None:
    """Make the table of entries, its triggers and its version; the caller's transaction holds all of it.

    Parameters
    ----------
    connection : Connection
        Of a database without a ledger, in a transaction that no other one writes beside.
    """
    _ALL.create_all(connection, checkfirst=False)
    for statement in _POSTGRES if connection.dialect.name == "postgresql" else _SQLITE:
        connection.execute(text(statement))
    connection.execute(insert(_VERSIONS).values(version_num=str(VERSION)))


def require_known(version: int | None, place: str) -> None:
    """Refuse a database of a newer version.

    Raises
    ------
    LedgerError
    """
    if version is not None and version > VERSION:
        raise LedgerError(
            f"the ledger {place} was made by a newer funnel: its version is {version}, and this funnel knows up to "
            f"{VERSION}; install a newer one"
        )
