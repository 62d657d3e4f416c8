"""Statistics of words judged: uniform words pass by far, words that are not are found, and runs are known again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.findings.words import check_randomness, runs_in_common, runs_of_before
from funnel.sampling.word_record import WordRecord, rarity_for
from funnel.word_statistics import WordStatistics, together

WORDS = 20_000


def words_of(seed: int, count: int = WORDS) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


def recorded(words: np.ndarray, *, batch: int = 4096, fixed: int = 0, rows: int | None = None) -> WordStatistics:
    record = WordRecord(rarity_for(len(words) if rows is None else rows), fixed)
    for start in range(0, len(words), batch):
        record.add(words[start : start + batch])
    return record.statistics()


@given(st.integers(0, 2**32 - 1), st.integers(0, 3000), st.integers(0, 16))
def test_uniform_words_are_not_suspected(seed: int, count: int, fixed: int) -> None:
    words = words_of(seed, count) & ~np.uint64((1 << fixed) - 1)
    found = check_randomness(recorded(words, fixed=fixed))
    # By the proof, once in 10^13 examples.
    assert found.p_value > 1e-13
    assert (found.repeated_words, found.repeated_runs) == (0, 0)


@pytest.mark.parametrize(
    ("change", "bit"),
    [
        (lambda words: words & np.uint64(0xFF << 56), True),
        (lambda words: words & np.uint64(0xFF), True),
        (lambda words: words >> np.uint64(1), True),
        (lambda words: np.repeat(words, 2)[: len(words)], False),
        (lambda words: np.tile(words[:1000], len(words) // 1000), False),
        (lambda words: words & words[::-1], True),
    ],
)
def test_words_that_are_not_uniform_are_found(change: Callable[[np.ndarray], np.ndarray], bit: bool) -> None:
    found = check_randomness(recorded(change(words_of(1))))
    assert found.p_value < 1e-12
    assert (found.bit is not None) == bit
    assert bit or found.repeated_words > 0


def test_words_that_are_used_again_are_known_whatever_their_place() -> None:
    words, others = words_of(2), words_of(3)
    first = recorded(words)
    assert runs_of_before(recorded(others), [{"draw": first}]) == 0
    for moved in (words[777:], np.concatenate([others[:5000], words[3000:9000]])):
        again = recorded(moved, batch=5000, rows=WORDS)
        assert runs_of_before(again, [{"order": recorded(others[9000:])}, {"draw": first}]) > 20
    assert runs_in_common({"draw": first, "order": recorded(others)}) == 0
    # What a row is ordered by has an output code in its lowest bits.
    assert runs_in_common({"draw": first, "order": recorded(words | np.uint64(0xFFFF), fixed=16)}) > 200
    assert check_randomness(together([first, first])).repeated_runs == len(first.runs)


def test_a_release_of_another_size_is_compared_by_the_rarer_marks() -> None:
    words = words_of(4, 200_000)
    assert rarity_for(200_000) > rarity_for(2000)
    few, many = recorded(words[50_000:90_000]), recorded(words)
    assert set(many.runs) & set(few.runs)


def test_words_of_one_scope_come_again_as_they_should() -> None:
    words = recorded(words_of(5))
    keyed = replace(words, scope="a" * 32)
    assert runs_of_before(keyed, [{"draw": keyed}]) == 0
    assert runs_of_before(keyed, [{"draw": replace(words, scope="b" * 32)}]) == len(words.runs)
    assert runs_of_before(keyed, [{"draw": words}]) == len(words.runs)
    assert runs_of_before(words, [{"draw": words}]) == len(words.runs)


def test_statistics_are_those_of_the_words() -> None:
    words = words_of(6, 900)
    found = recorded(words, batch=300)
    assert (found.words, found.looked_at, found.rarity) == (900, 900, 1)
    assert found.ones == tuple(int((words >> np.uint64(i) & np.uint64(1)).sum()) for i in range(64))
    assert found.marked == found.kept == int((words < np.uint64(2**63)).sum())
    # No run goes on in the next batch.
    assert found.kept - 9 <= len(found.runs) <= found.kept
    parts = [recorded(words[start : start + 300], rows=900) for start in (0, 300, 600)]
    assert together(parts) == found


def test_a_flood_of_marks_does_not_fill_the_memory() -> None:
    found = recorded(np.zeros(30_000, dtype=np.uint64))
    assert found.marked == 30_000
    assert found.kept == 8192 >= len(found.runs)
    assert check_randomness(found).p_value == 0


def test_statistics_that_were_made_otherwise_are_not_put_together() -> None:
    one = recorded(words_of(7, 100))
    for other in (replace(one, rarity=3), replace(one, scope="a" * 32), replace(one, fixed=2)):
        with pytest.raises(ValueError, match="not made alike"):
            together([one, other])
    with pytest.raises(ValueError, match="not made alike"):
        together([])


@pytest.mark.parametrize(("count", "kept"), [(1, 0), (63, 0), (64, 64)])
def test_bits_of_a_few_words_would_tell_them_and_are_not_kept(count: int, kept: int) -> None:
    words = words_of(8, count)
    found = recorded(words)
    assert (found.looked_at, found.words) == (kept, count)
    assert any(found.ones) == bool(kept)
    # That they repeat is seen all the same.
    assert check_randomness(recorded(np.repeat(words, 2))).p_value < 1e-12
