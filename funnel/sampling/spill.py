"""Spill: rows split over buckets in one nameless temporary file, so that memory does not grow with the rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.errors import OutputError
from funnel.sampling.chunks import RowArray


class Spill:
    """Rows put into buckets and read back bucket by bucket, in the order they were put.

    The rows are in one file without a name, readable by its owner alone: on Linux it never has a name, elsewhere it
    loses it at once. Nothing is left behind on success, on error, or when the process is killed.

    Parameters
    ----------
    buckets : int
        Number of buckets, at most 256.
    directory : path, optional
        Where the file lives; by default the system's temporary folder (``TMPDIR``).

    Raises
    ------
    OutputError
        If the folder cannot be written or is full.

    Notes
    -----
    Memory: the index, ``8 * (buckets + 1)`` bytes per call of `add`. Every call writes once; reading a bucket reads
    one piece per call.
    """

    def __init__(self, buckets: int, directory: str | os.PathLike[str] | None = None) -> None:
        self._buckets = buckets
        self._directory = os.fspath(directory) if directory is not None else tempfile.gettempdir()
        self._bounds: list[npt.NDArray[np.int64]] = []
        self._dtype: np.dtype[Any] | None = None
        self._shape: tuple[int, ...] = ()
        self._rows = 0
        try:
            self._file = tempfile.TemporaryFile(dir=self._directory, buffering=0)  # noqa: SIM115 - closed by __exit__
        except OSError as error:
            raise self._failure(error) from error

    def add(self, rows: RowArray, buckets: npt.NDArray[np.uint8]) -> None:
        """Put every row into the bucket named beside it; rows must keep dtype and trailing shape from call to call."""
        # A stable sort of bytes is a radix sort, and keeps the order of rows within a bucket. For rows of several
        # numbers or of records, `take` is several times faster than an index.
        grouped = np.take(rows, np.argsort(buckets, kind="stable"), axis=0)
        self.add_grouped(grouped, np.bincount(buckets, minlength=self._buckets))

    def add_grouped(self, grouped: RowArray, sizes: npt.NDArray[np.integer[Any]]) -> None:
        """Put rows that come bucket by bucket: ``sizes`` says how many for each."""
        if self._dtype is None:
            self._dtype, self._shape = grouped.dtype, grouped.shape[1:]
        if (grouped.dtype, grouped.shape[1:]) != (self._dtype, self._shape):
            raise ValueError(
                f"rows of {grouped.dtype} {grouped.shape[1:]} cannot join rows of {self._dtype} {self._shape}"
            )
        bounds = np.zeros(self._buckets + 1, dtype=np.int64)
        np.cumsum(sizes, out=bounds[1:])
        self._bounds.append(bounds + self._rows)
        self._rows += len(grouped)
        remaining = grouped.reshape(-1).view(np.uint8).data
        try:
            while remaining:
                remaining = remaining[self._file.write(remaining) :]
        except OSError as error:
            raise self._failure(error) from error

    def size(self, bucket: int) -> int:
        """Number of rows in a bucket."""
        return int(sum(bounds[bucket + 1] - bounds[bucket] for bounds in self._bounds))

    def rows(self, bucket: int) -> RowArray:
        """The rows of a bucket in one array; before any row was put, an empty one of no particular kind."""
        rows: RowArray = np.empty((self.size(bucket), *self._shape), dtype=self._dtype)
        at = 0
        for start, stop in self._ranges(bucket):
            self._read(rows[at : at + stop - start], start)
            at += stop - start
        return rows

    def pieces(self, bucket: int) -> Iterator[RowArray]:
        """The rows of a bucket, one array per call of `add` that put any there."""
        for start, stop in self._ranges(bucket):
            rows: RowArray = np.empty((stop - start, *self._shape), dtype=self._dtype)
            self._read(rows, start)
            yield rows

    def _ranges(self, bucket: int) -> Iterator[tuple[int, int]]:
        for bounds in self._bounds:
            start, stop = int(bounds[bucket]), int(bounds[bucket + 1])
            if start < stop:
                yield start, stop

    def _read(self, rows: RowArray, start: int) -> None:
        """Fill an array with the rows from one on."""
        target = rows.reshape(-1).view(np.uint8).data
        try:
            self._file.seek(start * (len(target) // len(rows)))
            while target:
                count = self._file.readinto(target)
                if not count:
                    raise OutputError(f"a temporary file in {self._directory} was cut short while it was in use")
                target = target[count:]
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> OutputError:
        return OutputError(
            f"the temporary folder {self._directory} cannot hold the rows being processed "
            f"({error.strerror or error}); make room there or set TMPDIR to a folder with more"
        )

    def close(self) -> None:
        """Give the file back; the rows are gone."""
        self._file.close()

    def __enter__(self) -> Spill:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def sizes_of_ranges(ordered: npt.NDArray[np.uint64], shift: int, buckets: int) -> npt.NDArray[np.int64]:
    """How many of some words there are for each value of a digit, without looking at every word.

    Parameters
    ----------
    ordered : ndarray of uint64, shape (rows,)
        In ascending order, alike in the bits above the digit.
    shift : int
        Bits below the digit.
    buckets : int
        Values of the digit, a power of two.

    Returns
    -------
    ndarray of int64, shape (buckets,)
    """
    above = int(ordered[0]) >> shift & -buckets if len(ordered) else 0
    starts = np.array([above + digit << shift for digit in range(1, buckets)], dtype=np.uint64)
    sizes: npt.NDArray[np.int64] = np.diff(np.searchsorted(ordered, starts), prepend=0, append=len(ordered))
    return sizes
