"""Combinations that cannot exist: declared in a spec, in no count and no record, held against the spec by the gate."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from funnel.audit.check import State, overall
from funnel.audit.recheck import Told
from funnel.errors import DataError
from funnel.pipeline.expectations import Finished, judge
from funnel.pipeline.flows.pipeline import run_release
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.source import recount
from funnel.release.layout import ReleaseFolder
from funnel.source.fitting import misfits
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.copies import copied
from tests.expectations.conftest import Made
from tests.expectations.test_finished import edit, failures
from tests.projects import SPEC, adult_rows, make_project

MARRIED = ["Married-AF-spouse", "Married-civ-spouse"]
OTHERS = ["Divorced", "Married-spouse-absent", "Never-married", "Separated", "Widowed"]
RELATIONS = ["Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife"]
NOISY = (
    SPEC.replace('["marital-status"]', '["income"]')
    .replace('["relationship"]', '["marital-status", "relationship"]')
    .replace('frequencies.protection = "none"', 'frequencies.protection = "noise"\nfrequencies.max_epsilon = 2.0')
    .replace("[source]", 'complete = ["income", "marital-status", "relationship"]\nmechanism = "invariant"\n\n[source]')
    + f"""
[categories]
income = ["<=50K", ">50K"]
marital-status = {json.dumps(sorted(MARRIED + OTHERS))}
relationship = {json.dumps(RELATIONS)}

[[impossible]]
relationship = ["Husband", "Wife"]
marital-status = {json.dumps(OTHERS)}
"""
)


def cannot_be(record: dict[str, str]) -> bool:
    return record["relationship"] in ("Husband", "Wife") and record["marital-status"] in OTHERS


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made.of(make_project(tmp_path_factory.mktemp("impossible"), NOISY))


@pytest.fixture
def finished(made: Made, tmp_path: Path) -> Finished:
    folder = copied(ReleaseFolder(made.folder), tmp_path / "incoming")
    folder.signature.unlink()
    return Finished(ReleaseSpec.load(made.spec), folder, "1.0.0", made.snapshot)


def test_there_is_a_noisy_count_of_every_other_combination_and_of_none_of_these(made: Made) -> None:
    public = PublicFrequencies.parse(ReleaseFolder(made.folder).frequencies.read_bytes())
    assert len(public.inputs) == 7 * 6 - 2 * 5
    assert not any(cannot_be(dict(zip(public.published_columns, symbol, strict=True))) for symbol in public.inputs)
    assert public.is_whole()
    # Without the declaration it tells which combinations occur; and so it does where one more is left out.
    assert not replace(public, impossible=None).is_whole()
    assert not replace(public, inputs=public.inputs[:-1]).is_whole()


def test_the_report_says_of_which_columns(made: Made) -> None:
    page = ReleaseFolder(made.folder).report.read_text(encoding="utf-8")
    assert "relationship and marital-status: the publisher declared which values cannot go together" in page


def test_no_record_has_one_and_both_audits_pass(made: Made) -> None:
    folder = ReleaseFolder(made.folder)
    records = pq.read_table(next(made.folder.glob("data/*.parquet"))).to_pylist()
    assert len(records) == 3000
    assert not any(map(cannot_be, records))
    for checks in (recheck(folder), recheck(folder, Told(public=True))):
        assert overall(checks) == State.PASSED, [check for check in checks if not check.passed]


def test_of_whole_records_those_of_the_source_are_held_to_it_and_unknown_values_are_named(tmp_path: Path) -> None:
    """Without noise nobody need list the values that there are."""
    text = NOISY[: NOISY.index("[categories]")] + NOISY[NOISY.index("[[impossible]]") :].replace('"Wife"', '"Wiwe"')
    text = text.replace('"noise"', '"none"').replace("frequencies.max_epsilon = 2.0\n", "")
    text = text.replace('complete = ["income", "marital-status", "relationship"]\n', "")
    wide = '["marital-status", "relationship", "education", "occupation"]'
    text = text.replace('["marital-status", "relationship"]', wide)
    spec = ReleaseSpec.load(make_project(tmp_path, text))
    told, done = run_release(spec, False, False)
    said = "[[impossible]] lists 'Wiwe', which no record has in column 'relationship'; did you mean Wife?"
    assert said in list(misfits(spec, done.snapshot.read_codings()))
    folder = ReleaseFolder(Path(told["folder"]))
    assert folder.classes.is_file()
    records = pq.read_table(folder.data).to_pylist()
    assert not any(map(cannot_be, records))
    assert overall(recheck(folder)) == State.PASSED


def test_bins_of_another_column_are_found_as_ever(tmp_path: Path) -> None:
    text = NOISY.replace('["marital-status", "relationship"]', '["marital-status", "relationship", "age"]', 1)
    text += '\n[recode.age]\nbins = "auto"\n\n[numbers.age]\nrange = [17, 90]\n'
    text = text.replace('"noise"', '"none"').replace("frequencies.max_epsilon = 2.0\n", "")
    told, _ = run_release(ReleaseSpec.load(make_project(tmp_path, text)), False, False)
    assert overall(recheck(ReleaseFolder(Path(told["folder"])))) == State.PASSED


def test_a_later_version_declares_fewer(made: Made, tmp_path: Path) -> None:
    text = made.spec.read_text(encoding="utf-8")
    fewer = text.replace('relationship = ["Husband", "Wife"]', 'relationship = ["Husband"]')
    assert fewer != text
    for one, start in ((text, 0), (fewer, 3000)):
        spec = make_project(tmp_path, one, adult_rows(start))
        told, _ = run_release(ReleaseSpec.load(spec), False, False)
    folder = ReleaseFolder(Path(told["folder"]))
    assert len(PublicFrequencies.parse(folder.frequencies.read_bytes()).inputs) == 7 * 6 - 5
    assert overall(recheck(folder)) == State.PASSED


def test_a_record_that_has_one_stops_the_release_and_the_recount(made: Made, tmp_path: Path) -> None:
    rows = adult_rows()
    wrong = rows.set_column(
        rows.schema.get_field_index("marital-status"),
        "marital-status",
        [["Widowed" if k == 7 else value for k, value in enumerate(rows["marital-status"].to_pylist())]],
    )
    wrong = wrong.set_column(
        wrong.schema.get_field_index("relationship"),
        "relationship",
        [["Wife" if k == 7 else value for k, value in enumerate(rows["relationship"].to_pylist())]],
    )
    spec = ReleaseSpec.load(make_project(tmp_path, NOISY, wrong))
    with pytest.raises(DataError, match=r"\[\[impossible\]\] lists values of 'relationship' and 'marital-status'"):
        run_release(spec, False, False)
    with pytest.raises(DataError, match=r"\[\[impossible\]\] says do not go together"):
        recount(spec)
    assert recount(ReleaseSpec.load(made.spec)).rows == 3000


def _more(content: dict[str, Any]) -> None:
    content["impossible"][0]["values"][0].append("Own-child")


def _none(content: dict[str, Any]) -> None:
    content["impossible"] = None


@pytest.mark.parametrize("change", [_more, _none])
def test_what_is_said_to_be_impossible_is_what_the_spec_declares(
    finished: Finished, change: Callable[[dict[str, Any]], None]
) -> None:
    assert judge(finished).failed == ()
    edit(finished.folder.frequencies, change)
    assert "impossible" in str(failures(replace(finished), "noisy counts")["combinations"])


@pytest.mark.parametrize("wrong", [{"columns": ["relationship", "income"]}, {"columns": ["relationship"]}])
def test_what_is_impossible_is_of_published_columns(made: Made, wrong: dict[str, Any]) -> None:
    said = json.loads(ReleaseFolder(made.folder).frequencies.read_bytes())
    said["impossible"][0].update(wrong)
    with pytest.raises(DataError, match="declare impossible"):
        PublicFrequencies.parse(json.dumps(said))
