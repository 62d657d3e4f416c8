"""Word record: statistics of the words of a task, taken as they are used; see `funnel.word_statistics`."""

from __future__ import annotations

import math
from hashlib import blake2b

import numpy as np

from funnel.sampling.codes import CodeArray
from funnel.sampling.random_words import WordArray
from funnel.word_statistics import RUN_BITS, RUN_WORDS, WORD_BITS, WordStatistics

# A small release keeps between so many digests and twice as many; a large one some dozens of each partition.
_RUNS = 1 << 8
_RAREST = 13
# Of a task; only words that are not random bear so many marks.
_MOST_MARKED = 1 << 13
# Words of a batch whose bits are counted: all of a small release, and enough of a large one.
_LOOKED_AT = 1 << 10
# How often bits are one tells words where these are few.
_FEWEST = 64
# Bits of so many words are added up in a byte.
_ADDED = 1 << 7


def rarity_for(rows: int) -> int:
    """How rare the mark is in a release of so many rows."""
    return min(_RAREST, max(0, int(math.log2(max(1, rows) / _RUNS))))


class WordRecord:
    """Takes in words, batch by batch.

    Parameters
    ----------
    rarity : int
        From `rarity_for`.
    fixed : int
        So many of the lowest bits are no random ones.
    scope : str, optional
        Of words that come again with their key.
    secrets : int
        c, where words are counted by the secret of their record; 0 where they are not.
    """

    def __init__(self, rarity: int, fixed: int = 0, scope: str | None = None, secrets: int = 0) -> None:
        self._rarity, self._fixed, self._scope = rarity, fixed, scope
        self._words = self._looked_at = self._marked = 0
        self._ones = np.zeros(WORD_BITS, dtype=np.int64)
        self._halves = np.zeros((secrets + 1 if secrets else 0, 2), dtype=np.int64)
        self._kept: list[int] = []
        self._runs: list[str] = []

    def add(self, words: WordArray, secrets: CodeArray | None = None) -> None:
        """Take in the words of a batch, and the secrets of their records; O(words), some nanoseconds each."""
        if secrets is not None:
            # What is outside the alphabet, -1, is the last one.
            cells = 2 * (secrets.astype(np.int64) % len(self._halves)) + (words >> np.uint64(WORD_BITS - 1)).astype(
                np.int64
            )
            self._halves += np.bincount(cells, minlength=self._halves.size).reshape(self._halves.shape)
        looked_at = np.ascontiguousarray(words[:_LOOKED_AT], dtype="<u8")
        self._words += len(words)
        self._looked_at += len(looked_at)
        for start in range(0, len(looked_at), _ADDED):
            bits = np.unpackbits(looked_at[start : start + _ADDED].view(np.uint8), bitorder="little")
            self._ones += bits.reshape(-1, WORD_BITS).sum(axis=0, dtype=np.uint8)
        marked = np.arange(len(words))
        if self._rarity:
            # Below the limit, the highest bits are zero.
            marked = np.flatnonzero(words < np.uint64(1 << (WORD_BITS - self._rarity)))
        self._marked += len(marked)
        for place in marked[: _MOST_MARKED - len(self._kept)].tolist():
            self._kept.append(int(words[place]))
            if place + RUN_WORDS <= len(words):
                run = (words[place : place + RUN_WORDS] >> np.uint64(WORD_BITS - RUN_BITS)).astype("<u8").tobytes()
                self._runs.append(blake2b(run, digest_size=16, person=b"funnel run words").hexdigest())

    def statistics(self) -> WordStatistics:
        """Of all words so far."""
        enough = self._looked_at >= _FEWEST
        return WordStatistics(
            self._words,
            self._fixed,
            self._looked_at * enough,
            tuple((self._ones * enough).tolist()),
            self._rarity,
            self._marked,
            len(self._kept),
            len(self._kept) - len(set(self._kept)),
            tuple(self._runs),
            self._scope,
            tuple((first, second) for first, second in self._halves.tolist()),
        )
