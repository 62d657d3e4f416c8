"""Real releases and their ledger on a real server, which goes away at the worst moments and comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from funnel.errors import DataError, LedgerError, ReleaseRefused
from funnel.pipeline.flows.pipeline import run_release
from funnel.pipeline.ledger.account import ledger_of
from funnel.pipeline.ledger.entry import Entry
from funnel.pipeline.tasks.step import listening
from funnel.readers.source_files import file_digest
from funnel.release.layout import ReleaseFolder, versions
from funnel.release.series import Series
from funnel.release.verdict import Judgement, Verdict
from funnel.spec import ReleaseSpec
from tests.ledger.servers import Server
from tests.projects import SPEC, adult_rows, make_project

PLAIN = SPEC + '\n[mechanism]\nname = "grr"\n'


def project(folder: Path, url: str | None) -> Path:
    return make_project(folder, PLAIN + ("" if url is None else f'\n[ledger]\nurl = "{url}"\n'))


def released(spec: Path) -> dict[str, Any]:
    return run_release(ReleaseSpec.load(spec), False, False)[0]


def entries(spec: Path) -> list[Entry]:
    with ledger_of(ReleaseSpec.load(spec), read_only=True) as ledger:
        ledger.verify()
        return list(ledger.entries())


def kinds(spec: Path) -> list[str]:
    return [entry.event.kind for entry in entries(spec)]


def test_the_server_goes_away_while_a_release_is_made(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = project(tmp_path, postgres.database())
    series = tmp_path / "releases" / "people"

    def stop_when_publishing(what: str, *_: object) -> None:
        if what == "publishing":
            postgres.stop()

    # Before the version is announced: nothing is published.
    with (
        listening(stop_when_publishing),
        pytest.raises(LedgerError, match=r"^nothing was published: the ledger") as caught,
    ):
        released(spec)
    assert caught.value.exit_code == 9
    assert "see that the database is up" in str(caught.value)
    assert versions(series) == []
    # Still away: nothing is even read.
    with pytest.raises(LedgerError, match="see that the database is up"):
        released(spec)
    postgres.start()
    assert kinds(spec) == []

    # After the version is in its place: the run says so.
    real = Series.point_latest

    def stop_when_there(self: Series) -> None:
        real(self)
        if self.published:
            postgres.stop()

    with monkeypatch.context() as patch:
        patch.setattr(Series, "point_latest", stop_when_there)
        told = released(spec)
    assert (told["status"], told["version"]) == ("published", "1.0.0")
    assert told["warnings"][-1].startswith(
        "version 1.0.0 is published, and the next run enters that, since now the ledger"
    )
    postgres.start()
    assert kinds(spec) == ["publishing"]
    # The next run finds nothing to release, and catches up.
    assert released(spec)["status"] == "unchanged"
    assert kinds(spec) == ["publishing", "published"]
    assert released(spec)["status"] == "unchanged"
    assert kinds(spec) == ["publishing", "published"]


def test_what_is_entered_of_a_release_and_of_refused_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = project(tmp_path, None)
    told = released(spec)
    folder = ReleaseFolder(Path(told["folder"]))
    event = entries(spec)[-1].event
    assert (event.kind, event.series, event.version, event.guarantee) == ("published", "people", "1.0.0", "lip:1.0")
    assert (event.level, event.rows, event.register_name) == (told["level"], told["rows"], None)
    digests = event.digests
    assert digests.source == file_digest(tmp_path / "people.parquet")
    assert (digests.joint, digests.record) == (file_digest(folder.joint), file_digest(folder.record))
    assert digests.snapshot is not None
    assert digests.protocol is not None
    assert event.verdict.passed
    assert {"funnel", "numpy"} <= event.software.keys()

    pq.write_table(adult_rows(0, 2500), tmp_path / "people.parquet")
    spec.write_text(PLAIN.replace('"relationship"', '"relation"'))
    with pytest.raises(DataError, match="relation") as missing:
        released(spec)
    spec.write_text(PLAIN)
    failed = Verdict.of((Judgement(name="expect_a", description="A.", passed=False, failure="it does not"),))
    with monkeypatch.context() as patch:
        patch.setattr("funnel.pipeline.flows.pipeline.validate", lambda *_: failed)
        with pytest.raises(ReleaseRefused) as refused:
            released(spec)
    assert [entry.event.verdict.sentence for entry in entries(spec)[2:]] == [str(missing.value), str(refused.value)]
    assert kinds(spec) == ["publishing", "published", "refused", "refused"]
    assert released(spec)["version"] == "1.1.0"
    assert kinds(spec)[4:] == ["publishing", "published"]
