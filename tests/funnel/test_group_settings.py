"""A spec names its columns in a list, in lists or by "auto"; what cannot be is refused in one sentence."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from funnel.errors import SpecError
from funnel.spec import ReleaseSpec
from tests.projects import ADULT, ROOT, spec_of


def publishing(publish: Any, **changes: Any) -> ReleaseSpec:
    return spec_of("people.parquet", ".", publish=publish, **changes)


def test_a_list_of_lists_is_read_as_the_columns_in_its_order() -> None:
    assert publishing([["a", "b"], ["c"]]).publish == ("a", "b", "c")
    assert publishing([["a", "b"], ["c"]]) == publishing(["a", "b", "c"])
    assert publishing([["a"], ["b"]]).digest == publishing(["a", "b"]).digest


def test_classes_of_records_have_so_many_records() -> None:
    assert publishing(["a"]).groups.min_records == 200
    spec = publishing(["a"], groups={"min_records": 80})
    assert spec.groups.min_records == 80
    assert spec.digest != publishing(["a"]).digest
    # What is counted depends on the columns alone.
    assert spec.coding_digest == publishing(["a"]).coding_digest
    # As funnel computed it before there was such a section.
    assert "groups" not in publishing(["a"]).model_dump(exclude_defaults=True)


def test_settings_in_memory_say_as_json_that_all_columns_were_asked_for() -> None:
    said = json.loads(publishing("auto").publishing(("a", "b")).text)
    assert (said["publish"], said["groups"]["auto"]) == (["a", "b"], True)


def test_a_spec_that_says_auto_is_the_same_spec_whatever_columns_a_source_has() -> None:
    """Its internal copy says "auto", and the record of a release is held to this text."""
    asked = publishing("auto")
    assert asked.publishing(("a", "b")).digest == asked.digest
    assert asked.digest != publishing(["a", "b"]).digest


@pytest.mark.parametrize(
    ("publish", "changes", "said"),
    [
        (["a", ["b"]], {}, "names the column 'a' beside lists"),
        ([["a"], ["b", "a"]], {}, "the column 'a' in the lists 1 and 2"),
        ([["a", "a"]], {}, "the column 'a' in a list twice"),
        ([["a"], []], {}, "no column in its list 2"),
        ([["a", 3]], {}, "a list of lists of columns, in quotes"),
        ("all", {}, 'a list of such lists, or "auto"'),
        ([["a"], ["s"]], {}, "'s' is both secret and published"),
        ([["a"], ["k"]], {"record_key": ["k"]}, "'k' is a record key, and secret or published as well"),
        ([], {}, "must name at least one column"),
        (["a"], {"groups": {"min_record": 3}}, "unknown setting; did you mean min_records"),
        (["a"], {"groups": {"min_records": 1}}, "min_records must be at least 2"),
        (["a"], {"groups": {"people": 50}}, "unknown setting"),
        ("auto", {"groups": {"without": ["b"]}}, "unknown setting"),
        (["a"], {"groups": {"exclude": ["b"]}}, 'which is for publish = "auto"'),
        (["a", "b"], {"utility": "variance"}, 'utility = "variance" is for one published column of numbers'),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(publish: Any, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said) as error:
        publishing(publish, **changes)
    assert "\n" not in str(error.value)


def test_columns_of_sections_are_known_only_when_the_source_is() -> None:
    spec = publishing("auto", recode={"age": {"bins": [30]}}, groups={"exclude": ["id"]})
    assert (spec.publish, spec.groups.auto) == ((), True)
    assert spec.publishing(("age", "b")).publish == ("age", "b")
    with pytest.raises(SpecError, match=r"\[recode\] 'age' is neither secret nor published"):
        spec.publishing(("b",))
    with pytest.raises(SpecError, match="secret names 's' and publish 'S', which readers would take for one column"):
        spec.publishing(("age", "S"))


@pytest.mark.parametrize("publish", [["record_class"], ["age", "record_class"]])
def test_no_column_has_the_name_of_the_classes_of_whole_records(publish: list[str]) -> None:
    with pytest.raises(SpecError, match="publish names 'record_class', as funnel names the classes of whole records"):
        publishing(publish)


NUMBERS: dict[str, Any] = {
    "recode": {"age": {"bins": [30]}},
    "numbers": {"age": {"range": [0, 99], "whole": True, "draw": "within"}},
}


def test_numbers_and_weights_of_all_columns_are_judged_when_these_are_known() -> None:
    spec = publishing("auto", **NUMBERS, weight="age")
    assert spec.publishing(("age", "b")).drawn_columns == ("age",)
    for columns, said in (
        (("b", "c"), "neither secret nor published"),
        (("age", "age (number)"), "there is one already"),
        (("age",), "weight names the only published column"),
    ):
        with pytest.raises(SpecError, match=said):
            spec.publishing(columns)
    with pytest.raises(SpecError, match=r"range = \[least, largest\] under \[numbers\.b\]"):
        publishing("auto", **NUMBERS, weight="b")


def test_the_wide_spec_beside_the_data_is_about_columns_that_are_there() -> None:
    spec = ReleaseSpec.load(ROOT / "data" / "adult-wide.toml")
    assert len(spec.publish) == 13
    assert set(spec.columns) <= set(pq.read_schema(ADULT).names)
