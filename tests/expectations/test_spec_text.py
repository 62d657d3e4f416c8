"""What a spec says is read again from its text, whatever it is written in; a text that says nothing is refused."""

from __future__ import annotations

import json

import pytest

from funnel.errors import SpecError
from funnel.guarantees import ALIP, LIP, Guarantee
from funnel.pipeline.expectations.spec_text import SpecText
from funnel.recount.promise import read_promise

BOUND = '[guarantee]\nkind = " LIP "\nepsilon = 0.5\n'


@pytest.mark.parametrize(
    ("text", "guarantee"),
    [
        ('guarantee = "lip:0.5"', LIP(0.5)),
        (BOUND, LIP(0.5)),
        ('[guarantee]\nkind = "alip"\nlower = 1.5\nupper = 0.5\n', ALIP(lower=1.5, upper=0.5)),
        (json.dumps({"guarantee": "lip:0.5"}), LIP(0.5)),
        (json.dumps({"guarantee": {"kind": "lip", "epsilon": 0.5}}), LIP(0.5)),
    ],
)
def test_the_bound_is_read_from_the_text_however_it_is_written(text: str, guarantee: Guarantee) -> None:
    said = SpecText.of(text)
    assert said.promise == read_promise(str(guarantee))
    assert said.promise.kind == guarantee.name
    assert float(said.promise.budget) == guarantee.budget


@pytest.mark.parametrize("text", ["name", "[1, 2]", '"lip:0.5"', "null", "{", "[" * 100_000, "a = " + "[" * 100_000])
def test_a_text_that_is_no_table_of_settings_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="the text of the spec is neither TOML nor JSON, so what it says cannot be"):
        SpecText.of(text)


@pytest.mark.parametrize("text", ["", "guarantee = 1", '[guarantee]\nkind = "lip"'])
def test_a_text_without_a_bound_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        SpecText.of(text)


def test_what_is_not_said_is_as_documented() -> None:
    said = SpecText.of(BOUND)
    assert (said.csv, said.keyed, said.shuffled, said.alpha) == (False, False, True, 0.05)
    assert said.section("guarantee") == {"kind": " LIP ", "epsilon": 0.5}
    assert said.section("output") == {}
    other = SpecText.of('output = "in short"\nrecord_key = ["id"]\n[confidence]\nalpha = 0.01\n' + BOUND)
    assert other.section("output") == {}
    assert (other.keyed, other.alpha) == (True, 0.01)
    written = SpecText.of(f"{BOUND}[output]\ncsv = true\nshuffle = false\n")
    assert (written.csv, written.shuffled) == (True, False)
