"""Fetching the public files of a release at a URL, to check them here."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

from funnel.errors import DataError
from funnel.release.layout import LATEST, ReleaseFolder, Version
from funnel.storage import attempt, base_name, filesystem, joined, open_binary

_BLOCK_BYTES = 1 << 22


def fetch_release(url: str, folder: Path) -> tuple[str, ReleaseFolder]:
    """Copy the public files of a release into an empty folder.

    Parameters
    ----------
    url : str
        Of a version, or of a series, whose latest version is meant.
    folder : Path

    Returns
    -------
    tuple of str and ReleaseFolder
        The URL of the version, and where its files are now. A file that is listed but missing is left out.

    Raises
    ------
    DataError
        If there is no release, or it cannot be read.
    """
    root = url.rstrip("/")
    if base_name(root) == LATEST:
        root = root.removesuffix(f"/{LATEST}")
    if (latest := _content(joined(root, LATEST))) is not None:
        version = Version.parse(latest.decode("utf-8", "replace").strip())
        if version is None:
            raise DataError(f"{joined(root, LATEST)} does not name a version; the release is damaged")
        root = joined(root, str(version))
    local = ReleaseFolder(folder)
    package = _content(joined(root, local.package.name))
    if package is None:
        raise DataError(
            f"there is no release at {url}; name the URL of a version, or of a series with {LATEST!r} in it"
        )
    folder.mkdir(parents=True, exist_ok=True)
    local.package.write_bytes(package)
    for name in sorted({local.protocol.name, *_listed(package, root)}):
        path = PurePosixPath(name)
        # A path that leads outside the release must not be followed; the audit tells that it is missing.
        if path.is_absolute() or ".." in path.parts or not _exists(joined(root, name)):
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        attempt(lambda name=name, target=target: _copy(joined(root, name), target), root, DataError)  # type: ignore[misc]
    if not local.protocol.is_file():
        raise DataError(f"{root} is not a release: it lacks protocol.json")
    return root, local


def _listed(package: bytes, root: str) -> list[str]:
    try:
        content: dict[str, Any] = json.loads(package)
        return [str(resource["path"]) for resource in content.get("resources", [])]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise DataError(f"{root}/datapackage.json is not a Data Package; the release is damaged") from None


def _exists(address: str) -> bool:
    storage, inside = filesystem(address)
    return attempt(lambda: bool(storage.isfile(inside)), address, DataError)


def _content(address: str) -> bytes | None:
    """What a small file holds; None if there is no such file."""
    storage, inside = filesystem(address)
    return attempt(lambda: bytes(storage.cat_file(inside)) if storage.isfile(inside) else None, address, DataError)


def _copy(address: str, target: Path) -> None:
    with open_binary(address) as source, target.open("wb") as copy:
        while block := source.read(_BLOCK_BYTES):
            copy.write(block)
