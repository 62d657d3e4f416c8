"""What a release says of itself in formats of others, judged by the validators of these formats, on a real release."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from frictionless import Package, Report

from funnel.release.layout import ReleaseFolder
from tests.projects import adult_rows, make_project
from tests.releases import make_release

SPEC = """
name = "people"
title = "People: a \\"test\\" & more"
description = "People, some of them."
secret = ["marital-status"]
publish = ["relationship", "sex"]
guarantee = "lip:1.0"
frequencies.protection = "none"

[source]
path = "people.parquet"

[history]
people = "different"

[disclosure]
on_breach = "report"

[output]
csv = true

[metadata]
licence = "CC-BY-4.0"
licence_url = "https://creativecommons.org/licenses/by/4.0/"
keywords = ["people", "tests"]
contact_name = "Office of Tests"
contact_email = "office@example.org"

[[metadata.sources]]
title = "Census"
path = "https://example.org/census"
version = "1994"
"""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return make_release(make_project(tmp_path_factory.mktemp("standards"), SPEC, adult_rows(0, 1000)))


@pytest.fixture
def copy(published: ReleaseFolder, tmp_path: Path) -> ReleaseFolder:
    shutil.copytree(published.root, tmp_path / "1.0.0")
    return ReleaseFolder(tmp_path / "1.0.0")


def validated(folder: ReleaseFolder) -> Report:
    """What the validator of the Data Package standard says of metadata and tables, both of them read to the end."""
    return Package(str(folder.package)).validate()


def test_the_package_and_both_tables_are_valid_data_packages(published: ReleaseFolder) -> None:
    report = validated(published)
    assert report.flatten(["name", "type", "message"]) == []
    assert report.valid
    tables = [(task.place, task.stats["rows"]) for task in report.tasks]
    assert tables == [("data/records.csv", 1000), ("data/records.parquet", 1000)]


def test_the_validator_sees_another_value_in_either_table(copy: ReleaseFolder) -> None:
    rows = pq.read_table(copy.data)
    pq.write_table(rows.set_column(1, "sex", [["Unheard of"] * rows.num_rows]), copy.data)
    lines = copy.csv.read_text().splitlines(keepends=True)
    copy.csv.write_text("".join([*lines[:-1], '"Unheard of","Female"\n']))
    report = validated(copy)
    found = {task.name: {error.type for error in task.errors} for task in report.tasks}
    assert found == {"people": {"constraint-error"}, "people-csv": {"constraint-error", "hash-count", "byte-count"}}
