"""A release of groups under a robust guarantee, whole: made by some people, proven by others, judged and audited."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from funnel.cli import main
from funnel.errors import DataError, InfeasibleGuarantee
from funnel.pipeline.expectations.finished_groups import FinishedGroups
from funnel.pipeline.flows.way import go
from funnel.release.grouped_findings import GroupedFindings
from funnel.release.grouped_proof import GroupedProof
from funnel.release.layout import ReleaseFolder
from funnel.release.snapshot import take_snapshot
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, adult_rows, make_project

ROBUST = (
    SPEC.replace('publish = ["relationship"]', 'publish = [["sex"], ["relationship"]]')
    .replace('secret = ["marital-status"]', 'secret = ["income"]')
    .replace('"lip:1.0"', '"rlip:1.0,0.05"')
    # Few wives have a low income, and are not published as such.
    .replace('on_breach = "report"', "minimum_cell = 5\ndominance = 1.0")
)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    table = adult_rows(0, 6000).select(["income", "sex", "relationship"])
    path = make_project(tmp_path_factory.mktemp("robust"), ROBUST, table)
    return path, go(ReleaseSpec.load(path), False, False)[0]


def latest(path: Path) -> ReleaseFolder:
    return ReleaseFolder((path.parent / "releases" / "people" / "latest").resolve())


def test_it_is_published_with_its_proof_and_audited(released: tuple[Path, dict[str, object]]) -> None:
    path, told = released
    assert (told["status"], told["mechanism"], told["guarantee"]) == ("published", "groups", "rlip:1.0,0.05")
    folder = latest(path)
    proof, findings = GroupedProof.read(folder.proof), GroupedFindings.read(folder.findings)
    assert (proof.seed, proof.made_from, proof.proving) == ("people", 1500, 4500)
    assert 2 <= proof.leaves <= proof.cells
    assert 0 < findings.level <= 1
    assert findings.share > 0.15
    page = " ".join(folder.report.read_text().split())
    assert "and holds there with confidence 95" in page
    assert "The bound is about the people in the table" not in page
    result = CliRunner().invoke(main, ["audit", str(folder.root)])
    assert result.exit_code == 0, result.output
    assert go(ReleaseSpec.load(path), False, False)[0]["status"] == "unchanged"


@pytest.mark.parametrize(
    ("forged", "said"),
    [
        (lambda proof: proof.model_copy(update={"seed": "luck"}), "told apart by the name of the series"),
        (lambda proof: proof.model_copy(update={"cells": 1}), "limits were stated for fewer"),
        (lambda proof: proof.model_copy(update={"cells": 10**9}), "nats, and the bound is 1.0"),
    ],
    ids=["another seed", "fewer limits", "more limits"],
)
def test_a_forged_proof_is_refused(
    released: tuple[Path, dict[str, object]],
    tmp_path: Path,
    forged: Callable[[GroupedProof], GroupedProof],
    said: str,
) -> None:
    path, _ = released
    spec = ReleaseSpec.load(path)
    shutil.copytree(latest(path).root, tmp_path / "incoming")
    folder = ReleaseFolder(tmp_path / "incoming")
    folder.proof.write_bytes(forged(GroupedProof.read(folder.proof)).to_bytes())
    snapshot = take_snapshot(spec, path.parent / ".funnel" / "people", None, lambda *_: None)
    finished = FinishedGroups(spec, folder, "1.0.0", snapshot)
    if "limits were" in said or "told apart" in said:
        with pytest.raises(DataError, match=said):
            finished.table("plain_level")
    else:
        lines = finished.table("plain_level").to_dict("records")
        assert any(said in str(line["failure"]) for line in lines)
    assert all(
        line["failure"] is None
        for line in replace(finished, folder=latest(path)).table("plain_level").to_dict("records")
    )


def test_what_few_people_prove_is_refused_before_it_is_drawn(tmp_path: Path) -> None:
    table = adult_rows(0, 300).select(["income", "sex", "relationship"])
    spec = ROBUST.replace("minimum_cell = 5", 'on_breach = "report"').replace("rlip:1.0", "rlip:0.05")
    path = make_project(tmp_path, spec, table)
    with pytest.raises(
        InfeasibleGuarantee, match="the data are too few for this bound: 225 people prove next to nothing"
    ):
        go(ReleaseSpec.load(path), False, False)
