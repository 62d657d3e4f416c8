"""The content digest: that of the bytes, whatever their number."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from funnel.errors import DataError
from funnel.readers.source_files import file_digest


@pytest.mark.parametrize("content", [b"", b"a", bytes(3_000_001)])
def test_the_digest_is_that_of_the_bytes(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert file_digest(path) == hashlib.sha256(content).hexdigest()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none cannot be read: No such file"):
        file_digest(tmp_path / "none")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        file_digest(tmp_path)
