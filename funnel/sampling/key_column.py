"""Record keys of a stream of rows as a column of digests, refused if any is missing or repeated.

Whether every record has a key of its own is decided exactly and in bounded memory (`DistinctKeys`).
"""

from __future__ import annotations

import os
import secrets

import numpy as np
import pyarrow as pa

from funnel.errors import DataError, SpecError
from funnel.sampling.chunks import even_chunks
from funnel.sampling.keyed import (
    DIGEST_BYTES,
    DigestArray,
    RecordKey,
    count_missing_keys,
    key_digests,
    missing_keys_error,
    repeated_keys_error,
)
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


KEY_COLUMN = "(record key)"
"""The column, of a snapshot or of a batch that is to be drawn, that holds the digest of each record's key."""

KEY_TYPE = pa.binary(DIGEST_BYTES)


class KeyColumn(Closing):
    """Makes the column of key digests of a table, batch by batch, and refuses keys that do not identify records.

    Parameters
    ----------
    record_key : RecordKey
    missing : tuple of str
        Texts that mean a value is missing.
    directory : path, optional
        For temporary files, if there are many records; by default the system's temporary folder.
    several : bool
        Whether records may have the same key, as those of one person have.

    Notes
    -----
    Use as a context manager; call `check` after the last batch. What is stored are digests under the release secret:
    whoever has only the snapshot cannot find a record by its key.
    """

    def __init__(
        self,
        record_key: RecordKey,
        missing: tuple[str, ...] = (),
        directory: str | os.PathLike[str] | None = None,
        several: bool = False,
    ) -> None:
        self._record_key = record_key
        self._several = several
        self._missing_texts = missing
        self._distinct = DistinctKeys(directory)
        self._records = self._missing = 0

    def column(self, batch: pa.RecordBatch) -> pa.Array:
        """The digests of the keys of a batch; from the first row without a key on, nulls.

        Raises
        ------
        DataError
            If a key column is not of text or whole numbers.
        """
        keys = with_missing(batch, self._record_key, self._missing_texts)
        self._records += batch.num_rows
        self._missing += count_missing_keys(keys, self._record_key)
        if self._missing:
            # Nothing can be released any more; go on only to say how many records have no key.
            return pa.nulls(batch.num_rows, KEY_TYPE)
        digests = key_digests(keys, self._record_key)
        if not self._several:
            self._distinct.add(digests)
        return key_array(digests)

    def check(self) -> None:
        """Refuse the keys seen so far if any is missing or repeated.

        Raises
        ------
        DataError
            That says how many records, not which.
        """
        if self._missing:
            raise missing_keys_error(self._missing, self._record_key)
        keys, _ = self._distinct.counts()
        if not self._several and keys < self._records:
            raise repeated_keys_error(self._records - keys, self._record_key)

    def close(self) -> None:
        """Remove what is held on disk."""
        self._distinct.close()


class Units(KeyColumn):
    """Refuses a table in which a unit has several rows; the digests that it knows units by are nobody else's.

    Parameters
    ----------
    columns : tuple of str
        Whose values together are unique to a unit.
    missing, directory
        As of `KeyColumn`.
    """

    def __init__(
        self, columns: tuple[str, ...], missing: tuple[str, ...] = (), directory: str | os.PathLike[str] | None = None
    ) -> None:
        super().__init__(RecordKey(columns, secrets.token_bytes(32)), missing, directory)

    def check(self) -> None:
        """Refuse the rows seen so far if several are of one unit.

        Raises
        ------
        SpecError
            That says how many units, not which.
        DataError
            If rows have no unit.
        """
        named = ", ".join(map(repr, self._record_key.columns))
        if self._missing:
            raise DataError(
                f"{self._missing:,} records have no value in the unit {named}; drop them or give every record its unit"
            )
        units, several = self._distinct.counts()
        if several:
            raise SpecError(
                f"{several:,} of {units:,} units ({named}) have several rows, {self._records - units + several:,} in "
                "all, and the bound would hold for each row but not for the unit: add [history] people = "
                '"same", so that the rows of a unit are drawn under one bound, also where there will be no other '
                "version; or make one row of every unit"
            )


def with_missing(batch: pa.RecordBatch, record_key: RecordKey, missing: tuple[str, ...]) -> pa.RecordBatch:
    """The key columns of a batch, with nulls for texts that mean a value is missing."""
    if not missing:
        return batch
    texts = pa.array(sorted(missing), pa.string())
    columns = [_with_nulls(batch.column(name), texts) for name in record_key.columns]
    return pa.RecordBatch.from_arrays(columns, list(record_key.columns))


def _with_nulls(column: pa.Array, missing: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not pa.types.is_string(column.type):
        return column
    # Imported here, as where cells are read: many commands read no record.
    import pyarrow.compute as pc

    return pc.if_else(pc.is_in(column, value_set=missing), pa.scalar(None, column.type), column)


def key_array(digests: DigestArray) -> pa.Array:
    """Digests, shape (rows, 2), as a column of a snapshot."""
    content = np.ascontiguousarray(digests, dtype="<u8")
    return pa.FixedSizeBinaryArray.from_buffers(KEY_TYPE, len(content), [None, pa.py_buffer(content)])


def stored_digests(batch: pa.RecordBatch) -> DigestArray:
    """The digests that `KeyColumn` made for the rows of a batch, without a copy.

    Raises
    ------
    DataError
        If a record has none.
    """
    column = batch.column(KEY_COLUMN)
    if column.null_count:
        raise DataError(f"{column.null_count} records have no digest of their key; make the snapshot anew")
    values = np.frombuffer(column.buffers()[1], dtype="<u8", count=2 * (column.offset + len(column)))
    return values.reshape(-1, 2)[column.offset :]
