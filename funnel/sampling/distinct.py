"""Whether every record of a stream has a key of its own, decided exactly and in bounded memory."""

from __future__ import annotations

import os

import numpy as np

from funnel.sampling.chunks import even_chunks
from funnel.sampling.keyed import DigestArray
from funnel.sampling.spill import Closing, Spill, sizes_of_ranges

_HELD_ROWS = 1 << 18
# More than this of a bucket is split once more before it is looked at.
_BUCKET_ROWS = 1 << 22
_DIGIT_BITS = 6
_BUCKETS = 1 << _DIGIT_BITS
_WORD_BITS = 64


class DistinctKeys(Closing):
    """Counts the different keys of a stream of records of any length, and those that several records have.

    Digests of keys, which differ where the keys differ (`funnel.sampling.keyed.key_digests`), are sorted run by run,
    and each run is cut into ranges of a spill, so that equal digests meet in the same range, which is sorted in
    memory. What a run has more than twice is kept twice: a column with few values, named by mistake, takes no room.
    Use as a context manager, over all partitions of a release.

    Parameters
    ----------
    directory : path, optional
        Where the temporary file of many records lives; see `funnel.sampling.spill.Spill`.

    Notes
    -----
    16 bytes per record, on disk if there are millions; O(n log n) time, 0.1 s per million records.
    Different whole numbers are never taken for equal, other keys with probability below n²/2^129.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self._directory = directory
        self._spill = Spill(_BUCKETS, directory)
        self._held: list[DigestArray] = []
        self._count = 0

    def add(self, digests: DigestArray) -> None:
        """Take in the digests of a batch, shape (rows, 2).

        Raises
        ------
        OutputError
            If the temporary folder is full or cannot be written.
        """
        self._held.append(digests)
        self._count += len(digests)
        if self._count >= _HELD_ROWS:
            self._flush()

    def counts(self) -> tuple[int, int]:
        """Different keys of the records taken in, and how many of these keys several records have."""
        self._flush()
        return _counts(self._spill, 1, self._directory)

    def _flush(self) -> None:
        if self._count:
            _put(np.concatenate(self._held), self._spill, 0)
            self._held, self._count = [], 0

    def close(self) -> None:
        """Remove what is held on disk."""
        self._spill.close()


def _counts(spill: Spill, depth: int, directory: str | os.PathLike[str] | None) -> tuple[int, int]:
    """Different rows of a spill, and those that are there several times."""
    keys = several = 0
    for bucket, size in enumerate(spill.sizes()):
        if size > _BUCKET_ROWS and (depth + 1) * _DIGIT_BITS <= _WORD_BITS:
            with Spill(_BUCKETS, directory) as finer:
                for run in even_chunks(spill.pieces(bucket), _HELD_ROWS):
                    _put(run, finer, depth)
                found = _counts(finer, depth + 1, directory)
        elif size:
            ordered = _at_most_twice(spill.rows(bucket, bucket + 1))
            again = int(_alike(ordered, 1).sum())
            found = len(ordered) - again, again
        else:
            continue
        keys, several = keys + found[0], several + found[1]
    return keys, several


def _put(digests: DigestArray, spill: Spill, depth: int) -> None:
    """Put some digests, each at most twice, into a spill by their digit at a depth."""
    run = _at_most_twice(digests)
    spill.add(run, sizes_of_ranges(run[:, 0], _WORD_BITS - (depth + 1) * _DIGIT_BITS, _BUCKETS))


def _at_most_twice(digests: DigestArray) -> DigestArray:
    """The digests in order, without what is there more than twice."""
    # Several times faster than by both halves.
    ordered = np.take(digests, np.argsort(digests[:, 0]), axis=0)
    if not _alike(ordered, 1)[ordered[1:, 0] == ordered[:-1, 0]].all():
        ordered = np.take(digests, np.lexsort((digests[:, 1], digests[:, 0])), axis=0)
    return np.asarray(ordered[np.concatenate([[True] * min(2, len(ordered)), ~_alike(ordered, 2)])])


def _alike(ordered: DigestArray, apart: int) -> np.ndarray:
    """Which rows, from the one after so many on, are as the one so many before."""
    return np.asarray((ordered[apart:] == ordered[:-apart]).all(axis=1))
