"""The record of a version: written with its schema, and read back as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from funnel.errors import DataError
from funnel.release.record import History, Origin, Record
from tests.public import OPEN_COUNTS

ORIGIN: dict[str, Any] = {
    "spec": "a" * 64,
    "source": "b" * 64,
    "snapshot": "c" * 64,
    "protocol": "d" * 64,
    "fields": ["education", "sex"],
    "guarantee": "lip:1.0",
    "shuffle": True,
}
REST: dict[str, Any] = {
    "fresh": True,
    "version": "1.10.0",
    "created": "2026-01-01T00:00:00+00:00",
    "rows": 3000,
    "files": {"data/records.parquet": "9" * 64},
    "frequencies": OPEN_COUNTS.model_dump(mode="json"),
}
CONTENT = {"schema": "funnel/record/1", "origin": ORIGIN, **REST}


def read(content: dict[str, Any]) -> Record:
    return Record.from_json(json.dumps(content))


def test_a_record_is_read_back_as_it_was() -> None:
    plain = read(CONTENT)
    assert (plain.origin.secret, plain.origin.record_key, plain.rotated) == (None, None, None)
    assert (plain.origin.fields, plain.approval) == (("education", "sex"), None)
    keys = {"secret": "e" * 32, "record_key": ["id"], "key_kinds": ["text"]}
    keyed = read(CONTENT | {"origin": ORIGIN | keys})
    assert (keyed.origin.secret, keyed.origin.record_key, keyed.origin.key_kinds) == ("e" * 32, ("id",), ("text",))
    rotated = read(CONTENT | {"origin": ORIGIN | keys, "rotated": "f" * 32})
    assert rotated.rotated == "f" * 32
    approved = read(CONTENT | {"approval": {"by": "A. Okafor, DPO", "at": "2026-11-21T10:00:00+00:00", "note": None}})
    assert (approved.approval.by, approved.approval.at) == ("A. Okafor, DPO", "2026-11-21T10:00:00+00:00")
    for record in (plain, keyed, rotated, approved):
        assert json.loads(record.to_bytes())["schema"] == "funnel/record/1"
        assert Record.from_json(record.to_bytes()) == record


@pytest.mark.parametrize("key", [*ORIGIN, *REST])
def test_a_record_that_lacks_anything_is_damaged(key: str) -> None:
    origin = {name: value for name, value in ORIGIN.items() if name != key}
    content = {**{name: value for name, value in CONTENT.items() if name != key}, "origin": origin}
    place = f"origin.{key}" if key in ORIGIN else key
    with pytest.raises(DataError, match=f"^the record of version is damaged: {place} is missing$"):
        read(content)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fresh": 1}, "fresh: input should be a valid boolean"),
        ({"fresh": None}, "fresh: input should be a valid boolean"),
        ({"fresh": "true"}, "fresh: input should be a valid boolean"),
        ({"origin": ORIGIN | {"protocol": "D" * 64}}, "origin.protocol: string should match"),
        ({"origin": ORIGIN | {"snapshot": "c" * 63}}, "origin.snapshot: string should match"),
        ({"origin": ORIGIN | {"fields": []}}, "origin.fields: tuple should have at least 1 item"),
        ({"origin": ORIGIN | {"fields": ["sex", "sex"]}}, "origin.fields names a column twice"),
        ({"origin": ORIGIN | {"record_key": ["id"]}}, "origin names a record key and no release secret"),
        (
            {"origin": ORIGIN | {"record_key": ["id"], "secret": "e"}},
            "origin names another number of key kinds than of key columns",
        ),
        ({"origin": ORIGIN | {"key_kinds": ["text"]}}, "origin names another number of key kinds than of key columns"),
        ({"origin": ORIGIN | {"key_kinds": ["float"]}}, "origin.key_kinds.0: input should be 'text' or 'number'"),
        ({"version": "1.0"}, "version: string should match"),
        ({"version": "1.01.0"}, "version: string should match"),
        ({"created": "2026-01-01T00:00:00"}, "created: string should match"),
        ({"rows": 0}, "rows: input should be greater than or equal to 1"),
        ({"files": {"protocol.json": "x"}}, "files.protocol.json: string should match"),
        ({"origin": ORIGIN | {"secret": "e"}, "rotated": "e"}, "it says that its secret was rotated to itself"),
        ({"drawn": True}, "drawn is not known"),
        ({"approval": {"by": "a\nb", "at": "2026-11-21T10:00:00+00:00"}}, "approval.by must be one line"),
        ({"approval": {"by": "a", "at": "2026-11-21T10:00:00"}}, "approval.at: string should match"),
    ],
)
def test_a_record_that_says_something_impossible_is_damaged(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError) as caught:
        read(CONTENT | changes)
    assert str(caught.value).startswith(f"the record of version is damaged: {said}")


def test_a_record_of_a_newer_funnel_is_said_to_be_one() -> None:
    with pytest.raises(DataError, match="made by a newer funnel"):
        read(CONTENT | {"schema": "funnel/record/2"})


def test_a_record_is_checked_when_it_is_made() -> None:
    origin = Origin(**ORIGIN | {"fields": ("education",)})
    assert Record(origin=origin, **REST | {"frequencies": OPEN_COUNTS}).version == "1.10.0"
    with pytest.raises(ValidationError):
        Record(origin=origin, **REST | {"rows": 0})


FOLLOWED = {
    "people": "same",
    "register": "panel",
    "ordinal": 3,
    "name": "panel/1.3.0",
    "entry": "d" * 64,
    "given": "f" * 64,
    "head": "e" * 64,
    "target": "a" * 64,
    "drawing": "b" * 64,
    "histories": 17,
    "level": 0.999,
    "moved": 4,
    "outside": 2,
    "reserve": 1.0,
}


def test_a_record_says_who_its_people_are() -> None:
    found = read(CONTENT | {"history": FOLLOWED}).history
    assert found == History.model_validate(FOLLOWED, strict=False)
    assert Record.from_json(read(CONTENT | {"history": FOLLOWED}).to_bytes()).history == found
    assert read(CONTENT | {"history": {"people": "different"}}).history is not None
    # Held: it was drawn given the register, and is not in it.
    assert read(CONTENT | {"history": FOLLOWED | {"ordinal": None, "entry": None, "head": None}}).history is not None


@pytest.mark.parametrize(
    "history",
    [
        {"people": "same"},
        {"people": "different", "register": "panel"},
        FOLLOWED | {"people": "different"},
        FOLLOWED | {"entry": None},
        FOLLOWED | {"level": None},
        {"people": "different", "ordinal": 1, "entry": "d" * 64},
    ],
)
def test_a_history_is_told_whole_or_not_at_all(history: dict[str, object]) -> None:
    with pytest.raises(DataError, match="the record of version"):
        read(CONTENT | {"history": history})
