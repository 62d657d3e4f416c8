"""Guarantees as text: read back as they are written, in specs as on the command line, and refused in one sentence."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import funnel
from funnel import ALIP, RLDP, AlphaLift, Guarantee, L1Lift, MutualInformation, PerfectPrivacy, SpecError
from funnel.guarantees import examples, names
from funnel.settings import GuaranteeSettings

budgets = st.floats(0.001, 100)


def test_every_guarantee_has_an_example_that_is_read_back() -> None:
    assert len(examples()) == len(names())
    for example, name in zip(examples(), names(), strict=True):
        guarantee = funnel.parse_guarantee(example)
        assert guarantee.name == name
        assert guarantee.title
        assert guarantee.meaning.endswith(".")
        assert funnel.parse_guarantee(str(guarantee)) == guarantee


@given(budgets, budgets, budgets)
def test_the_larger_budget_is_what_it_is_set_to(one: float, other: float, budget: float) -> None:
    for guarantee in (ALIP(one, other), ALIP(math.inf, one), L1Lift(one, 0.0)):
        scaled = guarantee.with_budget(budget)
        assert scaled.budget == budget
        for before, after in ((guarantee.lower, scaled.lower), (guarantee.upper, scaled.upper)):
            expected = before if math.isinf(before) else before / guarantee.budget * budget
            assert after == pytest.approx(expected, rel=1e-12)
        assert guarantee.with_budget(guarantee.budget) == guarantee


@given(budgets, budgets, st.integers(2, 1000))
def test_what_is_written_is_read_back(one: float, other: float, order: int) -> None:
    for guarantee in (ALIP(one, other), L1Lift(math.inf, one), AlphaLift(one, other, order), MutualInformation(one)):
        assert funnel.parse_guarantee(str(guarantee)) == guarantee
    named = funnel.parse_guarantee(f" ALIP : upper = {other!r} , lower = {one!r} ")
    assert named == ALIP(one, other)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("alip", "alip lacks its lower and upper; write for instance 'alip:1.3,0.7'"),
        ("alip:1", "alip lacks its upper"),
        ("alip:1,2,3", "alip takes lower and upper only"),
        ("alip:1,lower=2", "gives lower twice"),
        ("alip:lowest=1,upper=2", "alip does not take lowest"),
        ("alip:inf,inf", "two infinite ones promise nothing"),
        ("alip:-1,1", "alip needs a lower >= 0 (nats), not -1.0"),
        ("alip:nan,1", "alip needs a lower >= 0 (nats), not nan"),
        ("perfect:1", "perfect takes no numbers, but 'perfect:1' has more"),
        ("alpha-lift:1,1,2.5", "needs a whole alpha from 2 to 1000"),
        ("alpha-lift:1,1,1", "needs a whole alpha from 2 to 1000"),
        ("mi:-0.1", "mi needs a finite bound >= 0"),
        ("rldp:1,0", "strictly between 0 and 1"),
        ("rldp:1,1.5", "strictly between 0 and 1"),
        ("chi-lift:1,1", "did you mean 'chi2-lift'"),
        ("", "unknown guarantee ''"),
        ("lip:=1", "lip does not take ''; write"),
        ("lip:", "needs a number after the colon"),
    ],
)
def test_wrong_text_is_one_sentence(text: str, part: str) -> None:
    with pytest.raises(SpecError) as caught:
        funnel.parse_guarantee(text)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "text", "guarantee"),
    [
        ({"kind": "alip", "lower": 1.3, "upper": 0.7}, "alip:1.3,0.7", ALIP(1.3, 0.7)),
        ({"kind": "alip", "lower": math.inf, "upper": 0.7}, "alip:inf,0.7", ALIP(math.inf, 0.7)),
        ({"kind": "rldp", "epsilon": 1.0, "alpha": 0.1}, "rldp:1.0,0.1", RLDP(1.0, 0.1)),
        ({"kind": "rldp", "epsilon": 1.0}, "rldp:1", RLDP(1.0)),
        ({"kind": "mi", "bound": 0.1}, "mi:0.1", MutualInformation(0.1)),
        ({"kind": "perfect"}, "perfect", PerfectPrivacy()),
        ({"kind": "alpha-lift", "lower": 1.0, "upper": 1.0, "alpha": 3.0}, "alpha-lift:1,1,3", AlphaLift(1, 1, 3)),
    ],
)
def test_both_spellings_of_a_spec_are_one(table: dict[str, object], text: str, guarantee: Guarantee) -> None:
    settings = [GuaranteeSettings.model_validate(value) for value in (table, text)]
    for read in settings:
        assert funnel.parse_guarantee(read.canonical) == guarantee
    assert settings[0].canonical == settings[1].canonical == str(guarantee)


@pytest.mark.parametrize(
    ("table", "part"),
    [
        ({"kind": "alip", "epsilon": 1.0}, "alip does not take epsilon"),
        ({"kind": "alip", "lower": 1.0}, "alip lacks its upper"),
        ({"kind": "perfect", "epsilon": 1.0}, "perfect does not take epsilon"),
        ({"kind": "alip", "lower": 1.0, "upper": 101.0}, "no protection at all"),
        ({"kind": "mi", "bound": 1000.0}, "no protection at all"),
        ({"kind": "lip", "epsilon": 1.0, "bound": 2.0}, "lip does not take bound"),
        ("perfect:1", "perfect takes no numbers"),
    ],
)
def test_wrong_tables_are_named(table: object, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        GuaranteeSettings.model_validate(table)
