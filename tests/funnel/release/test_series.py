"""A release series: leftovers of killed runs, the `latest` link, and one run at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from funnel.errors import LedgerError, OutputError, PipelineError
from funnel.release.layout import Version
from funnel.release.series import Series, open_series
from funnel.spec import ReleaseSpec
from tests.projects import spec_of


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
    (tmp_path / "out" / "x" / "1.0.0" / "audit").mkdir(parents=True)
    series = opened(tmp_path)
    with pytest.raises(LedgerError, match="unknown what was published"):
        series.record(Version(1, 0, 0))
    for damaged in ("{", "[]", "{}", '{"fresh": "yes"}', "\xff"):
        (tmp_path / "out" / "x" / "1.0.0" / "audit" / "release.json").write_text(damaged, encoding="latin-1")
        with pytest.raises(LedgerError, match="damaged"):
            series.record(Version(1, 0, 0))
