"""The content digest of a file, streamed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from funnel.errors import DataError


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of the content of a file as 64 hexadecimal digits; memory does not grow with the file.

    Raises
    ------
    DataError
        If the file is missing or cannot be read.
    """
    try:
        with Path(path).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{os.fspath(path)} cannot be read: {error.strerror}") from error
