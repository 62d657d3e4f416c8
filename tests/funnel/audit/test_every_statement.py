"""Every statement of a public report: what is changed is noticed, or is named as what public files do not tell."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from funnel.audit import history
from funnel.audit.recheck import Told
from funnel.audit.stated import stated_complaints, untold
from funnel.pipeline.flows.pipeline import run_release
from funnel.release.document import dump
from funnel.release.layout import ReleaseFolder
from funnel.release.public_report import PublicReport
from funnel.spec import ReleaseSpec
from tests.audits import verified
from tests.copies import copied
from tests.funnel.audit.statements import passes, unnoticed
from tests.projects import SPEC, adult_rows, make_project
from tests.releases import make_release
from tests.waves import FOLLOWED, wave

WITHOUT_NOISE = FOLLOWED.replace("epsilon = 2.0", 'protection = "none"')


def two_versions(folder: Path, text: str) -> ReleaseFolder:
    (folder / "followed.toml").write_text(text, encoding="utf-8")
    for year in (1984, 1985):
        pq.write_table(wave(year, 600), folder / "people.parquet")
        told, _ = run_release(ReleaseSpec.load(folder / "followed.toml"), False, False)
    return ReleaseFolder(Path(told["folder"]))


@pytest.fixture(scope="module", params=[FOLLOWED, WITHOUT_NOISE], ids=["noise", "none"])
def later(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    """The second version of a series about the same people."""
    return two_versions(tmp_path_factory.mktemp("later"), request.param)


def test_no_statement_can_be_changed_unnoticed(later: ReleaseFolder, tmp_path: Path) -> None:
    folder = copied(later, tmp_path / later.root.name)
    assert passes(folder, json.loads(folder.numbers.read_bytes()))
    assert list(unnoticed(folder)) == []


def test_what_is_not_told_is_named(later: ReleaseFolder) -> None:
    named = untold(json.loads(later.numbers.read_bytes()), 0.01)
    assert "how far the probabilities of the protocol are off" in named
    noise = (later.root / "frequencies.json").exists()
    assert ("levels over the confidence set" in named) is not noise
    assert ("what the noise was added to" in named) is noise
    assert "what judged the release" in named
    assert "who approved it" not in named


BEFORE: dict[str, Callable[[Any], Any]] = {
    "time": lambda said: said["change"].update(created="2020-01-01T00:00:00+00:00"),
    "bound": lambda said: said["change"].update(guarantee="lip:0.1"),
    "records": lambda said: said["change"].update(records=said["change"]["records"] + 1),
    "columns": lambda said: said["change"].update(columns=["kids", "married"]),
    "the same rows": lambda said: said["change"].update(rows="the same rows"),
    "what was kept": lambda said: said["kept"][0].update(share=0.5),
}


@pytest.mark.parametrize("change", BEFORE.values(), ids=BEFORE)
def test_what_is_said_of_the_version_beside_it(later: ReleaseFolder, change: Callable[[Any], Any]) -> None:
    report = json.loads(later.numbers.read_bytes())
    assert passes(later, report)
    change(report)
    assert not passes(later, report)


def test_without_that_version_only_its_number_is_checked(later: ReleaseFolder, tmp_path: Path) -> None:
    folder = copied(later, tmp_path / later.root.name)
    report = json.loads(folder.numbers.read_bytes())
    BEFORE["records"](report)
    assert passes(folder, report)
    BEFORE["columns"](report)
    assert not passes(folder, report)


def test_only_another_snapshot_raises_the_second_number(later: ReleaseFolder) -> None:
    told = PublicReport.from_json(later.numbers.read_bytes(), "report.json")
    assert told.change is not None
    assert told.change.new_data
    assert list(history._number_complaints(told, told.change)) == []
    patched = told.model_copy(update={"version": "1.0.1"})
    assert any("new_data" in said for said in history._number_complaints(patched, told.change))
    older = told.model_copy(update={"version": "0.9.0"})
    assert any("no version before" in said for said in history._number_complaints(older, told.change))


@pytest.mark.parametrize("later", [WITHOUT_NOISE], ids=["none"], indirect=True)
def test_the_second_observer_is_not_left_out(later: ReleaseFolder, tmp_path: Path) -> None:
    """Of a first version, and beside a version that tells of it; where people have several rows it is not there."""

    def without_movers(folder: ReleaseFolder) -> Any:
        report = json.loads(folder.numbers.read_bytes())
        history = report["figures"]["history"]
        kept = [one for one in history["observers"] if one["observer"] == "transitions"]
        assert 0 < len(kept) < len(history["observers"])
        history["observers"] = kept
        return report

    assert not passes(later, without_movers(later))
    first = ReleaseFolder(copied(later, tmp_path / "1.1.0").root.parent / "1.0.0")
    shutil.copytree(later.root.parent / "1.0.0", first.root)
    assert passes(first, json.loads(first.numbers.read_bytes()))
    assert not passes(first, without_movers(first))
    report = json.loads(later.numbers.read_bytes())
    told = PublicReport.from_json(dump({**report, "unit": ["household"]}), "report.json")
    assert any("are told of" in said for said in stated_complaints(told, 1.0, Fraction(1, 100)))


@pytest.mark.parametrize("later", [FOLLOWED], ids=["noise"], indirect=True)
def test_what_versions_spend_adds_up(later: ReleaseFolder) -> None:
    """New data have new noise, which is paid for beside what was spent before; another series may spend more."""
    report = json.loads(later.numbers.read_bytes())
    assert report["change"]["new_data"]
    assert report["frequencies"]["spent"] == 2 * report["frequencies"]["epsilon"]
    assert any("and what they spent" in said for said in untold(report, None))
    report["frequencies"]["spent"] = 3.9
    told = PublicReport.from_json(dump(report), "report.json")
    before = PublicReport.from_json(ReleaseFolder(later.root.parent / "1.0.0").numbers.read_bytes(), "report.json")
    assert told.change is not None
    assert any("frequencies.spent" in said for said in history._report_complaints(told, told.change, before, False))


TABLES: dict[str, Callable[[Any], Any]] = {
    "no changes": lambda said: said.update(changes=None),
    "changes since a version less": lambda said: said["changes"]["since"].pop(),
    "an epsilon that nothing costs": lambda said: said.update(epsilon=2.1),
    "changes since a version more": lambda said: said["changes"]["since"].append(
        said["changes"]["since"][0] | {"version": "another/1.0.0"}
    ),
}


@pytest.mark.parametrize("later", [FOLLOWED], ids=["noise"], indirect=True)
@pytest.mark.parametrize("change", TABLES.values(), ids=TABLES)
def test_public_counts_have_the_changes_since_every_version(
    later: ReleaseFolder, tmp_path: Path, change: Callable[[Any], Any]
) -> None:
    folder = copied(later, tmp_path / later.root.name)
    counts = json.loads(folder.frequencies.read_bytes())
    change(counts)
    folder.frequencies.write_bytes(dump(counts))
    (found,) = verified(folder, ["protected frequencies"], Told(public=True))
    told = found.detail
    assert found.failed
    assert "since every version" in told or "more than its tables cost" in told or "is since no version" in told


def lifts(report: Any) -> list[Any]:
    """The cells of the table of lifts that are told."""
    table = report["lifts"]["table"]
    return [cell for row in table["rows"] for cell in row["cells"] if cell["lift"]]


@pytest.mark.parametrize("later", [WITHOUT_NOISE], ids=["none"], indirect=True)
def test_a_lift_is_told_in_its_step_and_not_left_out(later: ReleaseFolder) -> None:
    count = len(lifts(json.loads(later.numbers.read_bytes())))
    assert count > 3
    for place in range(count):
        for change in (lambda lift: round(lift + 0.0005, 6), lambda _: None):
            report = json.loads(later.numbers.read_bytes())
            cell = lifts(report)[place]
            cell["lift"] = change(cell["lift"])
            assert not passes(later, report), cell


OF_LEVELS: dict[str, Callable[[Any], Any]] = {
    "a ratio off the grid": lambda said: said["lifts"]["table"]["rows"][0].update(ratio=off_grid(said)),
    "a plain level of a step more": lambda said: said["estimation"].update(plain_level=1.1),
    "a factor of a digit more": lambda said: said["figures"].update(level_factor=2.73),
    "no factor": lambda said: said["figures"].update(level_factor=None),
}


def off_grid(report: Any) -> float:
    """A ratio of three digits beside the one of two that is stated."""
    return round(float(report["lifts"]["table"]["rows"][0]["ratio"]) + 0.05, 6)


@pytest.mark.parametrize("later", [WITHOUT_NOISE], ids=["none"], indirect=True)
@pytest.mark.parametrize("change", OF_LEVELS.values(), ids=OF_LEVELS)
def test_levels_and_ratios_are_rounded_up_in_one_way(later: ReleaseFolder, change: Callable[[Any], Any]) -> None:
    report = json.loads(later.numbers.read_bytes())
    assert passes(later, report)
    change(report)
    assert not passes(later, report)


@pytest.mark.parametrize("part", ["absent", "contact", "licence"])
def test_a_key_that_may_be_left_out_is_there(later: ReleaseFolder, part: str) -> None:
    """What is nothing is said to be nothing: to say it, or not to say it, would be a message."""
    report = json.loads(later.numbers.read_bytes())
    of = report if report[part] is None else report[part]
    assert isinstance(of, dict)
    missing = part if of is report else next(key for key, value in of.items() if value is None)
    del of[missing]
    assert not passes(later, report)


@pytest.mark.parametrize("later", [WITHOUT_NOISE], ids=["none"], indirect=True)
def test_what_lifts_were_before_they_were_rounded_is_named(later: ReleaseFolder) -> None:
    assert "what shares and lifts, and figures that are made of these, were before they were rounded" in untold(
        json.loads(later.numbers.read_bytes()), 0.01
    )


def test_when_it_was_published_is_named(later: ReleaseFolder) -> None:
    """A time that all files state alike is the publisher's word, between the version before and now."""
    named = untold(json.loads(later.numbers.read_bytes()), None)
    assert any(said.startswith("when it was published") for said in named)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    """Whole records with the secret among them, without noise."""
    columns = ["income", "education", "relationship", "race", "workclass", "occupation"]
    text = (
        SPEC.replace('["marital-status"]', '["income"]')
        .replace('["relationship"]', json.dumps(columns))
        .replace('"lip:1.0"', '"attribute:1.0"')
        .replace("[source]", 'mechanism = "invariant"\n\n[source]')
    )
    return make_release(make_project(tmp_path_factory.mktemp("whole"), text, adult_rows()))


OF_WHOLE: dict[str, Callable[[Any], Any]] = {
    "a column that there is not": lambda said: said["known"][0].update(column="age"),
    "an observer less": lambda said: said["known"].pop(),
    "observers in another order": lambda said: said["known"].reverse(),
    "a level below the bound": lambda said: said["known"][0].update(level=0.5),
    "a level of more digits": lambda said: said["known"][0].update(level=said["known"][0]["level"] + 0.013),
    "a share between two steps": lambda said: said["known"][0].update(outside=said["known"][0]["outside"] + 0.0005),
    "nobody outside": lambda said: said["known"][-1].update(outside=0.0),
    "a cell of another column": lambda said: said["off"].update(column="age"),
    "a cell of another secret": lambda said: said["off"].update(secret="Jane Doe"),
    "a cell of another value": lambda said: said["off"].update(value="Jane Doe"),
    "records of many digits": lambda said: said["off"].update(records=said["off"]["records"] + 0.00013),
}


@pytest.mark.parametrize("change", OF_WHOLE.values(), ids=OF_WHOLE)
def test_what_observers_of_one_column_conclude_fits_together(
    whole: ReleaseFolder, change: Callable[[Any], Any]
) -> None:
    report = json.loads(whole.numbers.read_bytes())
    assert passes(whole, report)
    change(report["unchanged"])
    assert not passes(whole, report)


def test_what_observers_of_one_column_conclude_is_named(whole: ReleaseFolder) -> None:
    named = untold(json.loads(whole.numbers.read_bytes()), None)
    assert any("who know one column of a whole record" in said for said in named)


def test_a_ratio_is_not_left_out(whole: ReleaseFolder) -> None:
    report = json.loads(whole.numbers.read_bytes())
    report["lifts"]["table"]["rows"][0]["ratio"] = None
    assert not passes(whole, report)
