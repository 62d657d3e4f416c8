"""Numbers in the report: readable, and never rounded to something untrue."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.report import number_texts

SHARES = st.floats(min_value=0, max_value=1)


def _value(text: str) -> float:
    found = re.fullmatch(r"([\d,.]+)\u00a0%", text)
    assert found, text
    return float(found[1].replace(",", "")) / 100


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (1e-30, "< 0.1 %"),
        (0.00099, "< 0.1 %"),
        (0.001, "0.1 %"),
        (0.33, "33.0 %"),
        (0.9994, "99.9 %"),
        (0.99951, "> 99.9 %"),
        (1 - 1e-9, "> 99.9 %"),
        (1 - 1e-15, "100 %"),
        (1.0, "100 %"),
        (math.nan, "–"),
    ],
)
def test_percentages_never_look_like_nothing_or_everything_when_they_are_not(share: float, text: str) -> None:
    assert number_texts.percent(share) == text.replace(" ", "\u00a0")


@given(SHARES)
def test_limits_on_shares_are_rounded_outwards(share: float) -> None:
    most, least = number_texts.percent_at_most(share), number_texts.percent_at_least(share)
    if not most.startswith((">", "<")):
        assert _value(most) >= share - 1e-12
        assert _value(most) - share < 0.0011
    if not least.startswith((">", "<")):
        assert _value(least) <= share + 1e-12
        assert share - _value(least) < 0.0011


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_an_upper_limit_with_significant_digits_is_never_below_the_number(value: float) -> None:
    text = number_texts.significant_at_most(value).replace(",", "")
    found = re.fullmatch(r"([\d.]+)(?:\u00a0×\u00a010([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?", text)
    assert found, text
    exponent = (found[2] or "⁰").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    written = float(f"{found[1]}e{exponent}")
    assert value * (1 - 1e-12) <= written <= value * 1.01 * (1 + 1e-12)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (2.0313872, 4, "2.031"),
        (0.09620, 4, "0.09620"),
        (99.996, 4, "100.0"),
        (1234567.0, 4, "1,235,000"),
        (1e7, 3, "1.00 × 10⁷"),
        (3.2e-5, 2, "3.2 × 10⁻⁵"),
        (-0.5, 2, "−0.50"),
        (0.0, 4, "0"),
        (math.inf, 4, "infinite"),
        (math.nan, 4, "–"),
    ],
)
def test_significant_digits(value: float, digits: int, text: str) -> None:
    assert number_texts.significant(value, digits) == text.replace(" ", "\u00a0")


def test_an_infinite_level_is_called_so() -> None:
    assert number_texts.level(math.inf) == "infinite"


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (0.0, "0"), (0.4321, "0.43"), (2e-5, "2.0 × 10⁻⁵"), (1e-9, "< 0.000001")]
)
def test_p_values(value: float, text: str) -> None:
    assert number_texts.probability(value) == text.replace(" ", "\u00a0")


def test_small_shares_can_be_compared_in_detail() -> None:
    assert number_texts.percent_in_detail(0.00076) == "0.076\u00a0%"
    assert number_texts.percent_in_detail(0.00033) == "0.033\u00a0%"
    assert number_texts.percent_in_detail(0.33) == "33.0\u00a0%"
    assert number_texts.percent_in_detail(0.0) == "0\u00a0%"


def test_settings_and_durations_are_written_as_a_person_would() -> None:
    assert [number_texts.plain(value) for value in (1.0, 0.5, 12.0)] == ["1", "0.5", "12"]
    assert number_texts.seconds(0.001) == "<\u00a00.01\u00a0s"
    assert number_texts.seconds(2.61) == "2.6\u00a0s"
    assert number_texts.count(48842) == "48,842"


@given(st.text(max_size=400), st.integers(8, 60))
def test_short_labels_are_one_visible_line(label: str, length: int) -> None:
    text = number_texts.short(label, length)
    assert 0 < len(text) <= length
    assert text == " ".join(text.split())


def test_a_long_label_keeps_both_ends() -> None:
    assert number_texts.short("Managers of " + "very " * 20 + "large farms", 26) == "Managers of very…ge farms"


def test_one_record_is_not_one_records() -> None:
    said = [number_texts.things(count, "record") for count in (0, 1, 2, 48842)]
    assert said == ["0\u00a0records", "1\u00a0record", "2\u00a0records", "48,842\u00a0records"]
    assert number_texts.things(3, "class", "classes") == "3\u00a0classes"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, ""),
        (0.001, "<1"),
        (0.005, "<1"),
        (0.006, "1"),
        (0.37, "37"),
        (0.994, "99"),
        (0.995, ">99"),
        (0.999, ">99"),
        (1.0, "100"),
    ],
)
def test_whole_percentages_of_cells_do_not_claim_certainty(share: float, text: str) -> None:
    assert number_texts.whole_percent(share) == text


def test_errors_and_gains_are_percentage_points() -> None:
    assert number_texts.points(0.0013) == "±\u00a00.13"
    assert number_texts.points(0.0) == number_texts.gain(1e-16) == "0"
    assert number_texts.gain(0.025) == "+\u00a02.5"


def test_what_is_not_told_is_a_dash() -> None:
    told = [
        number_texts.percent(None),
        number_texts.significant(None),
        number_texts.level(None),
        number_texts.exact(None),
    ]
    assert told == [number_texts.NONE] * 4
    assert [number_texts.significant("infinite"), number_texts.level("infinite"), number_texts.exact("infinite")] == [
        "infinite"
    ] * 3
