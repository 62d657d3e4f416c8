"""What goes with what: every contradiction of a spec is told, all at once, before a source is looked at."""

from __future__ import annotations

from typing import Any

import pytest

from funnel.errors import SpecError
from funnel.settings.agreement import RULES, conflicts
from funnel.spec import ReleaseSpec
from tests.projects import spec_of

SAME = {"history": {"people": "same"}, "record_key": ["id"]}


def refusal(**changes: Any) -> str:
    # There is no such source: nothing is read before settings are compared.
    with pytest.raises(SpecError) as caught:
        spec_of("nowhere.parquet", ".", **changes)
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        (
            {
                **SAME,
                "unit": ["id"],
                "guarantee": "rsrlip:1.5,0.05",
                "publish": ["x", "y"],
                "frequencies": {"protection": "noise"},
            },
            ['"rsrlip:1.5,0.05"', "several rows of one person under noise", 'write guarantee = "lip:1.5"'],
        ),
        (
            {**SAME, "guarantee": "rldp:1.5,0.05,chi2"},
            [
                '"rldp:1.5,0.05,chi2"',
                "same people",
                'write guarantee = "rldp:1.5,0.05", or [history] people = "different"',
            ],
        ),
        (
            {**SAME, "guarantee": ["rlip:1.0,0.05", "srlip:1.0"], "publish": ["x", "y"]},
            ['write guarantee = "rlip:1.0,0.05"'],
        ),
        ({**SAME, "guarantee": "mi:0.5"}, ['write guarantee = "lip:0.5"']),
        (
            {
                "mechanism": "invariant",
                "record_key": ["id"],
                "unit": ["id"],
                "history": {"people": "same"},
                "frequencies": {"protection": "noise"},
            },
            ["several rows of one person under noise", "take unit out"],
        ),
        ({**SAME, "mechanism": {"name": "optimal", "reads_secret": True}}, ["reads_secret", "take reads_secret out"]),
        ({"guarantee": "srlip:1.0"}, ["srlip:1.0", "only 'x' is published", 'write guarantee = "lip:1.0"']),
        ({"guarantee": "mi:0.1", "mechanism": "invariant"}, ["mi:0.1 is not", 'mechanism = "auto"']),
        ({"guarantee": "rldp:1.0,0.05,chi2", "mechanism": "invariant"}, ["is not; write"]),
        ({"guarantee": "rldp:1.0,0.05", "mechanism": "polyopt"}, ["polyopt reads the secret", "reads_secret = true"]),
        (
            {"publish": "auto", "mechanism": "invariant", "frequencies": {"protection": "noise"}},
            ['publish = "auto"', "exact counts", 'protection = "threshold" in [frequencies]'],
        ),
        (
            {
                "groups": {"classes": "classes.json"},
                "mechanism": "invariant",
                "guarantee": "srlip:1.0",
                "publish": ["x", "y"],
            },
            ["[groups] classes", "srlip:1.0 is no bound on what a class of records tells"],
        ),
        (
            {
                "groups": {"classes": "classes.json"},
                "mechanism": {"name": "invariant", "weights": "uniform"},
                "publish": ["x", "y"],
                "utility": "estimation",
            },
            ['utility = "estimation" leaves as many records as can be', "take it out"],
        ),
        (
            {
                "groups": {"classes": "classes.json"},
                "weight": "y",
                "publish": ["x", "y"],
                "recode": {"y": {"bins": [3, 5]}},
                "numbers": {"y": {"range": [1, 9]}},
            },
            ["[groups] classes", "drawn one by one", "publish fewer columns"],
        ),
        (
            {"groups": {"known": ["x"]}},
            ["[groups] known is for bounds on observers who know columns", "take known out"],
        ),
        (
            {"groups": {"known": ["z"]}, "guarantee": "lip:1.0 & srlip:1.0", "publish": ["x", "y"]},
            ["[groups] known names 'z', which is no published column"],
        ),
        (
            {"metadata": {"licence": "CC0-1.0", "labels": {"xx": "Years"}}},
            ["[metadata] labels names 'xx', which is no published column", "did you mean x?"],
        ),
        ({"impossible": [{"s": ["a"], "x": ["b"]}], "categories": {"x": ["b"]}}, ["names 's', which is secret"]),
        (
            {"impossible": [{"x": ["b"], "yy": ["c"]}], "publish": ["x", "y"], "categories": {"x": ["b"]}},
            ["[[impossible]] names 'yy', which is not published", "did you mean y?"],
        ),
        (
            {
                "impossible": [{"x": ["b"], "y": ["c"]}],
                "publish": ["x", "y"],
                "categories": {"x": ["b"]},
                "frequencies": {"protection": "noise"},
            },
            ["[[impossible]] names 'y', and nothing says which values it has", "list them in [categories]"],
        ),
        (
            {
                "impossible": [{"x": ["b"], "y": ["under 3", "under 4"]}],
                "publish": ["x", "y"],
                "categories": {"x": ["b"]},
                "recode": {"y": {"bins": [3, 5]}},
            },
            ["[[impossible]] lists 'under 4' of 'y', which is none of its values", "did you mean under 3?"],
        ),
        ({"groups": {"exclude": ["z"]}}, ["[groups] exclude", 'publish = "auto"', "take exclude out"]),
        (
            {"history": {"people": "different", "budget_fraction": 0.5}},
            ["[history] gives a budget_fraction", "take it out"],
        ),
        ({"engine": {"scheduler": "tcp://10.0.0.5:8786"}}, ["[engine] names a scheduler", "take scheduler out"]),
        ({"mechanism": {"name": "optimal", "weights": "share"}}, ['weights = "share"', "take weights out"]),
    ],
)
def test_a_contradiction_names_its_settings_and_what_to_change(changes: dict[str, Any], named: list[str]) -> None:
    said = refusal(**changes)
    assert [text for text in named if text not in said] == []
    assert "contradictions" not in said


def test_all_contradictions_are_told_at_once() -> None:
    said = refusal(
        history={"people": "same"},
        guarantee="rlip:1.0,0.05",
        mechanism={"name": "invariant", "reads_secret": True},
        frequencies={"protection": "noise", "threshold": 5},
        groups={"exclude": ["z"]},
        categories={"z": ["a"]},
        disclosure={"on_breach": "refuse"},
        unit=["x"],
    )
    assert said.startswith("8 contradictions: (1) ")
    for text in (
        "the column 'x' is a record key",
        "the column 'x' is a unit",
        "[categories] 'z' is neither secret nor published",
        'mechanism = "invariant" is not there yet',
        "reads_secret = true",
        "[groups] exclude",
        "[frequencies] gives threshold",
        'on_breach = "refuse"',
    ):
        assert text in said
    assert "\n" not in said


@pytest.mark.parametrize("more", [{"guarantee": "lip:1.0"}, {"guarantee": "lip:1.0", "unit": ["id"]}])
def test_what_a_message_says_to_write_is_no_contradiction(more: dict[str, Any]) -> None:
    """A secret is not published over versions about the same people, whatever the bound."""
    said = refusal(**SAME, publish=["s", "x"], secret=["s"], **more)
    assert "take it out of publish" in said
    assert "attribute:1.0" not in said
    spec_of("nowhere.parquet", ".", **SAME, publish=["x"], secret=["s"], **more)


def test_what_is_wrong_with_single_settings_is_told_together() -> None:
    said = refusal(recode={"x": {"bins": [2, 1]}}, source={"encoding": "utf-99"}, limits={"max_symbols": 1})
    assert "[recode.x] bins must increase" in said
    assert "[source] encoding 'utf-99' is not known" in said
    assert "[limits] max_symbols" in said


def test_the_rules_are_about_settings_that_there_are() -> None:
    sections = {name: field.annotation for name, field in ReleaseSpec.model_fields.items()}
    for rule in RULES:
        for setting in rule.settings:
            head, _, part = setting.partition(" ")
            name = head.strip("[]")
            assert name in sections, setting
            assert not part or part in str(getattr(_model(sections[name]), "model_fields", {}).keys()), setting


def _model(annotation: Any) -> Any:
    return next((one for one in getattr(annotation, "__args__", ()) if hasattr(one, "model_fields")), annotation)


def test_a_spec_that_agrees_breaks_no_rule() -> None:
    assert conflicts(spec_of("nowhere.parquet", ".")) == ()
    assert conflicts(spec_of("nowhere.parquet", ".", **SAME)) == ()
    for protection in ("none", "threshold", "noise"):
        changes = {**SAME, "mechanism": "invariant", "frequencies": {"protection": protection}}
        assert conflicts(spec_of("nowhere.parquet", ".", **changes)) == ()
