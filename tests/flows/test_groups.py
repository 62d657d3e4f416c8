"""Grouped releases, whole: drawn once, unchanged after, taken over, kept by record keys, refused in one sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from frictionless import Package

import funnel
from funnel.audit.check import State, overall
from funnel.cli import main
from funnel.errors import DataError, FunnelError, ReleaseRefused, SpecError
from funnel.pipeline.flows.way import go
from funnel.pipeline.tasks import grouped
from funnel.release.grouped_draws import GroupedDraws
from funnel.release.grouped_findings import GroupedFindings
from funnel.release.grouped_protocol_document import GroupedProtocolDocument
from funnel.release.layout import ReleaseFolder
from funnel.release.public.rounding import share_step
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.projects import SPEC, adult_rows, make_project, tree

GROUPED = SPEC.replace('publish = ["relationship"]', 'publish = [["sex"], ["relationship"], ["race"]]').replace(
    'secret = ["marital-status"]', 'secret = ["income"]'
)


def table(rows: int = 1500) -> pa.Table:
    found = adult_rows(0, rows).select(["income", "sex", "race", "relationship"])
    return found.append_column("number", pa.array(range(rows)))


def project(folder: Path, spec: str = GROUPED, rows: int = 1500) -> Path:
    return make_project(folder, spec, table(rows))


def release(path: Path, again: bool = False) -> dict[str, object]:
    return go(ReleaseSpec.load(path), again, False)[0]


def latest(path: Path) -> ReleaseFolder:
    return ReleaseFolder((path.parent / "releases" / "people" / "latest").resolve())


def test_a_grouped_release_is_made_once_and_its_rows_are_taken_over(tmp_path: Path) -> None:
    path = project(tmp_path, GROUPED + "[output]\ncsv = true\n")
    told = release(path)
    assert (told["status"], told["version"], told["mechanism"]) == ("published", "1.0.0", "groups")
    first = latest(path)
    names = {str(file.relative_to(first.root)) for file in first.root.rglob("*") if file.is_file()}
    assert names >= {
        *(
            "data/records.parquet",
            "data/records.csv",
            "protocol.json",
            "channels.parquet",
            "datapackage.json",
        ),
        *("README.md", "CITATION.cff", "dcat.jsonld", "protocol.csv", "report.html", "report.json"),
        *("signature.json", "audit/records.parquet", "audit/draws.parquet", "audit/draws.json", "audit/words.json"),
        *("audit/findings.json", "audit/verdict.json", "audit/release.json", "audit/spec.toml"),
    }
    assert "frequencies.json" not in names
    document = GroupedProtocolDocument.read(first.protocol)
    released = pq.read_table(first.data)
    assert released.num_rows == 1500
    assert released.column_names == ["sex", "relationship", "race"] == list(document.columns)
    findings = GroupedFindings.read(first.findings)
    assert findings.holds
    assert findings.level <= 1.0 == document.guarantee.level
    # Nothing is told more finely than other public shares are.
    step = share_step(1500)
    for figure in (document.utility.share, *(f for one in document.told for f in (one.plain, one.kept))):
        assert figure == pytest.approx(round(figure / step) * step, abs=1e-12)
    assert GroupedDraws.read(first).n == 1500

    # Both tables and the package are what the standard asks for.
    report = Package(str(first.package)).validate()
    assert report.flatten(["name", "type", "message"]) == []
    assert [(task.place, task.stats["rows"]) for task in report.tasks] == [
        ("data/records.csv", 1500),
        ("data/records.parquet", 1500),
    ]
    # What takes one channel for all columns says that there is none.
    with pytest.raises(DataError, match=r"published in groups, .* channels\.parquet has the probabilities"):
        funnel.draw_within(first.root, "race")
    assert CliRunner().invoke(main, ["audit", str(first.root)]).exit_code == 0

    before = tree(first.root)
    assert release(path)["status"] == "unchanged"
    runner = CliRunner().invoke(main, ["release", str(path), "--json"])
    assert json.loads(runner.stdout)["status"] == "unchanged"
    # Another licence is another version of the same rows.
    path.write_text(path.read_text().replace("CC-BY-4.0", "CC0-1.0"))
    told = release(path)
    assert (told["version"], told["drawn"], told["fresh"]) == ("1.0.1", False, False)
    assert latest(path).data.read_bytes() == first.data.read_bytes()
    assert tree(first.root) == before
    told = release(path, again=True)
    assert (told["version"], told["drawn"], told["fresh"]) == ("1.0.2", True, True)
    assert latest(path).data.read_bytes() != first.data.read_bytes()


def test_records_keep_their_answers_by_their_key(tmp_path: Path) -> None:
    keyed = GROUPED.replace("[source]", 'record_key = ["number"]\n[source]') + "[output]\nshuffle = false\n"
    path = project(tmp_path, keyed)
    release(path)
    first = pq.read_table(latest(path).data)
    told = release(path, again=True)
    assert (told["drawn"], told["fresh"]) == (True, False)
    assert pq.read_table(latest(path).data).equals(first)
    assert release(path)["status"] == "unchanged"


def test_a_flat_list_becomes_groups_where_it_has_too_many_combinations(tmp_path: Path) -> None:
    flat = GROUPED.replace('[["sex"], ["relationship"], ["race"]]', '["sex", "relationship", "race"]')
    path = project(tmp_path, flat + "[limits]\nmax_inputs = 20\n")
    told = release(path)
    assert told["mechanism"] == "groups"
    document = GroupedProtocolDocument.read(latest(path).protocol)
    assert document.choice == "order"
    assert [column for stage in document.stages for column in stage.columns] == ["sex", "relationship", "race"]
    # What groups cannot do is said beside what would make the list smaller.
    average = flat.replace('"lip:1.0"', '"mi:0.5"')
    path = project(tmp_path / "other", average + "[limits]\nmax_inputs = 5\n")
    with pytest.raises(
        DataError, match=r"max_inputs in \[limits\]; .* or publish them in groups, but groups of columns cannot keep mi"
    ):
        release(path)


def test_all_columns_are_published_where_the_spec_says_auto(tmp_path: Path) -> None:
    auto = GROUPED.replace('[["sex"], ["relationship"], ["race"]]', '"auto"')
    path = project(tmp_path, auto + '[groups]\nwithout = ["number"]\n')
    assert release(path)["mechanism"] == "groups"
    document = GroupedProtocolDocument.read(latest(path).protocol)
    assert (document.choice, document.columns) == ("auto", ("sex", "race", "relationship"))
    assert overall(recheck(latest(path))) == State.PASSED
    assert release(path)["status"] == "unchanged"
    # Without it every value of the number would be one person.
    path = project(tmp_path / "other", auto)
    with pytest.raises(FunnelError, match="number"):
        release(path)


def test_rules_of_disclosure_are_held_against_every_group(tmp_path: Path) -> None:
    rules = GROUPED.replace('on_breach = "report"', "minimum_cell = 40\ndominance = 1.0")
    path = project(tmp_path, rules)
    with pytest.raises(
        ReleaseRefused, match=r"group values of .*relationship.*; 1 further group breaks them as well"
    ) as error:
        release(path)
    assert "Amer-Indian" not in str(error.value)
    found = json.loads((tmp_path / ".funnel" / "people" / "disclosure.json").read_text())
    assert [one["group"] for one in found["groups"]] == [["relationship"], ["race"]]
    assert not (tmp_path / "releases" / "people" / "latest").exists()


def test_a_run_that_is_stopped_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from funnel.pipeline.flows import wide

    path = project(tmp_path, rows=600)
    real = grouped.describe_groups

    def stopped(*arguments: object) -> None:
        real(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(wide, "describe_groups", stopped)
    with pytest.raises(KeyboardInterrupt):
        release(path)
    series = tmp_path / "releases" / "people"
    assert not [file for file in series.rglob("*") if file.is_file()]
    monkeypatch.undo()
    assert release(path)["version"] == "1.0.0"


def test_a_plan_says_groups_and_what_becomes_of_every_column(tmp_path: Path) -> None:
    path = project(tmp_path)
    shown = CliRunner().invoke(main, ["plan", str(path)])
    assert shown.exit_code == 0, shown.output
    assert "Groups: sex, then relationship, then race." in shown.output
    assert "FREQUENCIES ARE NOT PROTECTED" in shown.output
    told = json.loads(CliRunner().invoke(main, ["plan", str(path), "--json", "--guarantee", "ldp:1.0"]).stdout)
    (plan,) = told["groups"]
    assert plan["groups"] == [["sex"], ["relationship"], ["race"]]
    assert plan["level"] <= 1.0
    assert [one["column"] for one in plan["columns"]] == ["sex", "relationship", "race"]
    # Its page needs nothing else, and is the same when it is made of what is remembered.
    page = (tmp_path / ".funnel" / "people" / "plan.html").read_text()
    assert not re.search(r"<script|src=|href=\"http|url\(", page)
    for said in ("groups of the spec", "every column by itself (GRR), at most", "leave out <bdi", "19.0"):
        assert said in page, said
    assert page.count('<svg class="tradeoff"') == 1
    there = tmp_path / "p.html"
    assert CliRunner().invoke(main, ["plan", str(path), "--page", str(there)]).exit_code == 0
    assert there.read_text().replace(str(there), "") == page
    assert told["page"] is None
    for wrong in (["--all"], ["--suggest"], ["--frequencies"]):
        assert CliRunner().invoke(main, ["plan", str(path), *wrong]).exit_code == SpecError.exit_code


def test_values_that_read_like_sets_are_released_and_stay_apart(tmp_path: Path) -> None:
    hostile = {"Male": "any", "Female": "Husband or Wife"}
    found = table(1500)
    sexes = pa.array([hostile[value] for value in found.column("sex").to_pylist()])
    relations = pa.array(
        [value.replace("Own-child", "any but Wife") for value in found.column("relationship").to_pylist()]
    )
    found = found.set_column(1, "sex", sexes).set_column(3, "relationship", relations)
    path = make_project(tmp_path, GROUPED, found)
    assert release(path)["status"] == "published"
    labels = GroupedProtocolDocument.read(latest(path).protocol).protocol.labels
    assert set(labels["sex"]) == {"any", "Husband or Wife", "any (mixed)"}
    sets = [text for text in labels["relationship"] if " or " in text]
    assert all(text.startswith(('"', 'any but "')) for text in sets)
