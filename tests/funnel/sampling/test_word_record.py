"""What is noted of the words of a task: as many bits as are to be counted, and no more."""

from __future__ import annotations

import numpy as np
import pytest

from funnel.sampling.word_record import WordRecord, rarity_for
from funnel.word_statistics import RUN_BITS, RUN_WORDS, WORD_BITS


def words_of(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


@pytest.mark.parametrize(("count", "looked_at"), [(500, 500), (1024, 1024), (1025, 1024), (5000, 1024)])
def test_bits_are_counted_of_the_first_thousand_words_of_a_batch(count: int, looked_at: int) -> None:
    words = words_of(4, count)
    record = WordRecord(rarity_for(count))
    for _ in range(2):
        record.add(words)
    found = record.statistics()
    assert (found.words, found.looked_at) == (2 * count, 2 * looked_at)
    bits = (words[:looked_at, np.newaxis] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    assert found.ones == tuple(2 * int(ones) for ones in bits.sum(axis=0))


def test_no_more_marks_of_a_task_are_kept_than_there_is_room_for() -> None:
    # So few rows that every word is marked.
    record = WordRecord(0)
    kept = []
    for _ in range(3):
        record.add(words_of(5, 3000))
        kept.append(record.statistics().kept)
    assert kept == [3000, 6000, 8192]
    found = record.statistics()
    # The same words came three times.
    assert (found.marked, found.repeated) == (9000, 8192 - 3000)


def test_a_run_is_known_by_the_upper_bits_of_its_words() -> None:
    def runs(words: np.ndarray) -> tuple[str, ...]:
        record = WordRecord(0)
        record.add(words)
        return record.statistics().runs

    words = words_of(6, 500)
    known = runs(words)
    # The last ones have too few words after them.
    assert len(known) == len(set(known)) == 500 - RUN_WORDS + 1
    low = np.uint64((1 << (WORD_BITS - RUN_BITS)) - 1)
    assert runs(words | low) == runs(words & ~low) == known
    assert not set(known) & set(runs(words ^ (low + np.uint64(1))))
