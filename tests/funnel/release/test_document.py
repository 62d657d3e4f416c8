"""A document says what it is, is read only as what it is, and fails in one sentence that repeats none of its values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from funnel.errors import DataError
from funnel.release.document import Document, Part, dump
from funnel.release.report_parts import Level


class Leg(Part):
    name: str
    length: float


class Animal(Document):
    """An animal.

    Attributes
    ----------
    age : int
    """

    described: ClassVar[str] = "the animal"
    schema_: Literal["funnel/animal/3"] = Field(default="funnel/animal/3", alias="schema")
    age: int
    legs: tuple[Leg, ...] = ()
    keeper: str | None = None


ANIMAL = Animal(age=7, legs=(Leg(name="left", length=0.5),))
animals = st.builds(
    Animal,
    age=st.integers(),
    legs=st.lists(
        st.builds(Leg, name=st.text(), length=st.floats(allow_nan=False, allow_infinity=False)), max_size=3
    ).map(tuple),
    keeper=st.none() | st.text(),
)


@given(animals)
def test_what_is_written_is_read_back_and_is_canonical(animal: Animal) -> None:
    again = Animal.from_json(animal.to_bytes())
    assert again == animal
    assert again.to_bytes() == animal.to_bytes() == dump(json.loads(animal.to_bytes()))


def test_what_is_no_number_is_not_written() -> None:
    for value in (float("nan"), float("inf"), -float("inf")):
        with pytest.raises(ValueError, match="not JSON compliant"):
            dump({"length": value})


def test_the_file_names_its_schema_and_every_key() -> None:
    assert Animal.identity() == ("animal", 3)
    assert json.loads(Animal(age=1).to_bytes()) == {
        "schema": "funnel/animal/3",
        "age": 1,
        "legs": [],
        "keeper": None,
    }


def test_a_document_cannot_be_changed_nor_made_of_other_types() -> None:
    with pytest.raises(ValidationError):
        ANIMAL.age = 8  # type: ignore[misc]
    for wrong in ({"age": "7"}, {"age": True}, {"age": 7, "legs": []}, {"age": 7, "wings": 2}, {}):
        with pytest.raises(ValidationError):
            Animal(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ValidationError):
        Leg(name="left", length=float("inf"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"schema": "funnel/animal/3"}, "the animal is damaged: age is missing"),
        ({"schema": "funnel/animal/3", "age": "Ada"}, "the animal is damaged: age: input should be a valid integer"),
        ({"schema": "funnel/animal/3", "age": 1, "x": 2}, "the animal is damaged: x is not known"),
        (
            {"schema": "funnel/animal/3", "age": 1, "legs": [{"name": 1}]},
            "the animal is damaged: legs.0.name: input should be a valid string (and 1 more)",
        ),
        (
            {"schema": "funnel/animal/4", "age": 1},
            "the animal was made by a newer funnel: its schema is version 4, and this funnel reads up to 3; "
            "install a newer one",
        ),
        ({"schema": "funnel/plant/3", "age": 1}, "the animal is another document: its schema is not funnel/animal"),
        ({"schema": "funnel/animal/03", "age": 1}, "the animal is another document: its schema is not funnel/animal"),
        (
            {"schema": "funnel/animal/" + "9" * 5000, "age": 1},
            "the animal is another document: its schema is not funnel/animal",
        ),
        ({"schema": 3, "age": 1}, "the animal is another document: its schema is not funnel/animal"),
        ({"schema": "funnel/animal/2", "age": 1}, "the animal is damaged: schema: input should be 'funnel/animal/3'"),
        ({"age": 1}, "the animal is damaged: it does not name its schema"),
        ({"age": "Ada"}, "the animal is damaged: it does not name its schema"),
        ([], "the animal is damaged: it does not name its schema"),
        (None, "the animal is damaged: it does not name its schema"),
    ],
)
def test_what_is_no_document_is_refused_in_one_sentence(content: Any, said: str) -> None:
    with pytest.raises(DataError) as caught:
        Animal.from_json(json.dumps(content))
    assert str(caught.value) == said
    with pytest.raises(DataError, match=re.escape(f"the animal there {said.removeprefix('the animal ')}")):
        Animal.from_json(json.dumps(content).encode(), "there")


@pytest.mark.parametrize(
    "text", ["", "{", "\ud800", b"\xff", "[" * 100_000, '{"age": 1e999999999}', '{"age": ' + "9" * 5000]
)
def test_what_is_no_json_is_refused_in_one_sentence(text: str | bytes) -> None:
    with pytest.raises(DataError, match=r"^the animal is damaged: "):
        Animal.from_json(text)


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(DataError, match="length: input should be a finite number"):
        Animal.from_json('{"schema": "funnel/animal/3", "age": 1, "legs": [{"name": "left", "length": NaN}]}')


def test_a_document_must_name_its_schema() -> None:
    class Plant(Document):
        described: ClassVar[str] = "the plant"
        schema_: Literal["funnel/plant/2"] = Field(default="funnel/plant/2", alias="schema")
        height: float = 1.0

    assert Plant.from_json('{"schema": "funnel/plant/2", "height": 2}').height == 2.0
    with pytest.raises(DataError, match=r"^the plant is damaged: it does not name its schema$"):
        Plant.from_json('{"height": 2}')
    with pytest.raises(DataError, match=r"^the plant is damaged: schema: input should be 'funnel/plant/2'$"):
        Plant.from_json('{"schema": "funnel/plant/1"}')


def test_a_schema_must_be_named_so_that_its_version_can_be_read() -> None:
    class Stone(Document):
        described: ClassVar[str] = "the stone"
        schema_: Literal["stone"] = Field(default="stone", alias="schema")

    with pytest.raises(TypeError, match="must name its schema as funnel/NAME/VERSION"):
        Stone.identity()


def test_reading_a_file(tmp_path: Path) -> None:
    path = tmp_path / "animal.json"
    path.write_bytes(ANIMAL.to_bytes())
    assert Animal.read(path) == ANIMAL
    with pytest.raises(DataError, match=f"^the animal {tmp_path}/none.json is missing"):
        Animal.read(tmp_path / "none.json")
    with pytest.raises(DataError, match=f"^the animal {tmp_path} cannot be read: Is a directory"):
        Animal.read(tmp_path)
    path.write_text("{}")
    with pytest.raises(DataError, match=f"^the animal {path} is damaged: it does not name its schema"):
        Animal.read(path)


def test_no_message_repeats_a_value() -> None:
    secret: list[Callable[[], Any]] = [
        lambda: Animal.from_json('{"schema": "funnel/animal/3", "age": "Never-married"}'),
        lambda: Animal.from_json('{"schema": "Never-married"}'),
        lambda: Animal.from_json('"Never-married"'),
        lambda: Animal.from_json("Never-married"),
    ]
    for read in secret:
        with pytest.raises(DataError) as caught:
            read()
        assert "Never-married" not in str(caught.value)


class _Ends(Part):
    """What `Part.like` is tried on."""

    low: Level
    high: Level | None


class _Interval(Part):
    name: str
    ends: _Ends
    all_ends: tuple[_Ends, ...]


def test_a_part_is_made_of_what_has_its_fields_and_checked() -> None:
    ends = SimpleNamespace(low=0.5, high=math.inf, width=math.inf)
    source = SimpleNamespace(name="x", ends=ends, all_ends=(ends, SimpleNamespace(low=math.inf, high=None)), other=1)
    made = _Interval.like(source)
    assert made.model_dump() == {
        "name": "x",
        "ends": {"low": 0.5, "high": "infinite"},
        "all_ends": ({"low": 0.5, "high": "infinite"}, {"low": "infinite", "high": None}),
    }
    assert _Interval.like(source, name="y").name == "y"
    with pytest.raises(ValidationError, match="name"):
        _Interval.like(source, name=3)
    with pytest.raises(ValidationError, match="other"):
        _Interval.like(source, other=1)
    del ends.high
    with pytest.raises(ValidationError, match="high"):
        _Interval.like(source)
