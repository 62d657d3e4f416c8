"""Whole records of the same people: released wave after wave, audited, taken up again, and without who is forgotten."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from funnel.analysis.release import load_release
from funnel.audit.check import State, overall
from funnel.audit.context import Told
from funnel.errors import DataError, SpecError
from funnel.pipeline.flows.forget import command
from funnel.recount.classes import PlainClasses
from funnel.recount.histories import recount_histories
from funnel.release.layout import ReleaseFolder
from funnel.release.public_report import PublicReport
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.copies import copied
from tests.flows.test_history import SPEC as PANEL
from tests.flows.test_history import project, run
from tests.waves import WAVES, wave

COLUMNS = ("income", "kids", "married", "education", "age")
SPEC = (
    PANEL.replace('publish = ["income"]', 'publish = "auto"')
    .replace('"lip:0.5"', '"lip:0.6"\nmechanism = "invariant"\n[groups]\nmin_records = 60\n')
    .replace("frequencies.protection", "[frequencies]\nprotection")
    + "budget_fraction = 0.8\n"
)
PEOPLE = 700


def tables(waves: int) -> list[pa.Table]:
    return [wave(year, PEOPLE).select(["id", "outwork", *COLUMNS]) for year in WAVES[:waves]]


def released(folder: Path, spec: ReleaseSpec, table: pa.Table) -> ReleaseFolder:
    pq.write_table(table, folder / "people.parquet")
    return ReleaseFolder(Path(run(spec)["folder"]))


def passes(folder: ReleaseFolder) -> bool:
    return all(overall(recheck(folder, told)) == State.PASSED for told in (Told(), Told(public=True)))


def forget(folder: Path, ids: list[int]) -> None:
    (folder / "ids.csv").write_text("\n".join(["id", *map(str, ids), ""]), encoding="utf-8")
    told = CliRunner().invoke(command, [str(folder / "panel.toml"), "--ids", str(folder / "ids.csv"), "--yes"])
    assert told.exit_code == 0, told.output


def in_last_class(version: ReleaseFolder, table: pa.Table) -> npt.NDArray[np.bool_]:
    """Which records of a table are of the last of the classes of a release."""
    classes = PlainClasses.parse(version.classes.read_bytes())
    records = table.select(COLUMNS).to_pylist()
    return np.array([classes.of(tuple(map(str, row.values()))) == classes.names[-1] for row in records])


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ReleaseSpec, list[ReleaseFolder]]:
    folder = tmp_path_factory.mktemp("donors")
    spec = project(folder, SPEC)
    return folder, spec, [released(folder, spec, table) for table in tables(3)]


def test_every_wave_passes_its_audits_and_says_how_many_records_are_own(
    panel: tuple[Path, ReleaseSpec, list[ReleaseFolder]],
) -> None:
    folder, _, versions = panel
    found = recount_histories(folder / ".funnel" / "registers" / "panel")
    assert [(one.complaints, one.broken) for one in found.versions] == [((), ())] * 3
    shares = []
    for version, judged in zip(versions, found.versions, strict=True):
        assert passes(version)
        report = PublicReport.read(version.numbers)
        assert report.figures.history is not None
        assert report.unchanged is not None
        assert judged.own is not None
        shares.append(report.figures.history.own)
        assert report.figures.history.own == pytest.approx(judged.own, abs=0.03)
        assert report.unchanged.whole is None
        assert judged.level <= 0.6
        assert "who is followed" in version.readme.read_text(encoding="utf-8")
        assert "are expected to be people’s own" in version.report.read_text(encoding="utf-8")
    assert shares == sorted(shares, reverse=True)
    assert 0.3 < shares[-1] < shares[0] < 1


def test_a_first_wave_may_use_all_of_the_bound(tmp_path: Path) -> None:
    """Its channel is then the one of the version alone to the last unit, which tells nothing of people."""
    spec = project(tmp_path, SPEC.replace("budget_fraction = 0.8", "budget_fraction = 1.0"))
    versions = [released(tmp_path, spec, table) for table in tables(2)]
    assert all(map(passes, versions))


def test_classes_are_those_of_the_first_wave(panel: tuple[Path, ReleaseSpec, list[ReleaseFolder]]) -> None:
    _, _, versions = panel
    assert len({version.classes.read_bytes() for version in versions}) == 1


def test_published_records_are_true_ones_and_most_of_them_their_persons_own(
    panel: tuple[Path, ReleaseSpec, list[ReleaseFolder]],
) -> None:
    folder, _, versions = panel
    register = folder / ".funnel" / "registers" / "panel"
    for table, version, entry in zip(tables(3), versions, sorted(register.glob("0*")), strict=True):
        true = {tuple(map(str, row.values())) for row in table.select(COLUMNS).to_pylist()}
        published = [tuple(row[name] for name in COLUMNS) for row in pq.read_table(version.data).to_pylist()]
        assert len(published) == len(table)
        assert set(published) <= true
        donors = pq.read_table(entry / "donors.parquet").to_pandas()
        own = float(((donors["high"] == donors["of_high"]) & (donors["low"] == donors["of_low"])).mean())
        expected = PublicReport.read(version.numbers).figures.history.own
        # Seven standard errors.
        assert abs(own - expected) < 7 * np.sqrt(0.25 / len(table))


def test_donors_who_are_exchanged_afterwards_are_found(
    panel: tuple[Path, ReleaseSpec, list[ReleaseFolder]], tmp_path: Path
) -> None:
    register = tmp_path / "panel"
    shutil.copytree(panel[0] / ".funnel" / "registers" / "panel", register)
    place = sorted(register.glob("0*"))[-1] / "donors.parquet"
    donors = pq.read_table(place)
    order = np.roll(np.arange(len(donors)), 1)
    columns = [donors["high"], donors["low"], donors["of_high"].take(order), donors["of_low"].take(order)]
    pq.write_table(pa.Table.from_arrays(columns, schema=donors.schema), place)
    assert any("donors of" in said for said in recount_histories(register).complaints)
    head = json.loads((register / "head.json").read_bytes())
    head["entries"][-1]["donors"] = hashlib.sha256(place.read_bytes()).hexdigest()
    (register / "head.json").write_text(json.dumps(head), encoding="utf-8")
    found = recount_histories(register)
    assert not found.complaints
    assert "a record goes on as that of another person, or begins as that of the same one" in (
        found.versions[-1].complaints
    )


def test_the_same_again_draws_nothing(panel: tuple[Path, ReleaseSpec, list[ReleaseFolder]]) -> None:
    _, spec, versions = panel
    told = run(spec)
    assert (told["status"], Path(told["folder"])) == ("unchanged", versions[-1].root)


def test_counts_are_off_by_no_more_than_is_stated(panel: tuple[Path, ReleaseSpec, list[ReleaseFolder]]) -> None:
    for table, version in zip(tables(3), panel[2], strict=True):
        report = PublicReport.read(version.numbers)
        assert report.unchanged is not None
        assert report.unchanged.followed is not None
        stated, release = report.unchanged.followed, load_release(version.root)
        assert 0 < stated.factor <= stated.errors
        most = stated.errors / max(1.0, stated.factor)
        for column in COLUMNS:
            found = release.shares(by=column)
            true = table[column].to_pandas().astype(str).value_counts(normalize=True)
            for (value,), share, error, low, high in zip(
                found.cells, found.frequencies, found.errors, found.lower, found.upper, strict=True
            ):
                assert low <= share <= high
                # Errors are those of published shares, and the stated ones of true shares.
                if true.get(value, 0.0) > 0.05:
                    assert 0 < error < 0.05
                    assert abs(share - true[value]) <= 1.3 * most * error
        # A record stays whole as often as it is somebody's own, or one that is alike.
        assert report.figures.history is not None
        assert report.figures.history.own is not None
        assert abs(release.unchanged() - report.figures.history.own) < 0.1
        assert 0 < release.variance_ratio(lambda rows: pc.equal(rows["kids"], "no").to_numpy()) < 2


def test_a_report_that_states_another_deviation_is_refused(
    panel: tuple[Path, ReleaseSpec, list[ReleaseFolder]], tmp_path: Path
) -> None:
    folder = copied(panel[2][1], tmp_path / "1.1.0")
    report = json.loads(folder.numbers.read_bytes())
    report["unchanged"]["followed"]["errors"] = 900.0
    folder.numbers.write_text(json.dumps(report), encoding="utf-8")
    failed = {one.name for one in recheck(folder, Told(public=True)) if one.state == State.FAILED}
    assert failed
    report["unchanged"]["followed"] = None
    folder.numbers.write_text(json.dumps(report), encoding="utf-8")
    said = [one.detail for one in recheck(folder, Told(public=True)) if one.state == State.FAILED]
    assert any("how far counts are off" in str(one) for one in said)


def test_who_is_forgotten_is_nobodys_donor_any_more(tmp_path: Path) -> None:
    spec = project(tmp_path, SPEC)
    first, second = tables(2)
    released(tmp_path, spec, first)
    gone = first["id"].to_pylist()[:25]
    forget(tmp_path, gone)
    version = released(tmp_path, spec, second)
    assert passes(version)
    register = tmp_path / ".funnel" / "registers" / "panel"
    erased = pq.read_table(register / "forgotten.parquet")
    known = {*zip(*(column.to_pylist() for column in erased.columns), strict=True)}
    assert len(known) == len(gone)
    for entry in sorted(register.glob("0*")):
        high, low, of_high, of_low = (one.to_pylist() for one in pq.read_table(entry / "donors.parquet").columns)
        assert not known & {*zip(high, low, strict=True), *zip(of_high, of_low, strict=True)}
    found = recount_histories(register)
    assert [(one.complaints, one.broken) for one in found.versions] == [((), ())] * 2
    assert found.versions[1].missing == len({*gone} & {*second["id"].to_pylist()})


@pytest.mark.parametrize("people", [0, 1, 2])
def test_a_wave_with_hardly_anybody_of_a_class_is_released(tmp_path: Path, people: int) -> None:
    spec = project(tmp_path, SPEC)
    first, second, third = tables(3)
    versions = [released(tmp_path, spec, first)]
    of_last = in_last_class(versions[0], second)
    fewer = second.filter(pa.array(~of_last | (np.cumsum(of_last) <= people)))
    assert 0 < len(fewer) == len(second) - of_last.sum() + people
    versions += [released(tmp_path, spec, table) for table in (fewer, third)]
    assert all(map(passes, versions))
    found = recount_histories(tmp_path / ".funnel" / "registers" / "panel")
    assert [(one.complaints, one.broken) for one in found.versions] == [((), ())] * 3


def test_nobody_begins_as_one_of_a_class_of_which_everybody_is_forgotten(tmp_path: Path) -> None:
    spec = project(tmp_path, SPEC)
    first, second, _ = tables(3)
    versions = [released(tmp_path, spec, first)]
    of_last, known = in_last_class(versions[0], second), np.isin(second["id"], first["id"])
    both = np.flatnonzero(of_last & known)[:2]
    forget(tmp_path, np.array(second["id"])[both].tolist())
    of_last[both] = False
    second = second.filter(pa.array(~of_last))
    versions.append(released(tmp_path, spec, second))
    assert passes(versions[1])
    names = pq.read_table(versions[1].data, columns=["record_class"]).column(0).to_pylist()
    assert 0 == names.count(PlainClasses.parse(versions[0].classes.read_bytes()).names[-1]) < len(names)
    found = recount_histories(tmp_path / ".funnel" / "registers" / "panel")
    assert [(one.complaints, one.broken) for one in found.versions] == [((), ())] * 2


def test_another_secret_value_and_another_width_are_refused(tmp_path: Path) -> None:
    spec = project(tmp_path, SPEC)
    first, second = tables(2)
    released(tmp_path, spec, first)
    other = second.set_column(1, "outwork", pa.array(["elsewhere", *second["outwork"].to_pylist()[1:]]))
    with pytest.raises(DataError, match="other values than in the first version"):
        released(tmp_path, spec, other)
    narrow = SPEC.replace('"auto"', '["kids"]').replace("[groups]\nmin_records = 60\n", "")
    with pytest.raises((SpecError, DataError)):
        released(tmp_path, project(tmp_path, narrow), second)
