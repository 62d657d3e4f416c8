"""Serve: the public files of a folder of releases over http, for browsers near it; nothing else of the folder."""

from __future__ import annotations

import mimetypes
import re
import shutil
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import SHUT_RD, socket
from threading import Timer
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from markupsafe import escape

from funnel.errors import DataError, FunnelError, OutputError
from funnel.release.layout import INDEX, SIGNATURE_FILE, Version
from funnel.release.signature import SignatureDocument

_SERIES = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# A report needs nothing from elsewhere, and no page here may be framed or run what it did not bring.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_TYPES = {
    ".cff": "application/yaml",
    ".json": "application/json",
    ".jsonld": "application/ld+json",
    ".parquet": "application/vnd.apache.parquet",
}


def server_of(folder: Path, host: str, port: int) -> ThreadingHTTPServer:
    """A server of the public files below a folder of releases; ``serve_forever`` runs it.

    Of a version exactly those files are served that its signature lists, and the signature: no version that is held or
    unfinished, and nothing that lies beside them.

    Parameters
    ----------
    folder : Path
        In which series appear, the ``folder`` of ``[output]``.
    host : str
        Address to listen at, such as 127.0.0.1.
    port : int
        0 for any that is free.

    Raises
    ------
    DataError
        If there is no such folder.
    OutputError
        If the address cannot be listened at.
    """
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}; name the one in which releases appear, such as releases")

    class Handler(_Handler):
        root = folder

    try:
        return ThreadingHTTPServer((host, port), Handler)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise OutputError(f"cannot listen at {host}, port {port}: {reason}; choose another --port or --host") from error


def _read_no_more(connection: socket) -> None:
    """Take what was not read yet as the end; what is being sent is sent."""
    with suppress(OSError):
        connection.shutdown(SHUT_RD)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    root: Path
    # Seconds: who is silent for longer is not waited for, and whoever opens many connections keeps none of them.
    timeout = 30
    server_version, sys_version = "funnel", ""

    def handle(self) -> None:
        """Answer; who sends a request byte by byte is waited for no longer than who is silent."""
        late = Timer(self.timeout, _read_no_more, [self.connection])
        late.daemon = True
        late.start()
        try:
            super().handle()
        finally:
            late.cancel()

    def do_GET(self) -> None:
        """Send a public file, or a list of what there is."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """As GET, without the content."""
        self._answer(body=False)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: whoever wants a log puts a server in front of this one."""

    def _answer(self, body: bool) -> None:
        parts = [unquote(part) for part in urlsplit(self.path).path.split("/") if part]
        with suppress(BrokenPipeError, ConnectionResetError):
            if not parts:
                self._send_page(f"Releases in {self.root.name}", series_in(self.root), body)
            elif len(parts) == 1 and parts[0] in series_in(self.root):
                self._send_page(parts[0], versions_in(self.root / parts[0]), body, f"{parts[0]}/", "/report.html")
            elif (path := public_file(self.root, parts)) is not None:
                self._send_file(path, body)
            else:
                self._send(HTTPStatus.NOT_FOUND, "text/plain", b"There is no such public file.\n", body)

    def _send_page(self, title: str, names: list[str], body: bool, before: str = "", after: str = "/") -> None:
        rows = "".join(f'<li><a href="/{quote(before + name + after)}">{escape(name)}</a></li>' for name in names)
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
            f"<h1>{escape(title)}</h1><ul>{rows}</ul></html>"
        )
        self._send(HTTPStatus.OK, "text/html; charset=utf-8", page.encode(), body)

    def _send_file(self, path: Path, body: bool) -> None:
        kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        with path.open("rb") as stream:
            self._begin(HTTPStatus.OK, f"{kind}; charset=utf-8" if kind.startswith("text/") else kind, path)
            if body:
                shutil.copyfileobj(stream, self.wfile)

    def _send(self, status: HTTPStatus, kind: str, content: bytes, body: bool) -> None:
        self._begin(status, kind, len(content))
        if body:
            self.wfile.write(content)

    def _begin(self, status: HTTPStatus, kind: str, length: int | Path) -> None:
        self.send_response(status)
        size = length.stat().st_size if isinstance(length, Path) else length
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(size)}.items():
            self.send_header(name, value)
        self.end_headers()


def series_in(folder: Path) -> list[str]:
    """Names of the series in a folder that have a version to show."""
    return sorted(path.name for path in folder.iterdir() if _SERIES.fullmatch(path.name) and versions_in(path))


def versions_in(series: Path) -> list[str]:
    """The published versions of a series, newest first."""
    if not series.is_dir():
        return []
    found = [version for path in series.iterdir() if (version := Version.parse(path.name)) is not None]
    return [
        str(version) for version in sorted(found, reverse=True) if (series / str(version) / SIGNATURE_FILE).is_file()
    ]


def public_file(folder: Path, parts: list[str]) -> Path | None:
    """The public file that the parts of an address name; None if they name none.

    Parameters
    ----------
    folder : Path
    parts : list of str
        Series, version or ``latest``, and the path in the version; or series and the name of the series index.
    """
    if parts[1:] == [INDEX] and parts[0] in series_in(folder):
        return _plain(folder / parts[0], INDEX)
    if len(parts) < 3 or not _SERIES.fullmatch(parts[0]):
        return None
    versions = versions_in(folder / parts[0])
    version = versions[0] if parts[1] == "latest" and versions else parts[1]
    name = "/".join(parts[2:])
    if version not in versions:
        return None
    place = folder / parts[0] / version
    return _plain(place, name) if name in _listed(place) else None


def _plain(place: Path, name: str) -> Path | None:
    """A file in a folder; None where there is none, or a link leads out of the folder."""
    path = place / name
    return path if path.resolve().is_relative_to(place.resolve()) and path.is_file() else None


def _listed(place: Path) -> set[str]:
    try:
        return {SIGNATURE_FILE, *(file.path for file in SignatureDocument.read(place / SIGNATURE_FILE).manifest.files)}
    except FunnelError:
        return set()
