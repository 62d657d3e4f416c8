"""Documents as earlier versions of funnel wrote them: valid by the schemas of their time, and read as ones of today."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from funnel.errors import DataError
from funnel.release.document import Document
from funnel.release.layout import ReleaseFolder
from funnel.release.public_report import PublicReport
from funnel.release.schemas import FOLDER


def _read(content: dict[str, Any], document: type[Document], version: int) -> dict[str, Any]:
    """What is read of a document of an earlier version."""
    name, _ = document.identity()
    old = {**content, "schema": f"funnel/{name}/{version}"}
    jsonschema.validate(old, json.loads((FOLDER / f"{name}-{version}.json").read_bytes()))
    return document.from_json(json.dumps(old)).content()


def test_a_report_from_before_survey_weights_is_read(published: ReleaseFolder) -> None:
    content = json.loads(published.numbers.read_bytes())
    assert content.pop("weighted") is None
    assert content.pop("unchanged") is None
    today = {**content, "weighted": None, "unchanged": None, "schema": "funnel/report/6"}
    assert _read(content, PublicReport, 4) == today
    assert _read({**content, "weighted": None}, PublicReport, 5) == today


def test_what_names_no_schema_is_none_of_them() -> None:
    with pytest.raises(DataError, match="it does not name its schema"):
        PublicReport.from_json("{}")
