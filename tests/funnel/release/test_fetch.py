"""Fetching a release: the version that `latest` names, its public files alone, and nothing outside it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from funnel.errors import DataError
from funnel.release import fetch
from funnel.release.fetch import fetch_release


@pytest.fixture
def memory() -> Iterator[Any]:
    storage = fsspec.filesystem("memory")
    for version in ("1.0.0", "1.1.0"):
        paths = ["data/records.parquet", "../1.0.0/secret", "data/gone.csv"]
        package = {"version": version, "resources": [{"path": path} for path in paths]}
        storage.pipe(f"/out/people/{version}/datapackage.json", json.dumps(package).encode())
        storage.pipe(f"/out/people/{version}/protocol.json", b"{}")
        storage.pipe(f"/out/people/{version}/data/records.parquet", version.encode())
        storage.pipe(f"/out/people/{version}/secret", b"x")
    storage.pipe("/out/people/1.2.0/protocol.json", b"{}")
    storage.pipe("/out/people/latest", b"1.1.0\n")
    yield storage
    storage.rm("/", recursive=True)


@pytest.mark.parametrize(
    ("name", "version"),
    [("people", "1.1.0"), ("people/", "1.1.0"), ("people/latest", "1.1.0"), ("people/1.0.0", "1.0.0")],
)
def test_the_public_files_of_a_version(memory: Any, tmp_path: Path, name: str, version: str) -> None:
    root, folder = fetch_release(f"memory://out/{name}", tmp_path)
    assert root == f"memory://out/people/{version}"
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"datapackage.json", "protocol.json", "data/records.parquet"}
    assert folder.data.read_text() == version


def test_what_is_no_release(memory: Any, tmp_path: Path) -> None:
    for name in ("none", "people/1.2.0", "people/9.0.0"):
        with pytest.raises(DataError, match=f"there is no release at memory://out/{name}"):
            fetch_release(f"memory://out/{name}", tmp_path)
    memory.rm("/out/people/1.0.0/protocol.json")
    with pytest.raises(DataError, match=r"lacks protocol\.json"):
        fetch_release("memory://out/people/1.0.0", tmp_path)
    memory.pipe("/out/people/1.0.0/datapackage.json", b"[1]")
    with pytest.raises(DataError, match="is not a Data Package"):
        fetch_release("memory://out/people/1.0.0", tmp_path)
    memory.pipe("/out/people/latest", b"../1.0.0")
    with pytest.raises(DataError, match="does not name a version"):
        fetch_release("memory://out/people", tmp_path)


def test_large_files_are_read_in_large_blocks(memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every read of a file at a URL is a request."""
    content = bytes(range(256)) * (5 << 12)
    memory.pipe("/out/people/1.1.0/data/records.parquet", content)
    asked: list[int] = []
    real = fetch.open_binary

    class Counted(io.RawIOBase):
        def __init__(self, file: Any) -> None:
            self.file = file

        def read(self, size: int = -1) -> bytes:
            asked.append(size)
            return bytes(self.file.read(size))

    monkeypatch.setattr(fetch, "open_binary", lambda address: Counted(real(address)))
    _, folder = fetch_release("memory://out/people", tmp_path)
    assert folder.data.read_bytes() == content
    # Two files, each with a last read that finds nothing; and no more than fits in memory at once.
    assert len(asked) <= 2 * 2 + len(content) // (1 << 20)
    assert max(asked) <= 1 << 24
