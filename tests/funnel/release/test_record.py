"""The record of a version: written with its schema, read from this version and from before records named theirs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from funnel.errors import DataError
from funnel.release.record import Record

CONTENT: dict[str, Any] = {
    "spec": "a" * 64,
    "source": "b" * 64,
    "snapshot": "c" * 64,
    "protocol": "d" * 64,
    "fields": ["education", "sex"],
    "guarantee": "lip:1.0",
    "shuffle": True,
    "fresh": True,
    "version": "1.10.0",
    "created": "2026-01-01T00:00:00+00:00",
    "rows": 3000,
}


def test_records_from_before_there_was_a_schema_are_read() -> None:
    plain = Record.from_json(json.dumps(CONTENT))
    assert (plain.secret, plain.rotated, plain.fields) == (None, None, ("education", "sex"))
    keyed = Record.from_json(json.dumps(CONTENT | {"secret": "e" * 32}))
    assert keyed.secret == "e" * 32
    rotated = Record.from_json(json.dumps(CONTENT | {"secret": "e" * 32, "rotated": "f" * 32}))
    assert rotated.rotated == "f" * 32
    # A first secret, made where a rotation was asked for.
    assert Record.from_json(json.dumps(CONTENT | {"secret": "e" * 32, "rotated": None})).rotated is None
    for record in (plain, keyed, rotated):
        assert json.loads(record.to_bytes())["schema"] == "funnel/record/1"
        assert Record.from_json(record.to_bytes()) == record


@pytest.mark.parametrize("key", CONTENT)
def test_a_record_that_lacks_anything_is_damaged(key: str) -> None:
    content = {name: value for name, value in CONTENT.items() if name != key}
    for marked in (content, {"schema": "funnel/record/1", **content}):
        with pytest.raises(DataError, match=f"^the record of a version is damaged: {key} is missing$"):
            Record.from_json(json.dumps(marked))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fresh": 1}, "fresh: input should be a valid boolean"),
        ({"fresh": None}, "fresh: input should be a valid boolean"),
        ({"fresh": "true"}, "fresh: input should be a valid boolean"),
        ({"protocol": "D" * 64}, "protocol: string should match"),
        ({"snapshot": "c" * 63}, "snapshot: string should match"),
        ({"fields": []}, "fields: tuple should have at least 1 item"),
        ({"fields": ["sex", "sex"]}, "fields names a column twice"),
        ({"version": "1.0"}, "version: string should match"),
        ({"version": "1.01.0"}, "version: string should match"),
        ({"created": "2026-01-01T00:00:00"}, "created: string should match"),
        ({"rows": 0}, "rows: input should be greater than or equal to 1"),
        ({"secret": "e", "rotated": "e"}, "it says that its secret was rotated to itself"),
        ({"drawn": True}, "drawn is not known"),
    ],
)
def test_a_record_that_says_something_impossible_is_damaged(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError) as caught:
        Record.from_json(json.dumps(CONTENT | changes))
    assert str(caught.value).startswith(f"the record of a version is damaged: {said}")


def test_a_record_is_checked_when_it_is_made() -> None:
    content = CONTENT | {"fields": ("education",)}
    assert Record(**content).version == "1.10.0"
    with pytest.raises(ValidationError):
        Record(**content | {"rows": 0})
