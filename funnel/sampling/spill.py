"""Spill: rows split over buckets, in memory while they are few, else in one nameless temporary file."""

from __future__ import annotations

import io
import math
import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from funnel.errors import OutputError
from funnel.sampling.chunks import RowArray

_MEMORY_BYTES = 1 << 24


def bucket_count(rows: int, bucket_rows: int) -> int:
    """A power of two: in how many buckets so many rows are put, with at most ``bucket_rows`` each on average."""
    return 1 << max(0, math.ceil(math.log2(max(1, rows) / bucket_rows)))


class Closing:
    """What is closed at the end of a ``with`` block, whatever happens in it."""

    def close(self) -> None:
        """Let go of what is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


class Spill(Closing):
    """Rows put into buckets and read back bucket by bucket, in the order they were put.

    What exceeds 16 MB is in one file without a name, readable by its owner alone: on Linux it never has a name,
    elsewhere it loses it at once. Nothing is left behind on success, on error, or when the process is killed.

    Parameters
    ----------
    buckets : int
        Number of buckets.
    directory : path, optional
        Where the file lives; by default the system's temporary folder (``TMPDIR``).

    Notes
    -----
    Memory besides: the index, ``8 * (buckets + 1)`` bytes per call of `add`. Every call writes once; reading a range
    of buckets reads one piece per call.
    """

    def __init__(self, buckets: int, directory: str | os.PathLike[str] | None = None) -> None:
        self._buckets = buckets
        self._directory = directory
        self._bounds: list[npt.NDArray[np.int64]] = []
        self._dtype: np.dtype[Any] | None = None
        self._shape: tuple[int, ...] = ()
        self._bytes = 0
        self._file: io.IOBase = io.BytesIO()

    def add(self, grouped: RowArray, sizes: npt.NDArray[np.integer[Any]]) -> None:
        """Put rows that come bucket by bucket: ``sizes`` says how many for each.

        Rows must keep dtype and trailing shape from call to call.

        Raises
        ------
        OutputError
            If the folder cannot be written or is full.
        """
        if self._dtype is None:
            self._dtype, self._shape = grouped.dtype, grouped.shape[1:]
        if (grouped.dtype, grouped.shape[1:]) != (self._dtype, self._shape):
            raise ValueError(
                f"rows of {grouped.dtype} {grouped.shape[1:]} cannot join rows of {self._dtype} {self._shape}"
            )
        self._bounds.append(bounds_of(sizes, self._bounds[-1][-1] if self._bounds else 0))
        self._bytes += grouped.nbytes
        try:
            if self._bytes > _MEMORY_BYTES and isinstance(self._file, io.BytesIO):
                held = np.frombuffer(self._file.getbuffer(), dtype=np.uint8)
                self._file = tempfile.TemporaryFile(dir=self._directory, buffering=0)  # noqa: SIM115 - closed by __exit__
                write_rows(self._file, held)
            write_rows(self._file, grouped)
        except OSError as error:
            raise self._failure(error) from error

    def sizes(self) -> npt.NDArray[np.int64]:
        """Number of rows in each bucket, shape (buckets,)."""
        return sum((np.diff(bounds) for bounds in self._bounds), np.zeros(self._buckets, dtype=np.int64))

    def rows(self, start: int, stop: int) -> RowArray:
        """The rows of a range of buckets in one array; before any row was put, an empty one of no particular kind."""
        ranges = list(self._ranges(start, stop))
        rows: RowArray = np.empty((sum(end - first for first, end in ranges), *self._shape), dtype=self._dtype)
        return self._read(rows, ranges)

    def pieces(self, bucket: int) -> Iterator[RowArray]:
        """The rows of a bucket, one array per call of `add` that put any there."""
        for first, end in self._ranges(bucket, bucket + 1):
            if first < end:
                yield self._read(np.empty((end - first, *self._shape), dtype=self._dtype), [(first, end)])

    def _ranges(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        return ((int(bounds[start]), int(bounds[stop])) for bounds in self._bounds)

    def _read(self, rows: RowArray, ranges: Iterable[tuple[int, int]]) -> RowArray:
        try:
            read_rows(self._file, ranges, rows)
        except EOFError:
            raise OutputError(f"a temporary file in {self._folder} was cut short while it was in use") from None
        except OSError as error:
            raise self._failure(error) from error
        return rows

    @property
    def _folder(self) -> str:
        return os.fspath(self._directory) if self._directory is not None else tempfile.gettempdir()

    def _failure(self, error: OSError) -> OutputError:
        return OutputError(
            f"the temporary folder {self._folder} cannot hold the rows being processed "
            f"({error.strerror or error}); make room there or set TMPDIR to a folder with more"
        )

    def close(self) -> None:
        """Give the memory or the file back; the rows are gone."""
        self._file.close()


def bounds_of(sizes: npt.NDArray[np.integer[Any]], start: int) -> npt.NDArray[np.int64]:
    """Places of the first row of each bucket, and of the end, of rows that stand bucket by bucket from ``start`` on."""
    bounds = np.full(len(sizes) + 1, start, dtype=np.int64)
    bounds[1:] += np.cumsum(sizes)
    return bounds


def write_rows(file: Any, rows: RowArray) -> None:
    """Append rows to a file that may take fewer bytes at a time than it is given."""
    remaining = rows.reshape(-1).view(np.uint8).data
    while remaining:
        remaining = remaining[file.write(remaining) :]


def read_rows(file: Any, ranges: Iterable[tuple[int, int]], rows: RowArray) -> None:
    """Fill an array with rows of a file: those of the first range, then those of the next one.

    Raises
    ------
    EOFError
        If the file ends before.
    """
    target, width = rows.reshape(-1).view(np.uint8).data, rows[:1].nbytes
    for first, end in ranges:
        file.seek(first * width)
        wanted = (end - first) * width
        while wanted:
            count = file.readinto(target[:wanted])
            if not count:
                raise EOFError
            target, wanted = target[count:], wanted - count


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
