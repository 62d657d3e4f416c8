"""Sets of values as texts: different sets have different texts, and each can be read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel import DataError
from funnel.mechanisms.oue import parse_set, parse_sets, set_label, set_labels

names = st.one_of(
    st.sampled_from(
        ["", " ", "a", "b", "a, b", "{}", "{a}", "}", '"', '"a"', "\\", "a}", ", ", ",", "\n", "é, ü", "\ud800"]
    ),
    st.text(max_size=6),
)


@given(st.lists(names, max_size=4), st.lists(names, max_size=4))
def test_different_lists_have_different_texts_that_read_back(one: list[str], other: list[str]) -> None:
    assert parse_set(set_label(one)) == tuple(one)
    assert (set_label(one) == set_label(other)) == (one == other)


@given(st.lists(st.tuples(names, names), max_size=4))
def test_columns_of_a_set_read_back_together(members: list[tuple[str, str]]) -> None:
    labels = set_labels(members, 2)
    assert len(labels) == 2
    assert parse_sets(labels) == tuple(members)


def test_plain_values_are_written_as_they_are() -> None:
    assert set_label([]) == "{}"
    assert set_label(["Bachelors", "Some-college", "5th-6th"]) == "{Bachelors, Some-college, 5th-6th}"
    assert set_label(["Café", "5 o'clock", "a, b", "\u200b"]) == '{Café, 5 o\'clock, "a, b", "\\u200b"}'
    assert set_labels([("Masters", "F"), ("Masters", "M")], 2) == ("{Masters, Masters}", "{F, M}")


@given(st.text(alphabet='{}a, "\\n', max_size=12))
def test_a_text_is_a_set_or_refused(label: str) -> None:
    try:
        values = parse_set(label)
    except DataError as error:
        assert repr(label) in str(error)  # noqa: PT017
    else:
        assert set_label(values) == label


@pytest.mark.parametrize("label", ["", "{", "}", "a", "{a", "{a,b}", "{a, }", '{"a"}', '{"a}', '{"a" b}', "{a} "])
def test_what_no_set_is_written_as_is_refused(label: str) -> None:
    with pytest.raises(DataError, match="is no set of values"):
        parse_set(label)


def test_columns_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="different numbers of values"):
        parse_sets(("{a}", "{}"))
