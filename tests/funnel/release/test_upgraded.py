"""Documents as earlier versions of funnel wrote them: valid by the schemas of their time, and read as ones of today."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from funnel.errors import DataError
from funnel.release.document import Document
from funnel.release.grouped_findings import GroupedFindings
from funnel.release.grouped_report import GroupedInternalReport, GroupedReport
from funnel.release.layout import ReleaseFolder
from funnel.release.public_report import PublicReport
from funnel.release.schemas import FOLDER
from tests.groups import grouped_release

Older = Callable[[dict[str, Any]], None]


def _without_purpose(content: dict[str, Any]) -> None:
    del content["chosen_by"], content["explained"], content["worth"]
    for way in content.get("tried", ()):
        del way["worth"]


def _older_findings(content: dict[str, Any]) -> None:
    _without_purpose(content)
    del content["shared"]


def _older_report(content: dict[str, Any]) -> None:
    _without_purpose(content)
    del content["rules"], content["weighted"], content["estimated"]
    for group in content["groups"]:
        del group["shared"]


def _older_internal(content: dict[str, Any]) -> None:
    _without_purpose(content)
    del content["estimated"]
    for stage in content["stages"]:
        del stage["rows"], stage["shared"]


def _read(content: dict[str, Any], document: type[Document], version: int) -> dict[str, Any]:
    """What is read of a document of an earlier version."""
    name, _ = document.identity()
    old = {**content, "schema": f"funnel/{name}/{version}"}
    jsonschema.validate(old, json.loads((FOLDER / f"{name}-{version}.json").read_bytes()))
    return document.from_json(json.dumps(old)).content()


@pytest.mark.parametrize(
    ("document", "path", "older"),
    [
        (GroupedReport, "report.json", _older_report),
        (GroupedInternalReport, "audit/report.json", _older_internal),
        (GroupedFindings, "audit/findings.json", _older_findings),
    ],
)
def test_what_the_first_releases_of_groups_say_is_read(document: type[Document], path: str, older: Older) -> None:
    content = json.loads((grouped_release().root / path).read_bytes())
    today = json.loads(json.dumps(content))
    older(content)
    found = _read(content, document, 1)
    assert found.keys() == today.keys()
    # What was not said then is not guessed, and all else is as it was.
    older(found)
    assert {**found, "schema": None} == {**content, "schema": None}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (GroupedReport, "report.json"),
        (GroupedInternalReport, "audit/report.json"),
        (GroupedFindings, "audit/findings.json"),
    ],
)
def test_releases_of_groups_from_before_there_was_a_choice_were_made_by_information(
    document: type[Document], path: str
) -> None:
    content = json.loads((grouped_release().root / path).read_bytes())
    today = json.loads(json.dumps(content))
    _without_purpose(content)
    found = _read(content, document, 2)
    # What ways were compared by was not told of each of them.
    for way in today.get("tried", ()):
        way["worth"] = None
    assert found == today


def test_a_report_from_before_survey_weights_is_read(published: ReleaseFolder) -> None:
    content = json.loads(published.numbers.read_bytes())
    assert content.pop("weighted") is None
    assert content.pop("unchanged") is None
    today = {**content, "weighted": None, "unchanged": None, "schema": "funnel/report/6"}
    assert _read(content, PublicReport, 4) == today
    assert _read({**content, "weighted": None}, PublicReport, 5) == today


@pytest.mark.parametrize("document", [GroupedReport, GroupedInternalReport, GroupedFindings, PublicReport])
def test_what_names_no_schema_is_none_of_them(document: type[Document]) -> None:
    with pytest.raises(DataError, match="it does not name its schema"):
        document.from_json("{}")
