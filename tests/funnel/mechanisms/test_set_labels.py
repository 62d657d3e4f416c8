"""Sets of values as texts: different sets have different texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from funnel.mechanisms.oue import set_label, set_labels

names = st.one_of(
    st.sampled_from(
        ["", " ", "a", "b", "a, b", "{}", "{a}", "}", '"', '"a"', "\\", "a}", ", ", ",", "\n", "é, ü", "\ud800"]
    ),
    st.text(max_size=6),
)


@given(st.lists(names, max_size=4), st.lists(names, max_size=4))
def test_different_lists_have_different_texts(one: list[str], other: list[str]) -> None:
    assert (set_label(one) == set_label(other)) == (one == other)


sets = st.lists(st.tuples(names, names), max_size=4)


@given(sets, sets)
def test_different_sets_differ_in_some_column(one: list[tuple[str, str]], other: list[tuple[str, str]]) -> None:
    assert len(set_labels(one, 2)) == 2
    assert (set_labels(one, 2) == set_labels(other, 2)) == (one == other)


def test_plain_values_are_written_as_they_are() -> None:
    assert set_label([]) == "{}"
    assert set_label(["Bachelors", "Some-college", "5th-6th"]) == "{Bachelors, Some-college, 5th-6th}"
    assert set_label(["Café", "5 o'clock", "a, b", "\u200b"]) == '{Café, 5 o\'clock, "a, b", "\\u200b"}'
    assert set_labels([("Masters", "F"), ("Masters", "M")], 2) == ("{Masters, Masters}", "{F, M}")
