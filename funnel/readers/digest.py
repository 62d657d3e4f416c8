"""The content digest of a file, streamed."""

from __future__ import annotations

import hashlib
import os

from funnel.errors import DataError
from funnel.storage import attempt, open_binary

_BLOCK_BYTES = 1 << 22


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of the content of a file, local or at a URL, as 64 hexadecimal digits; memory is that of one block.

    Raises
    ------
    DataError
        If the file is missing or cannot be read.
    """
    address = os.fspath(path)

    def digest() -> str:
        total = hashlib.sha256()
        with open_binary(address) as stream:
            while block := stream.read(_BLOCK_BYTES):
                total.update(block)
        return total.hexdigest()

    return attempt(digest, address, DataError, f"{address} cannot be read: No such file or directory")
