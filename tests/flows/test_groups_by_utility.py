"""Releases of groups made by variance or for estimates: the real gate, and makers who say or choose something else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from funnel import open_release
from funnel.audit.check import State, overall
from funnel.errors import ReleaseRefused
from funnel.groups.effective import Shown
from funnel.groups.purposes import Purpose, Told
from funnel.pipeline.expectations.finished_groups import FinishedGroups
from funnel.pipeline.flows.release import release as flow
from funnel.pipeline.flows.way import go
from funnel.release.document import dump
from funnel.release.grouped_findings import GroupedFindings
from funnel.release.grouped_report import GroupedReport
from funnel.release.layout import ReleaseFolder
from funnel.release.snapshot import take_snapshot
from funnel.report.grouped import render_grouped
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.projects import SPEC, adult_rows, make_project

COLUMNS = ["income", "sex", "age", "relationship", "hours-per-week"]
BY_INFORMATION = (
    SPEC.replace('["relationship"]', '[["sex"], ["age", "relationship"], ["hours-per-week"]]').replace(
        '["marital-status"]', '["income"]'
    )
    + """
[recode.age]
bins = [25, 35, 45, 55]
groups = { "of an age" = ["35 to under 45", "45 to under 55"] }

[recode.hours-per-week]
bins = [35, 40, 41]

[numbers.age]
range = [17, 90]
whole = true

[numbers.hours-per-week]
range = [1, 99]
whole = true
"""
)


def by(utility: str) -> str:
    return BY_INFORMATION.replace("guarantee =", f'utility = "{utility}"\nguarantee =')


def project(folder: Path, spec: str) -> Path:
    return make_project(folder, spec, adult_rows(0, 2500).select(COLUMNS))


def latest(path: Path) -> ReleaseFolder:
    return ReleaseFolder((path.parent / "releases" / "people" / "latest").resolve())


@pytest.fixture(scope="module")
def explaining(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a release by variance, made by the flow."""
    path = project(tmp_path_factory.mktemp("explaining"), by("variance"))
    assert flow(str(path))["status"] == "published"
    return path


@pytest.fixture(scope="module")
def estimating(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a release for estimates."""
    path = project(tmp_path_factory.mktemp("estimating"), by("estimation"))
    assert go(ReleaseSpec.load(path), False, False)[0]["status"] == "published"
    return path


def copy_of(path: Path, folder: Path) -> FinishedGroups:
    """A copy of the release as it was before it was judged, that may be forged."""
    root = folder / "incoming"
    shutil.copytree(latest(path).root, root)
    ReleaseFolder(root).signature.unlink()
    spec = ReleaseSpec.load(path)
    snapshot = take_snapshot(spec, path.parent / ".funnel" / "people", None, lambda *_: None)
    return FinishedGroups(spec, ReleaseFolder(root), "1.0.0", snapshot)


def failures(finished: FinishedGroups, table: str) -> list[str]:
    lines = finished.table(table).to_dict("records")
    return [line["failure"] for line in lines if isinstance(line["failure"], str)]


def test_variance_is_explained_by_a_release_and_judged(explaining: Path) -> None:
    folder = latest(explaining)
    told, findings = GroupedReport.read(folder.numbers), GroupedFindings.read(folder.findings)
    assert (told.chosen_by, told.worth, findings.chosen_by) == ("variance", None, "variance")
    age, hours = told.explained
    assert (age.column, dict(zip(age.values, age.numbers, strict=True))) == (
        "age",
        {"under 25": 20.5, "25 to under 35": 29.5, "of an age": 44.5, "55 and over": 72.5},
    )
    assert 0.5 < age.share < 1
    assert sorted(number for number in hours.numbers if number is not None) == [17.5, 37.0, 40.0, 70.0]
    assert "this one explained most" in findings.reason
    assert "Var E[N | record] / Var N" in " ".join(render_grouped(told).split())
    assert overall(recheck(folder)) is State.PASSED
    shown = [one.worth for one in findings.tried]
    assert shown == sorted(shown, key=lambda one: -(one or 0.0))
    assert open_release(folder.root).estimate("age").records == 2500


def test_estimates_are_worth_more_where_a_release_is_made_for_them(estimating: Path, tmp_path: Path) -> None:
    folder = latest(estimating)
    told, findings = GroupedReport.read(folder.numbers), GroupedFindings.read(folder.findings)
    assert (told.chosen_by, told.explained) == ("estimation", ())
    assert told.worth == pytest.approx(findings.worth, abs=0.005)
    # What tells most was tried as well, and is worth less.
    most = max(findings.tried, key=lambda one: one.kept)
    assert most.worth is not None
    assert findings.worth is not None
    assert most.worth < findings.worth - 0.01
    assert overall(recheck(folder)) is State.PASSED
    assert go(ReleaseSpec.load(estimating), False, False)[0]["status"] == "unchanged"
    # Who has the public files alone finds out what does not follow from them.
    forged = copy_of(estimating, tmp_path).folder
    edit(forged.numbers, lambda content: content.update(worth=0.9))
    found = {check.name: check.detail for check in recheck(forged) if check.state is State.FAILED}
    assert "are said to be worth 0.9" in found["report estimates"]


def edit(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    content = json.loads(path.read_bytes())
    change(content)
    path.write_bytes(dump(content))


def _of_numbers(content: dict[str, Any]) -> None:
    """Bins stand for their lowest numbers."""
    content["explained"][0]["numbers"] = [number - 3.5 for number in content["explained"][0]["numbers"]]


def _more(content: dict[str, Any]) -> None:
    content["explained"][1]["share"] += 0.008


def _better(content: dict[str, Any]) -> None:
    content["tried"][-1]["worth"] = content["tried"][0]["worth"] + 0.01


# What a maker who is a line off would write, and what gate and audit say of it.
FORGED: list[tuple[str, Callable[[dict[str, Any]], Any], str]] = [
    ("variance", _more, "is said to be explained, which is not what follows"),
    ("variance", _of_numbers, "are said to stand for other numbers than they do"),
    ("variance", lambda one: one["explained"].pop(), "not told of the columns of numbers that the spec names"),
    ("variance", lambda one: one.update(chosen_by="information"), "ways were compared by 'information', and it was"),
    ("estimation", lambda one: one.update(worth=min(1.0, 1.3 * one["worth"])), "are said to be worth"),
    ("estimation", lambda one: one.update(worth=0.7 * one["worth"]), "are said to be worth"),
    ("estimation", lambda one: one.update(worth=None), "worth for estimates is told just where that was asked for"),
]
OF_WAYS: list[tuple[str, Callable[[dict[str, Any]], Any], str]] = [
    ("estimation", lambda one: one["tried"].pop(0), "has another schedule than was taken"),
    ("estimation", _better, "a way that was tried is said to be better than the one that was taken"),
    ("variance", lambda one: one["tried"][0].update(worth=0.99), "said to be worth 0.99, and the release"),
    ("variance", lambda one: one["tried"][0].update(groups=[["sex"]]), "has other groups than were published"),
]


@pytest.mark.parametrize(("utility", "change", "said"), [*FORGED, *OF_WAYS])
def test_findings_that_do_not_follow_are_refused(
    explaining: Path, estimating: Path, tmp_path: Path, utility: str, change: Callable[[Any], Any], said: str
) -> None:
    finished = copy_of(explaining if utility == "variance" else estimating, tmp_path)
    edit(finished.folder.findings, change)
    assert any(said in failure for failure in failures(finished, "plain_level"))


@pytest.mark.parametrize(("utility", "change", "said"), FORGED)
def test_reports_that_do_not_follow_are_refused(
    explaining: Path, estimating: Path, tmp_path: Path, utility: str, change: Callable[[Any], Any], said: str
) -> None:
    finished = copy_of(explaining if utility == "variance" else estimating, tmp_path)
    assert failures(finished, "report") == []
    finished = replace(finished)
    edit(finished.folder.numbers, change)
    assert any(said in failure for failure in failures(finished, "report"))


def test_the_audit_finds_the_same(explaining: Path, tmp_path: Path) -> None:
    finished = copy_of(explaining, tmp_path)
    edit(finished.folder.findings, _more)
    found = {check.name: check.detail for check in recheck(finished.folder) if check.state is State.FAILED}
    assert "is said to be explained, which is not what follows" in found["purpose"]


def test_a_maker_who_chooses_by_information_and_says_estimation_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Purpose.told

    def by_information(self: Purpose, shown: Shown) -> Told:
        found = honest(self, shown)
        return Told(found.kept, found.kept)

    monkeypatch.setattr(Purpose, "told", by_information)
    with pytest.raises(ReleaseRefused, match=r"the way that was taken is said to be worth .*, and the release"):
        go(ReleaseSpec.load(project(tmp_path, by("estimation"))), False, False)
