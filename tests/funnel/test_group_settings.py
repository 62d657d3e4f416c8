"""A spec says its groups of columns; what cannot be is refused in one sentence, before any work."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from funnel.errors import SpecError
from funnel.spec import ReleaseSpec
from tests.projects import ADULT, ROOT, spec_of


def grouped(publish: Any, **changes: Any) -> ReleaseSpec:
    return spec_of("people.parquet", ".", publish=publish, **changes)


def test_groups_are_a_list_of_lists_and_columns_stay_flat() -> None:
    spec = grouped([["a", "b"], ["c"]])
    assert spec.publish == ("a", "b", "c")
    assert spec.groups.of == (("a", "b"), ("c",))
    assert (spec.groups.people, grouped([["a"]], groups={"people": 80}).groups.people) == (50, 80)
    assert grouped(["a", "b"]).groups.of is None


def test_a_spec_without_groups_has_the_digest_that_it_always_had() -> None:
    # As funnel computed it before groups could be said.
    assert "groups" not in grouped(["a"]).model_dump(exclude_defaults=True)
    assert grouped(["a", "b"]).digest != grouped([["a", "b"]]).digest != grouped([["a"], ["b"]]).digest
    assert grouped([["a"]]).digest != grouped([["a"]], groups={"people": 51}).digest
    # What is counted depends on the columns alone.
    assert grouped(["a", "b"]).coding_digest == grouped([["a"], ["b"]]).coding_digest


def test_settings_in_memory_say_their_groups_as_json() -> None:
    said = json.loads(grouped([["a", "b"], ["c"]]).text)
    assert said["publish"] == ["a", "b", "c"]
    assert said["groups"]["of"] == [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    ("publish", "changes", "said"),
    [
        (["a", ["b"]], {}, "names the column 'a' beside groups"),
        ([["a"], ["b", "a"]], {}, "the column 'a' in the groups 1 and 2"),
        ([["a", "a"]], {}, "the column 'a' in a group twice"),
        ([["a"], []], {}, "no column in its group 2"),
        ([["a", 3]], {}, "a list of groups of columns, in quotes"),
        ([["a"], ["s"]], {}, "'s' is both secret and published"),
        ([["a"], ["k"]], {"record_key": ["k"]}, "'k' is a record key, and secret or published as well"),
        ([], {}, "must name at least one column"),
        ([["a"]], {"groups": {"peple": 3}}, "unknown setting; did you mean people"),
        ([["a"]], {"groups": {"people": 5}}, "fewer than the 10 of \\[disclosure\\] minimum_cell"),
        ([["a"]], {"groups": {"of": [["b"]]}}, "name other groups; say them in publish alone"),
        (["a"], {"groups": {"without": ["b"]}}, 'which is for publish = "auto"'),
        ([["a"]], {"frequencies": {}}, 'noise leaves nothing of them; write protection = "threshold"'),
        ("auto", {"frequencies": {"protection": "threshold", "threshold": 60}}, "fewer than the 60 of .* threshold"),
        ([["a"]], {"guarantee": "perfect"}, "give lip, alip or ldp a budget above 0"),
        ([["a"]], {"guarantee": "rldp:1.0,0.05,chi2"}, "cannot keep rldp over the set chi2.*; take the set out"),
        ([["a"]], {"guarantee": "srlip:1.0"}, "cannot keep srlip.*; use lip"),
        ([["a"]], {"guarantee": "mi:0.5"}, "cannot keep mi, which is no bound on what each single record tells"),
        ([["a"]], {"history": {"people": "same"}, "record_key": ["k"]}, 'write people = "different" if it is so'),
        ([["a"]], {"mechanism": "optimal"}, "\\[mechanism\\] optimal is for columns that are published together"),
        ([["a"]], {"mechanism": {"reads_secret": True}}, "reads_secret is for columns that are published together"),
        ([["a"], ["b"]], {"utility": "variance"}, 'utility = "variance" needs a published column of numbers'),
        ("auto", {"utility": "variance"}, 'utility = "variance" needs a published column of numbers'),
        (
            ["a", "b"],
            {"utility": "variance", "numbers": {"a": {"unit": "m"}}},
            r'write publish = \[\["a"\], \["b"\]\] for one',
        ),
        (
            [["a"], ["b"]],
            {"utility": "variance", "numbers": {"a": {"unit": "m"}}, "recode": {"a": {"bins": [3]}}},
            r"range = \[least, largest\] under \[numbers.a\]",
        ),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(publish: Any, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said) as error:
        grouped(publish, **changes)
    assert "\n" not in str(error.value)


def test_columns_of_sections_are_known_only_when_the_source_is() -> None:
    spec = grouped("auto", recode={"age": {"bins": [30]}}, groups={"without": ["id"]})
    assert (spec.publish, spec.groups.of) == ((), "auto")
    assert spec.publishing(("age", "b")).publish == ("age", "b")
    with pytest.raises(SpecError, match=r"\[recode\] 'age' is neither secret nor published"):
        spec.publishing(("b",))
    with pytest.raises(SpecError, match="secret names 's' and publish 'S', which readers would take for one column"):
        spec.publishing(("age", "S"))


NUMBERS: dict[str, Any] = {
    "recode": {"age": {"bins": [30]}},
    "numbers": {"age": {"range": [0, 99], "whole": True, "draw": "within"}},
}


def test_groups_draw_numbers_and_have_weights() -> None:
    spec = grouped([["age"], ["b"]], **NUMBERS, weight="age")
    assert (spec.drawn_columns, spec.weight) == (("age",), "age")
    with pytest.raises(SpecError, match="weight names the column 'c', which is not published"):
        grouped([["age"], ["b"]], **NUMBERS, weight="c")


def test_what_variance_is_explained_of_are_numbers_and_no_weights() -> None:
    spec = grouped([["age"], ["b"]], **NUMBERS, utility="variance")
    assert (spec.number_columns, spec.utility) == (("age",), "variance")
    with pytest.raises(SpecError, match="needs a published column of numbers, and none is named under"):
        grouped([["age"], ["b"]], **NUMBERS, utility="variance", weight="age")
    numbers = {**NUMBERS["numbers"], "s": {"range": [0, 1]}, "b": {"unit": "m"}}
    assert grouped([["age"], ["b"]], **{**NUMBERS, "numbers": numbers}, utility="variance").number_columns == (
        "age",
        "b",
    )
    assert grouped("auto", **NUMBERS, utility="variance").publishing(("age", "b")).number_columns == ("age",)
    assert grouped([["age"], ["b"]], utility="estimation").ungroupable is None


def test_numbers_and_weights_of_all_columns_are_judged_when_these_are_known() -> None:
    spec = grouped("auto", **NUMBERS, weight="age")
    assert spec.publishing(("age", "b")).drawn_columns == ("age",)
    for columns, said in (
        (("b", "c"), "neither secret nor published"),
        (("age", "age (number)"), "there is one already"),
        (("age",), "weight names the only published column"),
    ):
        with pytest.raises(SpecError, match=said):
            spec.publishing(columns)
    with pytest.raises(SpecError, match=r"range = \[least, largest\] under \[numbers\.b\]"):
        grouped("auto", **NUMBERS, weight="b")


def test_the_wide_spec_beside_the_data_is_about_columns_that_are_there() -> None:
    spec = ReleaseSpec.load(ROOT / "data" / "adult-wide.toml")
    assert len(spec.publish) == len(spec.groups.of or ()) == 12
    assert set(spec.columns) <= set(pq.read_schema(ADULT).names)
