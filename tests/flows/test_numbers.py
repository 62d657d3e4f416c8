"""A release of numbers: bins that are found, a protocol by the variance explained, judged, published and audited."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from funnel.audit.check import State, overall
from funnel.errors import ReleaseRefused
from funnel.release.layout import ReleaseFolder
from funnel.release.public_report import PublicReport
from tests.audits import recheck
from tests.projects import SPEC, make_project
from tests.releases import release

NUMBERS = (
    SPEC.replace('["marital-status"]', '["income"]')
    .replace('["relationship"]', '["age"]')
    .replace('frequencies.protection = "none"', 'frequencies.protection = "none"\nutility = "variance"')
    .replace('guarantee = "lip:1.0"', 'guarantee = "lip:0.3"')
    + """
[recode.age]
bins = "auto"

[numbers.age]
range = [17, 90]
whole = true
unit = "years"
"""
)


def latest(spec: Path) -> ReleaseFolder:
    return ReleaseFolder((spec.parent / "releases" / "people" / "latest").resolve())


def test_what_is_explained_is_told_by_its_name_everywhere_and_found_again(tmp_path: Path) -> None:
    spec = make_project(tmp_path, NUMBERS)
    result = release(str(spec))
    folder = latest(spec)
    protocol = json.loads(folder.protocol.read_text())
    explained = protocol["utility"]["explained"]
    assert 0.5 < explained["variance_share"] < 1
    assert explained["variance_share"] == pytest.approx(result["explained"], abs=0.003)
    # The optimum of information would explain less, and this one keeps less information than it explains.
    assert protocol["utility"]["share"] < explained["variance_share"]
    package = json.loads(folder.package.read_text())
    assert package["funnel:privacy"]["varianceExplained"] == explained["variance_share"]
    (field,) = package["resources"][0]["schema"]["fields"]
    numbers = field["funnel:numbers"]
    assert (numbers["unit"], numbers["range"], numbers["whole"]) == ("years", [17, 90], True)
    middles = {label: sum(ends) / 2 for label, ends in numbers["intervals"].items()}
    assert explained["numbers"] == [middles[label] for (label,) in protocol["prior"]["symbols"]]
    report = PublicReport.read(folder.numbers)
    assert (report.utility, report.figures.explained) == ("variance", explained["variance_share"])
    (chosen,) = report.compared
    assert chosen.mechanism == report.mechanism.name
    assert chosen.share == report.figures.explained
    page = folder.report.read_text()
    assert "Variance explained" in page
    assert "Variance that the mechanism explains" in page
    assert "limits were chosen for what can be told of them under the bound" in page
    assert "Variance explained" in folder.internal_report.read_text()
    assert overall(recheck(folder)) == State.PASSED

    # What is said of the variance, and of the numbers, is held to weights and prior.
    wrong = json.loads(folder.protocol.read_text())
    for spoilt in (
        {**explained, "variance_share": round(explained["variance_share"] - 0.2, 3)},
        {**explained, "numbers": [*reversed(explained["numbers"])]},
    ):
        wrong["utility"]["explained"] = spoilt
        folder.protocol.write_text(json.dumps(wrong))
        failed = {check.name for check in recheck(folder) if check.state is State.FAILED}
        assert "utility" in failed


@pytest.mark.parametrize("edges", [[24, 31.5, 45], [19, 20, 21]])
def test_bins_that_nobody_can_have_found_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edges: list[float]
) -> None:
    monkeypatch.setattr("funnel.binning.chosen_edges", lambda *_: tuple(edges))
    spec = make_project(tmp_path, NUMBERS)
    with pytest.raises(ReleaseRefused, match="bins of 'age' has"):
        release(str(spec))
