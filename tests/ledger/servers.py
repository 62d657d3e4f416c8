"""A PostgreSQL server of its own for tests: in a private folder, stopped and started at will, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psycopg

PASSWORD = "Zebediah's p@ss/word"
_NUMBERS = count(1)
_NEWEST_FIRST = sorted(
    Path("/usr/lib/postgresql").glob("*/bin"),
    key=lambda path: int(path.parent.name) if path.parent.name.isdecimal() else 0,
    reverse=True,
)


def binaries() -> Path:
    """The folder of the newest server that is installed."""
    found = [folder for folder in _NEWEST_FIRST if (folder / "initdb").is_file() and (folder / "postgres").is_file()]
    if not found and (path := shutil.which("initdb")) is not None:
        found = [Path(path).resolve().parent]
    if not found:
        raise AssertionError(
            "the ledger is tested on a real PostgreSQL server, and there is none in /usr/lib/postgresql: run "
            "scripts/install-system-packages.sh"
        )
    return found[0]


def _unprivileged() -> list[str]:
    """What a command starts with so that it does not run as the administrator, whom PostgreSQL refuses."""
    if os.geteuid() != 0:
        return []
    user = _user()
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def _user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise AssertionError("this machine has neither a user postgres nor nobody to run the PostgreSQL server as")


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes
    ----------
    folder : Path
        Of its data and of its socket.
    port : int
        Of the socket, and on 127.0.0.1, where it asks for the password `PASSWORD` of the user ``steward``.
    """

    folder: Path
    port: int

    def start(self) -> None:
        """Start it, and return when it answers."""
        self._control("start", "--wait", "--log", str(self.folder / "log"))

    def stop(self) -> None:
        """Stop it at once, as a machine that is switched off: no connection is ended in good order."""
        self._control("stop", "--wait", "--mode=immediate")

    def database(self) -> str:
        """Make a database; returns its URL, by the socket."""
        name = f"ledger{next(_NUMBERS)}"
        self.run(f"CREATE DATABASE {name} OWNER steward")
        return self.url(name)

    def schema(self) -> str:
        """Make a schema in a database that many share, which is much faster; returns the URL of a ledger in it."""
        name = f"ledger{next(_NUMBERS)}"
        self.run(f"CREATE SCHEMA {name} AUTHORIZATION steward", "shared")
        return f"{self.url('shared')}&options=-csearch_path%3D{name}"

    def url(self, name: str) -> str:
        """The URL of a database by the socket, without a password."""
        return f"postgresql+psycopg://steward@/{name}?host={self.folder}&port={self.port}"

    def run(self, statement: str, database: str = "postgres") -> None:
        """Run a statement as the administrator of the server."""
        with psycopg.connect(
            host=str(self.folder), port=self.port, user="root", dbname=database, autocommit=True
        ) as connection:
            connection.execute(statement.encode())

    def _control(self, what: str, *options: str) -> None:
        _run("pg_ctl", what, "--silent", "--pgdata", str(self.folder / "data"), *options)


def _run(command: str, *arguments: str) -> None:
    done = subprocess.run(
        [*_unprivileged(), str(binaries() / command), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        cwd="/",
        env={"LC_ALL": "C", "PATH": os.defpath},
    )
    assert done.returncode == 0, f"{command} failed: {done.stderr}"


@contextmanager
def running_server() -> Iterator[Server]:
    """Make a server and start it; stopped, and its folder removed, afterwards."""
    # Not the folder of the test, whose name is too long for a socket.
    folder = Path(tempfile.mkdtemp(prefix="funnel-pg-"))
    try:
        if os.geteuid() == 0:
            os.chown(folder, _user().pw_uid, _user().pw_gid)
        _run(
            *("initdb", "--pgdata", str(folder / "data"), "--username=root", "--encoding=UTF8", "--no-locale"),
            *("--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync", "--no-instructions"),
        )
        server = Server(folder, _free_port())
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": server.port,
            "unix_socket_directories": str(folder),
            # Nothing here has to outlive the machine.
            "fsync": "off",
            "shared_buffers": "16MB",
            "max_connections": 40,
        }
        with (folder / "data" / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        server.start()
        try:
            quoted = PASSWORD.replace("'", "''")
            server.run(f"CREATE ROLE steward LOGIN PASSWORD '{quoted}'")
            server.run("CREATE DATABASE shared OWNER steward")
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
