"""Donors: every person of the new class is as likely, exactly, whatever moves; and nobody reads the secret."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from funnel.errors import EntropyError
from funnel.sampling.donors import Donors

# Three classes; the last record of the last class has most people.
CODES = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]], dtype=np.int32)
OF, COUNTS = np.array([0, 0, 1, 1, 2, 2]), np.array([2, 1, 3, 1, 1, 4])
DONORS = Donors(("a", "b"), (("x", "y", "z"), ("p", "q")), CODES, ("1", "2", "3"), OF, COUNTS)


def always(words: np.ndarray, attempt: int) -> np.ndarray:
    return words


def distribution(source: int, target: int) -> dict[int, Fraction]:
    """Of the donors of everybody of a class who moves to another, all words that a draw tells apart being alike."""
    shares: Counter[int] = Counter()
    whole = 0
    for record in np.flatnonzero(source == OF).tolist():
        limit = int(COUNTS[record] * COUNTS[target == OF].sum())
        # One word for every remainder of the limit.
        words = np.arange(limit, dtype=np.uint64) + np.uint64(limit * 1000)
        drawn = DONORS.taken(np.full(limit, record), np.full(limit, target), partial(always, words))
        assert len(set(OF[drawn].tolist())) == 1
        shares.update(drawn.tolist())
        whole += limit
    return {record: Fraction(count, whole) for record, count in shares.items()}


@pytest.mark.parametrize(("source", "target"), [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)])
def test_every_person_of_the_class_is_as_likely_to_be_the_donor(source: int, target: int) -> None:
    people = int(COUNTS[target == OF].sum())
    assert distribution(source, target) == {
        record: Fraction(int(COUNTS[record]), people) for record in np.flatnonzero(target == OF).tolist()
    }


@pytest.mark.parametrize(("source", "target"), [(0, 1), (1, 2), (2, 0), (2, 1)])
def test_pairs_are_what_is_drawn(source: int, target: int) -> None:
    records, others, shares = DONORS.pairs(source, target)
    told = dict(zip(zip(records.tolist(), others.tolist(), strict=True), shares.tolist(), strict=True))
    assert len(told) == len(shares)
    drawn: Counter[tuple[int, int]] = Counter()
    for record in np.flatnonzero(source == OF).tolist():
        limit = int(COUNTS[record] * COUNTS[target == OF].sum())
        words = np.arange(limit, dtype=np.uint64) + np.uint64(limit * 1000)
        taken = DONORS.taken(np.full(limit, record), np.full(limit, target), partial(always, words))
        drawn.update((record, donor) for donor in taken.tolist())
    assert told == pytest.approx({pair: number / drawn.total() for pair, number in drawn.items()})


def test_who_keeps_the_class_keeps_the_record() -> None:
    rows = np.arange(len(CODES))
    assert np.array_equal(DONORS.taken(rows, OF, lambda _: np.zeros(len(rows), np.uint64)), rows)


def test_words_that_favour_some_are_drawn_again() -> None:
    asked: list[int] = []

    def words(attempt: int) -> np.ndarray:
        asked.append(attempt)
        # 2^64 - 1 is beyond the largest multiple of 8 only if the limit is no power of two.
        return np.full(2, 2**64 - 1 if attempt == 0 else 0, dtype=np.uint64)

    # Limits of 2 * 5 and of 2 * 4: only the first word favours one of its remainders.
    drawn = DONORS.taken(np.array([0, 0]), np.array([2, 1]), words)
    assert asked == [0, 1]
    assert OF[drawn].tolist() == [2, 1]


def test_a_broken_source_of_words_is_an_error() -> None:
    with pytest.raises(EntropyError, match="8 tries"):
        DONORS.taken(np.array([0]), np.array([2]), lambda _: np.full(1, 2**64 - 1, dtype=np.uint64))


def test_people_who_are_alike_stand_together() -> None:
    """Who agrees with half of the people of the new class in the first column is published as one of them."""
    codes = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], dtype=np.int32)
    donors = Donors(("a", "b"), (("x", "y"), ("p", "q")), codes, ("1", "2"), np.array([0, 0, 1, 1]), np.full(4, 10))
    words = np.arange(100, dtype=np.uint64)
    for record, donor in ((0, 2), (1, 3)):
        assert set(donors.taken(np.full(100, record), np.ones(100, int), lambda _: words).tolist()) == {donor}
