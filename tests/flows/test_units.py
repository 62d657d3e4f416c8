"""Encounters of patients through the whole way: one bound for all rows of a patient, judged by a second computation."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.audit.check import State
from funnel.audit.recheck import recheck
from funnel.errors import DataError, FunnelError, LedgerError, SpecError
from funnel.guarantees import parse_guarantee
from funnel.history import row_choice
from funnel.history.history_status import HistoryStatus
from funnel.history.together import best_together
from funnel.joint import Joint
from funnel.pipeline.flows.pipeline import run_release
from funnel.planning import plan as compare
from funnel.preview.counted import preview
from funnel.preview.version_plan import plan_version
from funnel.progress import quiet
from funnel.recount.histories import recount_histories
from funnel.register import unit_rows
from funnel.register.forget import digests_of, forget
from funnel.register.register import Register, open_register
from funnel.release.layout import ReleaseFolder
from funnel.release.secret import find_register_secret
from funnel.sampling.keyed import RecordKey
from funnel.sampling.unit_order import order_of_rows
from funnel.spec import ReleaseSpec
from tests.public import previewed

SPEC = """
name = "encounters"
title = "Encounters of a test"
secret = ["ill"]
publish = ["ward"]
record_key = ["patient"]
unit = ["patient"]
guarantee = "lip:0.5"

[source]
path = "encounters.parquet"

[metadata]
licence = "CC-BY-4.0"

[history]
people = "same"

[frequencies]
protection = "none"
"""
PATIENTS = 250


def encounters(version: int) -> pa.Table:
    """Rows of patients in no order: who is ill comes more often; in a later version some are new, and wards change."""
    random = np.random.default_rng(3)
    ill = random.random(PATIENTS) < 0.3
    sizes = 1 + random.binomial(2, 0.15 + 0.3 * ill)
    patient = np.repeat(np.arange(PATIENTS), sizes)
    usual = np.where(random.random(PATIENTS) < 0.5, 2 * ill, random.integers(0, 3, PATIENTS))
    ward = np.where(random.random(len(patient)) < 0.6, usual[patient], random.integers(0, 3, len(patient)))
    kept = np.ones(len(patient), dtype=bool)
    if version:
        kept = patient >= 20
        moved = random.random(len(patient)) < 0.2
        ward = np.where(moved, random.integers(0, 3, len(patient)), ward)
    table = pa.table(
        {
            "patient": patient + 1000 * (patient > 240) * version,
            "ill": np.array(["no", "yes"])[ill.astype(int)][patient],
            "ward": np.array(list("abc"))[ward],
        }
    )
    return table.filter(pa.array(kept)).take(random.permutation(int(kept.sum())))


@dataclass(frozen=True)
class Made:
    """Two versions in a project, and what was told of each."""

    path: Path
    told: tuple[dict[str, object], ...]

    @property
    def spec(self) -> ReleaseSpec:
        return ReleaseSpec.load(self.path)

    @property
    def register(self) -> Register:
        return Register.of(self.spec.workspace_folder, "encounters")


def project(folder: Path, text: str = SPEC, version: int = 0) -> Path:
    path = folder / "spec.toml"
    path.write_text(text)
    pq.write_table(encounters(version), folder / "encounters.parquet")
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("units")
    path = project(folder)
    first, _ = run_release(ReleaseSpec.load(path), False, False)
    project(folder, version=1)
    second, _ = run_release(ReleaseSpec.load(path), False, False)
    return Made(path, (first, second))


def test_all_rows_are_one_version_within_the_bound(made: Made) -> None:
    for version, told in enumerate(made.told):
        rows = encounters(version).num_rows
        assert (told["status"], told["rows"]) == ("published", rows)
        history = told["history"]
        assert history["level"] <= 0.5
        assert history["versions"] == version + 1
        table = pq.read_table(sorted(Path(str(told["folder"])).glob("data/*.parquet"))[0])
        assert table.num_rows == rows
        assert table.column_names == ["ward"]


def _in_order_of_source(digests: np.ndarray, of_rows: np.ndarray, record_key: object) -> np.ndarray:
    return np.arange(len(of_rows), dtype=np.uint64)


def _against_order_of_source(digests: np.ndarray, of_rows: np.ndarray, record_key: object) -> np.ndarray:
    return np.arange(len(of_rows), dtype=np.uint64)[::-1]


def _by_number(digests: np.ndarray, of_rows: np.ndarray, record_key: RecordKey) -> np.ndarray:
    """The same permutation in all units of a size."""
    return order_of_rows(np.zeros_like(digests), of_rows, record_key)


@pytest.mark.parametrize("order", [_in_order_of_source, _against_order_of_source, _by_number])
def test_rows_of_a_unit_in_an_order_that_the_secret_does_not_give_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: object
) -> None:
    monkeypatch.setattr(unit_rows, "order_of_rows", order)
    with pytest.raises(FunnelError, match=r"rows of units are not in the order that the secret gives them"):
        run_release(ReleaseSpec.load(project(tmp_path)), False, False)
    assert not list(tmp_path.glob("releases/encounters/1*"))


def test_a_run_on_the_same_source_does_nothing(made: Made) -> None:
    told, _ = run_release(made.spec, False, False)
    assert told["status"] == "unchanged"


def test_the_register_has_every_row_and_where_each_patient_stands(made: Made) -> None:
    entries = made.register.entries
    assert [entry.first_rows is not None for entry in entries] == [True, True]
    for version, entry in enumerate(entries):
        folder = made.register.root / entry.folder
        rows, people = (pq.read_table(folder / name).to_pandas() for name in ("rows.parquet", "people.parquet"))
        source = encounters(version).to_pandas()
        assert len(rows) == len(source)
        sizes = rows.groupby(["high", "low"]).row.agg(["count", "max"])
        assert (sizes["count"] == sizes["max"]).all()
        assert sorted(sizes["count"]) == sorted(source.groupby("patient").size())
        last = rows.sort_values("row").groupby(["high", "low"], as_index=False).last()
        assert last.sort_values(["high", "low"]).node.tolist() == people.node.tolist()
    past = made.register.past
    assert [chapter.row for chapter in past.chapters] == [1, 2, 3, 1, 2, 3]
    assert [chapter.version for chapter in past.chapters][:2] == ["encounters/1.0.0", "encounters/1.0.0#2"]


def test_a_second_computation_finds_the_same(made: Made) -> None:
    found = recount_histories(made.register.root)
    assert found.complaints == ()
    for version, told in zip(found.versions, made.told, strict=True):
        history = told["history"]
        assert (version.complaints, version.broken) == ((), ())
        assert version.level == pytest.approx(history["level"], rel=1e-9)
        assert (version.histories, version.moved, version.outside) == (
            history["histories"],
            history["moved"],
            history["outside"],
        )


def test_an_audit_of_the_folder_computes_all_rows_together(made: Made) -> None:
    folder = ReleaseFolder(Path(str(made.told[1]["folder"])))
    (check,) = [one for one in recheck(folder) if one.name == "histories"]
    assert check.state is State.PASSED


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows.assign(row=rows.row + (rows.row == 2)), "not the next ones"),
        (lambda rows: rows.assign(cell=(rows.cell + 3 * (rows.row == 2)) % 6), "another secret"),
        (lambda rows: rows.assign(cell=rows.cell // 3 * 3 + (rows.cell + (rows.row == 1)) % 3), "counts of"),
        (
            lambda rows: rows.assign(cell=rows.cell // 3 * 3 + (rows.cell + (rows.row == 2)) % 3),
            "from a row to the next",
        ),
        (lambda rows: rows.assign(node=rows.node.where(rows.row > 1, rows.node.min())), "does not go on from"),
        (lambda rows: rows[rows.row < 3], "do not stand where"),
    ],
)
def test_rows_that_were_changed_are_told(made: Made, tmp_path: Path, change: object, said: str) -> None:
    register = tmp_path / "register"
    shutil.copytree(made.register.root, register)
    folder = register / made.register.entries[1].folder
    table = pq.read_table(folder / "rows.parquet")
    changed = change(table.to_pandas())  # type: ignore[operator]
    pq.write_table(pa.Table.from_pandas(changed, table.schema, preserve_index=False), folder / "rows.parquet")
    found = recount_histories(register)
    assert any("rows of" in one for one in found.complaints)
    assert any(said in one for one in found.versions[1].complaints)


def test_a_history_that_says_too_much_with_its_second_row_is_told(made: Made, tmp_path: Path) -> None:
    """Every row from the channel of the first ones, as if rows were other people's."""
    register = tmp_path / "register"
    shutil.copytree(made.register.root, register)
    entry = made.register.entries[0]
    folder = register / entry.folder
    table = pq.read_table(folder / "followed.parquet").to_pandas()
    table["channel"] = table.channel.iloc[0]
    schema = pq.read_schema(folder / "followed.parquet")
    pq.write_table(pa.Table.from_pandas(table, schema, preserve_index=False), folder / "followed.parquet")
    _renamed(folder / "entry.json", "followed.parquet", folder / "followed.parquet")
    found = recount_histories(register)
    assert any("leaves the bound" in said for said in found.versions[0].broken)
    assert found.versions[0].level > 0.5


def _renamed(entry: Path, name: str, file: Path) -> None:
    content = json.loads(entry.read_text())
    content["files"][name] = hashlib.sha256(file.read_bytes()).hexdigest()
    entry.write_text(json.dumps(content))


def test_a_patient_who_is_forgotten_is_in_no_table_and_a_later_version_holds(made: Made, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    shutil.copytree(made.path.parent, folder, symlinks=True)
    spec = ReleaseSpec.load(folder / "spec.toml")
    rows = encounters(1).to_pandas()
    # Somebody with more than one row, if there is anybody.
    patient = int(rows.patient.value_counts().index[0])
    with open_register(spec.workspace_folder, "encounters") as register:
        secret = find_register_secret("file", register.root, register.name, register.fingerprint)
        asked = digests_of([{"patient": str(patient)}], register, secret.record_key(("patient",)))
        forgotten = forget(register, asked)
        assert forgotten.people == 1
        head = register.head
        assert [one.missing for one in head.entries][1] == int((rows.patient == patient).sum())
    told, _ = run_release(spec, True, False)
    assert told["status"] == "published"
    found = recount_histories(Register.of(spec.workspace_folder, "encounters").root)
    assert found.complaints == ()
    assert all(one.complaints == () for one in found.versions)


def test_a_plan_weighs_what_a_release_would_keep_and_publishes_nothing(tmp_path: Path) -> None:
    path = project(tmp_path)
    before = sorted(tmp_path.rglob("*.parquet"))
    found = _planned(path)
    assert (found["people"], found["rows"], found["unit"]) == (PATIENTS, encounters(0).num_rows, ["patient"])
    assert 0 < found["share"] <= found["share_alone"] <= 1  # type: ignore[operator]
    assert sorted(tmp_path.rglob("*.parquet")) == before


def test_a_release_searches_no_rows_that_its_plan_has_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project(tmp_path)
    searched: list[int] = []

    def counted(status: HistoryStatus, *arguments: object) -> tuple[np.ndarray, np.ndarray]:
        searched.append(len(status.nodes))
        return best_together(status, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(row_choice, "best_together", counted)
    monkeypatch.setattr(row_choice, "_WORTH_KEEPING", 0.0)
    planned = _planned(path)
    assert searched
    searched.clear()
    told, _ = run_release(ReleaseSpec.load(path), False, False)
    assert not searched
    # What the release draws is what the plan weighed: the same rows of the same people by the same secret.
    history = told["history"]
    assert history["histories"] == planned["histories"]


def _planned(path: Path) -> dict[str, object]:
    spec = ReleaseSpec.load(path)
    joint = Joint.from_table(spec.source_address, ["ill"], ["ward"])
    rows = compare(joint, parse_guarantee("lip:0.5"), ("optimal",))
    (found,) = plan_version(spec, previewed(spec, joint), (("lip:0.5", rows),))
    return found.to_dict()


@pytest.mark.parametrize("step", [lambda spec: run_release(spec, False, False), lambda spec: preview(spec, quiet)])
def test_without_a_history_rows_of_a_unit_are_refused_with_what_to_do(tmp_path: Path, step: object) -> None:
    text = SPEC.replace('[history]\npeople = "same"\n', "").replace('record_key = ["patient"]\n', "")
    path = project(tmp_path, text)
    with pytest.raises(
        SpecError, match=r"have several rows.*add \[history\] people = .same., so that the rows of a unit"
    ):
        step(ReleaseSpec.load(path))  # type: ignore[operator]


def test_a_register_without_its_table_of_rows_is_refused(made: Made, tmp_path: Path) -> None:
    register = tmp_path / "register"
    shutil.copytree(made.register.root, register)
    (register / made.register.entries[0].folder / "rows.parquet").unlink()
    with pytest.raises(DataError, match=r"rows\.parquet"):
        recount_histories(register)
    with pytest.raises(LedgerError, match=r"rows\.parquet is gone"):
        Register(register, "encounters").check()


def test_the_report_tells_of_units_and_rows(made: Made) -> None:
    folder = Path(str(made.told[1]["folder"]))
    numbers = json.loads((folder / "report.json").read_text())
    page = " ".join((folder / "report.html").read_text().split())
    assert numbers["unit"] == ["patient"]
    assert "all rows of a unit together" in page
    assert "version 2 about the same units" in page
    assert "% of the rows" in page
    assert "of the people" not in page


def test_rows_of_an_earlier_source_are_taken_over_and_then_nothing_happens(made: Made, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    shutil.copytree(made.path.parent, folder, symlinks=True)
    path = project(folder, version=0)
    told, _ = run_release(ReleaseSpec.load(path), False, False)
    assert (told["status"], told["drawn"]) == ("published", False)
    assert len(Register.of(ReleaseSpec.load(path).workspace_folder, "encounters").entries) == 2
    again, _ = run_release(ReleaseSpec.load(path), False, False)
    assert (again["status"], again["version"]) == ("unchanged", told["version"])


@pytest.mark.parametrize("frequencies", ['protection = "none"', "epsilon = 8.0"])
def test_the_secret_of_each_version_alone_is_bounded_where_that_is_asked_for(tmp_path: Path, frequencies: str) -> None:
    listed = '\n[categories]\nill = ["no", "yes"]\nward = ["a", "b", "c"]\n'
    text = SPEC.replace('people = "same"', 'people = "same"\nsecrets = "current"') + listed
    for version in range(2):
        path = project(tmp_path, text.replace('protection = "none"', frequencies), version)
        told, _ = run_release(ReleaseSpec.load(path), False, False)
        assert told["status"] == "published"
    entries = Register.of(ReleaseSpec.load(path).workspace_folder, "encounters").entries
    assert [entry.secrets for entry in entries] == ["current", "current"]
