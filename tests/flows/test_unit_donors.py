"""Whole records of people with several rows: released, audited, found again when changed, and without the forgotten."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from funnel.audit.check import overall
from funnel.audit.context import Told
from funnel.errors import SpecError
from funnel.guarantees import LIP
from funnel.pipeline.flows.forget import command
from funnel.pipeline.flows.pipeline import run_release
from funnel.recount.found_histories import RegisterHistories
from funnel.recount.histories import recount_histories
from funnel.register import unit_donor_rows
from funnel.release.layout import ReleaseFolder
from funnel.release.public_report import PublicReport
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.projects import make_project
from tests.unit_panels import VISITS, waves_as_rows

COLUMNS = ("income", "kids", "married", "education", "age")
PEOPLE, RARE = 500, 5
Keys = dict[tuple[int, int, int], tuple[int, int, int]]


def source() -> pa.Table:
    return waves_as_rows(PEOPLE, rare=RARE)


def released(folder: Path, text: str = VISITS, table: pa.Table | None = None) -> ReleaseFolder:
    path = make_project(folder, text, source() if table is None else table)
    told, _ = run_release(ReleaseSpec.load(path), again=False, rotate=False)
    return ReleaseFolder(Path(told["folder"]))


def passes(folder: ReleaseFolder) -> bool:
    return all(overall(recheck(folder, told)).name == "PASSED" for told in (Told(), Told(public=True)))


def register_of(folder: Path) -> Path:
    return folder / ".funnel" / "registers" / "visits"


def donors_of(entry: Path) -> Keys:
    rows = [column.to_pylist() for column in pq.read_table(entry / "row_donors.parquet").columns]
    return {(high, low, row): tuple(of) for high, low, row, *of in zip(*rows, strict=True)}  # type: ignore[misc]


def sound(found: RegisterHistories) -> bool:
    return not found.complaints and all(not one.complaints and not one.broken for one in found.versions)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ReleaseFolder]:
    folder = tmp_path_factory.mktemp("visits")
    return folder, released(folder)


def test_it_passes_its_audits_and_says_how_many_records_are_own(made: tuple[Path, ReleaseFolder]) -> None:
    folder, version = made
    assert passes(version)
    found = recount_histories(register_of(folder))
    assert sound(found)
    report, judged = PublicReport.read(version.numbers), found.versions[0]
    assert report.figures.history is not None
    assert judged.own is not None
    assert report.figures.history.own == pytest.approx(judged.own, abs=0.03)
    assert 0.3 < judged.own < 1
    # The largest level is that of the last row of three: 1 - (1 - 0.8) / 3 of the budget.
    assert 0.3 < judged.level <= 0.4 * (1 - 0.2 / 3) + 1e-9
    assert judged.moved == judged.outside == 0
    assert "are expected to be people’s own" in version.report.read_text(encoding="utf-8")


def test_records_are_true_ones_of_units_with_as_many_rows(made: tuple[Path, ReleaseFolder]) -> None:
    folder, version = made
    table, published = source(), pq.read_table(version.data)
    true = {tuple(map(str, row.values())) for row in table.select(COLUMNS).to_pylist()}
    assert len(published) == len(table)
    assert {tuple(row[name] for name in COLUMNS) for row in published.to_pylist()} <= true
    (entry,) = register_of(folder).glob("0*")
    donors, rows = donors_of(entry), pq.read_table(entry / "rows.parquet").to_pylist()
    assert len(donors) == len(rows) == len(table)
    sizes = Counter(record[:2] for record in donors)
    read = {(one["high"], one["low"], one["row"]): one["node"] > 0 for one in rows}
    assert {sizes[record[:2]] for record, is_read in read.items() if not is_read} == {6}
    assert sum(not is_read for is_read in read.values()) == 6 * RARE
    for record, of in donors.items():
        assert read[of]
        if read[record]:
            assert (sizes[of[:2]], of[2]) == (sizes[record[:2]], record[2])
    own = np.mean([record == of for record, of in donors.items()])
    expected = recount_histories(register_of(folder)).versions[0].own
    assert expected is not None
    # Seven standard errors, for three rows of one person that go on together.
    assert abs(own - expected) < 7 * np.sqrt(3 * 0.25 / len(table))


def _turned(table: pa.Table, names: tuple[str, ...], order: np.ndarray) -> pa.Table:
    columns = [table[name].take(order) if name in names else table[name] for name in table.column_names]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _other_units(entry: Path) -> None:
    donors = pq.read_table(entry / "row_donors.parquet")
    high, row = np.array(donors["high"]), np.array(donors["row"])
    _, unit, sizes = np.unique(high, return_inverse=True, return_counts=True)
    order = np.arange(len(donors))
    some = np.flatnonzero((sizes[unit] == 3) & (row == 2))
    order[some] = np.roll(some, 1)
    pq.write_table(_turned(donors, ("of_high", "of_low"), order), entry / "row_donors.parquet")


def _other_rows(entry: Path) -> None:
    donors = pq.read_table(entry / "row_donors.parquet")
    of_row = pa.array(np.maximum(1, np.array(donors["of_row"]) - 1).astype(np.int32))
    place = donors.column_names.index("of_row")
    pq.write_table(donors.set_column(place, donors.schema.field(place), of_row), entry / "row_donors.parquet")


def _one_donor(entry: Path) -> None:
    """All rows of rare numbers are published as one."""
    rows, donors = (pq.read_table(entry / f"{name}.parquet") for name in ("rows", "row_donors"))
    rare = np.flatnonzero(np.array(rows["node"]) == 0)
    order = np.arange(len(donors))
    order[rare] = rare[0]
    pq.write_table(_turned(donors, ("of_high", "of_low", "of_row"), order), entry / "row_donors.parquet")


def _unread(entry: Path) -> None:
    """Nothing is said to be read of a unit whose number of rows is common."""
    for name in ("rows", "people"):
        table = pq.read_table(entry / f"{name}.parquet")
        node, place = np.array(table["node"]), table.column_names.index("node")
        known = pq.read_table(entry / "rows.parquet")
        first = next(row for row in known.to_pylist() if row["node"] > 0 or name == "people")
        same = (np.array(table["high"]) == first["high"]) & (np.array(table["low"]) == first["low"])
        pq.write_table(
            table.set_column(place, table.schema.field(place), pa.array(np.where(same, 0, node))),
            entry / f"{name}.parquet",
        )


CHANGES = {
    _other_units: "as that of another person",
    _other_rows: "a record is that of another row of a unit",
    _one_donor: "are not those of anybody else",
    _unread: "too few units have so many",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_register_that_is_changed_afterwards_is_found(
    made: tuple[Path, ReleaseFolder], tmp_path: Path, change: object
) -> None:
    register = tmp_path / "visits"
    shutil.copytree(register_of(made[0]), register)
    (entry,) = register.glob("0*")
    change(entry)  # type: ignore[operator]
    assert any("that the head of the register names" in said for said in recount_histories(register).complaints)
    head = json.loads((register / "head.json").read_bytes())
    for kind, name in (("donors", "row_donors"), ("rows", "rows"), ("people", "people")):
        head["entries"][0][kind] = hashlib.sha256((entry / f"{name}.parquet").read_bytes()).hexdigest()
    (register / "head.json").write_text(json.dumps(head), encoding="utf-8")
    found = recount_histories(register)
    assert not found.complaints
    assert any(CHANGES[change] in said for said in found.versions[0].complaints), found.versions[0].complaints  # type: ignore[index]


def test_the_same_again_draws_nothing_and_a_later_version_is_refused(
    made: tuple[Path, ReleaseFolder], tmp_path: Path
) -> None:
    folder = tmp_path / "visits"
    shutil.copytree(made[0], folder, symlinks=True)
    assert released(folder).root.name == "1.0.0"
    with pytest.raises(SpecError, match="a later one of whole records of several rows of a person is not there yet"):
        released(folder, table=source().slice(30))
    assert [place.name for place in register_of(folder).glob("0*")] == ["0000-visits-1.0.0"]


def test_who_is_forgotten_is_in_no_row_and_is_no_donor(made: tuple[Path, ReleaseFolder], tmp_path: Path) -> None:
    folder = tmp_path / "visits"
    shutil.copytree(made[0], folder, symlinks=True)
    rows = Counter(source()["id"].to_pylist())
    rare = [one for one, number in rows.items() if number == 6]
    # So many that one of them stands for a row of a rare number, but with a probability of .4^24; one of these, too.
    gone = [*[one for one in rows if one not in rare][: len(rows) * 6 // 10], rare[0]]
    (folder / "ids.csv").write_text("\n".join(["id", *map(str, dict.fromkeys(gone)), ""]), encoding="utf-8")
    told = CliRunner().invoke(command, [str(folder / "people.toml"), "--ids", str(folder / "ids.csv"), "--yes"])
    assert told.exit_code == 0, told.output
    missing = sum(rows[one] for one in gone)
    assert f"{missing:,} answers in 1 versions" in told.output
    erased = pq.read_table(register_of(folder) / "forgotten.parquet").to_pylist()
    known = {(one["high"], one["low"]) for one in erased}
    assert len(known) == len({*gone})
    (entry,) = register_of(folder).glob("0*")
    donors = donors_of(entry)
    assert not known & {record[:2] for record in donors} | known & {of[:2] for of in donors.values()}
    assert {(0, 0, 0)} == {of for of in donors.values() if not all(of)}
    found = recount_histories(register_of(folder))
    assert sound(found), found.versions[0].complaints
    assert found.versions[0].missing == missing
    assert overall(recheck(ReleaseFolder(folder / "releases" / "visits" / "1.0.0"))).name == "PASSED"


def shared() -> pa.Table:
    """The same where the rows of a person have one secret."""
    table = source()
    ever = set(table.filter(pa.array([one == "out" for one in table["outwork"].to_pylist()]))["id"].to_pylist())
    secret = pa.array(["out" if one in ever else "in" for one in table["id"].to_pylist()])
    return table.set_column(table.column_names.index("outwork"), "outwork", secret)


def test_rows_that_share_a_secret(tmp_path: Path) -> None:
    assert passes(released(tmp_path, table=shared()))
    assert sound(recount_histories(register_of(tmp_path)))


def test_rows_that_would_be_outside_the_bound_as_those_of_different_people_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where numbers of rows tell the secret; here the bound for this version alone is said to be a tenth."""
    monkeypatch.setattr(unit_donor_rows, "require_kept", lambda _: LIP(0.04))
    with pytest.raises(SpecError, match="all rows taken for those of different people would be outside the bound"):
        released(tmp_path, table=shared())


def test_too_many_rows_and_none_in_common_are_refused(tmp_path: Path) -> None:
    table = source()
    with pytest.raises(SpecError, match="have more than 24 rows"):
        released(tmp_path / "many", table=pa.concat_tables([table] * 9))
