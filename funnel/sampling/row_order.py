"""Row order: every order of the released rows equally likely, or one fixed by record keys; with the proof.

A row travels as one word: its lowest c bits are its output code, c as few as number the outputs, and the others are its
*tag*, the highest bits of a word that has nothing to do with the one the output was drawn with. The release is the
codes in the order of their tags. Where tags are alike, the codes of the k rows are sorted and then put in the order of
k further words, all of them drawn again while two are alike.

**Theorem.** If the words are uniform and independent, the release is y_σ(1), ..., y_σ(n), where y_i is the output of
row i of the source and σ is each of the n! permutations with probability exactly 1/n!, independent of the outputs.

*Proof.* Lengthen each tag T_i by a U_i that is uniform on [0, 1) and independent of all else. The pairs (T_i, U_i) are
exchangeable and almost surely distinct, so the order that sorts them is each permutation with probability 1/n!. Given
all T_i, it puts the rows in the order of their tags, and the k rows of one tag in each of their k! orders with the same
probability, independently of other tags. The same is done here: k words that are independent, uniform and, as they are
drawn again as a whole, distinct, are exchangeable, so the order that sorts them is each of k! equally likely, in
whatever order the codes stood before. ∎

Ranges of tags are sorted one by one and put behind one another, which is the order of all tags: how rows were cut into
partitions, pieces and parts plays no role.

*Ties.* n rows have n(n−1)/2^(65−c) tied pairs on average: with 256 outputs one in 14 releases of 100 million rows has
one, with 65,536 outputs such a release has 18. Left in the order of their codes they would tell nothing of the source
(tags are exchangeable, so any order made of tags and outputs is a random function of the released multiset), but the
theorem would not hold to the last bit. It does.

*Record keys.* The words are AES-256 of a record's digest under a key derived for the order, and of (tag, number) under
another one for ties. They depend on the secret and the records alone, and so does the order, as tied codes are sorted
first. To anyone without the secret these words are indistinguishable from uniform and independent ones, and the theorem
holds in that sense: once for a secret and a protocol, not again for every release.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from funnel.errors import EntropyError
from funnel.sampling.answers import Answers
from funnel.sampling.chunks import even_chunks
from funnel.sampling.draw import ChannelSampler, OutputArray
from funnel.sampling.random_words import WordArray
from funnel.sampling.row_words import RowWords
from funnel.sampling.spill import Spill, sizes_of_ranges

PART_ROWS = 1 << 21
"""Rows that are put in order in memory at a time."""

# Rows that are sorted by part at a time; more make longer pieces, fewer stay in the processor's cache.
_PIECE_ROWS = 1 << 18
_RANGES = 256
_WORD_BITS = 64
# Rows compared with their neighbours at a time, in the processor's cache.
_CHECK_ROWS = 1 << 16
# Even millions of words of 64 bits seldom tie; this many times in a row are a broken source, not bad luck.
_MOST_ATTEMPTS = 16


def code_bits(outputs: int) -> int:
    """c: how many of the lowest bits of the word that a row travels as are its output code."""
    return (outputs - 1).bit_length()


def order_words(drawn: Answers, outputs: int, words: RowWords) -> WordArray:
    """What rows travel as: tag and output code in one word, shape (rows,).

    Parameters
    ----------
    drawn : Answers
    outputs : int
        b, the size of the output alphabet.
    words : RowWords
    """
    tagged = words.to_order(drawn.batch) & ~_code_mask(outputs)
    tagged |= drawn.outputs
    return tagged


def sorted_pieces(words: Iterable[WordArray], parts: int) -> Iterator[tuple[WordArray, npt.NDArray[np.int64]]]:
    """Pieces of some rows, each sorted, and how many rows of it belong to each part: to each range of tags.

    Parameters
    ----------
    words : iterable of ndarray
        From `order_words`.
    parts : int
        A power of two, so that a part is named by whole bits.
    """
    for piece in even_chunks(words, _PIECE_ROWS):
        # Sorting words is several times faster than moving each to its part.
        piece.sort()
        yield piece, sizes_of_ranges(piece, _WORD_BITS - (parts.bit_length() - 1), parts)


def released_order(tagged: WordArray, outputs: int, words: RowWords) -> OutputArray:
    """The output codes of all rows in a range of tags, in the order of the release; ``tagged`` is overwritten.

    Raises
    ------
    EntropyError
        If words repeat so often that they cannot be random.

    Notes
    -----
    O(m log m) for m rows.
    """
    tagged.sort()
    mask = _code_mask(outputs)
    for start, stop in _ties(tagged, mask):
        tagged[start:stop] = _in_drawn_order(tagged[start:stop], int(tagged[start] & ~mask), words)
    tagged &= mask
    return tagged.astype(ChannelSampler.output_type(outputs))


def in_order(
    tagged: Iterable[WordArray], outputs: int, words: RowWords, directory: str | os.PathLike[str] | None = None
) -> Iterator[OutputArray]:
    """The output codes of all rows in the order of the release, in bounded memory.

    Parameters
    ----------
    tagged : iterable of ndarray
        From `order_words`; all of it is read before the first row is returned.
    outputs, words
        As in `order_words`.
    directory : path, optional
        For a nameless temporary file, if the rows are many; by default the system's temporary folder.

    Yields
    ------
    ndarray of unsigned integers
        About two million rows, or fewer.

    Raises
    ------
    EntropyError
        As `released_order`.
    OutputError
        If the temporary folder is full or cannot be written.
    """
    with Spill(_RANGES, directory) as spill:
        for piece, sizes in sorted_pieces(tagged, _RANGES):
            spill.add(piece, sizes)
        ends = np.cumsum(spill.sizes())
        start = 0
        while start < _RANGES:
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + PART_ROWS, side="right")))
            if ends[stop - 1] > before:
                yield released_order(spill.rows(start, stop), outputs, words)
            start = stop


def _code_mask(outputs: int) -> np.uint64:
    return np.uint64((1 << code_bits(outputs)) - 1)


def _ties(ordered: WordArray, mask: np.uint64) -> list[tuple[int, int]]:
    """First row and the one after the last of every run of rows with the same tag."""
    windows = ((start, ordered[start : start + _CHECK_ROWS + 1]) for start in range(0, len(ordered), _CHECK_ROWS))
    alike = [start + np.flatnonzero((window[1:] ^ window[:-1]) <= mask) for start, window in windows]
    runs: list[tuple[int, int]] = []
    for row in np.concatenate(alike).tolist() if alike else ():
        first = runs.pop()[0] if runs and runs[-1][1] == row + 1 else row
        runs.append((first, row + 2))
    return runs


def _in_drawn_order(tied: WordArray, tag: int, words: RowWords) -> WordArray:
    for attempt in range(_MOST_ATTEMPTS):
        drawn = words.to_part(tag, attempt, len(tied))
        if len(np.unique(drawn)) == len(tied):
            return tied[np.argsort(drawn)]
    raise EntropyError(f"random words were not distinct in {_MOST_ATTEMPTS} tries; their source cannot be used")
