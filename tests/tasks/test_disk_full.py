"""Disks that really are full or read-only: a release fails in one sentence, and nothing half-written is visible."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from funnel.errors import LedgerError, OutputError
from funnel.release.layout import INCOMING, versions
from tests.projects import adult_rows, make_project, tree
from tests.releases import make_release
from tests.sabotage.scenes import HONEST, Scene, prepared, run


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """The system refuses to let any file grow beyond this many bytes, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@dataclass(frozen=True)
class Disk:
    """A file system of its own, in memory."""

    place: Path

    def leave_room(self, kilobytes: int) -> None:
        """Let so much room be left and no more."""
        now = os.statvfs(self.place)
        self.remount(f"rw,size={(now.f_blocks - now.f_bfree) * now.f_frsize // 1024 + kilobytes}k")

    def remount(self, options: str) -> None:
        """Change how it is mounted."""
        subprocess.run(["mount", "-o", f"remount,{options}", str(self.place)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)], check=False, capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield Disk(place)
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_release_is_whole_or_absent_whatever_a_file_may_hold(tmp_path: Path) -> None:
    spec = make_project(tmp_path, table=adult_rows(0, 6000))
    limits = [0, 100, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000]
    for limit in limits:
        with files_of_at_most(limit), pytest.raises((OutputError, LedgerError), match="make room") as caught:
            make_release(spec)
        assert "\n" not in str(caught.value)
        assert versions(tmp_path / "releases" / "people") == []
        assert not (tmp_path / "releases" / "people" / "latest").exists()
    release = make_release(spec)
    assert (release.root.parent / "latest").resolve() == release.root
    assert [path.name for path in release.root.parent.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    "scene", [scene for scene in HONEST if "under noise" in scene.name and scene.years], ids=lambda scene: scene.name
)
def test_a_disk_without_room_keeps_what_is_published_and_the_next_run_goes_on(
    scene: Scene, disk: Disk, tmp_path: Path
) -> None:
    """A third version about the same people, whose ledger, working files, register and documents find no room."""
    folder = disk.place / "project"
    shutil.copytree(prepared(tmp_path / "project", scene), folder, symlinks=True)
    series, refusals = folder / "releases" / "people", []
    before = tree(series)
    assert [str(version) for version in versions(series)] == ["1.0.0", "1.1.0"]
    # From none on, until all that a version needs finds room.
    for room in range(0, 2000, 80):
        disk.leave_room(room)
        try:
            told = run(folder, scene)
            break
        except (OutputError, LedgerError) as error:
            refusals.append(str(error))
        assert {name: held for name, held in tree(series).items() if not name.startswith(INCOMING)} == before
    assert len(refusals) >= 4
    for said in refusals:
        assert "make room" in said
        assert str(folder) in said
        assert "No space left on device" in said or "database or disk is full" in said
        assert "\n" not in said
    assert (told["status"], told["version"]) == ("published", "1.2.0")
    # Published after an audit of its own, as every version is.
    assert str((series / "latest").readlink()) == "1.2.0"
    assert [path.name for path in series.iterdir() if path.name.startswith(".")] == []


def test_a_disk_that_cannot_be_written_is_named_in_one_sentence(disk: Disk, tmp_path: Path) -> None:
    (scene, *_) = HONEST
    folder = disk.place / "project"
    shutil.copytree(prepared(tmp_path / "project", scene), folder, symlinks=True)
    before = tree(folder)
    disk.remount("ro")
    with pytest.raises((OutputError, LedgerError), match="Read-only file system; choose another folder") as caught:
        run(folder, scene)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert tree(folder) == before
    disk.remount("rw")
    assert run(folder, scene)["status"] == "published"
