"""The files of a source, found and read anew: which they are, what their folders state, and their digest."""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from funnel.errors import DataError
from funnel.storage import attempt, base_name, filesystem, local_path, open_binary

_BLOCK = 1 << 22
# How names of files end that are read of a folder, by format; a format that is not here is one file.
_ENDINGS = {"parquet": (".parquet", ".pq"), "arrow": (".arrow", ".feather", ".ipc", ".arrows"), "orc": (".orc",)}
# How hive names a folder of rows without a value.
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Part:
    """One file of a source.

    Attributes
    ----------
    address : str
    name : str
        Its path below the folder of the source, with slashes.
    stated : mapping of str to str or None
        Columns that the names of its folders state for all its rows, as ``year=2020`` does.
    """

    address: str
    name: str
    stated: dict[str, str | None]


@dataclass(frozen=True)
class Parts:
    """All files of a source, by name; ``whole`` where the address names one file rather than many."""

    files: tuple[Part, ...]
    whole: bool

    def digest(self, digests: dict[str, str]) -> str:
        """SHA-256 of the source, from those of its files by name."""
        if self.whole:
            return digests[self.files[0].name]
        lines = b"".join(
            part.name.encode(errors="surrogateescape") + b"\0" + digests[part.name].encode() + b"\n"
            for part in self.files
        )
        return hashlib.sha256(lines).hexdigest()


def parts_of(address: str, kind: str = "parquet") -> Parts:
    """The files at an address: a file, all files of a format below a folder, or those that match a pattern.

    Raises
    ------
    DataError
        If there is none.
    """
    path = local_path(address)
    found = _remote(address) if path is None else _local(str(path))
    if isinstance(found, str):
        return Parts((Part(found, base_name(address), {}),), whole=True)
    files = [
        Part(place, name, _stated(name))
        for name, place in sorted(found.items())
        if name.lower().endswith(_ENDINGS.get(kind, ())) and not re.search(r"(^|/)[._]", name)
    ]
    if not files:
        raise DataError(
            f"the source {address} is not one {kind} file and holds none, so there is nothing to count again"
        )
    return Parts(tuple(files), whole=False)


@contextlib.contextmanager
def at_hand(part: Part, scratch: Path) -> Iterator[tuple[Path, str]]:
    """A file of a source as a local path, with its SHA-256; a copy, removed afterwards, where it is elsewhere.

    Raises
    ------
    DataError
        If it cannot be read, or is not what it was at the beginning when it has been read.
    """
    path = local_path(part.address)
    if path is not None:
        before = _digest(part.address)
        yield path, before
        if _digest(part.address) != before:
            raise DataError(f"the source {part.address} changed while it was counted again; try again")
        return
    copy = scratch / "part"
    try:
        yield copy, _digest(part.address, copy)
    finally:
        copy.unlink(missing_ok=True)


def files_digest(parts: Parts) -> str:
    """SHA-256 of files as they are now, in the form in which a snapshot states that of its source.

    Raises
    ------
    DataError
        If one of them cannot be read.
    """
    return parts.digest({part.name: _digest(part.address) for part in parts.files})


def _digest(address: str, copy: Path | None = None) -> str:
    """SHA-256 of a file, which is copied in passing."""

    def read() -> str:
        total = hashlib.sha256()
        with open_binary(address) as stream, (copy or Path(os.devnull)).open("wb") as target:
            while block := stream.read(_BLOCK):
                total.update(block)
                target.write(block)
        return total.hexdigest()

    return attempt(read, address, DataError, f"there is no file {address} any more")


def _stated(name: str) -> dict[str, str | None]:
    stated: dict[str, str | None] = {}
    for folder in name.split("/")[:-1]:
        column, equals, value = folder.partition("=")
        if equals and column:
            stated[unquote(column)] = None if value == _HIVE_NULL else unquote(value)
    return stated


def _local(address: str) -> str | dict[str, str]:
    place = Path(address)
    if place.is_file():
        return address
    if place.is_dir():
        return _below(place)
    if not glob.has_magic(address):
        raise DataError(f"there is no source {address}, so it cannot be counted again")
    fixed, pattern = _split(address)
    return {name: f"{fixed}/{name}" for name in _matching(fixed, pattern)}


def _below(folder: Path) -> dict[str, str]:
    """All files below a folder by name; links to folders are not followed."""
    return {path.relative_to(folder).as_posix(): str(path) for path in folder.rglob("*") if path.is_file()}


def _matching(folder: str, pattern: list[str], above: str = "") -> Iterator[str]:
    """Names of the files below a folder that match a pattern, part by part; ``**`` is any number of folders."""
    first, rest = pattern[0], pattern[1:]
    if first == "**" and rest:
        yield from _matching(folder, rest, above)
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        name = f"{above}{entry.name}"
        if first == "**":
            if rest and entry.is_dir(follow_symlinks=False):
                yield from _matching(entry.path, pattern, f"{name}/")
        elif fnmatch.fnmatchcase(entry.name, first):
            if not rest and entry.is_file():
                yield name
            elif rest and entry.is_dir():
                yield from _matching(entry.path, rest, f"{name}/")


def _remote(address: str) -> str | dict[str, str]:
    storage, inside = filesystem(address)

    def listed() -> str | dict[str, str]:
        if storage.isfile(inside):
            return address
        if storage.isdir(inside):
            fixed, paths = inside, storage.find(inside)
        elif glob.has_magic(inside):
            fixed, paths = _split(inside)[0], [path for path in storage.glob(inside) if storage.isfile(path)]
        else:
            raise FileNotFoundError(inside)
        start = fixed.rstrip("/") + "/"
        return {path.removeprefix(start): str(storage.unstrip_protocol(path)) for path in paths}

    return attempt(listed, address, DataError, f"there is no source {address}, so it cannot be counted again")


def _split(address: str) -> tuple[str, list[str]]:
    """The folder above the first part of a pattern that is no plain name, and the parts from there on."""
    parts = address.split("/")
    first = next(place for place, part in enumerate(parts) if glob.has_magic(part))
    return "/".join(parts[:first]) or ("/" if address.startswith("/") else "."), parts[first:]
