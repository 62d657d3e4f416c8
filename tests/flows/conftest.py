"""One real orchestrator server for all tests of flows, started and ended by them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest

from tests.panel_project import PanelProject
from tests.stage import Stage, end_flows_at_once, open_stage
from tests.waves import WAVES

# What the server would do again and again beside what it is asked for, which tests neither look at nor wait for.
IDLE = ("CANCELLATION_CLEANUP", "CLEANUP_RECONCILER", "FOREMAN", "LATE_RUNS", "PAUSE_EXPIRATIONS", "REPOSSESSOR")
QUIET = {
    **{f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in IDLE},
    # Tests wait until an event is stored.
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_FLUSH_INTERVAL": "0.2",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_LOGGING_SERVER_LEVEL": "CRITICAL",
    "PREFECT_CLI_PROMPT": "false",
    "PREFECT_SERVER_UI_ENABLED": "false",
    # The server may be gone before the last lines are sent.
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
}


@contextmanager
def process_group(command: list[str], environment: dict[str, str], log: Path, cwd: Path) -> Iterator[subprocess.Popen]:
    """Run a command in a process group of its own, and end the whole group at the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            cwd=cwd,
        )
        try:
            yield process
        finally:
            # A worker may ignore a polite request, and its children are in the group too.
            try:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(5)
            except (subprocess.TimeoutExpired, ProcessLookupError):
                pass
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def migrated(home: Path) -> Path:
    """Where the database of a server is, with the tables that a server of this version made before, if one did.

    A server makes them by all its migrations since the first version, which takes it longer than to start.
    """
    database = home / "prefect.db"
    home.mkdir()
    kept = _kept_database()
    if kept.is_file():
        shutil.copyfile(kept, database)
    return database


def keep_migrated(database: Path) -> None:
    """Keep the database of a server that has started, and that nobody has asked for anything yet, for later runs."""
    kept = _kept_database()
    if kept.is_file():
        return
    kept.parent.mkdir(parents=True, exist_ok=True)
    whole = kept.with_suffix(f".{os.getpid()}")
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(whole)) as copy:
        source.backup(copy)
    whole.replace(kept)


def _kept_database() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "funnel" / f"prefect-{version('prefect')}.db"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Environment in which the orchestrator's commands and flows use a real server on the loopback interface."""
    home = tmp_path_factory.mktemp("orchestrator")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}/api"
    environment = {**os.environ, **QUIET, "PREFECT_HOME": str(home / "home")}
    environment.pop("PREFECT_API_URL", None)
    database = migrated(home / "home")
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with process_group(command, environment, home / "server.log", home) as process:
        # Made once: every client reads all authorities of the machine, unless it need not know a server.
        asking = httpx.Client(verify=False, timeout=2)
        while True:
            try:
                if asking.get(f"{url}/health").status_code == 200:
                    break
            except httpx.HTTPError:
                pass
            if process.poll() is not None:
                raise RuntimeError(f"the server did not start: {(home / 'server.log').read_text()[-2000:]}")
            time.sleep(0.3)
        asking.close()
        keep_migrated(database)
        yield {**QUIET, "PREFECT_HOME": str(home / "home"), "PREFECT_API_URL": url}


@pytest.fixture(scope="session")
def in_process(server: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Flows called in this process use the server."""
    from prefect.settings import (
        PREFECT_API_URL,
        PREFECT_HOME,
        PREFECT_LOGGING_LEVEL,
        PREFECT_LOGGING_TO_API_ENABLED,
        temporary_settings,
    )

    settings = {
        PREFECT_API_URL: server["PREFECT_API_URL"],
        PREFECT_HOME: tmp_path_factory.mktemp("results"),
        PREFECT_LOGGING_LEVEL: "CRITICAL",
        PREFECT_LOGGING_TO_API_ENABLED: False,
    }
    end_flows_at_once()
    with temporary_settings(settings):
        yield


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Commands in real processes that need not import anything again."""
    with open_stage(tmp_path_factory.mktemp("stage")) as opened:
        yield opened


@pytest.fixture(scope="session")
def served(server: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The same, of commands whose steps are a flow of the server."""
    with open_stage(tmp_path_factory.mktemp("served"), {**server, "PREFECT_LOGGING_LEVEL": "CRITICAL"}) as opened:
        yield opened


@pytest.fixture(scope="session")
def two_waves(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> PanelProject:
    """A panel whose first two waves are published; to be copied."""
    project = PanelProject(tmp_path_factory.mktemp("panel") / "project", stage)
    project.folder.mkdir()
    project.write_spec()
    for number, year in enumerate(WAVES[:2]):
        project.source(year)
        assert project.release().said["version"] == f"1.{number}.0"
    return project


@pytest.fixture
def panel(two_waves: PanelProject, tmp_path: Path) -> PanelProject:
    """A panel whose first two waves are published, and whose source is the third."""
    project = two_waves.copy(tmp_path / "project")
    project.source(WAVES[2])
    return project
