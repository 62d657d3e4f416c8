"""Whether every record of a stream has a key of its own, decided exactly and in bounded memory."""

from __future__ import annotations

import os
import secrets

import numpy as np

from funnel.errors import DataError
from funnel.sampling.chunks import RowArray, even_chunks
from funnel.sampling.keyed import Marks
from funnel.sampling.spill import Closing, Spill, sizes_of_ranges

_HELD_ROWS = 1 << 18
# More than this of a bucket is split once more before it is looked at.
_BUCKET_ROWS = 1 << 22
_DIGIT_BITS = 6
_BUCKETS = 1 << _DIGIT_BITS
_WORD_BITS = 64


class DistinctKeys(Closing):
    """Counts the records whose key another record has already, over a stream of any length.

    Marks of keys, which differ where the keys differ (`funnel.sampling.keyed.key_marks`), are sorted run by run, and
    each run is cut into ranges of a spill, so that equal marks meet in the same range, which is sorted in
    memory. Marks that a run repeats are counted at once and kept once: a column with few values, named by mistake,
    takes no room. Use as a context manager, over all partitions of a release.

    Parameters
    ----------
    directory : path, optional
        Where the temporary file of many records lives; see `funnel.sampling.spill.Spill`.

    Notes
    -----
    8 bytes per record with one whole number as its key, else 16, on disk if there are millions; O(n log n) time, 0.03 s
    per million records.
    Different whole numbers are never taken for equal, other keys with probability below n²/2^129.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self._directory = directory
        self._spill = Spill(_BUCKETS, directory)
        # An odd factor permutes the 64-bit numbers: it spreads them over all ranges, and hides them in the file.
        self._factor = np.uint64(secrets.randbits(64) | 1)
        self._held: list[RowArray] = []
        self._count = 0
        self._repeated = 0

    def add(self, marks: Marks) -> None:
        """Take in the marks of a batch: shape (rows,) of whole numbers, (rows, 2) of others.

        Raises
        ------
        DataError
            If the marks are not of the same kind as those before.
        OutputError
            If the temporary folder is full or cannot be written.
        """
        if self._held and (marks.dtype, marks.shape[1:]) != (self._held[0].dtype, self._held[0].shape[1:]):
            raise DataError("the record key changes its type on the way; give its columns one type in all batches")
        self._held.append(marks)
        self._count += len(marks)
        if self._count >= _HELD_ROWS:
            self._flush()

    def repeated(self) -> int:
        """Number of records taken in whose key an earlier one has: records less distinct keys."""
        self._flush()
        return self._repeated + _repeated(self._spill, 1, self._directory)

    def _flush(self) -> None:
        if self._count:
            marks: RowArray = np.concatenate(self._held)
            # The kind of marks is known from the last ones.
            self._held, self._count = [marks[:0]], 0
            if marks.ndim == 1:
                marks = marks.view(np.uint64)
                marks *= self._factor
            self._repeated += _put(marks, self._spill, 0)

    def close(self) -> None:
        """Remove what is held on disk."""
        self._spill.close()


def _repeated(spill: Spill, depth: int, directory: str | os.PathLike[str] | None) -> int:
    """Rows of a spill that are like another one, each set but for one row."""
    repeated = 0
    for bucket, size in enumerate(spill.sizes()):
        if size <= _BUCKET_ROWS or (depth + 1) * _DIGIT_BITS > _WORD_BITS:
            repeated += _once(_in_order(spill.rows(bucket, bucket + 1)))[1]
            continue
        with Spill(_BUCKETS, directory) as finer:
            repeated += sum(_put(run, finer, depth) for run in even_chunks(spill.pieces(bucket), _HELD_ROWS))
            repeated += _repeated(finer, depth + 1, directory)
    return repeated


def _put(marks: RowArray, spill: Spill, depth: int) -> int:
    """Put the distinct ones of some marks, which this reorders, into a spill, by their digit at a depth.

    Returns how many were left out.
    """
    run, left_out = _once(_in_order(marks))
    leading = run if run.ndim == 1 else run[:, 0]
    spill.add(run, sizes_of_ranges(leading, _WORD_BITS - (depth + 1) * _DIGIT_BITS, _BUCKETS))
    return left_out


def _in_order(marks: RowArray) -> RowArray:
    if marks.ndim > 1:
        return np.take(marks, np.lexsort((marks[:, 1], marks[:, 0])), axis=0)
    # In place, and many times faster than ordering rows.
    marks.sort()
    return marks


def _once(ordered: RowArray) -> tuple[RowArray, int]:
    alike = ordered[1:] == ordered[:-1]
    again = alike if ordered.ndim == 1 else alike.all(axis=1)
    left_out = int(np.count_nonzero(again))
    return (ordered[np.concatenate([[True], ~again])], left_out) if left_out else (ordered, 0)
