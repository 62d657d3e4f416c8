"""Serving public files: what the signature lists and nothing else, and a link that a browser opens."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

import httpx
import pytest
from click.testing import CliRunner

from funnel.cli import main
from funnel.errors import DataError, OutputError
from funnel.pipeline.flows.serve import public_file, series_in, server_of
from tests.releases import make_released

CHROMIUM = "/usr/bin/chromium"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    make_released(folder)
    return folder


@pytest.fixture(scope="module")
def address(project: Path) -> Iterator[str]:
    with server_of(project / "releases", "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_every_public_file_is_served_and_nothing_else(project: Path, address: str) -> None:
    version = project / "releases" / "people" / "1.0.0"
    for path in version.rglob("*"):
        name = path.relative_to(version)
        answer = httpx.get(f"{address}/people/1.0.0/{name}", timeout=None)
        if path.is_file():
            assert (answer.status_code, answer.content) == (200, path.read_bytes())
        else:
            assert (answer.status_code, answer.content) == (404, b"There is no such public file.\n")
    assert httpx.get(f"{address}/people/latest/protocol.json", timeout=None).status_code == 200
    index = httpx.get(f"{address}/people/versions.json", timeout=None)
    assert (index.status_code, index.content) == (200, (version.parent / "versions.json").read_bytes())
    head = httpx.head(f"{address}/people/1.0.0/report.html", timeout=None)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == "text/html; charset=utf-8"
    # Harvesters go by the type.
    entry = httpx.head(f"{address}/people/1.0.0/dcat.jsonld", timeout=None)
    assert entry.headers["content-type"] == "application/ld+json"


@pytest.mark.parametrize(
    "path",
    [
        ".funnel/internal/people/1.0.0/joint.json",
        "../.funnel/internal/people/1.0.0/joint.json",
        "people/1.0.0/../../../.funnel/internal/people/1.0.0/joint.json",
        "people/1.0.0/%2e%2e/%2e%2e/%2e%2e/.funnel/internal/people/1.0.0/joint.json",
        "people/1.0.0/data%2f..%2f..%2f..%2f..%2f.funnel%2finternal%2fpeople%2f1.0.0%2fjoint.json",
        "people/1.0.0//../.incoming-1/report.html",
        "..%2fpeople.parquet",
        "../people.parquet",
        ".funnel/people/signing-key",
        "people/.incoming-1/report.html",
        "people/1.0.1/report.html",
        "people/1.0.0",
        "%00",
    ],
)
def test_no_address_leads_to_what_is_internal(address: str, path: str) -> None:
    # httpx would tidy such a path up.
    request = httpx.Request("GET", address, extensions={"target": f"/{path}".encode()})
    with httpx.Client() as client:
        answer = client.send(request)
    assert answer.status_code == 404


def test_lists_lead_to_reports(project: Path, address: str) -> None:
    assert series_in(project / "releases") == ["people"]
    assert 'href="/people/"' in httpx.get(address, timeout=None).text
    assert 'href="/people/1.0.0/report.html"' in httpx.get(f"{address}/people/", timeout=None).text


@contextmanager
def impatient(project: Path, seconds: float) -> Iterator[tuple[str, int]]:
    """The address of a server that waits so long for a request."""
    server = server_of(project / "releases", "127.0.0.1", 0)
    assert server.RequestHandlerClass.timeout is not None
    with mock.patch.object(server.RequestHandlerClass, "timeout", seconds):
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield str(server.server_address[0]), int(server.server_address[1])
        server.shutdown()
    server.server_close()


def test_whoever_says_nothing_is_not_waited_for(project: Path) -> None:
    """A connection without a request is closed; the others are answered."""
    with impatient(project, 0.05) as address, socket.create_connection(address, timeout=30) as silent:
        assert silent.recv(1) == b""


def is_closed(slow: socket.socket) -> bool:
    """Whether the other end has closed, after one more byte was sent to it."""
    with suppress(TimeoutError):
        try:
            slow.send(b"G")
            return slow.recv(1) == b""
        except ConnectionError:
            return True
    return False


def test_whoever_says_it_byte_by_byte_is_not_waited_for(project: Path) -> None:
    """Each byte comes in time, and the request never ends: the connection is closed all the same."""
    with impatient(project, 0.5) as address, socket.create_connection(address, timeout=0.05) as slow:
        assert any(is_closed(slow) for _ in range(1200))


def test_a_link_in_the_folder_leads_nowhere(tmp_path: Path) -> None:
    make_released(tmp_path)
    version = tmp_path / "releases" / "people" / "1.0.0"
    (version / "report.html").unlink()
    (version / "report.html").symlink_to(tmp_path / "people.parquet")
    assert public_file(tmp_path / "releases", ["people", "1.0.0", "report.html"]) is None
    assert public_file(tmp_path / "releases", ["people", "1.0.0", "report.json"]) is not None
    (version / "signature.json").write_text("{}")
    assert public_file(tmp_path / "releases", ["people", "1.0.0", "report.json"]) is None


def test_a_browser_shows_the_served_report_as_it_shows_the_file(project: Path, tmp_path: Path, address: str) -> None:
    file = (project / "releases" / "people" / "1.0.0" / "report.html").as_uri()
    shown = [screenshot(url, tmp_path) for url in (f"{address}/people/1.0.0/report.html", file)]
    assert shown[0] == shown[1]
    # An empty page would be small.
    assert len(shown[0]) > 50_000


def screenshot(url: str, folder: Path) -> bytes:
    """The page as a browser shows it, as the bytes of a picture."""
    picture = folder / "page.png"
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,2000"]
    command += [f"--user-data-dir={folder / 'profile'}", f"--screenshot={picture}", url]
    subprocess.run(command, capture_output=True, check=True)
    return picture.read_bytes()


def test_what_cannot_be_served_is_one_sentence(project: Path, tmp_path: Path, address: str) -> None:
    with pytest.raises(DataError, match="there is no folder"):
        server_of(tmp_path / "gone", "127.0.0.1", 0)
    with pytest.raises(OutputError, match="choose another --port"):
        server_of(project / "releases", "127.0.0.1", int(address.rpartition(":")[2]))
    done = CliRunner().invoke(main, ["serve", str(tmp_path / "gone")])
    assert (done.exit_code, done.stderr.count("\n")) == (4, 1)
