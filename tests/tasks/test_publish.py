"""What is refused is not published, and what is published says how many draws about the same people came before."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from funnel.audit import recheck as rechecking
from funnel.audit.check import Result, State
from funnel.audit.context import AuditContext, Coming, Told
from funnel.audit.recheck import require_audited
from funnel.errors import ReleaseRefused
from funnel.pipeline.flows.pipeline import run_release
from funnel.pipeline.ledger.account import Account, ledger_of
from funnel.pipeline.tasks import publish as publishing
from funnel.release.internal_report import InternalReport
from funnel.release.layout import ReleaseFolder, versions
from funnel.release.public_report import PublicReport
from funnel.release.record import Record
from funnel.release.verdict import Judgement, Verdict
from funnel.spec import ReleaseSpec
from tests.projects import PLAIN, adult_rows, make_project

FAILED = Judgement(name="expect_b", description="B holds.", passed=False, failure="3 instead of 2")


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [(Verdict.of((FAILED,)), "expect_b: 3 instead of 2"), (Verdict.of(()), "no expectation was evaluated")],
)
def test_a_negative_verdict_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: Verdict, sentence: str
) -> None:
    spec = ReleaseSpec.load(make_project(tmp_path, PLAIN))
    monkeypatch.setattr("funnel.pipeline.flows.pipeline.validate", lambda *_: verdict)
    with pytest.raises(ReleaseRefused, match=rf"^nothing was published: .*{sentence}"):
        run_release(spec, False, False)
    series = tmp_path / "releases" / "people"
    assert versions(series) == []
    assert list(series.iterdir()) == []


def test_a_report_tells_of_the_draws_before_it_and_of_no_others(tmp_path: Path) -> None:
    """A release that took over the rows of another is no further draw."""
    path = make_project(tmp_path, PLAIN)
    published = [run_release(ReleaseSpec.load(path), False, False)[0]]
    published.append(run_release(ReleaseSpec.load(path), True, False)[0])
    for title in ("Another title", "A third title"):
        path.write_text(PLAIN.replace("People of a test", title))
        published.append(run_release(ReleaseSpec.load(path), False, False)[0])
    assert [one["drawn"] for one in published] == [True, True, False, False]
    assert [one["version"] for one in published] == ["1.0.0", "1.0.1", "1.0.2", "1.0.3"]
    reports = [PublicReport.read(ReleaseFolder(Path(one["folder"])).numbers) for one in published]
    assert [report.earlier_releases for report in reports] == [0, 1, 2, 2]
    changes = [report.change for report in reports]
    assert changes[0] is None
    assert [(one.version, one.rows, one.new_data) for one in changes if one is not None] == [
        ("1.0.0", "a fresh draw", False),
        ("1.0.1", "the same rows", False),
        ("1.0.2", "the same rows", False),
    ]
    linked = InternalReport.read(ReleaseFolder(Path(published[1]["folder"])).internal_numbers).versions
    assert [one.knows for one in linked] == [
        "one more fresh draw by this protocol",
        "version 1.0.0 as well: drawn afresh",
        "ever more fresh draws, until what the protocol reads is known",
    ]


def test_what_the_ledger_could_not_be_told_is_told_and_caught_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = ReleaseSpec.load(make_project(tmp_path, PLAIN))
    with monkeypatch.context() as patch:
        patch.setattr(Account, "published", lambda _: "the ledger was away")
        told, _ = run_release(spec, False, False)
    assert (told["status"], told["warnings"][-1]) == ("published", "the ledger was away")
    assert run_release(spec, False, False)[0]["status"] == "unchanged"


HELD = PLAIN + "\n[approval]\nrequired = true\n"


def small(folder: Path, spec: str = PLAIN) -> ReleaseSpec:
    return ReleaseSpec.load(make_project(folder, spec, adult_rows(rows=400)))


def spoil_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the record of a version say another time than its documents, which no expectation looks at."""
    made = publishing.Record
    monkeypatch.setattr(publishing, "Record", lambda **said: made(**{**said, "created": "2020-01-01T00:00:00+00:00"}))


@pytest.mark.parametrize("text", [PLAIN, HELD], ids=["published", "held"])
def test_what_fails_its_own_audit_is_refused_and_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    spec = small(tmp_path, text)
    with monkeypatch.context() as patch:
        spoil_documents(patch)
        with pytest.raises(
            ReleaseRefused, match=r"^nothing was published: its own audit failed: record: .*time"
        ) as told:
            run_release(spec, False, False)
    assert told.value.exit_code == 8
    series = tmp_path / "releases" / "people"
    assert [path.name for path in series.iterdir()] == []
    with ledger_of(spec, read_only=True) as ledger:
        assert [entry.event.kind for entry in ledger.entries(series="people")] == ["refused"]
    assert run_release(spec, False, False)[0]["status"] == ("published" if text is PLAIN else "held")


def test_validation_and_the_audit_before_the_publication_make_every_check_of_one_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each once, but for those that a signature may change and of the writer; and with the same answers."""
    seen: list[list[Result]] = []
    results = rechecking._results

    def heard(known: AuditContext, validated: Collection[str] = ()) -> Iterator[Result]:
        seen.append([*results(known, validated)])
        return iter(seen[-1])

    with monkeypatch.context() as patch:
        patch.setattr(rechecking, "_results", heard)
        told, _ = run_release(small(tmp_path), False, False)
    folder = ReleaseFolder(Path(told["folder"]))
    after = rechecking.recheck(folder, Told(render=publishing.page_renderer()))
    before, validated = seen[0], {one.name for one in Verdict.read(folder.verdict).results if one.passed}
    # The index of the series has the version once it is in its place, and figures were computed before by other code.
    once = {"newest version", "followed figures"}
    left_out = {check.name for check in after} - {check.name for check in before} - once
    assert left_out <= validated
    assert {"package", "report page", "guarantee", "frequencies"} <= left_out
    assert [check for check in after if check.name not in {*once, *left_out}] == before
    assert {check.state for check in before} == {State.PASSED}
    always = {
        "signature",
        "versions",
        "kept record",
        "record",
        "files",
        "documents",
        "parquet",
        "leakage",
        "distribution",
    }
    assert always <= {check.name for check in before}


def test_what_no_verdict_has_is_checked_before_the_publication(tmp_path: Path) -> None:
    told, _ = run_release(small(tmp_path), False, False)
    folder, found = ReleaseFolder(Path(told["folder"])), {}
    coming = Coming(folder.root.with_name("1.0.1"), tmp_path / ".funnel", Record.read(folder.record))
    verdict = Verdict.read(folder.verdict)
    page = folder.report.read_text().replace("Every record is", "No record is")
    folder.report.write_text(page)
    for judged in (verdict.results, [one for one in verdict.results if one.name != "report page"]):
        folder.verdict.write_bytes(Verdict.of(tuple(judged), verdict.files).to_bytes())
        known = AuditContext(folder, Told(coming=coming, render=publishing.page_renderer()))
        checks = rechecking._results(known, rechecking._validated(known))
        found[len(judged)] = {check.name for check in checks if check.failed}
    # A page that was changed since is no file of the verdict; without one the check of the page is made.
    whole = found[len(verdict.results)]
    assert "record" in whole
    assert "report page" not in whole
    assert found[len(verdict.results) - 1] == whole | {"report page"}


@pytest.mark.parametrize("name", ["parquet", "evidence"])
@pytest.mark.parametrize("taken_over", [False, True])
def test_what_could_not_be_checked_is_refused_but_for_the_writer_of_rows_that_are_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, taken_over: bool
) -> None:
    told, _ = run_release(small(tmp_path), False, False)
    folder = ReleaseFolder(Path(told["folder"]))
    record = Record.read(folder.record)
    coming = Coming(folder.root.with_name("1.0.1"), tmp_path / ".funnel", record, taken_over=taken_over)
    check = Result(name, State.UNCHECKED, "another writer")
    monkeypatch.setattr("funnel.audit.recheck._results", lambda *_: [check])
    if taken_over and name == "parquet":
        assert require_audited(folder, Told(coming=coming)) == ["parquet could not be checked: another writer"]
    else:
        with pytest.raises(ReleaseRefused, match=f"its own audit failed: {name}: another writer"):
            require_audited(folder, Told(coming=coming))
