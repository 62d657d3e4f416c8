"""What is refused is not published, and what is published says how many draws about the same people came before."""

from __future__ import annotations

from pathlib import Path

import pytest

from funnel.errors import ReleaseRefused
from funnel.pipeline.flows.way import go
from funnel.pipeline.ledger.account import Account
from funnel.release.internal_report import InternalReport
from funnel.release.layout import ReleaseFolder, versions
from funnel.release.public_report import PublicReport
from funnel.release.verdict import Judgement, Verdict
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, make_project

PLAIN = SPEC + '\n[mechanism]\nname = "grr"\n'
FAILED = Judgement(name="expect_b", description="B holds.", passed=False, failure="3 instead of 2")


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [(Verdict.of((FAILED,)), "expect_b: 3 instead of 2"), (Verdict.of(()), "no expectation was evaluated")],
)
def test_a_negative_verdict_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: Verdict, sentence: str
) -> None:
    spec = ReleaseSpec.load(make_project(tmp_path, PLAIN))
    monkeypatch.setattr("funnel.pipeline.flows.way.validate", lambda *_: verdict)
    with pytest.raises(ReleaseRefused, match=rf"^nothing was published: .*{sentence}"):
        go(spec, False, False)
    series = tmp_path / "releases" / "people"
    assert versions(series) == []
    assert list(series.iterdir()) == []


def test_a_report_tells_of_the_draws_before_it_and_of_no_others(
    tmp_path: Path,
) -> None:
    """A release that took over the rows of another is no further draw."""
    path = make_project(tmp_path, PLAIN)
    published = [go(ReleaseSpec.load(path), False, False)[0]]
    published.append(go(ReleaseSpec.load(path), True, False)[0])
    for title in ("Another title", "A third title"):
        path.write_text(PLAIN.replace("People of a test", title))
        published.append(go(ReleaseSpec.load(path), False, False)[0])
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
        told, _ = go(spec, False, False)
    assert (told["status"], told["warnings"][-1]) == ("published", "the ledger was away")
    assert go(spec, False, False)[0]["status"] == "unchanged"
