"""The ledger on both databases: what is entered stays, in its order, and whatever was changed or lost is noticed."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from funnel.errors import LedgerError
from funnel.pipeline.ledger.chain import BEGINNING
from funnel.pipeline.ledger.ledger import Ledger
from funnel.pipeline.ledger.tables import ENTRIES, VERSION, VERSION_TABLE
from tests.ledger.events import Clock, event, opened


def raw(url: str | None, workspace: Path, *statements: str) -> None:
    """Run statements on the database of a ledger, as somebody who may do everything to it."""
    with connected(url, workspace) as connection:
        for statement in statements:
            connection.execute(text(statement))


def without_triggers(url: str | None, *statements: str) -> list[str]:
    """Statements, after those that take away what refuses them."""
    names = ("funnel_ledger_keeps_content", "funnel_ledger_keeps_entries", "funnel_ledger_goes_on")
    on = "" if url is None else " ON funnel_ledger"
    return [*(f"DROP TRIGGER IF EXISTS {name}{on}" for name in names), *statements]


def filled(url: str | None, workspace: Path, entries: int = 4) -> None:
    with opened(url, workspace) as ledger:
        ledger.append_all([event(version=f"1.{number}.0") for number in range(entries)])


def test_what_is_entered_stays_in_its_order(url: str | None, tmp_path: Path) -> None:
    entered = [
        event("publishing", level=0.9, moved=3, digests={"joint": "a" * 64}, software={"funnel": "1"}),
        event("published", series="others", register=None),
        event("refused", None, register="elsewhere"),
    ]
    with opened(url, tmp_path) as ledger:
        assert ledger.head == BEGINNING
        assert ledger.verify() == 0
        first = ledger.append(entered[0])
        rest = ledger.append_all(entered[1:])
        assert ledger.append_all([]) == ()
        head = ledger.head
    with opened(url, tmp_path) as ledger:
        found = list(ledger.entries())
        assert found == [first, *rest]
        assert [(entry.serial, entry.event) for entry in found] == list(enumerate(entered, start=1))
        assert {entry.at for entry in found} == {"2026-05-01T12:00:00+00:00"}
        assert [entry.serial for entry in ledger.entries(series="people")] == [1, 3]
        assert [entry.serial for entry in ledger.entries(register="panel")] == [1]
        assert [entry.serial for entry in ledger.entries(series="people", register="elsewhere")] == [3]
        assert list(ledger.entries(series="nobody")) == []
        assert ledger.verify() == 3
        assert ledger.head == head
        ledger.require_contains(head, "the last entry")
        ledger.require_contains(BEGINNING, "nothing")


def test_more_entries_than_are_read_at_a_time(url: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funnel.pipeline.ledger.ledger._CHUNK", 3)
    with opened(url, tmp_path) as ledger:
        for number in range(7):
            ledger.append(event(version=f"1.{number}.0"))
            assert ledger.verify() == number + 1
        # Nobody who reads keeps others from writing.
        for entry in ledger.entries():
            if entry.serial < 9:
                ledger.append(event("refused", None))
        assert ledger.verify() == 15


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE funnel_ledger SET content = content",
        "UPDATE funnel_ledger SET series = 'others' WHERE serial = 2",
        "DELETE FROM funnel_ledger WHERE serial = 4",
        "DELETE FROM funnel_ledger",
        "INSERT INTO funnel_ledger SELECT 6, digest, 'x', content, kind, series, register, version FROM funnel_ledger"
        " WHERE serial = 4",
        "INSERT INTO funnel_ledger SELECT 5, 'x', 'y', content, kind, series, register, version FROM funnel_ledger"
        " WHERE serial = 4",
    ],
)
def test_the_database_itself_refuses_changes(url: str | None, tmp_path: Path, statement: str) -> None:
    filled(url, tmp_path)
    with pytest.raises(DBAPIError, match="append-only"):
        raw(url, tmp_path, statement)
    with opened(url, tmp_path) as ledger:
        assert ledger.verify() == 4


def test_each_database_has_its_own_ways_to_overwrite(postgres: object, tmp_path: Path) -> None:
    filled(None, tmp_path)
    with pytest.raises(DBAPIError, match="append-only"):
        raw(None, tmp_path, "INSERT OR REPLACE INTO funnel_ledger SELECT * FROM funnel_ledger WHERE serial = 2")
    url = postgres.schema()  # type: ignore[attr-defined]
    filled(url, tmp_path / "other")
    with pytest.raises(DBAPIError, match="append-only"):
        raw(url, tmp_path, "TRUNCATE funnel_ledger")


@pytest.mark.parametrize(
    ("statement", "first", "why"),
    [
        ("UPDATE funnel_ledger SET content = replace(content, 'ada@host', 'eve@host') WHERE serial = 2", 2, "SHA-256"),
        ("UPDATE funnel_ledger SET version = '2.0.0' WHERE serial = 3", 3, "looked up"),
        ("UPDATE funnel_ledger SET register = NULL WHERE serial = 1", 1, "looked up"),
        ("UPDATE funnel_ledger SET previous = 'x' WHERE serial = 4", 4, "does not follow"),
        ("DELETE FROM funnel_ledger WHERE serial = 1", 2, "missing or out of order"),
        ("DELETE FROM funnel_ledger WHERE serial = 3", 4, "missing or out of order"),
        ("UPDATE funnel_ledger SET digest = 'x' WHERE serial = 2", 2, "SHA-256"),
    ],
)
def test_whoever_gets_around_that_is_noticed(
    url: str | None, tmp_path: Path, statement: str, first: int, why: str
) -> None:
    filled(url, tmp_path)
    raw(url, tmp_path, *without_triggers(url, statement))
    with Ledger.open(url, tmp_path, read_only=True) as ledger, pytest.raises(LedgerError, match=why) as caught:
        ledger.verify()
    assert f"entry {first} of the ledger" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_entries_that_are_gone_at_the_end_are_noticed(url: str | None, tmp_path: Path) -> None:
    """The chain of an old copy is whole: only what was noted elsewhere tells."""
    filled(url, tmp_path)
    raw(url, tmp_path, *without_triggers(url, "DELETE FROM funnel_ledger WHERE serial > 2"))
    for read_only in (False, True):
        with pytest.raises(LedgerError, match=r"ends with entry 2 \(published people/1\.1\.0\)") as caught:
            opened(url, tmp_path, read_only=read_only)
        assert "entry 4 (published people/1.3.0)" in str(caught.value)
        assert "would forget what was published: restore a newer backup" in str(caught.value)
    # Somebody who knows that, and has no newer copy.
    (tmp_path / "ledger-head").unlink()
    with opened(url, tmp_path) as ledger:
        assert ledger.verify() == 2
        with pytest.raises(LedgerError, match="does not know entry 4 of the record"):
            ledger.require_contains("a" * 64, "entry 4 of the record")


def test_another_ledger_in_its_place_is_noticed(url: str | None, tmp_path: Path) -> None:
    filled(url, tmp_path)
    raw(url, tmp_path, *without_triggers(url, "DELETE FROM funnel_ledger"))
    with pytest.raises(LedgerError, match="is empty and does not know entry 4"):
        opened(url, tmp_path)


def test_a_file_that_is_gone_is_not_begun_anew(tmp_path: Path) -> None:
    filled(None, tmp_path)
    (tmp_path / "ledger.sqlite").unlink()
    for read_only in (True, False):
        with pytest.raises(LedgerError, match=r"is gone, and .* names its entry 4 \(published people/1\.3\.0\)"):
            opened(None, tmp_path, read_only=read_only)
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_head_that_is_behind_is_no_loss(url: str | None, tmp_path: Path) -> None:
    """Killed between the entry and the note of it, or entered from another workspace."""
    filled(url, tmp_path, 2)
    older = (tmp_path / "ledger-head").read_bytes()
    with opened(url, tmp_path) as ledger:
        ledger.append(event("withdrawn"))
        (tmp_path / "ledger-head").write_bytes(older)
    with opened(url, tmp_path) as ledger:
        assert ledger.verify() == 3


@pytest.mark.parametrize("content", [b"", b"{", b'{"schema": "funnel/head/1"}', b'{"schema": "funnel/head/2"}'])
def test_a_damaged_head_is_refused(tmp_path: Path, content: bytes) -> None:
    filled(None, tmp_path)
    (tmp_path / "ledger-head").write_bytes(content)
    with pytest.raises(LedgerError, match=r"the head of the ledger .*restore it from a backup"):
        opened(None, tmp_path)


def test_several_events_are_entered_or_none(url: str | None, tmp_path: Path) -> None:
    filled(url, tmp_path, 1)
    calls = []

    class Broken(Clock):
        def __call__(self):  # type: ignore[no-untyped-def]
            calls.append(1)
            if len(calls) > 2:
                raise KeyboardInterrupt
            return super().__call__()

    with opened(url, tmp_path) as ledger:
        ledger._clock = Broken()
        with pytest.raises(KeyboardInterrupt):
            ledger.append_all([event("restored"), event("withdrawn"), event("restored")])
        ledger._clock = Clock()
        assert ledger.verify() == 1
        assert ledger.append(event("refused", None)).serial == 2


def test_a_clock_that_went_back_is_noted_and_no_error(url: str | None, tmp_path: Path) -> None:
    clock = Clock()
    with opened(url, tmp_path, clock=clock) as ledger:
        ledger.append(event("publishing"))
        ledger.append(event("published"))
        clock.move(hours=-3)
        back = ledger.append(event("withdrawn"))
        clock.move(minutes=1)
        after = ledger.append(event("restored"))
        assert ledger.verify() == 4
        assert [entry.event.kind for entry in ledger.entries()] == ["publishing", "published", "withdrawn", "restored"]
    assert (back.at, back.note) == (
        "2026-05-01T09:00:00+00:00",
        "the clock went back: entry 2 is of 2026-05-01T12:00:00+00:00",
    )
    assert after.note is None


def test_a_ledger_that_is_begun_while_another_run_looks_for_it(
    postgres: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks sees none of its tables or all, although each is looked for by a statement of its own."""
    url, looked_for = postgres.schema(), []  # type: ignore[attr-defined]
    has_table = PGDialect.has_table

    def beside_another(self: PGDialect, connection: Connection, name: str, *rest: object, **named: object) -> bool:
        found = has_table(self, connection, name, *rest, **named)  # type: ignore[arg-type]
        looked_for.append(name)
        if len(looked_for) == 1:
            opened(url, tmp_path / "another").close()
        return found

    monkeypatch.setattr(PGDialect, "has_table", beside_another)
    with Ledger.open(url, tmp_path / "this") as ledger:
        ledger.append(event())
        assert ledger.verify() == 1
    assert len(looked_for) > 2


def test_many_at_once_follow_one_another(url: str | None, tmp_path: Path) -> None:
    """Runs of several machines enter at the same time: there is one chain, and nobody's entry is lost."""
    start, failures = threading.Barrier(4), []

    def enter(number: int) -> None:
        try:
            start.wait()
            with Ledger.open(url, tmp_path / str(number) if url else tmp_path) as ledger:
                for version in range(5):
                    ledger.append(event(version=f"{number}.{version}.0"))
        except BaseException as error:
            failures.append(error)

    # They even begin the ledger, all of them.
    threads = [threading.Thread(target=enter, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with Ledger.open(url, tmp_path) as ledger:
        assert ledger.verify() == 20
        versions = [entry.event.version for entry in ledger.entries()]
    assert len(set(versions)) == 20
    assert [[one for one in versions if one and one.startswith(f"{number}.")] for number in range(4)] == [
        [f"{number}.{version}.0" for version in range(5)] for number in range(4)
    ]


def test_a_file_is_private_and_survives_a_power_cut(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    with opened(None, workspace) as ledger, ledger._engine.connect() as connection:
        file = workspace / "ledger.sqlite"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(workspace.stat().st_mode) == 0o700
        # EXTRA: the removal of the journal, which is what commits, is on disk too.
        assert connection.execute(text("PRAGMA synchronous")).scalar_one() == 3
        assert connection.execute(text("PRAGMA journal_mode")).scalar_one() == "delete"
    # Nothing but the file is needed to restore it.
    assert {path.name for path in workspace.iterdir()} == {"ledger.sqlite"}


def connected(url: str | None, workspace: Path) -> AbstractContextManager[Connection]:
    return create_engine(url or f"sqlite:///{workspace / 'ledger.sqlite'}", poolclass=NullPool).begin()


def version(url: str | None, workspace: Path) -> str:
    with connected(url, workspace) as connection:
        return str(connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar_one())


def test_a_beginning_that_is_killed_leaves_an_empty_database(
    url: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, executed = Connection.execute, []

    def dies(self: Connection, clauseelement: object, *args: object, **options: object) -> object:
        executed.append(str(clauseelement))
        if VERSION_TABLE in str(clauseelement) and "INSERT" in str(clauseelement):
            raise KeyboardInterrupt
        return real(self, clauseelement, *args, **options)  # type: ignore[call-overload]

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "execute", dies)
        with pytest.raises(KeyboardInterrupt):
            opened(url, tmp_path)
    assert any("TRIGGER" in statement for statement in executed)
    with connected(url, tmp_path) as connection:
        assert not connection.dialect.has_table(connection, VERSION_TABLE)
        assert not connection.dialect.has_table(connection, ENTRIES.name)
    with opened(url, tmp_path) as ledger:
        assert ledger.append(event("publishing")).serial == 1
        assert ledger.verify() == 1
    assert version(url, tmp_path) == str(VERSION)


def test_a_ledger_of_a_newer_funnel_is_refused(url: str | None, tmp_path: Path) -> None:
    filled(url, tmp_path)
    raw(url, tmp_path, f"UPDATE {VERSION_TABLE} SET version_num = '{VERSION + 1}'")
    for read_only in (False, True):
        with pytest.raises(LedgerError, match=f"made by a newer funnel: its version is {VERSION + 1}") as caught:
            opened(url, tmp_path, read_only=read_only)
        assert "install a newer one" in str(caught.value)


@pytest.mark.parametrize(
    "statement",
    [
        f"DROP TABLE {VERSION_TABLE}",
        f"DELETE FROM {VERSION_TABLE}",
        f"UPDATE {VERSION_TABLE} SET version_num = 'head'",
        "DROP TABLE funnel_ledger",
    ],
)
def test_a_database_that_does_not_say_its_version_is_refused(url: str | None, tmp_path: Path, statement: str) -> None:
    filled(url, tmp_path)
    raw(url, tmp_path, statement)
    with pytest.raises(LedgerError, match="does not say of which version"):
        opened(url, tmp_path)


def test_looking_makes_and_changes_nothing(url: str | None, tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    with pytest.raises(LedgerError, match="there is no ledger"):
        opened(url, workspace, read_only=True)
    assert not workspace.exists()
    filled(url, workspace)
    before = {path.name: path.read_bytes() for path in workspace.iterdir()}
    with opened(url, workspace, read_only=True) as ledger:
        assert ledger.verify() == 4
        with pytest.raises(LedgerError, match="cannot be written"):
            ledger.append(event())
    assert {path.name: path.read_bytes() for path in workspace.iterdir()} == before


def test_a_file_that_is_no_ledger(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    file.write_text("a shopping list")
    with pytest.raises(LedgerError, match="is no ledger, or it is damaged"):
        opened(None, tmp_path)
    assert file.read_text() == "a shopping list"
    file.unlink()
    filled(None, tmp_path, 40)
    content = bytearray(file.read_bytes())
    content[4096:12288] = b"\0" * 8192
    file.write_bytes(content)
    with pytest.raises(LedgerError) as caught:
        opened(None, tmp_path).verify()
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The administrator may write anywhere: so it is where the journal would be that something is in the way."""
    filled(None, tmp_path)
    before = (tmp_path / "ledger.sqlite").read_bytes()
    (tmp_path / "ledger.sqlite-journal").mkdir()
    with pytest.raises(LedgerError, match=r"ledger\.sqlite cannot be (read|written): .*give permission or make room"):
        opened(None, tmp_path)
    (tmp_path / "ledger.sqlite-journal").rmdir()
    assert (tmp_path / "ledger.sqlite").read_bytes() == before
    real = os.open

    def refuse(path: object, flags: int, *rest: int, **options: int) -> int:
        if str(path).endswith("ledger.sqlite"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, flags, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(LedgerError, match="cannot be written: Permission denied; give permission"):
        opened(None, tmp_path)


def test_a_copy_of_the_file_is_a_whole_backup(tmp_path: Path) -> None:
    filled(None, tmp_path / "work")
    shutil.copytree(tmp_path / "work", tmp_path / "elsewhere")
    with opened(None, tmp_path / "elsewhere") as ledger:
        assert ledger.verify() == 4
