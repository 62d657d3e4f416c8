"""People by the digests of their keys: sorted on disk and joined bucket by bucket, in memory that does not grow."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from funnel.errors import DataError, LedgerError
from funnel.history.changes import Changes
from funnel.joint import IntArray
from funnel.readers.source_files import file_digest
from funnel.register.entry import PEOPLE
from funnel.register.entry_files import SCHEMAS, SETTINGS, damaged, of_another_funnel, record_batch
from funnel.release.files import Sink
from funnel.sampling.keyed import DigestArray
from funnel.sampling.spill import Closing, Spill, bucket_count
from funnel.tables import open_paged

BUCKET_ROWS = 1 << 18
"""People that are sorted, or looked up, in one go, on average; what bounds the memory."""

_BATCH_ROWS = 1 << 16
_WORD_BITS = 64

PersonArray = npt.NDArray[Any]
"""Structured rows with at least the fields ``high`` and ``low``: the 128-bit digest of a record key."""


def people_of(digests: DigestArray, fields: np.dtype[Any]) -> PersonArray:
    """Structured rows of people with these digests, (n, 2); other fields are yet to be filled."""
    found = np.empty(len(digests), dtype=fields)
    found["high"], found["low"] = digests[:, 0], digests[:, 1]
    return found


def limits(buckets: int) -> Iterator[int | None]:
    """For each bucket the first ``high`` that is above it; None above the last one."""
    for bucket in range(1, buckets):
        yield bucket << (_WORD_BITS - int(math.log2(buckets)))
    yield None


class ByDigest(Closing):
    """Puts people in the order of their digests, however many they are: cut by the top bits, then sorted by bucket.

    Parameters
    ----------
    rows : int
        About how many there will be.
    directory : path
        Where what exceeds 16 MB is spilled to, in a file without a name.
    bucket_rows : int, optional

    Notes
    -----
    Digests are pseudo-random, so buckets are of one size. Use as a context manager.
    """

    def __init__(self, rows: int, directory: str | os.PathLike[str], bucket_rows: int = BUCKET_ROWS) -> None:
        self.buckets = bucket_count(rows, bucket_rows)
        self._spill = Spill(self.buckets, directory)

    def add(self, people: PersonArray) -> None:
        """Take in people, in any order."""
        if self.buckets == 1:
            self._spill.add(np.ascontiguousarray(people), np.array([len(people)]))
            return
        bucket = people["high"] >> np.uint64(_WORD_BITS - int(math.log2(self.buckets)))
        order = np.argsort(bucket, kind="stable")
        self._spill.add(people[order], np.bincount(bucket.astype(np.int64), minlength=self.buckets))

    def sorted(self) -> Iterator[PersonArray]:
        """The people of every bucket, by (high, low); once."""
        for bucket in range(self.buckets):
            people = self._spill.rows(bucket, bucket + 1)
            yield people[np.lexsort((people["low"], people["high"]))] if len(people) else people

    def close(self) -> None:
        """Remove what is held on disk."""
        self._spill.close()


class SortedFile:
    """A file of people in the order of their digests, read from its beginning to its end.

    Parameters
    ----------
    path : Path
    sha256 : str
        Its digest, which is compared before anything is read.

    Raises
    ------
    LedgerError
        If it is gone, was changed or is not in order.
    """

    def __init__(self, path: Path, sha256: str) -> None:
        require_digest(path, sha256)
        self._path = path
        self._file = open_paged(path)
        schema = self._file.schema_arrow
        names = schema.names
        # The digest is right, so that nobody changed it.
        if path.name in SCHEMAS and not schema.equals(SCHEMAS[path.name]):
            raise of_another_funnel(path)
        if not {"high", "low"} <= set(names):
            raise damaged(path, "has no digests of record keys")
        self._dtype = np.dtype([(name, schema.field(name).type.to_pandas_dtype()) for name in names])
        self._batches = self._file.iter_batches(_BATCH_ROWS, use_threads=False)
        self._held: list[PersonArray] = []
        self._last: tuple[int, int, int] | None = None

    def below(self, limit: int | None) -> PersonArray:
        """The next people, as far as ``high`` is below a limit; all that are left without one."""
        found: list[PersonArray] = []
        while (piece := self._next()) is not None:
            place = len(piece) if limit is None else int(np.searchsorted(piece["high"], np.uint64(limit)))
            found.append(piece[:place])
            if place < len(piece):
                self._held.append(piece[place:])
                break
        return np.concatenate(found) if found else np.empty(0, dtype=self._dtype)

    def pieces(self) -> Iterator[PersonArray]:
        """All people that are left, some at a time."""
        while (piece := self._next()) is not None:
            yield piece

    def _next(self) -> PersonArray | None:
        if self._held:
            return self._held.pop()
        batch = next(self._batches, None)
        if batch is None:
            self._file.close()
            return None
        piece = np.empty(batch.num_rows, dtype=self._dtype)
        for name in self._dtype.names or ():
            piece[name] = batch.column(name).to_numpy(zero_copy_only=False)
        self._require_order(piece)
        return piece

    def _require_order(self, piece: PersonArray) -> None:
        # Rows of a unit have its digest, and are in their own order.
        row = piece["row"] if "row" in (self._dtype.names or ()) else np.zeros(len(piece), dtype=np.int32)
        high, low = piece["high"], piece["low"]
        later = (low[1:] > low[:-1]) | ((low[1:] == low[:-1]) & (row[1:] > row[:-1]))
        rising = (high[1:] > high[:-1]) | ((high[1:] == high[:-1]) & later)
        first = (int(high[0]), int(low[0]), int(row[0])) if len(piece) else None
        if not rising.all() or (first is not None and self._last is not None and first <= self._last):
            raise damaged(self._path, "is not in the order of the digests")
        if len(piece):
            self._last = (int(high[-1]), int(low[-1]), int(row[-1]))


def require_digest(path: Path, sha256: str) -> None:
    """Make sure that a file of the register is the one that was written.

    Raises
    ------
    LedgerError
        If it is gone or was changed.
    """
    try:
        same = file_digest(path) == sha256
    except DataError as error:
        raise damaged(path, "is gone or cannot be read") from error
    if not same:
        raise damaged(path, "was changed since it was written")


def places(people: PersonArray, sought: PersonArray) -> IntArray:
    """Where people are among others, both in the order of their digests; -1 for those who are not there.

    Parameters
    ----------
    people, sought : ndarray of structured rows
        With distinct digests.

    Returns
    -------
    ndarray of int64, shape (len(sought),)

    Notes
    -----
    By the first half of the digests, and exactly by both: O(n log n), without a loop over people.
    """
    found = np.full(len(sought), -1, dtype=np.int64)
    if not len(people) or not len(sought):
        return found
    at = np.searchsorted(people["high"], sought["high"]).astype(np.int64)
    open_ = np.arange(len(sought))
    # More than one turn only where the first halves of two digests are alike.
    while len(open_):
        place = at[open_]
        inside = place < len(people)
        open_, place = open_[inside], place[inside]
        alike = people["high"][place] == sought["high"][open_]
        open_, place = open_[alike], place[alike]
        low = people["low"][place]
        equal = low == sought["low"][open_]
        found[open_[equal]] = place[equal]
        open_ = open_[low < sought["low"][open_]]
        at[open_] += 1
    return found


def write_people(folder: Path, pieces: Iterable[PersonArray], name: str = PEOPLE) -> tuple[str, int]:
    """Write people who come in the order of their digests; the SHA-256 (hex) of the file, and how many they are.

    Raises
    ------
    LedgerError
        If two of them have the same digest.
    """
    schema = SCHEMAS[name]
    rows = 0
    # Rows of a unit have its digest.
    several = "row" in schema.names
    with Sink(folder / name) as sink, pq.ParquetWriter(sink, schema, **SETTINGS) as writer:
        for piece in pieces:
            if (
                not several
                and ((piece["high"][1:] == piece["high"][:-1]) & (piece["low"][1:] == piece["low"][:-1])).any()
            ):
                raise LedgerError("two records have the same digest of their record key; release again")
            for start in range(0, len(piece), _BATCH_ROWS):
                part = piece[start : start + _BATCH_ROWS]
                writer.write_batch(record_batch(schema, {field: part[field] for field in schema.names}))
            rows += len(piece)
    return sink.sha256, rows


class Tally:
    """Counts whole numbers of a long stream, in memory for the different ones alone."""

    def __init__(self) -> None:
        self._codes = np.empty(0, dtype=np.int64)
        self._records = np.empty(0, dtype=np.int64)
        self._pending: list[tuple[IntArray, IntArray]] = []
        self._waiting = 0

    def add(self, codes: IntArray) -> None:
        """Take in some numbers, >= 0."""
        if len(codes):
            found, records = np.unique(codes, return_counts=True)
            self._pending.append((found, records.astype(np.int64)))
            self._waiting += len(found)
            if self._waiting > max(1 << 18, len(self._codes)):
                self._merge()

    def counts(self) -> tuple[IntArray, IntArray]:
        """The different numbers in their order, and how often each came: both (k,)."""
        self._merge()
        return self._codes, self._records

    def changes(self, cells: int) -> Changes:
        """The numbers as changes ``before * cells + after``."""
        codes, records = self.counts()
        return Changes(codes // cells, codes % cells, records)

    def _merge(self) -> None:
        if self._pending:
            codes = np.concatenate([self._codes, *(codes for codes, _ in self._pending)])
            records = np.concatenate([self._records, *(records for _, records in self._pending)])
            self._codes, inverse = np.unique(codes, return_inverse=True)
            self._records = np.zeros(len(self._codes), dtype=np.int64)
            np.add.at(self._records, inverse, records)
            self._pending, self._waiting = [], 0
