"""Files between steps: whole or absent, private, and known by their digest."""

from __future__ import annotations

from pathlib import Path

import pytest

from funnel.errors import DataError, OutputError
from funnel.release.files import FileRef, private_folder, write_whole


def test_a_reference_notices_a_change_and_a_loss(tmp_path: Path) -> None:
    reference = write_whole(tmp_path / "a", b"one")
    assert reference.checked().read_bytes() == b"one"
    (tmp_path / "a").write_bytes(b"two")
    assert not reference.intact()
    with pytest.raises(DataError, match="changed"):
        reference.checked()
    (tmp_path / "a").unlink()
    assert not FileRef(str(tmp_path / "a"), "0").intact()


def test_a_failed_write_leaves_the_old_content_and_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_whole(tmp_path / "a", b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "a", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_private_folders_are_private_all_the_way_down(tmp_path: Path) -> None:
    folder = private_folder(tmp_path / "x" / "y")
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
    assert private_folder(folder) == folder


def test_a_file_in_the_way_of_a_folder_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(OutputError, match="cannot make the folder"):
        private_folder(tmp_path / "x" / "y")


def test_a_small_file_is_read_and_checked_at_once(tmp_path: Path) -> None:
    reference = write_whole(tmp_path / "a", b"one")
    assert reference.read() == b"one"
    assert reference == FileRef.of(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"two")
    with pytest.raises(DataError, match="changed"):
        reference.read()
    (tmp_path / "a").unlink()
    with pytest.raises(DataError, match="gone"):
        reference.read()
