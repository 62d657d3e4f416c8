"""Fetching the public files of a release at a URL, to check them here; the server is not trusted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from funnel.errors import DataError
from funnel.release.files import write_new
from funnel.release.layout import INDEX, LATEST, ReleaseFolder, Version
from funnel.storage import attempt, base_name, filesystem, joined, open_binary

_BLOCK_BYTES = 1 << 22
# A document is read into memory, and a table onto the disk.
LARGEST_DOCUMENT = 1 << 28
LARGEST_TABLE = 1 << 36
LONGEST_SECONDS = 3600.0
_MOST_FILES = 100
# What web servers answer where there is nothing, those too that do not tell whether there is.
_MISSING = (401, 403, 404, 410)


@dataclass(frozen=True)
class Fetched:
    """A release that was fetched.

    Attributes
    ----------
    url : str
        Of the version.
    folder : ReleaseFolder
        Where its public files are now.
    unlisted : tuple of str
        Files at the URL that are not fetched, since no document of the release lists them; none where the storage
        cannot be listed, such as most web servers.
    by_latest : bool
        Whether ``latest`` named the version.
    index : bytes or None
        The series index beside the version, where there is one.
    """

    url: str
    folder: ReleaseFolder
    unlisted: tuple[str, ...] = ()
    by_latest: bool = False
    index: bytes | None = None


def fetch_release(url: str, folder: Path, clock: Callable[[], float] = time.monotonic) -> Fetched:
    """Copy the public files of a release into an empty folder.

    Parameters
    ----------
    url : str
        Of a version, or of a series, whose latest version is meant.
    folder : Path
    clock : callable
        Seconds; all together may take an hour.

    Returns
    -------
    Fetched
        A file that is listed but missing is left out.

    Raises
    ------
    DataError
        If there is no release, it cannot be read, or it is larger or slower than any release.
    """
    deadline = clock() + LONGEST_SECONDS

    def content(address: str) -> bytes | None:
        return _content(address, folder, deadline, clock)

    folder.mkdir(parents=True, exist_ok=True)
    root = url.rstrip("/")
    if base_name(root) == LATEST:
        root = root.removesuffix(f"/{LATEST}")
    latest = content(joined(root, LATEST))
    if latest is not None:
        version = Version.parse(latest.decode("utf-8", "replace").strip())
        if version is None:
            raise DataError(f"{joined(root, LATEST)} does not name a version; the release is damaged")
        root = joined(root, str(version))
    local = ReleaseFolder(folder)
    package = content(joined(root, local.package.name))
    if package is None:
        raise DataError(
            f"there is no release at {url}; name the URL of a version, or of a series with {LATEST!r} in it"
        )
    write_new(local.package, package)
    documents = {path.name for path in (local.protocol, local.numbers, local.report, local.annex, local.signature)}
    documents |= {one.name for one in (local.readme, local.citation, local.catalogue, local.channel, local.estimator)}
    names = documents | {*_listed(package, root)}
    if len(names) > _MOST_FILES:
        raise DataError(f"{root}/datapackage.json lists more files than any release has; the release is damaged")
    for name in sorted(names):
        path = PurePosixPath(name)
        # A path that leads outside the release must not be followed; the audit tells that it is missing.
        if path.is_absolute() or ".." in path.parts or not path.parts:
            continue
        if not _exists(joined(root, name)):
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        limit = LARGEST_TABLE if path.parts[0] == "data" else LARGEST_DOCUMENT
        _copy(joined(root, name), target, limit, deadline, clock)
    if not local.protocol.is_file():
        raise DataError(f"{root} is not a release: it lacks protocol.json")
    unlisted = _unlisted(root, names | {local.package.name})
    return Fetched(
        root, local, unlisted, latest is not None, content(beside) if (beside := index_of_series(root)) else None
    )


def index_of_series(url: str) -> str | None:
    """Where the series index of the version at a URL would be; None where nothing can be beside it."""
    parent = url.rstrip("/").rpartition("/")[0]
    return joined(parent, INDEX) if parent.partition("://")[2].strip("/") else None


def fetch_index(url: str, folder: Path, clock: Callable[[], float] = time.monotonic) -> bytes:
    """The series index at a URL.

    Parameters
    ----------
    url : str
    folder : Path
        For what is read, which is removed again.
    clock : callable
        Seconds.

    Raises
    ------
    DataError
        If there is none, or it cannot be read.
    """
    found = _content(url, folder, clock() + LONGEST_SECONDS, clock)
    if found is None:
        raise DataError(f"there is no series index at {url}; name the publisher's {INDEX} of the series")
    return found


def _content(address: str, folder: Path, deadline: float, clock: Callable[[], float]) -> bytes | None:
    """A document at a URL; None where there is none."""
    target = folder / ".document"
    if not _exists(address):
        return None
    _copy(address, target, LARGEST_DOCUMENT, deadline, clock)
    read = target.read_bytes()
    target.unlink()
    return read


def _listed(package: bytes, root: str) -> list[str]:
    try:
        content: dict[str, Any] = json.loads(package)
        return [str(resource["path"]) for resource in content.get("resources", [])]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise DataError(f"{root}/datapackage.json is not a Data Package; the release is damaged") from None


def _unlisted(root: str, names: set[str]) -> tuple[str, ...]:
    """Files below a URL that are none of these."""
    storage, inside = filesystem(root)
    if not root.startswith(("http://", "https://")):
        prefix = inside.rstrip("/") + "/"
        found = attempt(lambda: [str(path) for path in storage.find(inside)], root, DataError)
        return tuple(sorted({path.removeprefix(prefix) for path in found} - names))
    # What a web server shows of a folder is a page, which need not be a list.
    return ()


def _exists(address: str) -> bool:
    storage, inside = filesystem(address)

    def found() -> bool:
        try:
            return str(storage.info(inside).get("type", "file")) == "file"
        except FileNotFoundError as error:
            # A web server that does not answer, or sends the reader elsewhere, looks like a missing file.
            cause = error.__cause__
            if cause is None or isinstance(cause, FileNotFoundError) or getattr(cause, "status", 0) in _MISSING:
                return False
            raise cause from None

    return attempt(found, address, DataError)


def _copy(address: str, target: Path, limit: int, deadline: float, clock: Callable[[], float]) -> None:
    """Copy a file in blocks, each of which is late or too much before the next one is asked for."""

    def copy() -> None:
        size = 0
        with open_binary(address) as source, target.open("wb") as local:
            while block := source.read(_BLOCK_BYTES):
                size += len(block)
                if size > limit:
                    raise DataError(f"{address} is larger than any file of a release; nothing more of it was read")
                if clock() > deadline:
                    raise DataError(f"{address} was not read within {LONGEST_SECONDS / 60:.0f} minutes; try again")
                local.write(block)

    attempt(copy, address, DataError)
