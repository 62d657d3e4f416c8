"""A series at a URL: whole versions only, `datapackage.json` last, nothing internal, and nobody else's versions."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from funnel.errors import LedgerError, OutputError
from funnel.progress import quiet
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.remote import RemoteSeries

ONE, TWO, TEN = Version(1, 0, 0), Version(1, 2, 0), Version(1, 10, 0)


@pytest.fixture(params=["memory", "file"])
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RemoteSeries]:
    """An empty series on a store that has no folders, and on one that has."""
    if request.param == "file":
        yield RemoteSeries(f"file://{tmp_path}/out/people")
        return
    root = f"memory://{secrets.token_hex(6)}"
    yield RemoteSeries(f"{root}/people")
    storage = fsspec.filesystem("memory")
    if storage.exists(root):
        storage.rm(root, recursive=True)


def storage_of(remote: RemoteSeries) -> tuple[Any, str]:
    storage, root = fsspec.core.url_to_fs(remote.url)
    return storage, root


def objects(remote: RemoteSeries) -> dict[str, bytes]:
    storage, root = storage_of(remote)
    found = storage.find(root) if storage.exists(root) else []
    return {path.removeprefix(f"{root}/"): storage.cat_file(path) for path in found}


def put(remote: RemoteSeries, name: str, content: bytes = b"x") -> None:
    storage, root = storage_of(remote)
    storage.makedirs(f"{root}/{name}".rpartition("/")[0], exist_ok=True)
    storage.pipe_file(f"{root}/{name}", content)


def local(folder: Path, text: str = "package") -> ReleaseFolder:
    """A version as it is on this side, with what is internal."""
    release = ReleaseFolder(folder)
    for path, content in (
        (release.data, "rows"),
        (release.protocol, "protocol"),
        (release.package, text),
        (release.report, "report"),
        (release.joint, "counts of people"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return release


def test_before_the_first_version_there_is_nothing(remote: RemoteSeries) -> None:
    assert remote.published == []
    remote.remove_leftovers()
    remote.point_latest()
    assert objects(remote) == {}


def test_that_it_can_be_written_is_found_out_and_leaves_nothing(remote: RemoteSeries) -> None:
    remote.check_writable()
    assert objects(remote) == {}


def test_a_url_that_cannot_be_written_is_an_error_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file, not a folder")
    with pytest.raises(OutputError, match=r"out/people cannot be"):
        RemoteSeries(f"file://{tmp_path}/out/people").check_writable()


def test_a_version_is_put_there_with_its_package_last_and_nothing_internal(
    remote: RemoteSeries, tmp_path: Path
) -> None:
    told: list[str] = []
    remote.upload(ONE, local(tmp_path / "1.0.0"), lambda what, done, total: told.append(what))
    # On disk in the order of names the package would be the second.
    assert told == [
        "uploading data/records.parquet",
        "uploading protocol.json",
        "uploading report.html",
        "uploading datapackage.json",
    ]
    assert objects(remote) == {
        "1.0.0/data/records.parquet": b"rows",
        "1.0.0/protocol.json": b"protocol",
        "1.0.0/report.html": b"report",
        "1.0.0/datapackage.json": b"package",
    }
    assert remote.published == [ONE]
    # Nothing of it is written again: another run put it there.
    with pytest.raises(OutputError, match=r"has a version 1\.0\.0 that another run put there"):
        remote.upload(ONE, local(tmp_path / "other", "other"), quiet)
    assert objects(remote)["1.0.0/datapackage.json"] == b"package"


def test_an_upload_that_stops_is_no_version_and_is_removed(remote: RemoteSeries, tmp_path: Path) -> None:
    def stops(what: str, done: int, total: int | None) -> None:
        if what == "uploading datapackage.json":
            raise ConnectionResetError(104, "Connection reset by peer")

    remote.upload(ONE, local(tmp_path / "1.0.0"), quiet)
    whole = objects(remote)
    with pytest.raises(ConnectionResetError):
        remote.upload(TWO, local(tmp_path / "1.2.0"), stops)
    assert "1.2.0/protocol.json" in objects(remote)
    assert remote.published == [ONE]
    remote.remove_leftovers()
    assert objects(remote) == whole


def test_a_file_that_does_not_arrive_in_full_is_an_error(
    remote: RemoteSeries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, _ = storage_of(remote)
    monkeypatch.setattr(type(storage), "size", lambda self, path: 3 if path.endswith("protocol.json") else 4)
    with pytest.raises(OutputError, match=r"1\.0\.0/protocol\.json did not arrive in full"):
        remote.upload(ONE, local(tmp_path / "1.0.0"), quiet)
    assert remote.published == []


def test_what_counts_as_a_version(remote: RemoteSeries) -> None:
    for name in (
        "1.10.0/datapackage.json",
        "1.2.0/datapackage.json",
        "1.2.0/report.html",
        "1.3.0/old/datapackage.json",
        "01.4.0/datapackage.json",
        "notes/datapackage.json",
        "1.5.0",
    ):
        put(remote, name)
    assert remote.published == [TWO, TEN]
    remote.remove_leftovers()
    # Only what is of a version, and not whole, goes: the rest is somebody else's.
    assert set(objects(remote)) == {
        "1.10.0/datapackage.json",
        "1.2.0/datapackage.json",
        "1.2.0/report.html",
        "01.4.0/datapackage.json",
        "notes/datapackage.json",
        "1.5.0",
    }


def test_latest_names_the_newest_version_and_is_written_once(
    remote: RemoteSeries, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in (TWO, TEN):
        put(remote, f"{version}/datapackage.json")
        remote.point_latest()
        assert objects(remote)["latest"] == f"{version}\n".encode()
    storage, _ = storage_of(remote)
    written: list[str] = []
    monkeypatch.setattr(type(storage), "pipe_file", lambda self, path, content: written.append(path))
    remote.point_latest()
    assert written == []


def test_versions_from_another_workspace_stop_the_series(remote: RemoteSeries, tmp_path: Path) -> None:
    mine = local(tmp_path / "1.0.0")
    remote.upload(ONE, mine, quiet)
    remote.check_same(ONE, mine)
    # Without a package here there is nothing to compare; that the record is here is asked elsewhere.
    remote.check_same(ONE, ReleaseFolder(tmp_path / "nothing"))
    with pytest.raises(LedgerError, match="was published from another workspace"):
        remote.check_same(ONE, local(tmp_path / "other", "other"))


def test_a_store_that_says_there_is_nothing_has_no_versions(
    remote: RemoteSeries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some say so with an error."""
    storage, _ = storage_of(remote)

    def nothing(*_: object) -> None:
        raise FileNotFoundError(2, "No such bucket")

    monkeypatch.setattr(type(storage), "find", nothing)
    assert remote.published == []
