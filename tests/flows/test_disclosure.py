"""A thousand people of eight columns: refused with the values to group, and released with the groups suggested."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

from funnel.audit.check import State
from funnel.audit.recheck import recheck
from funnel.disclosure.suggest import suggest
from funnel.errors import DataError, ReleaseRefused
from funnel.pipeline.flows.commands import _sentence
from funnel.pipeline.flows.pipeline import run_release
from funnel.progress import quiet
from funnel.readers.formats import open_source
from funnel.release.documents import JointDocument
from funnel.release.layout import find_release
from funnel.release.public.rounding import share_step
from funnel.release.public_report import PublicReport
from funnel.settings.protection_settings import FrequencySettings
from funnel.source.coding import Codings
from funnel.source.counting import count_joint, is_wide, recoded
from funnel.source.fitting import misfits
from funnel.spec import ReleaseSpec
from tests.crowds import EIGHT_SPEC, eight_columns
from tests.projects import make_project
from tests.sabotage.patching import Patch, patched


def test_the_thousand_are_refused_and_then_released_in_groups(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(eight_columns(), preserve_index=False)
    path = make_project(tmp_path, EIGHT_SPEC, table)
    spec = ReleaseSpec.load(path)
    with pytest.raises(ReleaseRefused) as refused:
        run_release(spec, again=False, rotate=False)
    told = str(refused.value)
    assert "break minimum_cell, dominance, unique_share of [disclosure]" in told
    assert "of 1,000 records are alone in their published combination" in told
    # No value: in what a column is called there is none, and a value has a number.
    assert not any(f"{column} 1" in told for column in spec.publish)
    assert "cancer" not in told
    named = json.loads((spec.workspace_folder / spec.name / "disclosure.json").read_text())
    assert named["alone"] > 600
    assert set(named["values"]) == {*spec.secret, *spec.publish}
    assert not list((tmp_path / "releases").glob("crowd/1*"))

    suggestion = suggest(spec, count_joint(spec, quiet), spec.disclosure.rules)
    path.write_text(f"{EIGHT_SPEC}\n{suggestion.toml}", encoding="utf-8")
    assert tomllib.loads(path.read_text())["recode"]
    found, done = run_release(ReleaseSpec.load(path), again=False, rotate=False)
    assert found["status"] == "published"
    assert done is not None
    release = find_release(Path(found["folder"]))
    internal = json.loads(release.internal_numbers.read_text())["disclosure"]
    assert internal["passes"]
    assert internal["alone"] == 0
    assert internal["below_minimum"] == 0
    assert any("all of this holds." in said for said in json.loads(release.numbers.read_text())["recodings"])
    package = json.loads(release.package.read_text())["funnel:privacy"]["disclosureControl"]
    assert package == {"minimumCell": 10, "dominance": 0.95, "uniqueShare": 0.0, "onBreach": "refuse"}
    assert [f"{check.name}: {check.detail}" for check in recheck(release) if check.state is State.FAILED] == []


def test_a_threshold_groups_the_thousand_before_anything_else(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(eight_columns(), preserve_index=False)
    grouped = EIGHT_SPEC.replace('"none"', '"threshold"\nthreshold = 15')
    path = make_project(tmp_path, grouped.replace("[source]", 'mechanism = "optimal"\n\n[source]'), table)
    # No column becomes one value in silence.
    with pytest.raises(DataError, match='would be one, "any value" in every record') as refused:
        run_release(ReleaseSpec.load(path), again=False, rotate=False)
    (accepted,) = re.findall(r"write (blank = \[.*\]) in \[disclosure\]", str(refused.value))
    path.write_text(f"{path.read_text()}\n[disclosure]\n{accepted}\n", encoding="utf-8")
    spec = ReleaseSpec.load(path)
    found, _ = run_release(spec, again=False, rotate=False)
    assert found["status"] == "published"
    release = find_release(Path(found["folder"]))
    counts = [count for row in JointDocument.read(release.joint).joint.counts.tolist() for count in row if count]
    assert min(counts) >= 15
    assert sum(counts) == 1000
    said = json.loads(release.numbers.read_text())["recodings"]
    assert any(
        "so that no combination of secret and published values has fewer than 15 records." in one for one in said
    )
    assert run_release(spec, again=False, rotate=False)[0]["status"] == "unchanged"
    told = list(misfits(spec, recoded(spec, open_source(spec), quiet)))
    assert len(told) == 1 + len(spec.disclosure.blank) == 8
    assert "is published as 'any value' in every record: it tells nothing" in told[1]
    # So do those who get it see, and both audits make the sentences again.
    package, page = release.package.parent / "README.md", release.report.read_text(encoding="utf-8")
    for column in spec.disclosure.blank:
        assert f'In every record "{column}" stands as "any value": this column tells nothing.' in package.read_text()
    assert page.count("</strong>: this column tells nothing.") == len(spec.disclosure.blank)
    assert [f"{check.name}: {check.detail}" for check in recheck(release) if check.state is State.FAILED] == []
    # What is kept is of the columns as they were asked for.
    asked = count_joint(spec.model_copy(update={"frequencies": FrequencySettings(protection="none")}), quiet).entropy
    left = JointDocument.read(release.joint).joint.entropy
    assert found["grouping_kept"] == pytest.approx(left / asked)
    assert f"left {left / asked:.1%} of the information in the published columns" in told[0]
    report = PublicReport.read(release.numbers)
    assert report.grouping_kept == pytest.approx(left / asked, abs=share_step(1000))
    share = f"{100 * report.grouping_kept * report.figures.share:.3g}"
    headline = page[page.index("Information kept") :].split("</dd>")[0]
    assert share in headline
    # Validation counts it again.
    patch = Patch("funnel.report.public.public_figures", "distributions.share(content.grouping_kept)", "0.999")
    with patched(patch), pytest.raises(ReleaseRefused, match="grouping_kept"):
        run_release(spec, again=True, rotate=False)
    assert f"{left / asked * found['share']:.1%} of the information kept (" in _sentence(found)


def test_records_are_whole_where_grouping_would_blank_columns(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(eight_columns(2000)[["disease", "age", "region", "sex"]], preserve_index=False)
    text = EIGHT_SPEC.replace('"none"', '"threshold"').replace(
        ', "occupation", "education", "household", "sex", "status", "origin"', ', "sex"'
    )
    spec = ReleaseSpec.load(make_project(tmp_path, text, table))
    codings = recoded(spec, open_source(spec), quiet)
    assert codings.by_class
    assert Codings.from_json(codings.to_json()) == codings
    assert all(len(codings[column].labels) > 1 for column in spec.publish)
    assert is_wide(spec, count_joint(spec, quiet, codings=codings), codings)
