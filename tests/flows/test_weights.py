"""A release with classes of survey weights: judged, told, audited, and weighted estimates made from its files alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from funnel.analysis.release import load_release
from funnel.analysis.weighted import weight_classes
from funnel.audit.check import State, overall
from funnel.cli import main
from funnel.errors import SpecError
from funnel.release.layout import ReleaseFolder
from tests.audits import recheck
from tests.projects import WEIGHTED, adult_rows, make_project
from tests.releases import release


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    spec = make_project(tmp_path_factory.mktemp("weights"), WEIGHTED)
    release(str(spec))
    return ReleaseFolder((spec.parent / "releases" / "people" / "latest").resolve())


def test_classes_are_told_and_every_file_passes(folder: ReleaseFolder) -> None:
    name, classes = weight_classes(folder)
    assert name == "fnlwgt"
    assert classes["180000 to under 240000"] == (205_000, 180_000, 240_000)
    assert overall(recheck(folder)) == State.PASSED
    # The weights themselves are nowhere.
    weights = {str(weight) for weight in adult_rows()["fnlwgt"].to_pylist()}
    for path in (folder.package, folder.protocol, folder.numbers, folder.report):
        assert not weights & set(path.read_text().replace(",", " ").split())


def test_weighted_shares_are_those_of_the_classes(folder: ReleaseFolder) -> None:
    rows = adult_rows()
    means = np.array([60_000, 145_000, 205_000, 320_000])
    weights = means[np.searchsorted([100_000, 180_000, 240_000], rows["fnlwgt"].to_numpy(), side="right")]
    women = np.array(rows["sex"].to_pylist()) == "Female"
    opened = load_release(folder.root)
    found = opened.weighted()
    place = found.cells.index(("Female",))
    right = weights[women].sum() / weights.sum()
    # Seven standard errors are exceeded once in 10^11 runs: this release is one drawing.
    assert abs(found.frequencies[place] - right) < 7 * found.errors[place] + 1e-9
    assert found.least[place] < right < found.largest[place]
    # The report tells those of the records, in steps of ten of the heaviest ones at least.
    report = json.loads(folder.numbers.read_text())["weighted"]
    (told,) = [row for row in report["columns"][0]["rows"] if row["label"] == "Female"]
    assert report["step"] >= 10 * means.max() / weights.sum()
    assert abs(told["weighted"] - right) <= report["step"] / 2 + 1e-9
    assert "Weighted frequencies" in folder.report.read_text()


def test_the_command_tells_them(folder: ReleaseFolder) -> None:
    shown = CliRunner().invoke(main, ["estimate", str(folder.root), "--weighted"])
    assert shown.exit_code == 0
    assert "3,000 records, weighted by fnlwgt" in shown.output
    told = CliRunner().invoke(main, ["estimate", str(folder.root), "--weighted", "--by", "sex", "--json"])
    assert {tuple(cell["values"]) for cell in json.loads(told.stdout)["cells"]} == {("Female",), ("Male",)}
    wrong = CliRunner().invoke(main, ["estimate", str(folder.root), "--weighted", "--method", "inverse"])
    assert isinstance(wrong.exception, SystemExit | SpecError)


def test_a_release_without_weights_says_so(folder: ReleaseFolder, tmp_path: Path) -> None:
    other = ReleaseFolder(tmp_path / "1.0.0")
    other.root.mkdir()
    package = json.loads(folder.package.read_text())
    for field in package["resources"][-1]["schema"]["fields"]:
        field.pop("funnel:numbers", None)
    other.package.write_text(json.dumps(package))
    with pytest.raises(SpecError, match="no column of survey weights"):
        weight_classes(other)
