"""Releases after versions were withdrawn: no number twice, every draw counted, and the user told what happened."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from funnel.errors import SpecError
from funnel.pipeline.flows.pipeline import run_release
from funnel.release.layout import INDEX, ReleaseFolder
from funnel.release.public_report import PublicReport
from funnel.release.record import Record
from funnel.release.series_index import SeriesIndex
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, adult_rows, make_project


def run(spec: Path, again: bool = False) -> dict[str, object]:
    return run_release(ReleaseSpec.load(spec), again, False)[0]


def test_the_number_and_the_draw_of_a_version_that_was_withdrawn_count(tmp_path: Path) -> None:
    spec = make_project(tmp_path, SPEC.replace('guarantee = "lip:1.0"', 'guarantee = "lip:1.0"\nmechanism = "grr"'))
    series = tmp_path / "releases" / "people"
    assert run(spec)["version"] == "1.0.0"
    pq.write_table(adult_rows(0, 2000), tmp_path / "people.parquet")
    assert run(spec)["version"] == "1.1.0"

    # The newest is withdrawn: what is released again is another draw, under another number, and is told to be one.
    shutil.rmtree(series / "1.1.0")
    with pytest.raises(SpecError, match=r"these are the records of version 1\.1\.0"):
        run(spec)
    third = run(spec, again=True)
    assert (third["version"], third["fresh"], third["drawn"]) == ("1.1.1", True, True)
    assert third["warnings"] == ["version 1.1.0 was withdrawn: its number is not used again, and its draw still counts"]
    counted = [PublicReport.read(ReleaseFolder(series / "1.1.1").numbers).earlier_releases]
    shutil.rmtree(series / "1.0.0")
    fourth = run(spec, again=True)
    assert (fourth["version"], fourth["fresh"]) == ("1.1.2", True)
    assert fourth["warnings"] == [
        "versions 1.0.0, 1.1.0 were withdrawn: their numbers are not used again, and their draws still count"
    ]
    # As many as there were, whatever has become of their folders.
    counted.append(PublicReport.read(ReleaseFolder(series / "1.1.2").numbers).earlier_releases)
    assert counted == [2, 3]
    assert run(spec)["status"] == "unchanged"
    kept = {path.stem: Record.read(path) for path in (tmp_path / ".funnel" / "people" / "records").glob("*/*.json")}
    assert sorted(kept) == ["1.0.0", "1.1.0", "1.1.1", "1.1.2"]
    # Readers find all of them in the signed index, and which of them are gone.
    index = SeriesIndex.read(series / INDEX)
    assert index.holds()
    assert [(one.version, one.withdrawn) for one in index.listed.versions] == [
        ("1.0.0", True),
        ("1.1.0", True),
        ("1.1.1", False),
        ("1.1.2", False),
    ]
    assert {one.version: one.signature for one in index.listed.versions} == {
        version: record.files["signature.json"] for version, record in kept.items()
    }
    assert kept["1.1.2"] == Record.read(ReleaseFolder(series / "1.1.2").record)
