"""Guarantees as text: read back as they are written, in specs as on the command line, and refused in one sentence."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

import funnel
from funnel import (
    ALIP,
    LIP,
    RLDP,
    AlphaLift,
    Guarantee,
    Joint,
    L1Lift,
    MutualInformation,
    PerfectPrivacy,
    SpecError,
    guarantees,
)
from funnel.guarantees import Level, examples, names
from funnel.protocol import WeightArray
from funnel.settings.guarantee import MAX_EPSILON, GuaranteeSettings
from funnel.spec import ReleaseSpec

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
        ("lip:1_0", "guarantee 'lip:1_0' needs a number after the colon, as in 'lip:1.0'"),
        ("lip:0x10", "needs a number after the colon"),
        ("lip:١", "needs a number after the colon"),
        ("lip:1 0", "needs a number after the colon"),
        ("lip:infinity", "needs a number after the colon"),
        ("rldp:1,alhpa=0.1", "rldp does not take alhpa; did you mean alpha?"),
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
        ({"kind": "alip", "lower": 5e-324, "upper": 1.0}, "lower of 4.94066e-324 nats cannot be told from none"),
        ({"kind": "mi", "bound": 1e-10}, "bound of 1e-10 nats cannot be told from none; give at least 1e-09"),
        ({"kind": "lip", "epsilon": 1.0, "bound": 2.0}, "lip does not take bound"),
        ("perfect:1", "perfect takes no numbers"),
    ],
)
def test_wrong_tables_are_named(table: object, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        GuaranteeSettings.model_validate(table)


@pytest.mark.parametrize("text", ["lip:{}", "ldp:{}", "srlip:{}", "rldp:{},0.1", "alip:1,{}", "alip:{},inf", "mi:{}"])
def test_a_budget_of_exactly_a_hundred_is_the_largest(text: str) -> None:
    """MAX_EPSILON itself is accepted, and so is the float below it; the float above it is not."""
    assert MAX_EPSILON == 100
    for budget in (MAX_EPSILON, math.nextafter(MAX_EPSILON, 0)):
        settings = GuaranteeSettings.model_validate(text.format(repr(budget)))
        assert funnel.parse_guarantee(settings.canonical).budget == budget
    with pytest.raises(ValueError, match=r" of 100 nats is no protection at all; give at most 100"):
        GuaranteeSettings.model_validate(text.format(repr(math.nextafter(MAX_EPSILON, math.inf))))


def test_what_is_left_out_is_said_with_its_default_and_read_back() -> None:
    short, long = (GuaranteeSettings.model_validate(text) for text in ("rldp:1", "rldp:alpha=0.05,epsilon=1"))
    assert short == long
    assert short.model_dump() == {"kind": "rldp", "epsilon": 1.0, "alpha": 0.05, "set": "boxes"}
    assert GuaranteeSettings.model_validate(short.model_dump()) == short
    assert GuaranteeSettings.model_validate_json(short.model_dump_json()) == short


@dataclass(frozen=True)
class Toy(Guarantee):
    """Everything a new guarantee needs: one class, with numbers of its own names."""

    order: float
    slack: float = 0.5
    name: ClassVar[str] = "toy"
    title: ClassVar[str] = "a toy"
    example: ClassVar[str] = "toy:2,0.5"

    @property
    def budget(self) -> float:
        return self.slack

    def with_budget(self, budget: float) -> Toy:
        return replace(self, slack=budget)

    def level_for(self, joint: Joint, weights: WeightArray) -> Level:
        return LIP(1.0).level_for(joint, weights)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registered as its name in guarantees/__init__.py would register it."""
    monkeypatch.setitem(guarantees._KINDS, "toy", Toy)


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ('guarantee = "toy:300"', Toy(300.0)),
        ('guarantee = "toy:order=3,slack=0.25"', Toy(3.0, 0.25)),
        ('[guarantee]\nkind = "toy"\norder = 3\nslack = 0.25', Toy(3.0, 0.25)),
        ('[guarantee]\nkind = "toy"\norder = 3.0', Toy(3.0)),
    ],
)
def test_a_new_guarantee_brings_its_own_settings(said: str, meant: Toy, tmp_path: Path) -> None:
    spec = ReleaseSpec.load(spec_file(tmp_path, said))
    read = funnel.parse_guarantee(spec.guarantee.canonical)
    assert read == meant
    # What nobody put into words of its own is said by its name.
    assert read.meaning == f"The declared bound is toy:{meant.order},{meant.slack} (a toy)."
    assert spec.guarantee.model_dump() == {"kind": "toy", "order": meant.order, "slack": meant.slack}


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ('guarantee = "toy"', "toy lacks its order"),
        ('[guarantee]\nkind = "toy"\noder = 3', "[guarantee] toy does not take oder; did you mean order?"),
        ('[guarantee]\nkind = "toy"\norder = "3"', "[guarantee] order must be a number"),
        ('[guarantee]\nkind = "toy"\norder = 3\nlower = 1', "[guarantee] toy does not take lower"),
        ('guarantee = "toy:2,101"', "[guarantee] slack of 101 nats is no protection at all"),
    ],
)
def test_the_settings_of_a_new_guarantee_are_refused_by_name(said: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=re.escape(complaint)):
        ReleaseSpec.load(spec_file(tmp_path, said))


def spec_file(folder: Path, guarantee: str) -> Path:
    text = 'name = "x"\ntitle = "X"\nsecret = ["s"]\npublish = ["x"]\n'
    rest = '[source]\npath = "a.parquet"\n[metadata]\nlicence = "CC0"\n'
    file = folder / "release.toml"
    # A line of its own stands before the first table.
    file.write_text(text + (guarantee + "\n" + rest if guarantee[0] != "[" else rest + guarantee + "\n"))
    return file
