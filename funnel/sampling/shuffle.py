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
from funnel.sampling.spill import Spill
from funnel.sampling.words import WordSource

BUCKET_ROWS = 1 << 20
BUCKETS = 256
# Each divides a byte into whole digits.
_POSSIBLE_BUCKETS = (2, 4, 16, 256)
# Ten million words tie once in 370,000 tries; this many ties in a row are a broken source, not bad luck.
_MOST_REDRAWS = 16
_TAG_BYTES = 16

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
    that sorts m words has probability 1/m! each, as the words are exchangeable and, ties being redrawn in full,
    distinct. *With buckets*: fix a permutation π of the n rows and sizes m_1..m_B that sum to n. Exactly one of the
    B^n equally likely assignments puts the first m_1 rows of π into bucket 1, the next m_2 into bucket 2 and so on;
    given it, the buckets come out in the order of π with probability Π 1/m_j! (by induction where a bucket is itself
    split). So P(π) = Σ over sizes of B^-n Π 1/m_j!, which does not depend on π. Bucket numbers are whole bits of the
    words, as B is a power of two, so they are exactly uniform. ∎

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

    def random_bucket(rows: RowArray, depth: int) -> npt.NDArray[np.uint8]:
        drawn = words(-(-len(rows) // 8)).view(np.uint8)[: len(rows)]
        return drawn & np.uint8(buckets - 1)

    _require_sizes(bucket_rows, buckets)
    return _arranged(batches, random_bucket, lambda rows: _permuted(rows, words), bucket_rows, buckets, directory)


def order_rows(
    batches: Iterable[tuple[RowArray, npt.NDArray[np.uint64]]],
    *,
    bucket_rows: int = BUCKET_ROWS,
    buckets: int = BUCKETS,
    directory: Directory = None,
) -> Iterator[RowArray]:
    """The same rows in the order of their 128-bit tags, in bounded memory.

    With tags that are a keyed pseudo-random function of the record key (`funnel.sampling.keyed.key_digests`) this is a
    pseudo-random permutation that depends on the records alone: not on the order of the source, on how it was
    partitioned, on ``bucket_rows`` or on ``buckets``, since a bucket is a range of tags.

    Parameters
    ----------
    batches : iterable of (ndarray, ndarray)
        Rows as in `shuffle_rows` and their tags, shape (rows, 2) of uint64, the first word more significant.
    bucket_rows, buckets, directory
        As in `shuffle_rows`; 16 bytes more per row.

    Raises
    ------
    DataError
        If two rows have the same tag, so that their order is not defined.
    OutputError
        If the temporary folder is full or cannot be written.
    """

    shapes: list[tuple[np.dtype[Any], tuple[int, ...]]] = []

    def packed() -> Iterator[RowArray]:
        for rows, tags in batches:
            shape = (rows.dtype, rows.shape[1:])
            if shape not in (shapes or [shape]):
                raise ValueError(f"rows of {shape} cannot join rows of {shapes[0]}")
            shapes[:] = [shape]
            if len(rows):
                yield _packed(rows, tags)

    def digit(records: RowArray, depth: int) -> npt.NDArray[np.uint8]:
        width = buckets.bit_length() - 1
        byte, offset = divmod(depth * width, 8)
        if byte == _TAG_BYTES:
            raise DataError(f"more than {bucket_rows} records have the same record key; keys must be distinct")
        digits: npt.NDArray[np.uint8] = records[:, byte] >> np.uint8(8 - width - offset) & np.uint8(buckets - 1)
        return digits

    _require_sizes(bucket_rows, buckets)
    arranged = _arranged(packed(), digit, _sorted_by_tag, bucket_rows, buckets, directory)
    return (_unpacked(records, *shapes[0]) for records in arranged)


def _arranged(
    batches: Iterable[RowArray],
    bucket_of: Callable[[RowArray, int], npt.NDArray[np.uint8]],
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
            spill.add(chunk, bucket_of(chunk, depth))
        start.clear()
        for bucket in range(buckets):
            pieces = spill.pieces(bucket)
            yield from _arranged(pieces, bucket_of, arrange, bucket_rows, buckets, directory, depth + 1)


def _permuted(rows: RowArray, words: WordSource) -> RowArray:
    for _ in range(_MOST_REDRAWS):
        drawn = words(len(rows))
        order = np.argsort(drawn)
        if not _has_neighbours_alike(drawn[order]):
            return np.take(rows, order, axis=0)
    raise EntropyError(f"random words were not distinct in {_MOST_REDRAWS} tries; their source cannot be used")


def _sorted_by_tag(records: RowArray) -> RowArray:
    tags = _unpacked(records[:, :_TAG_BYTES], np.dtype(">u8"), (2,), skip=0).astype(np.uint64)
    high, low = np.ascontiguousarray(tags.T)
    order = np.argsort(high)
    if _has_neighbours_alike(high[order]):
        order = np.lexsort((low, high))
        alike = (high[order][1:] == high[order][:-1]) & (low[order][1:] == low[order][:-1])
        if alike.any():
            raise DataError(
                f"at least {int(alike.sum())} records repeat the record key of another one; keys must be distinct"
            )
    return np.take(records, order, axis=0)


def _has_neighbours_alike(ordered: npt.NDArray[np.uint64]) -> bool:
    return bool((ordered[1:] == ordered[:-1]).any())


def _packed(rows: RowArray, tags: npt.NDArray[np.uint64]) -> RowArray:
    """Tag, most significant byte first, and row as one line of bytes: what is spilled and moved about."""
    content = np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
    return np.concatenate([tags.astype(">u8").view(np.uint8), content], axis=1)


def _unpacked(records: RowArray, dtype: np.dtype[Any], shape: tuple[int, ...], skip: int = _TAG_BYTES) -> RowArray:
    return np.ascontiguousarray(records[:, skip:]).reshape(-1).view(dtype).reshape(len(records), *shape)


def _require_sizes(bucket_rows: int, buckets: int) -> None:
    if bucket_rows < 1:
        raise SpecError(f"bucket_rows must be at least 1, not {bucket_rows}")
    if buckets not in _POSSIBLE_BUCKETS:
        raise SpecError(f"buckets must be one of {', '.join(map(str, _POSSIBLE_BUCKETS))}, not {buckets}")
