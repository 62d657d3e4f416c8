"""Ledger: entries that are only ever added, in SQLite or PostgreSQL, each bound to the one before it by its digest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from sqlalchemy import ColumnElement, Connection, Engine, insert, select, text

from funnel.errors import DataError, LedgerError
from funnel.pipeline.ledger.address import Address, address_of
from funnel.pipeline.ledger.chain import BEGINNING, Row, first_misfit
from funnel.pipeline.ledger.entry import Entry, Event, Judged, in_utc
from funnel.pipeline.ledger.head import FILE as HEAD_FILE
from funnel.pipeline.ledger.head import described, read_head, write_head
from funnel.pipeline.ledger.holding import PATIENT, Patience, hold_on_server, holding_by_file
from funnel.pipeline.ledger.tables import (
    ENTRIES,
    WRITING,
    begin,
    engine_of,
    make_file,
    plain_failures,
    require_known,
    version_of,
)
from funnel.progress import Progress, quiet
from funnel.release.files import private_folder

_NAMES = ("serial", "previous", "digest", "content", "kind", "series", "register", "version")
_COLUMNS = tuple(ENTRIES.c[name] for name in _NAMES)
_SERIES, _REGISTER = ENTRIES.c.series, ENTRIES.c.register
# Of the lock that whoever begins a ledger or enters something takes for a moment: the ASCII codes of "ledger".
_MOMENT = 0x6C6564676572
# Entries that are read at a time.
_CHUNK = 500


def now() -> datetime:
    """The time by the clock of this machine."""
    return datetime.now(UTC)


class Ledger:
    """A ledger that is open; see `Ledger.open`.

    Attributes
    ----------
    place : str
        Where it is, for people; without user and password.
    """

    def __init__(self, address: Address, engine: Engine, noted: Path, clock: Callable[[], datetime]) -> None:
        self.place = str(address)
        self._address = address
        self._engine = engine
        self._noted = noted
        self._clock = clock
        # While a register is held on a server: the connection whose lock that is.
        self._holder: _Holder | None = None

    @classmethod
    def open(
        cls,
        url: str | None,
        workspace: Path,
        *,
        read_only: bool = False,
        clock: Callable[[], datetime] = now,
        environment: Mapping[str, str] | None = None,
    ) -> Ledger:
        """Open a ledger, beginning it where there is none, and make sure that it can be written.

        Parameters
        ----------
        url : str or None
            As `funnel.pipeline.ledger.address.address_of`; None for the file in the workspace.
        workspace : Path
            Holds that file, and the head of the ledger.
        read_only : bool
            Whether it is only to be looked at: then nothing is made or written.
        clock : callable
            Tells the time, with a time zone.
        environment : mapping of str to str, optional
            By default that of the process.

        Raises
        ------
        SpecError
            If the URL is none.
        LedgerError
            If it cannot be opened, read or written, was made by a newer funnel, or ends before the entry that this
            workspace knows as its last one.
        """
        address = address_of(url, workspace, environment)
        ledger = cls(address, engine_of(address, read_only), workspace / HEAD_FILE, clock)
        ledger._require_file()
        if read_only:
            ledger._require_there()
        else:
            if address.file is not None:
                make_file(private_folder(address.file.parent) / address.file.name)
            ledger._begin()
            ledger._require_writable()
        ledger._require_noted()
        return ledger

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    @property
    def head(self) -> str:
        """The digest of the last entry; 64 zeros while there is none.

        Raises
        ------
        LedgerError
            If the ledger cannot be read.
        """
        with self._reading() as connection:
            last = _last(connection)
        return BEGINNING if last is None else last.digest

    def append(self, event: Event) -> Entry:
        """Enter an event; on disk when this returns.

        Raises
        ------
        LedgerError
            If it could not be entered. Where the connection was lost meanwhile, it may have been all the same.
        """
        return self.append_all([event])[0]

    def append_all(self, events: Sequence[Event]) -> tuple[Entry, ...]:
        """Enter several events, all of them or none; as `append`."""
        if not events:
            return ()
        if self._holder is None:
            rows = self._entered(events, None)
        else:
            try:
                rows = self._entered(events, self._holder)
            except LedgerError:
                if any(event.kind == "publishing" for event in events):
                    # The lock went with the connection: another run may be publishing about the same people.
                    raise
                rows = self._entered(events, None, again=True)
        # After the entry, so that what is noted is always in the ledger.
        write_head(self._noted, rows[-1])
        return tuple(row.entry for row in rows)

    def entries(self, series: str | None = None, register: str | None = None) -> Iterator[Entry]:
        """All entries, or those of a series, of a register or of both, in their order; read as they are asked for.

        Raises
        ------
        LedgerError
            If the ledger cannot be read, or an entry is damaged.
        """
        wanted = [column == value for column, value in ((_SERIES, series), (_REGISTER, register)) if value is not None]
        for row in self._rows(*wanted):
            try:
                yield row.entry
            except DataError as error:
                raise LedgerError(f"{error}; `funnel ledger verify` tells whether anything was changed") from error

    def verify(self) -> int:
        """Walk the chain from its beginning; returns how many entries there are.

        Raises
        ------
        LedgerError
            If an entry does not fit, the first such one is named; or if the ledger cannot be read, or ends too early.
        """
        last = 0

        def rows() -> Iterator[Row]:
            nonlocal last
            for row in self._rows():
                last = row.serial
                yield row

        found = first_misfit(rows())
        if found is not None:
            row, why = found
            raise LedgerError(
                f"entry {row.serial} of the ledger {self.place} ({described(row)}) does not fit: {why}; restore the "
                "ledger from a backup, so that what was published stays known"
            )
        self._require_noted()
        return last

    def require_contains(self, digest: str, what: str) -> None:
        """Make sure that an entry that somebody noted is in the ledger.

        Parameters
        ----------
        digest : str
            Of the entry; 64 zeros are in every ledger.
        what : str
            What it was, for the message, such as ``"entry 12 (published adult/1.2.0)"``.

        Raises
        ------
        LedgerError
            If it is not: the ledger is an old copy, or another one.
        """
        if digest == BEGINNING:
            return
        with self._reading() as connection:
            there = connection.execute(select(ENTRIES.c.serial).where(ENTRIES.c.digest == digest)).first()
            last = _last(connection)
        if there is None:
            ends = "is empty" if last is None else f"ends with entry {last.serial} ({described(last)})"
            raise LedgerError(
                f"the ledger {self.place} {ends} and does not know {what}; it is an old backup or another ledger, and "
                "would forget what was published: restore a newer backup, or see docs/ledger.md if there is none"
            )

    @contextmanager
    def holding(self, register: str, patience: Patience = PATIENT, progress: Progress = quiet) -> Iterator[None]:
        """Be the only run that publishes about the people of a register, on any machine that has this ledger.

        On a server, entries are written over the connection that holds the lock: where that was lost, so was the lock,
        and nothing is announced any more.

        Raises
        ------
        PipelineError
            If another run holds it, and did not end in the time that the patience lasts.
        LedgerError
            If the database cannot be reached.
        """
        if self._address.file is not None:
            with holding_by_file(self._address.file.parent, register, patience, progress):
                yield
            return
        with ExitStack() as stack:
            with plain_failures(self._address, "cannot be reached"):
                connection = stack.enter_context(self._engine.connect())
                hold_on_server(connection, register, patience, progress)
                self._holder = _Holder(connection, connection.connection.dbapi_connection)
            try:
                yield
            finally:
                # Without the connection there is no lock.
                self._holder = None

    def _entered(self, events: Sequence[Event], holder: _Holder | None, again: bool = False) -> list[Row]:
        """Enter events in one transaction; unless they are there, where this is the second attempt."""
        with self._writing(holder) as connection:
            if again and (there := _newest(connection, events)):
                return there
            return self._add(connection, events)

    @contextmanager
    def _writing(self, holder: _Holder | None = None) -> Iterator[Connection]:
        """One transaction that writes, on a server the only one at a time; over the connection of a lock, if given."""
        with plain_failures(self._address, "cannot be written"), ExitStack() as stack:
            connection = stack.enter_context(self._engine.connect()) if holder is None else holder.connection
            connection = connection.execution_options(**{WRITING: True})
            with connection.begin():
                if holder is not None and connection.connection.dbapi_connection is not holder.session:
                    raise LedgerError(
                        f"the connection to the ledger {self.place} was lost, and with it the lock on the register; "
                        "run it again"
                    )
                if self._address.is_server:
                    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MOMENT})
                yield connection

    def _add(self, connection: Connection, events: Sequence[Event]) -> list[Row]:
        last, rows = _last(connection), []
        for event in events:
            row = self._next(last, event)
            connection.execute(insert(ENTRIES).values(dict(zip(_NAMES, astuple(row), strict=True))))
            rows.append(row)
            last = row
        return rows

    def _next(self, last: Row | None, event: Event) -> Row:
        """The row of an event after the last one."""
        at, note = in_utc(self._clock()), None
        if last is None:
            return Row.of(Entry(serial=1, at=at, event=event), BEGINNING)
        try:
            before = last.entry.at
        except DataError as error:
            raise LedgerError(f"{error}; restore the ledger {self.place} from a backup") from error
        if datetime.fromisoformat(at) < datetime.fromisoformat(before):
            note = f"the clock went back: entry {last.serial} is of {before}"
        return Row.of(Entry(serial=last.serial + 1, at=at, note=note, event=event), last.digest)

    def _rows(self, *wanted: ColumnElement[bool]) -> Iterator[Row]:
        """Rows in their order; some at a time, so that nobody who writes waits for whoever reads."""
        after = 0
        while True:
            query = select(*_COLUMNS).where(ENTRIES.c.serial > after, *wanted).order_by(ENTRIES.c.serial).limit(_CHUNK)
            with self._reading() as connection:
                found = [Row(*row) for row in connection.execute(query)]
            yield from found
            if len(found) < _CHUNK:
                return
            after = found[-1].serial

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """One transaction that reads, and sees the ledger as it was at one moment, whoever begins or writes it."""
        with plain_failures(self._address, "cannot be read"), self._engine.connect() as connection:
            if self._address.is_server:
                # A file is always read so.
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    def _require_file(self) -> None:
        """Refuse to begin a ledger anew where one is gone."""
        file, noted = self._address.file, read_head(self._noted)
        if file is not None and noted is not None and not file.exists():
            raise LedgerError(
                f"the ledger {file} is gone, and {self._noted} names its entry {noted.serial} ({noted.said}); restore "
                "it from a backup, or see docs/ledger.md if there is none"
            )

    def _require_there(self) -> None:
        if self._address.file is not None and not self._address.file.is_file():
            raise LedgerError(f"there is no ledger {self.place} yet; funnel release begins one")
        with self._reading() as connection:
            version = version_of(connection, self.place)
        if version is None:
            raise LedgerError(f"there is no ledger in {self.place} yet; funnel release begins one")
        require_known(version, self.place)

    def _begin(self) -> None:
        """Begin a ledger where there is none; two schedulers may do so at once."""
        with self._reading() as connection:
            version = version_of(connection, self.place)
        if version is None:
            with self._writing() as connection:
                version = version_of(connection, self.place)
                if version is None:
                    begin(connection)
        require_known(version, self.place)

    def _require_writable(self) -> None:
        """Enter something and take it back: permission, room for a journal and a database that takes entries."""
        probe = Event(
            kind="refused", series="probe", verdict=Judged(passed=False, sentence="probe"), started_by="probe"
        )
        with self._writing() as connection:
            self._add(connection, [probe])
            connection.rollback()

    def _require_noted(self) -> None:
        """Make sure that the last entry that this workspace knows is there.

        Raises
        ------
        LedgerError
            If it is not: the ledger is an old copy.
        """
        noted = read_head(self._noted)
        if noted is not None:
            self.require_contains(noted.digest, f"entry {noted.serial} ({noted.said}), which {self._noted} names")


@dataclass(frozen=True)
class _Holder:
    """The connection that a register is held over, and the session of the server that it had when it took the lock."""

    connection: Connection
    session: object


def _last(connection: Connection) -> Row | None:
    found = connection.execute(select(*_COLUMNS).order_by(ENTRIES.c.serial.desc()).limit(1)).first()
    return None if found is None else Row(*found)


def _newest(connection: Connection, events: Sequence[Event]) -> list[Row]:
    """The last entries, if they are these events: the first attempt to enter them came through after all."""
    query = select(*_COLUMNS).order_by(ENTRIES.c.serial.desc()).limit(len(events))
    rows = [Row(*found) for found in connection.execute(query)][::-1]
    return rows if [row.entry.event for row in rows] == list(events) else []
