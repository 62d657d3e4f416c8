"""The files of a release as an audit reads them: nothing outside the folder, nothing that blocks, nothing too large."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from funnel.errors import DataError

# A protocol of a thousand values is a few megabytes.
LARGEST_DOCUMENT = 1 << 28
_MOST_ENTRIES = 10_000
_DEEPEST = 8
_FOLDERS = ("data",)
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Listing:
    """What is in the folder of a release.

    Attributes
    ----------
    files : tuple of str
        Paths of regular files, with slashes, in order.
    strange : tuple of str
        What is neither a file nor a folder of a release: links, pipes, sockets, devices, other folders.
    """

    files: tuple[str, ...]
    strange: tuple[str, ...]


def list_folder(root: Path) -> Listing:
    """All that is in a folder, without following a link.

    Raises
    ------
    DataError
        If it holds more than a release can, or cannot be listed.
    """
    files: list[str] = []
    strange: list[str] = []
    try:
        for path, kind in _walk(root, "", 0):
            (files if kind else strange).append(path)
            if len(files) + len(strange) > _MOST_ENTRIES:
                raise DataError(f"{root} holds more than {_MOST_ENTRIES:,} files; it is no release")
    except OSError as error:
        raise DataError(f"{root} cannot be listed: {error.strerror or type(error).__name__}") from error
    return Listing(tuple(sorted(files)), tuple(sorted(strange)))


def _walk(folder: Path, prefix: str, depth: int) -> Iterator[tuple[str, bool]]:
    if depth > _DEEPEST:
        raise DataError(f"{folder} is deeper than any folder of a release; it is no release")
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                if path not in _FOLDERS:
                    yield path, False
                yield from _walk(Path(entry.path), f"{path}/", depth + 1)
            else:
                yield path, entry.is_file(follow_symlinks=False)


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A regular file, opened without following a link and without waiting for a writer.

    Raises
    ------
    DataError
        If there is none or it cannot be opened.
    """
    try:
        # Without O_NONBLOCK, opening a pipe waits for somebody to write.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise DataError(f"{path} is missing; restore it from a backup") from error
    except OSError as error:
        raise DataError(f"{path} is no file that can be read ({error.strerror or type(error).__name__})") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DataError(f"{path} is no file: it is a folder, a pipe, a socket or a device")
    with os.fdopen(descriptor, "rb") as file:
        yield file


def read_document(path: Path) -> bytes:
    """The content of a document.

    Raises
    ------
    DataError
        As `opened`, or if it is too large.
    """
    with opened(path) as file:
        content = file.read(LARGEST_DOCUMENT + 1)
    if len(content) > LARGEST_DOCUMENT:
        raise DataError(f"{path} is larger than any document of a release; the release is damaged")
    return content


def read_text(path: Path) -> str:
    """The content of a document that is a text.

    Raises
    ------
    DataError
        As `read_document`, or if it is not UTF-8.
    """
    try:
        return read_document(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8; restore it from a backup") from error


def file_facts(path: Path) -> tuple[str, int]:
    """SHA-256 (hex) and size of a file, read once.

    Raises
    ------
    DataError
        As `opened`.
    """
    digest, size = hashlib.sha256(), 0
    with opened(path) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return digest.hexdigest(), size


def parse_json(content: bytes, path: Path) -> Any:
    """The value of a JSON document in UTF-8: no key twice, no NaN, no number or nesting beyond what readers agree on.

    Raises
    ------
    DataError
        If it is not that.
    """
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read as JSON ({_why(error)}); the release is damaged") from error


def read_json(path: Path) -> Any:
    """The value of a JSON document, by `read_document` and `parse_json`."""
    return parse_json(read_document(path), path)


def canonical_difference(content: bytes, path: Path) -> str | None:
    """Why a document is not written as funnel writes it; None if it is, to the byte.

    Raises
    ------
    DataError
        If it is no JSON.
    """
    value = parse_json(content, path)
    try:
        again = spread(value)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} holds a value that JSON cannot tell; the release is damaged") from error
    if again == content:
        return None
    place = next(
        (i for i, (a, b) in enumerate(zip(again, content, strict=False)) if a != b), min(map(len, (again, content)))
    )
    return f"{path.name} is not as funnel writes it, from byte {place:,} on"


_inline = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode


def spread(content: Any) -> bytes:
    """JSON as documents for people are written: keys in order, a line for what has no list or object in it."""
    return (_laid_out(content, 0) + "\n").encode()


def _laid_out(value: Any, depth: int) -> str:
    named = isinstance(value, dict)
    parts = sorted(value.items()) if named else list(enumerate(value)) if isinstance(value, list) else []
    if all(not isinstance(part, (dict, list)) for _, part in parts):
        return _inline(value)
    margin = "\n" + " " * depth
    lines = [f"{margin} {_inline(key) + ': ' if named else ''}{_laid_out(part, depth + 1)}" for key, part in parts]
    begin, end = "{}" if named else "[]"
    return begin + ",".join(lines) + margin + end


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError("a number is not finite")


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}"
    said = str(error)
    return said if said in ("a key is there twice", "a number is not finite") else "a number has too many digits"
