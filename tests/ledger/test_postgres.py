"""A ledger on a real server: gone in the middle and back, read-only, behind a password; one publisher at a time."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from urllib.parse import quote

import pytest

from funnel.errors import LedgerError, PipelineError
from funnel.pipeline.ledger.holding import Patience
from funnel.pipeline.ledger.ledger import Ledger
from tests.killing import another_process
from tests.ledger.events import event, opened
from tests.ledger.servers import PASSWORD, Server

IMPATIENT = Patience(tries=1)
TIRELESS = Patience(tries=100_000, sleep=lambda _: None)


def with_password(server: Server, url: str, password: str) -> str:
    """The URL of a database by TCP, where the server asks for a password."""
    name = url.partition("@/")[2].partition("?")[0]
    return f"postgresql+psycopg://steward:{quote(password, safe='')}@127.0.0.1:{server.port}/{name}"


def everything_said(error: BaseException) -> str:
    """The messages of an exception and of all that it came from, as a log shows them."""
    said, seen = [], error
    while seen is not None:
        said.append(str(seen))
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)  # type: ignore[assignment]
    return "\n".join(said)


def test_a_url_from_the_environment_and_its_password(postgres: Server, tmp_path: Path) -> None:
    secret = with_password(postgres, postgres.database(), PASSWORD)
    with opened("environment:THE_LEDGER", tmp_path, environment={"THE_LEDGER": secret}) as ledger:
        ledger.append(event())
        assert ledger.place.startswith(f"postgresql://127.0.0.1:{postgres.port}/ledger")
        assert "steward" not in ledger.place
    # postgresql:// is what most tools write.
    with opened(secret.replace("+psycopg", ""), tmp_path) as ledger:
        assert ledger.verify() == 1


@pytest.mark.parametrize("broken", ["password", "port", "database", "option"])
def test_no_message_holds_the_password(postgres: Server, tmp_path: Path, broken: str) -> None:
    url = with_password(postgres, postgres.database(), PASSWORD if broken != "password" else PASSWORD + "?")
    if broken == "port":
        url = url.replace(f":{postgres.port}", ":1")
    elif broken == "database":
        url += "x"
    elif broken == "option":
        url += f"?sslmode={quote(PASSWORD, safe='')}"
    with pytest.raises(LedgerError) as caught:
        opened(url, tmp_path)
    said = everything_said(caught.value)
    assert "the ledger postgresql://127.0.0.1" in said
    for hidden in (PASSWORD, quote(PASSWORD, safe=""), "Zebediah", "steward:"):
        assert hidden not in said
    assert "\n" not in str(caught.value)
    assert "\n" not in said


def test_the_server_is_gone_in_the_middle_and_back(postgres: Server, tmp_path: Path) -> None:
    url = postgres.database()
    with opened(url, tmp_path) as ledger:
        with ledger.holding("panel"):
            ledger.append(event("publishing"))
            postgres.stop()
            try:
                for kind in ("publishing", "published"):
                    with pytest.raises(LedgerError, match=r"cannot be written: .*run it again") as caught:
                        ledger.append(event(kind))  # type: ignore[arg-type]
                    assert "\n" not in str(caught.value)
                with pytest.raises(LedgerError, match=r"cannot be read|cannot be reached"):
                    ledger.verify()
            finally:
                postgres.start()
            # The lock was lost with the connection, so that nothing may be published any more …
            with pytest.raises(LedgerError, match="lost, and with it the lock on the register"):
                ledger.append(event("publishing", "1.1.0"))
            # … but what was published is entered.
            ledger.append(event("published"))
        with ledger.holding("panel"):
            ledger.append(event("publishing", "1.1.0"))
        assert [entry.event.kind for entry in ledger.entries()] == ["publishing", "published", "publishing"]
        assert ledger.verify() == 3


def test_a_connection_that_the_server_ends_is_not_taken_for_the_lock(postgres: Server, tmp_path: Path) -> None:
    """A new connection could be made at once, and would hold nothing: another run may hold the register by then."""
    url = postgres.database()
    with opened(url, tmp_path / "a") as ledger, opened(url, tmp_path / "b") as other, ledger.holding("panel"):
        postgres.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'funnel'")
        # The server ends a connection in its own time.
        with other.holding("panel", TIRELESS):
            for why in ("terminating connection", "lost, and with it the lock", "lost, and with it the lock"):
                with pytest.raises(LedgerError, match=why):
                    ledger.append(event("publishing"))
            other.append(event("publishing", "2.0.0"))
        assert [entry.event.version for entry in other.entries()] == ["2.0.0"]


def test_an_entry_whose_acknowledgement_was_lost_is_entered_once(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.database()
    with opened(url, tmp_path) as ledger, ledger.holding("panel"):
        ledger.append(event("publishing"))
        real = Ledger._entered

        def lost(self, events, holder, again=False):  # type: ignore[no-untyped-def]
            rows = real(self, events, holder, again)
            if holder is not None:
                raise LedgerError("the connection was lost before the answer came")
            return rows

        monkeypatch.setattr(Ledger, "_entered", lost)
        assert ledger.append(event("published")).serial == 2
        assert ledger.verify() == 2


def test_a_database_that_may_only_be_read(postgres: Server, tmp_path: Path) -> None:
    url = postgres.database()
    name = url.partition("@/")[2].partition("?")[0]
    with opened(url, tmp_path) as ledger:
        ledger.append(event())
    postgres.run(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(LedgerError, match="cannot be written: cannot execute INSERT in a read-only transaction"):
        opened(url, tmp_path)
    with opened(url, tmp_path, read_only=True) as ledger:
        assert ledger.verify() == 1
    postgres.run(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    postgres.run("REVOKE ALL ON funnel_ledger FROM steward; GRANT SELECT ON funnel_ledger TO steward", name)
    postgres.run(f"ALTER TABLE funnel_ledger OWNER TO root; ALTER DATABASE {name} OWNER TO root", name)
    with pytest.raises(LedgerError, match="cannot be written: permission denied for table funnel_ledger"):
        opened(url, tmp_path)


def test_it_may_share_a_database_with_others(postgres: Server, tmp_path: Path) -> None:
    """The orchestrator keeps the version of its tables in one of its own."""
    url = postgres.database()
    name = url.partition("@/")[2].partition("?")[0]
    postgres.run("CREATE TABLE alembic_version (version_num text); INSERT INTO alembic_version VALUES ('abc')", name)
    with opened(url, tmp_path) as ledger:
        ledger.append(event())
    with opened(url, tmp_path) as ledger:
        assert ledger.verify() == 1


def hold(url: str | None, workspace: Path, register: str, held: Connection) -> None:
    """Run in another process: it holds a register until it is killed."""
    with Ledger.open(url, workspace) as ledger, ledger.holding(register):
        held.send(True)
        signal.pause()


@contextmanager
def held_elsewhere(url: str | None, workspace: Path, register: str) -> Iterator[ForkProcess]:
    """Another process holds a register until the end of the block, or until it is killed."""
    here, there = Pipe(duplex=False)
    with here, there, another_process(hold, url, workspace, register, there) as process:
        there.close()
        assert here.recv()
        yield process


def test_one_publisher_of_a_register_at_a_time(url: str | None, tmp_path: Path) -> None:
    """From two processes, as from two schedulers: one goes on, the other says so, and another register is free."""
    told: list[str] = []
    with opened(url, tmp_path) as ledger:
        with held_elsewhere(url, tmp_path, "panel"):
            naps: list[float] = []
            patience = Patience(tries=4, pause=0.25, sleep=naps.append)
            with (
                pytest.raises(PipelineError, match="another run is publishing about the people of panel") as caught,
                ledger.holding("panel", patience, lambda what, *_: told.append(what)),
            ):
                raise AssertionError("two runs hold one register")
            assert "wait until it has ended" in str(caught.value)
            assert naps == [0.25] * 3
            assert told == ["waiting for another run that publishes about the people of panel"]
            with ledger.holding("others", IMPATIENT):
                ledger.append(event("publishing"))
        with ledger.holding("panel", IMPATIENT):
            ledger.append(event("published"))


def test_who_waits_goes_on_when_the_other_is_killed(url: str | None, tmp_path: Path) -> None:
    with opened(url, tmp_path) as ledger, held_elsewhere(url, tmp_path, "panel") as other:

        def sleep(_: float) -> None:
            # The server notices on its own, the file at once: so often is asked until then.
            other.kill()
            other.join()

        with ledger.holding("panel", Patience(tries=100_000, sleep=sleep)):
            ledger.append(event("publishing"))
        with ledger.holding("panel", IMPATIENT):
            ledger.append(event("published"))


def test_a_register_is_free_after_a_failure(url: str | None, tmp_path: Path) -> None:
    with opened(url, tmp_path) as ledger:
        for _ in range(2):
            with pytest.raises(KeyError), ledger.holding("panel", IMPATIENT):
                raise KeyError
        with ledger.holding("panel", IMPATIENT):
            ledger.append(event())
