"""What the ledger says of a version is checked by other means than it was decided by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from funnel.errors import LedgerError
from funnel.readers.source_files import file_digest
from funnel.release.earlier import Earlier
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.record import Record
from funnel.release.series import open_series
from funnel.release.validated import require_accounted, require_same_spec
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, adult_rows, make_project
from tests.projects import spec_of as spec_at
from tests.releases import judged, make_release


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return make_release(make_project(tmp_path_factory.mktemp("accounted"), table=adult_rows(0, 500)))


@pytest.fixture
def record(made: ReleaseFolder) -> Record:
    return Record.read(made.record)


def spec_of(made: ReleaseFolder, text: str = SPEC) -> ReleaseSpec:
    path = made.root.parents[2] / "people.toml"
    path.write_text(text, encoding="utf-8")
    return ReleaseSpec.load(path)


def test_a_true_record_is_accounted_for(made: ReleaseFolder, record: Record) -> None:
    require_accounted(record, made, [])
    require_same_spec(spec_of(made), record)


def test_a_bound_is_the_same_however_it_is_written(made: ReleaseFolder, record: Record) -> None:
    spec = spec_of(made, SPEC.replace('"lip:1.0"', '" LIP : 1.00"'))
    require_same_spec(
        spec, record.model_copy(update={"origin": record.origin.model_copy(update={"spec": spec.digest})})
    )


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"guarantee": "lip:0.9"}, "has another bound"),
        ({"guarantee": "alip:1.0,1.0"}, "has another bound"),
        ({"fields": ("education",)}, "has other columns"),
        ({"spec": 64 * "0"}, "is of another spec"),
    ],
    ids=["bound", "kind", "columns", "spec"],
)
def test_unchanged_is_not_said_of_another_release(
    made: ReleaseFolder, record: Record, change: dict[str, object], what: str
) -> None:
    other = record.model_copy(update={"origin": record.origin.model_copy(update=change)})
    with pytest.raises(LedgerError, match=f"version 1.0.0 .* but it {what};"):
        require_same_spec(spec_of(made), other)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rows": 499}, "another number of records"),
        ({"files": {}}, "other rows"),
        ({"files": {"data/records.parquet": 64 * "0"}}, "other rows"),
        ({"fresh": False}, "nobody was drawn again"),
    ],
    ids=["rows", "no file", "other file", "not fresh"],
)
def test_a_record_that_is_not_true_is_refused(
    made: ReleaseFolder, record: Record, change: dict[str, object], why: str
) -> None:
    with pytest.raises(LedgerError, match=why):
        require_accounted(record.model_copy(update=change), made, [])


def test_a_number_is_used_once_and_answers_that_are_known_are_not_fresh(made: ReleaseFolder, record: Record) -> None:
    before = Earlier(record, made, True, file_digest(made.data))
    with pytest.raises(LedgerError, match="its number was used before"):
        require_accounted(record, made, [before])
    again = record.model_copy(update={"version": "1.0.1", "fresh": False})
    require_accounted(again, made, [before])
    # Rows that were not published in full may not have been seen.
    with pytest.raises(LedgerError, match="nobody was drawn again"):
        require_accounted(again, made, [replace(before, published=False)])
    other = replace(before, rows_sha256=64 * "0")
    with pytest.raises(LedgerError, match="nobody was drawn again"):
        require_accounted(again, made, [other])


def test_answers_are_kept_by_a_release_secret(made: ReleaseFolder, record: Record) -> None:
    keyed = record.origin.model_copy(update={"record_key": ("id",), "secret": "fingerprint", "key_kinds": ("text",)})
    now = record.model_copy(update={"version": "1.1.0", "fresh": False, "origin": keyed})
    before = Earlier(record.model_copy(update={"origin": keyed}), None, True, 64 * "0")
    require_accounted(now, made, [before])
    rotated = keyed.model_copy(update={"secret": "another"})
    with pytest.raises(LedgerError, match="nobody was drawn again"):
        require_accounted(now.model_copy(update={"origin": rotated}), made, [before])


def test_a_version_is_never_published_twice(tmp_path: Path) -> None:
    project = spec_at("x.parquet", tmp_path, output={"folder": "out", "workspace": "work"})
    with open_series(project) as series, series.incoming() as incoming:
        series.folder(Version(1, 0, 0)).root.mkdir()
        incoming.protocol.write_text("judged")
        with pytest.raises(LedgerError, match="is there already, and a version is never published twice"):
            series.publish(incoming, Version(1, 0, 0), judged(incoming), lambda *_: None)
        assert list(series.records.announced) == []
