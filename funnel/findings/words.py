"""Whether random words look like random ones, and whether they were used before; judged from statistics alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from funnel.tails import binomial_two_sided
from funnel.word_statistics import WORD_BITS, WordStatistics


@dataclass(frozen=True)
class WordFinding:
    """What was found of the words of one purpose.

    Attributes
    ----------
    p_value : float
        Of bits, marks and repeated words; uniform independent words have one of at most t with a probability of at
        most t.
    bit : int or None
        The bit that is least likely, if bits are what is least likely.
    ones : float
        Its share of ones.
    repeated_words : int
        Marked words that had been there before in the same stream.
    repeated_runs : int
        Runs of words that are there again in this release.
    """

    p_value: float
    bit: int | None
    ones: float
    repeated_words: int
    repeated_runs: int


def check_randomness(words: WordStatistics) -> WordFinding:
    """Test the words of one purpose.

    Notes
    -----
    Of uniform independent words (1) each bit that is not fixed is one in Binomial(looked at, 1/2) of them; (2)
    Binomial(words, 2^-rarity) bear the mark; (3) a word that bears it was there before with a probability of at most
    kept / 2^(64 - fixed - rarity), whatever came before, so repeated ones are at most Binomial(kept, of that). The
    smallest exact p-value times the number of tests is at most t with a probability of at most t (Bonferroni).
    """
    bits = np.arange(words.fixed, WORD_BITS)
    ones = np.array(words.ones, dtype=np.int64)[bits]
    one = np.ones(len(bits), dtype=np.int64)
    p_bits = binomial_two_sided(ones, words.looked_at * one, one, 2 * one)
    if words.looked_at == 0:
        p_bits = np.ones(len(bits))
    p_marks = 1.0 if words.words == 0 or words.rarity == 0 else _binomial(words.marked, words.words, 1, 2**words.rarity)
    # At most 2^63, the largest whole number of weights: fewer words make repetition likelier, never less likely.
    room = 2 ** min(WORD_BITS - 1, WORD_BITS - words.fixed - words.rarity)
    p_repeated = 1.0 if words.repeated == 0 else _binomial(words.repeated, words.kept, min(words.kept, room), room)
    tests = len(bits) + 2
    place = int(p_bits.argmin())
    smallest = min(float(p_bits[place]), p_marks, p_repeated)
    return WordFinding(
        p_value=min(1.0, smallest * tests),
        bit=int(bits[place]) if p_bits[place] <= smallest else None,
        ones=float(ones[place]) / max(1, words.looked_at),
        repeated_words=words.repeated,
        repeated_runs=len(words.runs) - len(set(words.runs)),
    )


def runs_of_before(words: WordStatistics, earlier: Sequence[Mapping[str, WordStatistics]]) -> int:
    """Runs that words of earlier versions have as well, whatever these were used for.

    Words that are derived from a secret come again with it, as they should: words of one scope are not compared.
    """
    before = {
        run
        for version in earlier
        for other in version.values()
        if other.scope is None or other.scope != words.scope
        for run in other.runs
    }
    return len(before & set(words.runs))


def runs_in_common(streams: Mapping[str, WordStatistics]) -> int:
    """Runs that words of one purpose share with those of another one in the same release."""
    every = [set(stream.runs) for stream in streams.values()]
    return sum(map(len, every)) - len(set().union(*every))


def _binomial(count: int, total: int, weight: int, whole: int) -> float:
    parts = (np.array([part], dtype=np.uint64) for part in (weight, whole))
    return float(binomial_two_sided(np.array([count]), np.array([total]), *parts)[0])
