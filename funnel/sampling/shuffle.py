"""Row order: a uniformly random permutation, or one fixed by record keys, of any number of rows in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.errors import DataError, EntropyError, SpecError
from funnel.sampling.chunks import RowArray, even_chunks
from funnel.sampling.spill import Spill, sizes_of_ranges
from funnel.sampling.words import WordSource

BUCKET_ROWS = 1 << 19
BUCKETS = 256
# Each divides a byte into whole digits.
_POSSIBLE_BUCKETS = (2, 4, 16, 256)
# A million words of 48 bits tie once in 512 tries; this many ties in a row are a broken source, not bad luck.
_MOST_REDRAWS = 16
_WORD_BITS = 64

Directory = str | os.PathLike[str] | None


def shuffle_rows(
    batches: Iterable[RowArray],
    words: WordSource,
    *,
    bucket_rows: int = BUCKET_ROWS,
    buckets: int = BUCKETS,
    directory: Directory = None,
) -> Iterator[RowArray]:
    """The same rows in a uniformly random order, in bounded memory (Rao 1961, Sandelius 1962).

    Row order is outside the model: a source sorted by the secret would give it away. Up to ``bucket_rows`` rows are
    permuted in memory; of more, each row goes to one of ``buckets`` buckets of a temporary file, uniformly at random,
    the buckets are shuffled one after the other by the same rule, and put one behind the other.

    Every permutation of the n rows is exactly equally likely, given uniform independent words. *In memory*: the order
    that sorts m words (for rows of 8 or 16 bits: their other bits) has probability 1/m! each, as the words are
    exchangeable and, ties being redrawn in full, distinct. *With buckets*: fix a permutation π of the n rows and sizes
    m_1..m_B that sum to n. Exactly one of the B^n equally likely assignments puts the first m_1 rows of π into bucket
    1, the next m_2 into bucket 2 and so on; given it, the buckets come out in the order of π with probability Π 1/m_j!
    (by induction where a bucket is itself split). So P(π) = Σ over sizes of B^-n Π 1/m_j!, which does not depend on π.
    Bucket numbers are whole bits of the words, as B is a power of two, so they are exactly uniform. ∎

    Parameters
    ----------
    batches : iterable of ndarray
        Rows, shape (rows,) or (rows, groups), of one dtype.
    words : callable
        Source of uniform 64-bit words, such as ``WordStream().words``.
    bucket_rows : int
        Rows that are permuted in memory at a time; memory is about ``30 + 3 * row size`` bytes for each of them.
    buckets : int
        2, 4, 16 or 256.
    directory : path, optional
        Where the temporary file lives; it has no name, and what is in it is gone at the end, on an error and on a kill.

    Yields
    ------
    ndarray
        At most ``bucket_rows`` rows; all of the input has been read before the first. Cut them with `even_chunks`.

    Raises
    ------
    OutputError
        If the temporary folder is full or cannot be written.
    EntropyError
        If the words repeat so often that they cannot be random.

    Notes
    -----
    O(n log m) time for buckets of m rows; every row is written and read once per factor of ``buckets`` by which n
    exceeds ``bucket_rows``.
    """

    def at_random(rows: RowArray, spill: Spill, depth: int) -> None:
        drawn = words(-(-len(rows) // 8)).view(np.uint8)[: len(rows)]
        spill.add(rows, drawn & np.uint8(buckets - 1))

    _require_sizes(bucket_rows, buckets)
    return _arranged(batches, at_random, lambda rows: _permuted(rows, words), bucket_rows, buckets, directory)


def order_rows(
    batches: Iterable[tuple[RowArray, npt.NDArray[np.uint64]]],
    *,
    bucket_rows: int = BUCKET_ROWS,
    buckets: int = BUCKETS,
    directory: Directory = None,
) -> Iterator[RowArray]:
    """The same output codes in the order of their tags, in bounded memory.

    With tags that are a keyed pseudo-random function of the record key (`funnel.sampling.keyed.words_of`) this is a
    pseudo-random permutation that depends on the records alone: not on the order of the source, on how it was
    partitioned, on ``bucket_rows`` or on ``buckets``, since a bucket is a range of tags. Codes and tags travel in one
    word, so of a tag only the bits that the code leaves free count (56 for up to 255 outputs, 48 for up to 65,535);
    where these are alike, which 10 million rows are in about one pair, codes decide. An order that is decided by
    what is published tells nothing of the source.

    Parameters
    ----------
    batches : iterable of (ndarray, ndarray)
        Output codes, unsigned integers of up to 32 bits, shape (rows,), and their tags, of uint64, shape (rows,).
    bucket_rows, buckets, directory
        As in `shuffle_rows`.

    Raises
    ------
    DataError
        If more than ``bucket_rows`` rows have the same tag, which those of distinct keys have not.
    OutputError
        If the temporary folder is full or cannot be written.
    """
    dtypes: list[np.dtype[Any]] = []

    def packed() -> Iterator[RowArray]:
        for codes, tags in batches:
            if codes.dtype != (dtypes or [codes.dtype])[0] or codes.dtype.kind != "u" or codes.dtype.itemsize > 4:
                raise ValueError(f"codes of {codes.dtype} cannot be ordered: {[d.name for d in dtypes]}")
            dtypes[:] = [codes.dtype]
            if len(codes):
                yield tagged(codes, tags)

    def by_digit(records: RowArray, spill: Spill, depth: int) -> None:
        shift = _WORD_BITS - (depth + 1) * (buckets.bit_length() - 1)
        if shift < 0:
            raise DataError(f"more than {bucket_rows} records have the same record key; keys must be distinct")
        # Sorting words is several times faster than moving each to its bucket, and the digit leads.
        records.sort()
        spill.add_grouped(records, sizes_of_ranges(records, shift, buckets))

    _require_sizes(bucket_rows, buckets)
    arranged = _arranged(packed(), by_digit, _sorted, bucket_rows, buckets, directory)
    return (records.astype(dtypes[0]) for records in arranged)


def tagged(codes: RowArray, tags: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Words whose highest bits are those of a tag and whose lowest are an output code: sorting them moves the codes."""
    words: npt.NDArray[np.uint64] = tags & ~_mask(np.uint64(8 * codes.dtype.itemsize))
    words |= codes
    return words


def _arranged(
    batches: Iterable[RowArray],
    put: Callable[[RowArray, Spill, int], None],
    arrange: Callable[[RowArray], RowArray],
    bucket_rows: int,
    buckets: int,
    directory: Directory,
    depth: int = 0,
) -> Iterator[RowArray]:
    """Arrange what fits in memory; split what does not into buckets and arrange each of them."""
    chunks = even_chunks(batches, bucket_rows)
    start = [chunk for _, chunk in zip(range(2), chunks, strict=False)]
    if not start:
        return
    if len(start) == 1:
        yield arrange(start[0])
        return
    with Spill(buckets, directory) as spill:
        for chunk in chain(start, chunks):
            put(chunk, spill, depth)
        start.clear()
        for bucket in range(buckets):
            pieces = spill.pieces(bucket)
            yield from _arranged(pieces, put, arrange, bucket_rows, buckets, directory, depth + 1)


def _sorted(records: RowArray) -> RowArray:
    records.sort()
    return records


def _permuted(rows: RowArray, words: WordSource) -> RowArray:
    if rows.ndim == 1 and rows.dtype.kind == "u" and rows.dtype.itemsize <= 2:
        return _permuted_small(rows, words)
    for _ in range(_MOST_REDRAWS):
        drawn = words(len(rows))
        order = np.argsort(drawn)
        if not _has_neighbours_alike(drawn[order]):
            return np.take(rows, order, axis=0)
    raise EntropyError(f"random words were not distinct in {_MOST_REDRAWS} tries; their source cannot be used")


def _permuted_small(rows: RowArray, words: WordSource) -> RowArray:
    """As `_permuted`, several times faster: rows travel in the lowest bits of the words that are sorted."""
    bits = np.uint64(8 * rows.dtype.itemsize)
    for _ in range(_MOST_REDRAWS):
        drawn = tagged(rows, words(len(rows)))
        drawn.sort()
        if not _has_neighbours_alike(drawn >> bits):
            return drawn.astype(rows.dtype)
    raise EntropyError(f"random words were not distinct in {_MOST_REDRAWS} tries; their source cannot be used")


def _mask(bits: np.uint64) -> np.uint64:
    return (np.uint64(1) << bits) - np.uint64(1)


def _has_neighbours_alike(ordered: npt.NDArray[np.uint64]) -> bool:
    return bool((ordered[1:] == ordered[:-1]).any())


def _require_sizes(bucket_rows: int, buckets: int) -> None:
    if bucket_rows < 1:
        raise SpecError(f"bucket_rows must be at least 1, not {bucket_rows}")
    if buckets not in _POSSIBLE_BUCKETS:
        raise SpecError(f"buckets must be one of {', '.join(map(str, _POSSIBLE_BUCKETS))}, not {buckets}")
