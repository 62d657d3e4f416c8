"""A release series: leftovers of killed runs, the `latest` link, and one run at a time."""

from __future__ import annotations

import itertools
import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from funnel.errors import LedgerError, OutputError, PipelineError
from funnel.release.files import private_folder
from funnel.release.layout import INDEX, LATEST, ReleaseFolder, Version
from funnel.release.record import Record
from funnel.release.series import Series, open_series
from funnel.release.series_index import ListedVersion, SeriesIndex, VersionList
from funnel.spec import ReleaseSpec
from tests.killing import RENAMES_AND_REMOVALS, Killed, die_after
from tests.projects import spec_of
from tests.records import SHA, record_of
from tests.releases import judged


def spec(folder: Path, name: str = "x") -> ReleaseSpec:
    return spec_of("x.parquet", folder, name=name, output={"folder": "out", "workspace": "work"})


def opened(folder: Path) -> Series:
    with open_series(spec(folder)) as series:
        return series


def test_what_a_killed_run_left_is_put_right(tmp_path: Path) -> None:
    root = tmp_path / "out" / "x"
    for name in ("1.0.0", "1.9.0", "1.10.0", ".incoming-abc/data"):
        (root / name).mkdir(parents=True)
    (root / "latest").symlink_to("1.9.0")
    (root / ".latest-abc").symlink_to("1.9.0")
    series = opened(tmp_path)
    # 1.10.0 was renamed into place, whole, before the run was killed.
    assert (root / "latest").readlink() == Path("1.10.0")
    assert {path.name for path in root.iterdir()} == {"1.0.0", "1.9.0", "1.10.0", "latest"}
    assert series.newest == Version(1, 10, 0)


def test_one_run_at_a_time(tmp_path: Path) -> None:
    with open_series(spec(tmp_path)):
        with pytest.raises(PipelineError, match="another run"), open_series(spec(tmp_path)):
            pass
        with open_series(spec(tmp_path, "y")):
            pass
    opened(tmp_path)


def test_an_output_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file, not a folder")
    with pytest.raises(OutputError, match="choose another folder"):
        opened(tmp_path)


def test_a_read_only_output_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The administrator may write anywhere, so the refusal of the system is simulated."""
    real = os.mkdir

    def refuse(path: str, mode: int = 0o777) -> None:
        if "out" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        real(path, mode)

    monkeypatch.setattr("os.mkdir", refuse)
    with pytest.raises(OutputError, match="Permission denied"):
        opened(tmp_path)


def test_a_version_without_its_record_stops_the_series(tmp_path: Path) -> None:
    (tmp_path / "out" / "x" / "1.0.0").mkdir(parents=True)
    series = opened(tmp_path)
    with pytest.raises(LedgerError, match="unknown what was published"):
        series.record(Version(1, 0, 0))
    private_folder(series.folder(Version(1, 0, 0)).internal)
    for damaged in ("{", "[]", "{}", '{"fresh": "yes"}', "\xff"):
        series.folder(Version(1, 0, 0)).record.write_text(damaged, encoding="latin-1")
        with pytest.raises(LedgerError, match="damaged"):
            series.record(Version(1, 0, 0))


def record(version: str, rows: int = 10) -> Record:
    return record_of(version, rows=rows, files={"data/records.parquet": SHA(0), "signature.json": SHA(0)})


def put(series: Series, version: str) -> None:
    """Publish a version that consists of its record."""
    with series.incoming() as folder:
        private_folder(folder.internal)
        folder.record.write_bytes(record(version).to_bytes())
        folder.protocol.write_text(version)
        series.publish(folder, Version(*map(int, version.split("."))), judged(folder), lambda *_: None)


def listed(folder: Path) -> list[tuple[str, bool]]:
    """Versions of the signed index, and whether it says that they were withdrawn."""
    index = SeriesIndex.read(folder / "out" / "x" / INDEX)
    assert index.holds()
    return [(one.version, one.withdrawn) for one in index.listed.versions]


def counted(folder: Path) -> list[tuple[str, bool]]:
    """Versions that a run knows of, and whether they were withdrawn."""
    return [(str(one.version), one.withdrawn) for one in opened(folder).earlier]


def test_versions_that_were_withdrawn_stay_known(tmp_path: Path) -> None:
    with open_series(spec(tmp_path)) as series:
        for version in ("1.0.0", "1.1.0", "1.2.0"):
            put(series, version)
    assert counted(tmp_path) == [("1.0.0", False), ("1.1.0", False), ("1.2.0", False)]
    shutil.rmtree(tmp_path / "out" / "x" / "1.2.0")
    assert counted(tmp_path) == [("1.0.0", False), ("1.1.0", False), ("1.2.0", True)]
    assert (tmp_path / "out" / "x" / "latest").readlink() == Path("1.1.0")
    shutil.rmtree(tmp_path / "out" / "x")
    assert counted(tmp_path) == [("1.0.0", True), ("1.1.0", True), ("1.2.0", True)]
    assert all(one.folder is None for one in opened(tmp_path).earlier)
    assert [path.name for path in (tmp_path / "out" / "x").iterdir()] == [INDEX]
    assert listed(tmp_path) == [("1.0.0", True), ("1.1.0", True), ("1.2.0", True)]


def test_a_version_that_was_listed_stays_listed(tmp_path: Path) -> None:
    """An old backup of the workspace, whose records lack a version that was withdrawn since."""
    with open_series(spec(tmp_path)) as series:
        put(series, "1.0.0")
        put(series, "1.1.0")
    shutil.rmtree(tmp_path / "out" / "x" / "1.1.0")
    (kept,) = (tmp_path / "work").rglob("1.1.0.json")
    kept.unlink()
    opened(tmp_path)
    assert listed(tmp_path) == [("1.0.0", False), ("1.1.0", True)]
    # What another key signed counts for nothing, and neither does what is no index.
    key = Ed25519PrivateKey.generate()
    one = ListedVersion(version="9.0.0", signature="0" * 64, withdrawn=False)
    for content in (SeriesIndex.signed(VersionList(series="x", versions=(one,)), key).to_bytes(), b"{", b""):
        (tmp_path / "out" / "x" / INDEX).write_bytes(content)
        opened(tmp_path)
        assert listed(tmp_path) == [("1.0.0", False)]


def test_the_index_is_complete_before_latest_is_switched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    real = Path.replace

    def replace(path: Path, target: Path) -> Path:
        if target.name == LATEST:
            seen.append(listed(tmp_path)[-1])
        return real(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    with open_series(spec(tmp_path)) as series:
        put(series, "1.0.0")
        put(series, "1.1.0")
    assert seen == [("1.0.0", False), ("1.1.0", False)]


def test_a_link_to_a_version_that_is_gone_is_removed(tmp_path: Path) -> None:
    with open_series(spec(tmp_path)) as series:
        put(series, "1.0.0")
    shutil.rmtree(tmp_path / "out" / "x" / "1.0.0")
    opened(tmp_path)
    assert not (tmp_path / "out" / "x" / "latest").is_symlink()


def test_a_workspace_that_lost_its_records_learns_them_again(tmp_path: Path) -> None:
    with open_series(spec(tmp_path)) as series:
        put(series, "1.0.0")
        put(series, "1.1.0")
    shutil.rmtree(tmp_path / "work" / "x")
    opened(tmp_path)
    shutil.rmtree(tmp_path / "out" / "x" / "1.1.0")
    assert counted(tmp_path) == [("1.0.0", False), ("1.1.0", True)]
    # Where the evidence is lost too, nothing tells what was published.
    shutil.rmtree(tmp_path / "work")
    with pytest.raises(LedgerError, match=r"is missing .* is lost; it is then unknown what was published"):
        counted(tmp_path)


def test_another_folder_in_the_place_of_a_version_is_noticed(tmp_path: Path) -> None:
    with open_series(spec(tmp_path)) as series:
        put(series, "1.0.0")
    series.folder(Version(1, 0, 0)).record.write_bytes(record("1.0.0", rows=11).to_bytes())
    with pytest.raises(LedgerError, match=r"is not the record of the version 1\.0\.0 that was published"):
        counted(tmp_path)


@pytest.mark.parametrize("content", ["{", '{"schema": "funnel/record/1"}', record("1.0.1").to_bytes().decode()])
def test_a_damaged_record_of_the_workspace_stops_the_series(tmp_path: Path, content: str) -> None:
    with open_series(spec(tmp_path)) as series:
        put(series, "1.0.0")
    (kept,) = (tmp_path / "work").rglob("1.0.0.json")
    kept.write_text(content)
    with pytest.raises(LedgerError, match="backup"):
        opened(tmp_path)
    kept.unlink()
    assert counted(tmp_path) == [("1.0.0", False)]


def test_a_kill_anywhere_leaves_a_record_of_every_version_and_of_no_other(tmp_path: Path) -> None:
    """Killed before each of its writes, renames and removals: the record is known if and only if the version was."""
    seen = set()
    for moment in itertools.count():
        folder = tmp_path / str(moment)
        with open_series(spec(folder)) as series:
            put(series, "1.0.0")
        with pytest.MonkeyPatch.context() as patch, suppress(Killed), open_series(spec(folder)) as series:
            was_killed = die_after(patch, moment, (*RENAMES_AND_REMOVALS, (os, "fsync")))
            put(series, "1.1.0")
        published = (folder / "out" / "x" / "1.1.0").is_dir()
        seen.add(published)
        # The version may be withdrawn before any other run has looked.
        if published and moment % 2:
            shutil.rmtree(folder / "out" / "x" / "1.1.0")
        for _ in range(2):
            assert counted(folder) == [("1.0.0", False), *([("1.1.0", bool(moment % 2))] if published else [])], moment
            assert listed(folder) == counted(folder), moment
            assert not list((folder / "work").rglob(".coming-*"))
            (mark,) = (folder / "work" / "internal" / "x").glob(".series-*")
            internal = {path.name for path in (folder / "work" / "internal" / "x").iterdir()}
            assert internal == {mark.name, "1.0.0", *(["1.1.0"] if published else [])}, moment
            assert not list((folder / "out" / "x").glob(f".{INDEX}*"))
        if not was_killed():
            break
    assert seen == {True, False}
    assert moment > 10


def test_a_failure_before_the_rename_leaves_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with open_series(spec(tmp_path)) as series:
        put(series, "1.0.0")
        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", full)
            with pytest.raises(OSError, match="No space"):
                put(series, "1.1.0")
    assert counted(tmp_path) == [("1.0.0", False)]


def test_two_workspaces_do_not_remove_what_the_other_puts_together(tmp_path: Path) -> None:
    def of(workspace: str) -> ReleaseSpec:
        return spec_of("x.parquet", tmp_path, name="x", output={"folder": "out", "workspace": workspace})

    with open_series(of("one")) as series, series.incoming() as folder:
        with pytest.raises(PipelineError, match="another run is making the release x"), open_series(of("other")):
            pass
        assert folder.root.is_dir()
    with open_series(of("one")) as series:
        put(series, "1.0.0")
    # What the other one published about the same people is unknown here.
    with (
        open_series(of("other")) as series,
        pytest.raises(LedgerError, match=r"published from another workspace, .* release from that workspace"),
    ):
        _ = series.earlier


def test_series_of_one_name_in_two_folders_keep_their_evidence_apart(tmp_path: Path) -> None:
    def of(folder: str) -> ReleaseSpec:
        return spec_of("x.parquet", tmp_path, name="x", output={"folder": folder, "workspace": ".funnel"})

    kept = {}
    for folder in ("one", "other", "one", "other"):
        with open_series(of(folder)) as series:
            version = Version(1, len(series.published), 0)
            put(series, str(version))
            kept[folder, version] = series.folder(version).internal
            assert ReleaseFolder(series.folder(version).root).internal == kept[folder, version]
    assert len(set(kept.values())) == 4
    assert kept["one", Version(1, 0, 0)] == tmp_path / ".funnel" / "internal" / "x" / "1.0.0"
    # All may be moved together, and a copy elsewhere has no evidence.
    copy = ReleaseFolder(
        Path(shutil.copytree(tmp_path / "one", tmp_path / "copy" / "out", symlinks=True)) / "x" / "1.0.0"
    )
    assert not copy.internal.exists()
    (tmp_path / "moved").mkdir()
    for name in ("one", "other", ".funnel"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    for (folder, version), before in kept.items():
        found = ReleaseFolder(tmp_path / "moved" / folder / "x" / str(version))
        assert found.internal == tmp_path / "moved" / before.relative_to(tmp_path)
        assert found.record.is_file()
