"""Files that are packed: what is in a ``.gz`` or ``.zip`` file, as a stream of bytes."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from typing import IO, Any, TypeVar, cast

import pyarrow as pa

from funnel.errors import DataError
from funnel.storage import explained, failures, is_url, open_binary

GZIP, ZIP = ".gz", ".zip"

T = TypeVar("T")


class PackingError(Exception):
    """A packed file that cannot be unpacked, with what is wrong with it."""


def open_unpacked(address: str) -> IO[bytes]:
    """Open a file to read, unpacked where its name ends in ``.gz`` or ``.zip``; close it with `close`.

    Raises
    ------
    PackingError
        If a ``.zip`` holds no file or more than one, or is locked.
    """
    stream = open_binary(address)
    ending = address.lower()
    try:
        if ending.endswith(GZIP):
            return cast(IO[bytes], pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "gzip"))
        if ending.endswith(ZIP):
            return cast(IO[bytes], _OnlyMember(stream))
    except BaseException:
        stream.close()
        raise
    return stream


class _OnlyMember(io.RawIOBase):
    """The one file in a ``.zip`` file."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._open = ExitStack()
        self._open.callback(stream.close)
        archive = self._open.enter_context(zipfile.ZipFile(stream))
        members = [
            member
            for member in archive.infolist()
            # What a computer of Apple's puts beside the files.
            if not member.is_dir() and not member.filename.startswith("__MACOSX/")
        ]
        if len(members) != 1:
            raise PackingError(f"holds {len(members)} files; pack one csv file into it")
        if members[0].flag_bits & 1:
            raise PackingError("is locked with a password; unpack it first")
        self._member = self._open.enter_context(archive.open(members[0]))

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        return self._member.read(size)

    def close(self) -> None:
        self._open.close()
        super().close()


def guarded(address: str, action: Callable[[], T]) -> T:
    """The result of an action on a file that may be packed; what it raises becomes one sentence.

    Raises
    ------
    DataError
        Errors of pyarrow are left to the caller.
    """
    try:
        return action()
    except PackingError as error:
        sentence = f"{address} {error}"
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError):
        sentence = _damaged(address)
    except failures() as error:
        sentence = _damaged(address) if _is_damage(address, error) else explained(error, address)
    # Raised outside the handler, so that no traceback carries the original message.
    raise DataError(sentence)


def _is_damage(address: str, error: Any) -> bool:
    """Whether an error is one of unpacking, which comes without a number, rather than of reading."""
    packed = address.lower().endswith((GZIP, ZIP))
    return packed and type(error) is OSError and error.errno is None and not is_url(address)


def _damaged(address: str) -> str:
    return f"{address} cannot be unpacked: it is damaged, was cut short, or is packed in another way than its name says"
