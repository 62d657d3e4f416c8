"""Wording: the nearest name is found through the slips people make, and names are spelt as TOML wants them."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.wording import at_most, listed, nearest, plain_number, toml_key

NAMES = ("marital-status", "education", "education-num", "native-country")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("marital_status", "marital-status"),
        ("Marital Status", "marital-status"),
        ("martial-status", "marital-status"),
        ("educatoin", "education"),
        ("education num", "education-num"),
        ("zzz", None),
        ("", None),
    ],
)
def test_the_nearest_name_is_the_one_meant(typed: str, meant: str | None) -> None:
    assert nearest(typed, NAMES) == meant


def test_a_long_list_is_cut_off_with_its_length() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(["a\nb", "c"]) == r"'a\nb', c"
    assert listed(map(str, range(100)), limit=3) == "0, 1, 2 and 97 more"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_a_key_is_read_back_by_toml(name: str) -> None:
    assert tomllib.loads(f"{toml_key(name)} = 1") == {name: 1}


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers())
def test_a_number_is_written_with_its_value(number: int | float) -> None:
    assert float(plain_number(number)) == float(number)


def test_whole_numbers_have_no_decimal_point() -> None:
    assert [plain_number(n) for n in (25, 25.0, 0.5, 1e20)] == ["25", "25", "0.5", "1e+20"]


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (1.0, "1"),
        (0.1, "0.1"),
        (0.0, "0"),
        (2.718281828, "2.72"),
        (3.6692, "3.67"),
        (99999.0, "1e+05"),
        (1.0001e300, "1.01e+300"),
    ],
)
def test_a_limit_is_written_rounded_up(limit: float, text: str) -> None:
    assert at_most(limit) == text
    assert float(text) >= limit
