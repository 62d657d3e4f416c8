"""A release of groups with numbers drawn within intervals, and with classes of weights: judged, audited, estimated."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from funnel.audit.check import State, overall
from funnel.audit.told import Told
from funnel.cli import main
from funnel.pipeline.flows.way import go
from funnel.recount.grouped_text import GroupedText
from funnel.release.layout import ReleaseFolder
from funnel.release.reading import open_release
from funnel.release.weighted import weight_classes
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.projects import SPEC, adult_rows, make_project

DRAWN = (
    SPEC.replace('["marital-status"]', '["income"]').replace(
        '["relationship"]', '[["fnlwgt"], ["sex"], ["age"]]\nweight = "fnlwgt"'
    )
    + """
[output]
csv = true

[recode.age]
bins = [25, 45, 65]
groups = { "of an age" = ["25 to under 45", "45 to under 65"] }

[recode.fnlwgt]
bins = [180000]

[numbers.fnlwgt]
range = [10000, 1500000]
means = [115000, 265000]

[numbers.age]
range = [17, 90]
whole = true
unit = "years"
draw = "within"
"""
)


def made_in(folder: Path) -> ReleaseFolder:
    path = make_project(folder, DRAWN, adult_rows(0, 3000).select(["income", "fnlwgt", "sex", "age"]))
    go(ReleaseSpec.load(path), False, False)
    return ReleaseFolder((folder / "releases" / "people" / "latest").resolve())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return made_in(tmp_path_factory.mktemp("drawn"))


def copy_of(made: ReleaseFolder, folder: Path) -> ReleaseFolder:
    shutil.copytree(made.root, folder / made.root.name)
    return ReleaseFolder(folder / made.root.name)


def failed(folder: ReleaseFolder) -> dict[str, str]:
    return {check.name: check.detail for check in recheck(folder, Told(public=True)) if check.state is State.FAILED}


def drawn_field(package: dict[str, Any]) -> dict[str, Any]:
    (found,) = [one for one in package["resources"] if one["path"] == "data/numbers.parquet"]
    return dict(found["schema"]["fields"][-1]["funnel:drawn"])


def test_every_record_has_a_number_of_what_its_text_names(made: ReleaseFolder) -> None:
    table, records = pq.read_table(made.drawn), pq.read_table(made.data)
    assert table.select(["fnlwgt", "sex", "age"]).equals(records)
    told = drawn_field(json.loads(made.package.read_text()))
    assert (told["from"], told["unit"]) == ("age", "years")
    of_value = {"under 25": range(17, 25), "of an age": range(25, 65), "65 and over": range(65, 91)}
    behind = GroupedText.parse(made.protocol.read_bytes()).behind("age")
    assert behind["any"] == {*of_value}
    for text, values in behind.items():
        numbers = {n for low, high in told["numbers"][text] for n in range(low, high + 1)}
        assert numbers == {n for value in values for n in of_value[value]}
    texts, numbers = table["age"].to_pylist(), table["age (number)"].to_pylist()
    assert all(
        any(low <= number <= high for low, high in told["numbers"][text])
        for text, number in zip(texts, numbers, strict=True)
    )
    # Of what is said of most, every number comes, each about as often.
    common = max(behind, key=texts.count)
    every = [n for low, high in told["numbers"][common] for n in range(low, high + 1)]
    of_common = [n for text, n in zip(texts, numbers, strict=True) if text == common]
    counts, expected = np.array([of_common.count(n) for n in every]), len(of_common) / len(every)
    assert ((counts - expected) ** 2 / expected).sum() < len(every) + 6 * np.sqrt(2 * len(every))
    assert pacsv.read_csv(made.drawn_csv)["age (number)"].to_pylist() == numbers
    assert "data/numbers.parquet" in made.readme.read_text()
    assert overall(recheck(made)) == State.PASSED


def test_weighted_shares_are_those_of_the_classes(made: ReleaseFolder) -> None:
    assert weight_classes(made)[1]["under 180000"] == (115_000, 10_000, 180_000)
    rows = adult_rows(0, 3000)
    weights = np.where(rows["fnlwgt"].to_numpy() < 180_000, 115_000, 265_000)
    women = np.array(rows["sex"].to_pylist()) == "Female"
    shown = CliRunner().invoke(main, ["estimate", str(made.root), "--weighted", "--by", "sex", "--json"])
    assert shown.exit_code == 0, shown.output
    told = {cell["values"][0]: cell for cell in json.loads(shown.stdout)["cells"]}
    right = weights[women].sum() / weights.sum()
    # Six standard errors, and rounding: this release is one drawing.
    assert abs(told["Female"]["frequency"] - right) < 6 * told["Female"]["error"] + 0.02
    assert told["Female"]["least"] < right < told["Female"]["largest"]
    opened = open_release(made.root).estimate_weighted("sex")
    assert "3,000 records, weighted by fnlwgt" in str(opened)
    # The report tells those of the records, to ten of the heaviest.
    report = json.loads(made.numbers.read_text())["weighted"]
    assert (report["weight"], [one["column"] for one in report["columns"]]) == ("fnlwgt", ["sex", "age"])
    (female,) = [row for row in report["columns"][0]["rows"] if row["label"] == "Female"]
    assert abs(female["weighted"] - right) <= report["step"] / 2 + 1e-9
    assert abs(female["share"] - women.mean()) <= 0.0025 + 1e-9
    assert "Weighted frequencies" in made.report.read_text()
    many = CliRunner().invoke(main, ["estimate", str(made.root), "--weighted"])
    assert "one at a time" in str(many.exception) + many.output


def test_other_numbers_fail_an_audit_of_what_is_public(made: ReleaseFolder, tmp_path: Path) -> None:
    folder = copy_of(made, tmp_path)
    table = pq.read_table(folder.drawn)
    numbers = table["age (number)"].to_pylist()
    of_text = drawn_field(json.loads(made.package.read_text()))["numbers"][table["age"][0].as_py()]
    numbers[0] = next(n for low, high in of_text for n in (low, high) if n != numbers[0])
    pq.write_table(table.set_column(3, "age (number)", pa.array(numbers)), folder.drawn)
    assert "others than the published records make" in failed(folder)["drawn numbers"]


def test_a_package_that_tells_less_of_a_text_fails_an_audit(made: ReleaseFolder, tmp_path: Path) -> None:
    folder = copy_of(made, tmp_path)
    package = json.loads(folder.package.read_text())
    for resource in package["resources"]:
        for field in resource["schema"]["fields"]:
            if "funnel:drawn" in field:
                field["funnel:drawn"]["numbers"]["any"] = field["funnel:drawn"]["numbers"]["any"][1:]
    folder.package.write_text(json.dumps(package, indent=2))
    assert "of 'any' are not those of all values" in failed(folder)["drawn numbers"]


def test_numbers_that_nobody_can_read_fail_an_audit(made: ReleaseFolder, tmp_path: Path) -> None:
    folder = copy_of(made, tmp_path)
    folder.drawn.unlink()
    assert {"drawn numbers"} <= {*failed(folder)}
