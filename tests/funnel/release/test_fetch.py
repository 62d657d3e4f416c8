"""Fetching a release: the version that `latest` names, its public files alone, and nothing outside it."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pytest

from funnel import storage
from funnel.errors import DataError
from funnel.release import fetch
from funnel.release.fetch import fetch_release


@pytest.fixture
def memory() -> Iterator[Any]:
    storage = fsspec.filesystem("memory")
    for version in ("1.0.0", "1.1.0"):
        paths = ["data/records.parquet", "../1.0.0/secret", "data/gone.csv"]
        package = {"version": version, "resources": [{"path": path} for path in paths]}
        storage.pipe(f"/out/people/{version}/datapackage.json", json.dumps(package).encode())
        storage.pipe(f"/out/people/{version}/protocol.json", b"{}")
        storage.pipe(f"/out/people/{version}/data/records.parquet", version.encode())
        storage.pipe(f"/out/people/{version}/secret", b"x")
    storage.pipe("/out/people/1.2.0/protocol.json", b"{}")
    storage.pipe("/out/people/latest", b"1.1.0\n")
    yield storage
    storage.rm("/", recursive=True)


@pytest.mark.parametrize(
    ("name", "version"),
    [("people", "1.1.0"), ("people/", "1.1.0"), ("people/latest", "1.1.0"), ("people/1.0.0", "1.0.0")],
)
def test_the_public_files_of_a_version(memory: Any, tmp_path: Path, name: str, version: str) -> None:
    fetched = fetch_release(f"memory://out/{name}", tmp_path)
    folder = fetched.folder
    assert fetched.unlisted == ("secret",)
    assert fetched.url == f"memory://out/people/{version}"
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"datapackage.json", "protocol.json", "data/records.parquet"}
    assert folder.data.read_text() == version


def test_what_is_no_release(memory: Any, tmp_path: Path) -> None:
    for name in ("none", "people/1.2.0", "people/9.0.0"):
        with pytest.raises(DataError, match=f"there is no release at memory://out/{name}"):
            fetch_release(f"memory://out/{name}", tmp_path)
    memory.rm("/out/people/1.0.0/protocol.json")
    with pytest.raises(DataError, match=r"lacks protocol\.json"):
        fetch_release("memory://out/people/1.0.0", tmp_path)
    memory.pipe("/out/people/1.0.0/datapackage.json", b"[1]")
    with pytest.raises(DataError, match="is not a Data Package"):
        fetch_release("memory://out/people/1.0.0", tmp_path)
    memory.pipe("/out/people/latest", b"../1.0.0")
    with pytest.raises(DataError, match="does not name a version"):
        fetch_release("memory://out/people", tmp_path)


def test_large_files_are_read_in_large_blocks(memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every read of a file at a URL is a request."""
    content = bytes(range(256)) * (5 << 12)
    memory.pipe("/out/people/1.1.0/data/records.parquet", content)
    asked: list[int] = []
    real = fetch.open_binary

    class Counted(io.RawIOBase):
        def __init__(self, file: Any) -> None:
            self.file = file

        def read(self, size: int = -1) -> bytes:
            asked.append(size)
            return bytes(self.file.read(size))

    monkeypatch.setattr(fetch, "open_binary", lambda address: Counted(real(address)))
    folder = fetch_release("memory://out/people", tmp_path).folder
    assert folder.data.read_bytes() == content
    # The newest version's name and three files, each with a last read that finds nothing, and no more than
    # fits in memory at once.
    assert len(asked) <= 2 * 4 + len(content) // (1 << 20)
    assert max(asked) <= 1 << 24


def test_what_is_larger_or_slower_than_a_release_is_not_read_on(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(0, 10**6, 1000))
    with pytest.raises(DataError, match="not read within 60 minutes"):
        fetch_release("memory://out/people", tmp_path / "slow", clock=lambda: float(next(ticks)))
    monkeypatch.setattr(fetch, "LARGEST_TABLE", 4)
    with pytest.raises(DataError, match=r"records\.parquet is larger than any file of a release"):
        fetch_release("memory://out/people", tmp_path / "large")
    package = {"resources": [{"path": f"data/{number}"} for number in range(1000)]}
    memory.pipe("/out/people/1.1.0/datapackage.json", json.dumps(package).encode())
    with pytest.raises(DataError, match="lists more files than any release has"):
        fetch_release("memory://out/people", tmp_path / "many")


class Server(BaseHTTPRequestHandler):
    """A web server that sends on to another host, to itself, or says nothing."""

    elsewhere = ""

    def do_GET(self) -> None:
        if self.path.startswith("/silent"):
            # Until the client gives up.
            self.rfile.read(1)
            return
        if self.path == "/moved/datapackage.json":
            self.send_response(302)
            self.send_header("Location", self.elsewhere)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        found = self.path in ("/here/datapackage.json", "/here/protocol.json")
        content = b"{}" if found else b""
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def web() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_web_server_may_send_on_to_itself_and_nowhere_else(web: str, tmp_path: Path) -> None:
    assert fetch_release(f"{web}/here", tmp_path / "here").url == f"{web}/here"
    Server.elsewhere = f"{web}/here/datapackage.json"
    with pytest.raises(DataError, match=r"lacks protocol\.json"):
        fetch_release(f"{web}/moved", tmp_path / "same")
    Server.elsewhere = f"{web.replace('127.0.0.1', 'localhost')}/here/datapackage.json"
    with pytest.raises(DataError, match="is sent on to another host, which is not followed"):
        fetch_release(f"{web}/moved", tmp_path / "other")


def test_a_silent_server_ends_in_a_sentence(web: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_PATIENCE", 0.2)
    with pytest.raises(DataError, match="cannot be reached or read"):
        fetch_release(f"{web}/silent", tmp_path)
