"""Whether anything has changed since the last run: said only where nothing can have."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from funnel.errors import DataError, LedgerError
from funnel.pipeline.tasks import committed as module
from funnel.pipeline.tasks.committed import commit_answer, committed_version
from funnel.readers.formats import open_source
from funnel.readers.source_files import file_digest
from funnel.release.files import private_folder
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.record import Record
from funnel.release.series import Series, open_series
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, adult_rows, make_project
from tests.records import record_of
from tests.releases import judged

SECRET = "ab" * 16


@pytest.fixture
def released(tmp_path: Path) -> ReleaseFolder:
    """Version 1.0.0 of a project, with one public file, and evidence that is only there."""
    spec = ReleaseSpec.load(make_project(tmp_path / "project", SPEC))
    folder = Series.of(spec).folder(Version(1, 0, 0))
    folder.internal.mkdir(parents=True)
    folder.root.mkdir(parents=True)
    folder.report.write_text("report")
    folder.data.parent.mkdir()
    folder.data.write_text("rows")
    files = {"report.html": file_digest(folder.report), "data/records.parquet": file_digest(folder.data)}
    folder.record.write_bytes(record_of(files=files).to_bytes())
    for path in (folder.joint, folder.draws, folder.findings, folder.verdict):
        path.write_text("{}")
    return folder


def test_it_is_said_of_this_spec_source_secret_code_and_version_alone(
    released: ReleaseFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project = released.root.parents[2]
    spec = ReleaseSpec.load(project / "people.toml")
    series, work = Series.of(spec), tmp_path / "work"

    def found(secret: str | None = SECRET, spec: ReleaseSpec = spec) -> Version | None:
        return committed_version(spec, work, series, secret)

    assert found() is None
    commit_answer(spec, work, series, open_source(spec.reading).files.digest(), SECRET)
    assert work.stat().st_mode & 0o777 == 0o700
    assert found() == Version(1, 0, 0)
    assert found(None) is None
    assert found("cd" * 16) is None
    other = ReleaseSpec.of({**spec.model_dump(exclude_defaults=True), "title": "Another"}, project)
    assert found(spec=other) is None
    with monkeypatch.context() as patch:
        patch.setattr(module, "code_digest", lambda: "other")
        assert found() is None
    changes: list[tuple[Path, Callable[[bytes], bytes]]] = [
        (
            project / "people.parquet",
            lambda content: make_project(tmp_path / "b", SPEC, adult_rows(9)).with_name("people.parquet").read_bytes(),
        ),
        (released.record, lambda content: content.replace(b'"fresh": true', b'"fresh": false')),
        *(
            (work / "settled.json", lambda content, said=said: said)  # type: ignore[misc]
            for said in (b"{", b"[]", b"{}", b"\xff", b"null")
        ),
        (work / "settled.json", lambda content: json.dumps({"source": json.loads(content)["source"]}).encode()),
    ]
    for path, change in changes:
        content = path.read_bytes()
        path.write_bytes(change(content))
        assert path.read_bytes() != content
        assert found() is None
        path.write_bytes(content)
        assert found() == Version(1, 0, 0)


def test_of_files_that_are_not_what_was_published_it_is_an_error(released: ReleaseFolder, tmp_path: Path) -> None:
    spec = ReleaseSpec.load(released.root.parents[2] / "people.toml")
    series = Series.of(spec)
    commit_answer(spec, tmp_path, series, open_source(spec.reading).files.digest(), None)
    content = released.report.read_bytes()
    released.report.write_bytes(content + b" ")
    with pytest.raises(LedgerError, match="gone or was changed"):
        committed_version(spec, tmp_path, series, None)
    released.report.write_bytes(content)
    source = released.root.parents[2] / "people.parquet"
    source.rename(source.with_name("gone"))
    with pytest.raises(DataError, match=r"people\.parquet"):
        committed_version(spec, tmp_path, series, None)
    source.with_name("gone").rename(source)
    assert committed_version(spec, tmp_path, series, None) == Version(1, 0, 0)


def test_a_version_that_is_held_is_the_newest_until_it_is_closed(released: ReleaseFolder, tmp_path: Path) -> None:
    spec = ReleaseSpec.load(released.root.parents[2] / "people.toml")
    digest = open_source(spec.reading).files.digest()
    with open_series(spec) as series:
        commit_answer(spec, tmp_path, series, digest, None)
        assert committed_version(spec, tmp_path, series, None) == Version(1, 0, 0)
        with series.incoming() as folder:
            private_folder(folder.internal)
            folder.report.write_text("report")
            verdict = judged(folder)
            folder.verdict.write_bytes(verdict.to_bytes())
            record = Record.read(released.record).model_copy(update={"version": "1.1.0", "files": dict(verdict.files)})
            folder.record.write_bytes(record.to_bytes())
            series.held.hold(folder, Version(1, 1, 0), verdict)
        # What was settled before was about another newest version.
        assert committed_version(spec, tmp_path, series, None) is None
        commit_answer(spec, tmp_path, series, digest, None)
        assert committed_version(spec, tmp_path, series, None) == Version(1, 1, 0)
        # It was never published, so its files are no public ones; whoever tells that it waits looks at them.
        released.report.write_text("another")
        assert committed_version(spec, tmp_path, series, None) == Version(1, 1, 0)
        series.held.supersede(Version(1, 1, 0), "something newer")
        assert committed_version(spec, tmp_path, series, None) is None


def test_before_the_first_version_nothing_is_settled(tmp_path: Path) -> None:
    spec = ReleaseSpec.load(make_project(tmp_path, SPEC))
    commit_answer(spec, tmp_path / "work", Series.of(spec), open_source(spec.reading).files.digest(), None)
    assert committed_version(spec, tmp_path / "work", Series.of(spec), None) is None
