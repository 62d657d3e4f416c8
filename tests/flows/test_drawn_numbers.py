"""A release with numbers drawn within intervals: made, judged, published, audited; refused where they are others."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from funnel.audit.check import State, overall
from funnel.audit.recheck import Told
from funnel.errors import ReleaseRefused
from funnel.release import publication
from funnel.release.document import dump
from funnel.release.layout import ReleaseFolder
from tests.audits import recheck
from tests.projects import SPEC, adult_rows, make_project
from tests.releases import release

DRAWN = (
    SPEC.replace('["marital-status"]', '["income"]').replace('["relationship"]', '["sex", "age"]')
    + """
[output]
csv = true

[recode.age]
bins = [25, 45, 65]

[numbers.age]
range = [17, 90]
whole = true
unit = "years"
draw = "within"
"""
)


def latest(spec: Path) -> ReleaseFolder:
    return ReleaseFolder((spec.parent / "releases" / "people" / "latest").resolve())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    spec = make_project(tmp_path_factory.mktemp("drawn"), DRAWN)
    release(str(spec))
    return latest(spec)


def of_numbers(folder: ReleaseFolder) -> dict[str, Any]:
    package = json.loads(folder.package.read_text())
    (found,) = [one for one in package["resources"] if one["path"] == "data/numbers.parquet"]
    return dict(found)


def test_every_record_has_a_number_of_its_interval_in_both_tables(made: ReleaseFolder) -> None:
    table, records = pq.read_table(made.drawn), pq.read_table(made.data)
    assert table.select(["sex", "age"]).equals(records)
    assert table.schema.field("age (number)").type == pa.int64()
    field = of_numbers(made)["schema"]["fields"][-1]
    assert (field["name"], field["type"]) == ("age (number)", "integer")
    assert (field["funnel:drawn"]["from"], field["funnel:drawn"]["unit"]) == ("age", "years")
    stands_for = field["funnel:drawn"]["numbers"]
    assert stands_for["45 to under 65"] == [[45, 64]]
    mixed = next(text for text in stands_for if " or " in text)
    assert len(stands_for[mixed]) > 1
    numbers = table["age (number)"].to_pylist()
    for text, number in zip(table["age"].to_pylist(), numbers, strict=True):
        assert any(low <= number <= high for low, high in stands_for[text])
    # All numbers of an interval come, each about as often.
    drawn = [n for text, n in zip(table["age"].to_pylist(), numbers, strict=True) if text == "45 to under 65"]
    counts = np.bincount(drawn, minlength=65)[45:]
    assert (counts > 0).all()
    assert ((counts - len(drawn) / 20) ** 2 / (len(drawn) / 20)).sum() < 60
    copy = pacsv.read_csv(made.drawn_csv)
    assert copy["age (number)"].to_pylist() == numbers
    assert copy["age"].to_pylist() == table["age"].to_pylist()
    assert "data/numbers.parquet" in made.readme.read_text()
    assert overall(recheck(made)) == State.PASSED


def test_records_that_are_taken_over_keep_their_numbers(tmp_path: Path) -> None:
    spec = make_project(tmp_path, DRAWN)
    release(str(spec))
    first = latest(spec)
    spec.write_text(DRAWN.replace("CC-BY-4.0", "CC0-1.0"))
    assert not release(str(spec))["drawn"]
    second = latest(spec)
    assert first.root != second.root
    assert first.drawn.read_bytes() == second.drawn.read_bytes()
    # Whoever wants no numbers any more, or wants them, gets the same records without a further draw.
    spec.write_text(DRAWN.replace('draw = "within"\n', ""))
    assert not release(str(spec))["drawn"]
    assert latest(spec).data.read_bytes() == first.data.read_bytes()
    assert not latest(spec).drawn.exists()


def test_numbers_that_the_records_do_not_make_fail_an_audit(made: ReleaseFolder, tmp_path: Path) -> None:
    folder = ReleaseFolder(tmp_path / "people" / made.root.name)
    shutil.copytree(made.root, folder.root)
    table = pq.read_table(folder.drawn)
    numbers = table["age (number)"].to_pylist()
    # Another number of the same interval.
    text = table["age"].to_pylist()[0]
    (low, high), *_ = of_numbers(made)["schema"]["fields"][-1]["funnel:drawn"]["numbers"][text]
    numbers[0] = low if numbers[0] != low else high
    pq.write_table(table.set_column(2, "age (number)", pa.array(numbers)), folder.drawn)
    failed = {check.name: check.detail for check in recheck(folder) if check.state is State.FAILED}
    assert "others than the published records make" in failed["drawn numbers"]


def test_all_tables_say_the_same_of_a_column(made: ReleaseFolder, tmp_path: Path) -> None:
    """Of intervals and of drawn numbers, which no other public file tells: the four tables are held to each other."""
    package = json.loads(made.package.read_bytes())
    places = [
        (number, key)
        for number, one in enumerate(package["resources"])
        for key in ("funnel:numbers", "funnel:drawn")
        if any(key in field for field in one["schema"]["fields"])
    ]
    assert len(places) == 6
    for number, key in places:
        folder = ReleaseFolder(tmp_path / f"{number} {key[7:]}")
        shutil.copytree(made.root, folder.root)
        package = json.loads(made.package.read_bytes())
        field = next(one for one in package["resources"][number]["schema"]["fields"] if key in one)
        if key == "funnel:numbers":
            next(iter(field[key]["intervals"].values()))[0] += 1
        else:
            next(iter(field[key]["numbers"].values()))[0][0] += 1
        folder.package.write_bytes(dump(package))
        failed = {one.name for one in recheck(folder, Told(public=True)) if one.state is State.FAILED}
        assert "package" in failed, (number, key)


def true_numbers(table: pa.Table) -> pa.Table:
    """The numbers of the source in place of drawn ones."""
    return table.set_column(2, "age (number)", pa.array(adult_rows()["age"].to_pylist()))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (true_numbers, "numbers are others than the published records make"),
        (
            lambda table: table.replace_schema_metadata({"note": "17, 22, 81"}),
            "it is not what funnel writes for its rows, from byte",
        ),
    ],
)
def test_another_table_of_drawn_numbers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[pa.Table], pa.Table], said: str
) -> None:
    write = publication.write_drawn_numbers

    def otherwise(drawn: Any, folder: ReleaseFolder, csv: bool) -> None:
        write(drawn, folder, csv)
        pq.write_table(change(pq.read_table(folder.drawn)), folder.drawn, compression="zstd")

    monkeypatch.setattr(publication, "write_drawn_numbers", otherwise)
    with pytest.raises(ReleaseRefused, match=said):
        release(str(make_project(tmp_path, DRAWN)))
