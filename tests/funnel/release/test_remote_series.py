"""A series whose versions appear at a URL: its records stay here, and what may have been seen is never lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from funnel.errors import LedgerError, OutputError, PipelineError
from funnel.progress import Progress, quiet
from funnel.readers.source_files import file_digest
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.series import Series, open_series
from funnel.spec import ReleaseSpec
from tests.projects import spec_of
from tests.records import record_of
from tests.releases import judged

ONE, TWO = Version(1, 0, 0), Version(1, 1, 0)


def spec(folder: Path) -> ReleaseSpec:
    return spec_of("x.parquet", folder, output={"folder": f"memory://{folder.name}/out", "workspace": "work"})


@contextmanager
def put_together(series: Series, version: Version, rows: str) -> Iterator[ReleaseFolder]:
    """A version before it is published."""
    with series.incoming() as folder:
        for path, content in ((folder.data, rows), (folder.protocol, "{}"), (folder.package, f"{version} {rows}")):
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
        record = record_of(str(version), files={"data/records.parquet": file_digest(folder.data)})
        folder.internal.mkdir(mode=0o700)
        folder.record.write_bytes(record.to_bytes())
        yield folder


def publish(folder: Path, version: Version, rows: str, progress: Progress = quiet) -> None:
    with open_series(spec(folder)) as series, put_together(series, version, rows) as incoming:
        series.publish(incoming, version, judged(incoming), progress)


def broken(what: str, done: int, total: int | None) -> None:
    if what == "uploading protocol.json":
        raise ConnectionResetError(104, "Connection reset by peer")


def test_versions_are_those_at_the_url_and_their_records_are_here(tmp_path: Path) -> None:
    publish(tmp_path, ONE, "a")
    publish(tmp_path, TWO, "b")
    with open_series(spec(tmp_path)) as series:
        assert series.published == [ONE, TWO]
        assert series.newest == TWO
        assert series.shown(ONE) == (
            f"memory://{tmp_path.name}/out/test/1.0.0",
            f"memory://{tmp_path.name}/out/test/1.0.0/report.html",
        )
        assert [(one.version, one.published, one.rows_sha256) for one in series.earlier] == [
            (ONE, True, file_digest(series.folder(ONE).data)),
            (TWO, True, file_digest(series.folder(TWO).data)),
        ]
        # The folder of the records is as private as the workspace that it is in.
        assert series.root.stat().st_mode & 0o777 == 0o700
        assert (series.root / "latest").readlink() == Path("1.1.0")


def test_what_was_uploaded_in_part_is_kept_until_its_rows_are_published(tmp_path: Path) -> None:
    publish(tmp_path, ONE, "a")
    with pytest.raises(ConnectionResetError):
        publish(tmp_path, TWO, "b", broken)
    with open_series(spec(tmp_path)) as series:
        assert series.published == series.remote.published == [ONE]
        (unfinished,) = series.unfinished
        assert [(one.version, one.published) for one in series.earlier] == [(TWO, False), (ONE, True)]
        assert (series.root / "latest").readlink() == Path("1.0.0")
    # Other rows leave it where it is.
    publish(tmp_path, TWO, "c")
    assert all(folder.is_dir() for folder in (unfinished.root, unfinished.internal))
    publish(tmp_path, Version(1, 1, 1), "b")
    assert not any(folder.exists() for folder in (unfinished.root, unfinished.internal))
    with open_series(spec(tmp_path)) as series:
        assert [one.published for one in series.earlier] == [True] * 3


def test_versions_without_records_here_stop_the_series(tmp_path: Path) -> None:
    publish(tmp_path, ONE, "a")
    series = Series.of(spec(tmp_path))
    series.folder(ONE).record.unlink()
    with pytest.raises(LedgerError, match="unknown what was published"), open_series(spec(tmp_path)):
        pass
    # The series is free again after a failure.
    for _ in range(2):
        with pytest.raises(LedgerError), open_series(spec(tmp_path)):
            pass


def test_one_run_at_a_time_at_a_url_too(tmp_path: Path) -> None:
    with (
        open_series(spec(tmp_path)),
        pytest.raises(PipelineError, match="another run"),
        open_series(spec(tmp_path)),
    ):
        pass


def test_what_cannot_be_put_right_is_an_error_of_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "x")

    monkeypatch.setattr(Series, "put_right", refuse)
    with pytest.raises(OutputError, match="cannot write to x: Permission denied"), open_series(spec(tmp_path)):
        pass
