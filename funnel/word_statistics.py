"""Word statistics: what shows that random words are bad ones and tells no word; evidence, and never public.

Three things are kept of a stream of 64-bit words: how often each bit is one, how many of the words that bear a *mark*
were there before, and digests of *runs*. A word bears the mark if its highest ``rarity`` bits are zero, one word in
2^rarity. A run is the highest 48 bits of the marked word and of the three after it; it is kept as a digest of 128 bits.
Where the same words are used twice, in another partition, for another purpose or in another version, whatever their
place there, the same words bear the mark and the same digests appear.

A digest tells nothing: whoever wants to undo it has to guess four words at once, of which at least 192 - rarity bits
are random (less by 4 for each by which ``fixed`` exceeds 16).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import Field, NonNegativeInt

WORD_BITS = 64
RUN_WORDS = 4
RUN_BITS = 48
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


@dataclass(frozen=True)
class WordStatistics:
    """Statistics of one stream of words, or of several with the same purpose.

    Attributes
    ----------
    words : int
        How many there were.
    fixed : int
        So many of the lowest bits are no random ones.
    looked_at : int
        How many of the words had their bits counted.
    ones : tuple of int, length 64
        How often each bit was one, the lowest first.
    rarity : int
        One word in 2^rarity bears the mark.
    marked : int
        How many bore it.
    kept : int
        How many of these were compared with one another, within each stream.
    repeated : int
        How many of these had been there before in their stream.
    runs : tuple of str
        Digests (hex) of the runs that begin with a marked word.
    scope : str or None
        Of words that are derived from a secret and come again with it: a digest of the key. None for fresh words.
    halves : tuple of (int, int), length c + 1 or 0
        Of words that rows are ordered by, for each secret and for others: how many have the highest bit 0, so that
        their rows come to the first half of the file, and how many have it 1. Empty where secrets are not told apart.

    Raises
    ------
    ValueError
        If parts are more than the whole.
    """

    words: NonNegativeInt
    fixed: Annotated[int, Field(ge=0, lt=WORD_BITS)]
    looked_at: NonNegativeInt
    ones: Annotated[tuple[NonNegativeInt, ...], Field(min_length=WORD_BITS, max_length=WORD_BITS)]
    rarity: Annotated[int, Field(ge=0, lt=WORD_BITS)]
    marked: NonNegativeInt
    kept: NonNegativeInt
    repeated: NonNegativeInt
    runs: tuple[Digest, ...]
    scope: Digest | None
    halves: tuple[tuple[NonNegativeInt, NonNegativeInt], ...] = ()

    def __post_init__(self) -> None:
        if not self.words >= max(self.looked_at, self.marked) or max(self.ones) > self.looked_at:
            raise ValueError("has looked at more words than there were")
        if not self.marked >= self.kept >= max(self.repeated, len(self.runs)):
            raise ValueError("has kept more words than it has marked")
        if self.halves and sum(map(sum, self.halves)) != self.words:
            raise ValueError("has other words by secret than there were")


def together(parts: Iterable[WordStatistics]) -> WordStatistics:
    """The statistics of several streams of one purpose, at least one.

    Raises
    ------
    ValueError
        If there is none, or they were not made alike.
    """
    every = list(parts)
    if len({(one.fixed, one.rarity, one.scope, len(one.halves)) for one in every}) != 1:
        raise ValueError("statistics of words that were not made alike cannot be put together")
    added = ("words", "looked_at", "marked", "kept", "repeated")
    return replace(
        every[0],
        **{name: sum(getattr(one, name) for one in every) for name in added},
        ones=tuple(np.sum([one.ones for one in every], axis=0).tolist()),
        runs=tuple(run for one in every for run in one.runs),
        halves=tuple(map(tuple, np.sum([one.halves for one in every], axis=0).tolist())),
    )
