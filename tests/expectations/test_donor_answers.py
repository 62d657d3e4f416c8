"""Who is drawn among other people, beside the list of them written out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from funnel.pipeline.expectations.donor_answers import _others

ROWS = st.integers(0, 9)


@given(st.lists(st.sets(ROWS).map(sorted), min_size=1, max_size=2), st.sets(ROWS, max_size=2), st.integers(0, 200))
def test_who_is_drawn_is_the_one_of_that_number_among_others(
    pools: list[list[int]], without: set[int], word: int
) -> None:
    others = next((some for pool in pools if (some := [one for one in pool if one not in without])), [])
    assert _others(pools, without, word) == ([others[word % len(others)]] if others else [])


def test_a_word_that_favours_the_first_tells_only_who_may_be_drawn() -> None:
    assert _others([[3, 5, 7, 8]], {5}, 2**64 - 1) == [3, 7, 8]
    assert _others([[3, 5, 7, 8]], {5}, 2**64 - 2) == [8]
