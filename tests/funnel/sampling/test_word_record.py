"""What is noted of the words of a task: as many bits as are to be counted, and no more."""

from __future__ import annotations

import numpy as np
import pytest

from funnel.sampling.word_record import WordRecord, rarity_for


@pytest.mark.parametrize(("count", "looked_at"), [(500, 500), (1024, 1024), (1025, 1024), (5000, 1024)])
def test_bits_are_counted_of_the_first_thousand_words_of_a_batch(count: int, looked_at: int) -> None:
    words = np.random.default_rng(4).integers(0, 2**64, count, dtype=np.uint64)
    record = WordRecord(rarity_for(count))
    for _ in range(2):
        record.add(words)
    found = record.statistics()
    assert (found.words, found.looked_at) == (2 * count, 2 * looked_at)
    bits = (words[:looked_at, np.newaxis] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    assert found.ones == tuple(2 * int(ones) for ones in bits.sum(axis=0))
