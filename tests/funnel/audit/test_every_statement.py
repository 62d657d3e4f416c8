"""Every statement of a public report: what is changed is noticed, or is named as what public files do not tell.

The owner of the key makes all else fit: pages, digests and signature.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
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
from tests.funnel.audit.statements import changes, generic, passes, places, unnoticed
from tests.projects import SPEC, WEIGHTED, adult_rows, make_project
from tests.releases import make_release
from tests.waves import FOLLOWED, wave

Change = Callable[[Any], Any]
Release = Callable[[str], ReleaseFolder]
WHOLE = (
    SPEC.replace('["marital-status"]', '["income"]')
    .replace('["relationship"]', '["income", "education", "relationship", "race", "workclass", "occupation"]')
    .replace('"lip:1.0"', '"attribute:1.0"')
    .replace("[source]", 'mechanism = "invariant"\n\n[source]')
)
ANY_COLUMN = WHOLE.replace('"attribute:1.0"', '"attribute:1.0 & srlip:4.0"').replace(
    "[source]", '[groups]\nknown = "single"\nmin_records = 100\n\n[source]', 1
)
SECRET = (
    SPEC.replace('["marital-status"]', '["income"]')
    .replace('["relationship"]', '["income", "sex"]')
    .replace('"lip:1.0"', '"attribute:1.0"')
    .replace('frequencies.protection = "none"', "frequencies.epsilon = 2.0")
    .replace("[source]", 'mechanism = "invariant"\n\n[source]')
    + '\n[categories]\nincome = ["<=50K", ">50K"]\nsex = ["Female", "Male"]\n'
)
NOISY_WEIGHTS = WEIGHTED.replace('frequencies.protection = "none"', "frequencies.epsilon = 2.0")
NOISY_WEIGHTS += '\n[categories]\nincome = ["<=50K", ">50K"]\nsex = ["Female", "Male"]\n'
DONORS = (
    FOLLOWED.replace("epsilon = 2.0", 'protection = "none"')
    .replace('name = "grr"', 'name = "invariant"')
    .replace('publish = ["kids"]', 'publish = "auto"')
    .replace("[source]", "[groups]\nmin_records = 100\n\n[source]", 1)
) + '[disclosure]\non_breach = "report"\n'


def two_versions(folder: Path, text: str, people: int = 600) -> ReleaseFolder:
    """The second version of a series about the same people."""
    (folder / "followed.toml").write_text(text, encoding="utf-8")
    for year in (1984, 1985):
        pq.write_table(wave(year, people), folder / "people.parquet")
        told, _ = run_release(ReleaseSpec.load(folder / "followed.toml"), False, False)
    return ReleaseFolder(Path(told["folder"]))


MADE: dict[str, Callable[[Path], ReleaseFolder]] = {
    "noise": lambda folder: two_versions(folder, FOLLOWED),
    "none": lambda folder: two_versions(folder, FOLLOWED.replace("epsilon = 2.0", 'protection = "none"')),
    "whole": lambda folder: make_release(make_project(folder, WHOLE, adult_rows())),
    "any column": lambda folder: make_release(make_project(folder, ANY_COLUMN, adult_rows(0, 4000))),
    "secret": lambda folder: make_release(make_project(folder, SECRET, adult_rows())),
    "donors": lambda folder: two_versions(folder, DONORS, 1200),
    "weights": lambda folder: make_release(make_project(folder, WEIGHTED, adult_rows())),
    "noisy weights": lambda folder: make_release(make_project(folder, NOISY_WEIGHTS, adult_rows())),
}
LATER = ("noise", "none")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory, noisy: ReleaseFolder) -> Release:
    """A first version under noise, later ones with noise and without, and whole records with their secret without."""
    return cache(lambda kind: noisy if kind == "first" else MADE[kind](tmp_path_factory.mktemp(kind)))


def report_of(folder: ReleaseFolder) -> Any:
    return json.loads(folder.numbers.read_bytes())


@pytest.mark.parametrize("kind", ["first", *LATER])
def test_no_statement_can_be_changed_unnoticed(release: Release, tmp_path: Path, kind: str) -> None:
    folder = copied(release(kind), tmp_path / release(kind).root.name)
    assert passes(folder, report_of(folder))
    assert list(unnoticed(folder)) == []


@pytest.mark.parametrize("kind", ["any column", "secret", "donors", "weights", "noisy weights"])
def test_no_statement_of_other_forms_can_be_changed_unnoticed(release: Release, kind: str) -> None:
    """Whole records, a published secret and survey weights, with noise and without: what only these reports have."""
    told = (one for other in ("first", "none") for one in places(report_of(release(other))))
    others = {generic(place) for place, value in told if changes(value)}
    assert passes(release(kind), report_of(release(kind)))
    assert list(unnoticed(release(kind), tried_elsewhere=others)) == []


def at(*path: str | int, to: Change) -> Change:
    """Another value at a place."""

    def change(said: Any) -> None:
        for key in path[:-1]:
            said = said[key]
        said[path[-1]] = to(said[path[-1]])

    return change


def half(value: float) -> float:
    return round(value / 2, 12)


def more(by: float) -> Callable[[float], float]:
    return lambda value: round(value + by, 6)


BEFORE: Any = {
    "version": "0.9.0",
    "created": "2026-01-01T00:00:00+00:00",
    "guarantee": "lip:1.0",
    "columns": ["relationship"],
    "records": 3000,
    "rows": "a fresh draw",
    "new_data": True,
    "withdrawn": [],
}
FIRST: dict[str, Change] = {
    "versions without noise before": at("frequencies", "unprotected", to=lambda number: number + 1),
    "the people": at("people", to=lambda _: None),
    "whether it covers versions": at("frequencies", "covers_versions", to=lambda _: True),
    "a mechanism that was not chosen": at("compared", to=lambda rows: [*rows, {**rows[0], "mechanism": "grr"}]),
    "nothing that was checked": at("judged", to=lambda _: []),
    "a check less": at("judged", to=lambda rows: rows[:-1]),
    "a check twice": at("judged", to=lambda rows: [*rows, rows[0]]),
    "no check of the source": at("judged", to=lambda rows: rows[[one["name"] for one in rows].index("files") :]),
    "another sentence on a check": at("judged", -1, "description", to=lambda _: "all is well"),
    "the licence": at("licence", "name", to=lambda _: "CC0-1.0"),
    "the contact": at("contact", "name", to=lambda _: "Jane Doe"),
    "a version before": at("change", to=lambda _: BEFORE),
}


def share_alone(report: Any) -> None:
    """Of what the version alone would keep, in every place that tells it, between two steps."""
    share = round(report["figures"]["history"]["share_alone"] - 0.0013, 6)
    for part in (report["figures"]["history"], report["kept"][-1]):
        part["share_alone"] = share
    report["compared"][0]["share"] = share


BESIDE: dict[str, Change] = {
    "what it would keep alone between two steps": share_alone,
    "time": at("change", "created", to=lambda _: "2020-01-01T00:00:00+00:00"),
    "bound": at("change", "guarantee", to=lambda _: "lip:0.1"),
    "records": at("change", "records", to=lambda number: number + 1),
    "columns": at("change", "columns", to=lambda _: ["kids", "married"]),
    "the same rows": at("change", "rows", to=lambda _: "the same rows"),
    "what was kept": at("kept", 0, "share", to=lambda _: 0.5),
}
OBSERVERS = ("figures", "history", "observers")
RATIO = ("lifts", "table", "rows", 0, "ratio")
ERRORS = ("unchanged", "whole", "estimated")
WITHOUT_NOISE: dict[str, Change] = {
    "a level of all versions below the bound": at(*OBSERVERS, 1, "level", to=half),
    "a level of everybody below the bound": at(*OBSERVERS, 1, "level_of_all", to=half),
    "fewer people outside, of one observer": at(*OBSERVERS, 1, "outside_at_most", to=half),
    "nobody outside, of one observer": at(*OBSERVERS, 1, "outside_at_most", to=lambda _: 0.0),
    "a level above the bound that holds": at(*OBSERVERS, 1, "level", to=more(0.1)),
    "what is bounded": at(*OBSERVERS, 0, "bounded", to=lambda known: not known),
    "an observer less for one secret": at(*OBSERVERS, to=lambda rows: rows[:-1]),
    "observers in another order": at(*OBSERVERS, to=lambda rows: rows[::-1]),
    "an observer twice": at(*OBSERVERS, to=lambda rows: [*rows, rows[0]]),
    "a time before that of the version before": at("created", to=lambda _: "2026-03-01T12:00:00+00:00"),
    "information without its last digit": at("compared", 0, "utility", to=more(0.001)),
    "no information of a mechanism": at("compared", 0, "utility", to=lambda _: None),
    "guesses between two steps": at("figures", "prior_guess_accuracy", to=more(0.001)),
    "a time that hides digits": at("change", "created", to=lambda time: time.replace("+", ".123456+")),
    "a guarantee that there is not": at("change", "guarantee", to=lambda text: f"{text}x"),
    "a version that there is not": at("kept", 0, "version", to=lambda text: f"{text}x"),
    "versions in another order": at("kept", to=lambda rows: rows[::-1]),
    "left out in other words": at("source", "dropped", to=lambda _: "Jane Doe"),
    # Levels and ratios are rounded up in one way: to three digits beside the two of a ratio.
    "a ratio off the grid": at(*RATIO, to=lambda ratio: round(float(ratio) + 0.05, 6)),
    "a plain level of a step more": at("estimation", "plain_level", to=lambda _: 1.1),
    "a factor of a digit more": at("figures", "level_factor", to=lambda _: 2.73),
    "no factor": at("figures", "level_factor", to=lambda _: None),
}
OF_WHOLE: dict[str, Change] = {
    "a column that there is not": at("unchanged", "known", 0, "columns", to=lambda _: ["age"]),
    "an observer less": at("unchanged", "known", to=lambda rows: rows[:-1]),
    "observers in another order": at("unchanged", "known", to=lambda rows: rows[::-1]),
    "a level below the bound": at("unchanged", "known", 0, "level", to=lambda _: 0.5),
    "a level of more digits": at("unchanged", "known", 0, "level", to=more(0.013)),
    "a share between two steps": at("unchanged", "known", 0, "outside", to=more(0.0005)),
    "nobody outside": at("unchanged", "known", -1, "outside", to=lambda _: 0.0),
    "a cell of another column": at("unchanged", "off", "column", to=lambda _: "age"),
    "a cell of another secret": at("unchanged", "off", "secret", to=lambda _: "Jane Doe"),
    "a cell of another value": at("unchanged", "off", "value", to=lambda _: "Jane Doe"),
    "records of many digits": at("unchanged", "off", "records", to=more(0.00013)),
    "a ratio left out": at(*RATIO, to=lambda _: None),
    "a plain level below that of a ratio": at("estimation", "plain_level", to=more(-0.1)),
    "no observers of columns": at("unchanged", "known", to=lambda _: []),
    "half an error of a value": at(*ERRORS, 1, "rows", 0, "error", to=half),
    "an error of a value of more digits": at(*ERRORS, 1, "rows", 0, "error", to=more(0.000013)),
    "an error left out": at(*ERRORS, 1, "rows", 0, "error", to=lambda _: None),
    "errors of a value less": at(*ERRORS, 1, "rows", to=lambda rows: rows[:-1]),
    "errors of values in another order": at(*ERRORS, 1, "rows", to=lambda rows: rows[::-1]),
    "errors of a column less": at(*ERRORS, to=lambda tables: tables[:-1]),
    "errors of the secret less": at(*ERRORS, to=lambda tables: tables[1:]),
    "a value that is told only in sum": at(*ERRORS, 1, "sums", to=lambda _: [["Bachelors", "HS-grad"]]),
}
FIRST_WEIGHTED = ("weighted", "columns", 0)
OF_WEIGHTS: dict[str, Change] = {
    "a value that there is not": at(*FIRST_WEIGHTED, "rows", 0, "label", to=lambda text: f"{text}x"),
    "a value less": at(*FIRST_WEIGHTED, "rows", to=lambda rows: rows[1:]),
    "a value twice": at(*FIRST_WEIGHTED, "rows", to=lambda rows: [*rows, rows[0]]),
    "values in another order": at(*FIRST_WEIGHTED, "rows", to=lambda rows: rows[::-1]),
    "more values": at(*FIRST_WEIGHTED, "total", to=lambda number: number + 1),
    "a share of a tenth more": at(*FIRST_WEIGHTED, "rows", 0, "share", to=more(0.1)),
    "a weighted share of a tenth more": at(*FIRST_WEIGHTED, "rows", 0, "weighted", to=more(0.1)),
    "a weighted share between two steps": at(*FIRST_WEIGHTED, "rows", 0, "weighted", to=more(0.0013)),
    "a finer step": at("weighted", "step", to=half),
    "no step": at("weighted", "step", to=lambda _: 0.0),
    "a column twice": at("weighted", "columns", to=lambda columns: [*columns, columns[0]]),
}
CHANGES: dict[str, dict[str, Change]] = {
    "first": FIRST,
    "noise": BESIDE,
    "none": {**BESIDE, **WITHOUT_NOISE},
    "whole": OF_WHOLE,
    "weights": OF_WEIGHTS,
    "noisy weights": OF_WEIGHTS,
}


@pytest.mark.parametrize("kind", CHANGES)
def test_what_cannot_be_is_noticed(release: Release, kind: str) -> None:
    """Beside what is tried statement by statement; of later versions the one before is there."""
    folder = release(kind)
    assert passes(folder, report_of(folder))
    for name, change in CHANGES[kind].items():
        report = report_of(folder)
        change(report)
        assert report != report_of(folder), name
        assert not passes(folder, report), name


CLASSES: dict[str, Change] = {
    "observers of two columns": at("at_once", to=lambda _: 2),
    "observers of named columns": at("at_once", to=lambda _: 0),
    "nobody's counts": at("people", to=lambda _: "the same"),
    "points for a secret that there is not": at("scales", 0, "secret", 0, to=lambda text: f"{text}x"),
    "points for a value that there is not": at("scales", 0, "terms", -1, "values", 0, to=lambda text: f"{text}x"),
}


@pytest.mark.parametrize("name", [*CLASSES, "counts of others"])
def test_what_cannot_be_of_classes_is_noticed(release: Release, tmp_path: Path, name: str) -> None:
    """The report says the same; whose counts chose the questions is nothing that public files tell."""
    folder = copied(release("any column"), tmp_path / release("any column").root.name)
    classes, report = json.loads(folder.classes.read_bytes()), report_of(folder)
    CLASSES.get(name, at("people", to=lambda _: "different"))(classes)
    report["unchanged"]["at_once"] = classes["at_once"]
    folder.classes.write_bytes(dump(classes))
    folder.numbers.write_bytes(dump(report))
    found = list(verified(folder, ("classes", "secrets", "unchanged", "whole records"), Told(public=True)))
    assert all(one.passed for one in found) is (name not in CLASSES)
    assert name in CLASSES or "could not be checked" in found[0].detail


def test_a_report_without_what_its_page_tells_fails_the_check_of_the_page(release: Release, tmp_path: Path) -> None:
    folder = ReleaseFolder(tmp_path / release("none").root.name)
    shutil.copytree(release("none").root, folder.root)
    report = report_of(folder)
    report["example"] = None
    folder.numbers.write_bytes(dump(report))
    (found,) = verified(folder, ("report page",), Told(public=True))
    assert found.failed
    assert "report.html.jinja" not in found.detail
    assert "lack what the page tells" in found.detail


def test_classes_of_later_versions_are_those_of_the_one_before(release: Release, tmp_path: Path) -> None:
    series = tmp_path / "panel"
    shutil.copytree(release("donors").root.parent, series, symlinks=True)
    folder = ReleaseFolder(series / release("donors").root.name)
    assert next(verified(folder, ("version before",), Told(public=True))).passed
    classes = json.loads(folder.classes.read_bytes())
    CLASSES["points for a secret that there is not"](classes)
    folder.classes.write_bytes(dump(classes))
    found = list(verified(folder, ("version before", "classes"), Told(public=True)))
    assert [one.name for one in found if one.failed] == ["version before"]
    assert "values that the first version had" in found[-1].detail


UNTOLD: dict[str, Change] = {
    "draws before": at("earlier_releases", to=lambda number: number + 1),
    "what was recoded": at("recodings", 0, to=lambda _: "nothing was recoded"),
    "the source": at("source", "title", to=lambda _: "a census"),
}


def test_of_what_no_public_file_says_again_all_passes(release: Release) -> None:
    """The check says that this could not be checked."""
    for name, change in UNTOLD.items():
        report = report_of(release("first"))
        change(report)
        assert passes(release("first"), report), name


def floats(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places of all numbers that are no whole ones."""
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(part, float):
            yield (*place, key)
        elif isinstance(part, dict | list):
            yield from floats(part, (*place, key))


def test_no_figure_has_hidden_digits(release: Release) -> None:
    """Of figures that do not follow from public files too, since these counts are not public."""
    folder, passed = release("none"), []
    tried = [place for place in floats(report_of(folder))]
    for place in tried:
        report = report_of(folder)
        at(*place, to=lambda value: value * (1 + 1e-9))(report)
        passed += [place] if report != report_of(folder) and passes(folder, report, ("report figures",)) else []
    assert len(tried) > 30
    assert passed == []


def test_a_bound_that_is_a_logarithm_can_be_released(tmp_path: Path) -> None:
    text = SPEC.replace("lip:1.0", "alip:1.098612289,0.693147181") + '[mechanism]\nname = "grr"'
    assert make_release(make_project(tmp_path, text)).numbers.is_file()


@pytest.mark.parametrize("kind", LATER)
def test_what_is_not_told_is_named(release: Release, kind: str) -> None:
    named = untold(report_of(release(kind)), 0.01)
    assert "how far the probabilities of the protocol are off" in named
    assert ("levels over the confidence set" in named) is (kind == "none")
    assert ("what the noise was added to" in named) is (kind == "noise")
    # No other public file follows from these tables, nor from the protocol that a version alone would have.
    tables = "noisy counts of changes, rows, means and departures, but for what they have in common"
    assert (tables in named) is (kind == "noise")
    assert "how much a version alone would keep" in named
    rounded = "what shares and lifts, and figures that are made of these, were before they were rounded"
    assert (rounded in named) is (kind == "none")
    assert "what judged the release" in named
    assert "who approved it" not in named
    # A time that all files state alike is the publisher's word, between the version before and now.
    assert any(said.startswith("when it was published") for said in named)


def test_what_observers_of_one_column_conclude_is_named(release: Release) -> None:
    named = untold(report_of(release("whole")), None)
    assert "how much a version alone would keep" not in named
    assert any("who know one column of a whole record" in said for said in named)


@pytest.mark.parametrize("kind", LATER)
def test_without_that_version_only_its_number_is_checked(release: Release, tmp_path: Path, kind: str) -> None:
    folder = copied(release(kind), tmp_path / release(kind).root.name)
    report = report_of(folder)
    BESIDE["records"](report)
    assert passes(folder, report)
    BESIDE["columns"](report)
    assert not passes(folder, report)


@pytest.mark.parametrize("kind", LATER)
def test_only_another_snapshot_raises_the_second_number(release: Release, kind: str) -> None:
    told = PublicReport.read(release(kind).numbers)
    assert told.change is not None
    assert told.change.new_data
    assert list(history._number_complaints(told, told.change)) == []
    patched = told.model_copy(update={"version": "1.0.1"})
    assert any("new_data" in said for said in history._number_complaints(patched, told.change))
    older = told.model_copy(update={"version": "0.9.0"})
    assert any("no version before" in said for said in history._number_complaints(older, told.change))


def test_the_second_observer_is_not_left_out(release: Release, tmp_path: Path) -> None:
    """Of a first version, and beside a version that tells of it; where people have several rows it is not there."""

    def without_movers(folder: ReleaseFolder) -> Any:
        report = report_of(folder)
        history = report["figures"]["history"]
        kept = [one for one in history["observers"] if one["observer"] == "transitions"]
        assert 0 < len(kept) < len(history["observers"])
        history["observers"] = kept
        return report

    later = release("none")
    assert not passes(later, without_movers(later))
    first = ReleaseFolder(copied(later, tmp_path / "1.1.0").root.parent / "1.0.0")
    shutil.copytree(later.root.parent / "1.0.0", first.root)
    assert passes(first, report_of(first))
    assert not passes(first, without_movers(first))
    told = PublicReport.from_json(dump({**report_of(later), "unit": ["household"]}), "report.json")
    assert any("are told of" in said for said in stated_complaints(told, 1.0, Fraction(1, 100)))


def test_what_versions_spend_adds_up(release: Release) -> None:
    """New data have new noise, which is paid for beside what was spent before; another series may spend more."""
    report = report_of(release("noise"))
    assert report["change"]["new_data"]
    assert report["frequencies"]["spent"] == 2 * report["frequencies"]["epsilon"]
    assert any("and what they spent" in said for said in untold(report, None))
    report["frequencies"]["spent"] = 3.9
    told = PublicReport.from_json(dump(report), "report.json")
    before = PublicReport.read(ReleaseFolder(release("noise").root.parent / "1.0.0").numbers)
    assert told.change is not None
    assert any("frequencies.spent" in said for said in history._report_complaints(told, told.change, before, False))


TABLES: dict[str, Change] = {
    "no changes": lambda said: said.update(changes=None),
    "changes since a version less": lambda said: said["changes"]["since"].pop(),
    "an epsilon that nothing costs": lambda said: said.update(epsilon=2.1),
    "changes since a version more": lambda said: said["changes"]["since"].append(
        said["changes"]["since"][0] | {"version": "another/1.0.0"}
    ),
}


@pytest.mark.parametrize("change", TABLES.values(), ids=TABLES)
def test_public_counts_have_the_changes_since_every_version(release: Release, tmp_path: Path, change: Change) -> None:
    folder = copied(release("noise"), tmp_path / release("noise").root.name)
    counts = json.loads(folder.frequencies.read_bytes())
    change(counts)
    folder.frequencies.write_bytes(dump(counts))
    (found,) = verified(folder, ["protected frequencies"], Told(public=True))
    told = found.detail
    assert found.failed
    assert "since every version" in told or "more than its tables cost" in told or "is since no version" in told


def test_a_lift_is_told_in_its_step_and_not_left_out(release: Release) -> None:
    def lifts(report: Any) -> list[Any]:
        return [cell for row in report["lifts"]["table"]["rows"] for cell in row["cells"] if cell["lift"]]

    folder = release("none")
    count = len(lifts(report_of(folder)))
    assert count > 3
    for place in range(count):
        for change in (more(0.0005), lambda _: None):
            report = report_of(folder)
            at("lift", to=change)(lifts(report)[place])
            assert not passes(folder, report), place


@pytest.mark.parametrize("kind", LATER)
@pytest.mark.parametrize("part", ["absent", "contact", "licence"])
def test_a_key_that_may_be_left_out_is_there(release: Release, kind: str, part: str) -> None:
    """What is nothing is said to be nothing: to say it, or not to say it, would be a message."""
    report = report_of(release(kind))
    of = report if report[part] is None else report[part]
    assert isinstance(of, dict)
    missing = part if of is report else next(key for key, value in of.items() if value is None)
    del of[missing]
    assert not passes(release(kind), report)
