"""Units: people or households that several rows may be of, counted exactly and in bounded memory."""

from __future__ import annotations

import os
import secrets

import numpy as np
import pyarrow as pa

from funnel.errors import DataError, SpecError
from funnel.sampling.key_column import with_missing
from funnel.sampling.keyed import DigestArray, RecordKey, count_missing_keys, key_digests
from funnel.sampling.spill import Closing, Spill, bucket_count

BUCKET_ROWS = 1 << 20


class Units(Closing):
    """Refuses a table in which a unit has several rows; the digests that it knows units by are nobody else's.

    Parameters
    ----------
    columns : tuple of str
        Whose values together are unique to a unit.
    rows : int
        About how many there will be.
    missing : tuple of str
        Texts that mean a value is missing.
    directory : path, optional
        For temporary files, if there are many records.
    bucket_rows : int, optional
        For tests: rows that are looked at in one go.

    Notes
    -----
    Use as a context manager; call `check` after the last batch. 16 bytes per row, on disk if there are millions;
    O(n log n) time.
    """

    def __init__(
        self,
        columns: tuple[str, ...],
        rows: int,
        missing: tuple[str, ...] = (),
        directory: str | os.PathLike[str] | None = None,
        bucket_rows: int = BUCKET_ROWS,
    ) -> None:
        self._key = RecordKey(columns, secrets.token_bytes(32))
        self._missing_texts = missing
        buckets = bucket_count(rows, bucket_rows)
        self._bits, self._spill = buckets.bit_length() - 1, Spill(buckets, directory)
        self._missing = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in rows.

        Raises
        ------
        DataError
            If a column is not there, or not of text or whole numbers.
        """
        rows = with_missing(batch, self._key, self._missing_texts)
        self._missing += count_missing_keys(rows, self._key)
        if self._missing:
            # Refused in the end; go on only to say how many.
            return
        digests = key_digests(rows, self._key)
        if not self._bits:
            self._spill.add(digests, np.array([len(digests)]))
            return
        bucket = (digests[:, 0] >> np.uint64(64 - self._bits)).astype(np.int64)
        self._spill.add(digests[np.argsort(bucket, kind="stable")], np.bincount(bucket, minlength=1 << self._bits))

    def check(self) -> None:
        """Refuse the rows seen so far if several are of one unit.

        Raises
        ------
        SpecError
            That says how many units, not which.
        DataError
            If rows have no unit.
        """
        named = ", ".join(map(repr, self._key.columns))
        if self._missing:
            raise DataError(
                f"{self._missing:,} records have no value in the unit {named}; drop them or give every record its unit"
            )
        units = several = rows = 0
        for bucket in range(1 << self._bits):
            counts = _sizes(self._spill.rows(bucket, bucket + 1))
            units += len(counts)
            several += int(np.count_nonzero(counts > 1))
            rows += int(counts[counts > 1].sum())
        if several:
            raise SpecError(
                f"{several:,} of {units:,} units ({named}) have several rows, {rows:,} in all, and the bound would "
                'hold for each row but not for the unit: add [history] people = "same", so that the rows of a unit are '
                "drawn under one bound, also where there will be no other version; or make one row of every unit"
            )

    def close(self) -> None:
        """Remove what is held on disk."""
        self._spill.close()


def _sizes(digests: DigestArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Rows of every unit of a bucket, in no particular order."""
    if not len(digests):
        return np.empty(0, dtype=np.int64)
    ordered = digests[np.lexsort((digests[:, 1], digests[:, 0]))]
    starts = np.flatnonzero(np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)]))
    return np.diff(starts, append=len(ordered)).astype(np.int64)
