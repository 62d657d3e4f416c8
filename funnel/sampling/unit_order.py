"""Unit order: which row of a unit comes first, second, …, which has nothing to do with what is in the rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.sampling.key_column import with_missing
from funnel.sampling.keyed import DigestArray, RecordKey, decision_keys, encrypted_words, key_digests, word_key
from funnel.sampling.random_words import WordArray


def order_of_rows(digests: DigestArray, of_rows: npt.NDArray[np.int64], record_key: RecordKey) -> WordArray:
    """Pseudo-random words for the rows of units: the row of a unit with the smallest is its first.

    By the secret, the unit, and the place of a row among those of its unit: other units do not matter.

    Parameters
    ----------
    digests : ndarray of uint64, shape (units, 2)
    of_rows : ndarray of int64, shape (rows,)
        The place in ``digests`` of every row's unit, in the order of the source.
    record_key : RecordKey

    Returns
    -------
    ndarray of uint64, shape (rows,)
    """
    by_unit = np.argsort(of_rows, kind="stable")
    sizes = np.bincount(of_rows)
    number = np.empty(len(of_rows), dtype=np.uint64)
    number[by_unit] = np.arange(len(of_rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.stack([number, np.zeros_like(number)], axis=1)
    keys = decision_keys(np.ascontiguousarray(digests[of_rows]), rows, word_key(record_key, "row of a unit"))
    return encrypted_words(keys, word_key(record_key, "order of the rows of a unit"))


def first_rows(
    batches: Iterable[pa.RecordBatch], record_key: RecordKey, missing: tuple[str, ...] = ()
) -> npt.NDArray[np.bool_]:
    """Which rows of a source are the first ones of their units; rows without a unit are none. Shape (rows,).

    Parameters
    ----------
    batches : iterable of RecordBatch
        With the columns of the key.
    record_key : RecordKey
    missing : tuple of str
        Texts that mean a value is missing.

    Raises
    ------
    DataError
        If a column is not there, or not of text or whole numbers.
    """
    found, known = [], []
    for batch in batches:
        keys = with_missing(batch, record_key, missing)
        there = np.logical_and.reduce([keys.column(name).is_valid().to_numpy(False) for name in record_key.columns])
        known.append(there)
        found.append(key_digests(keys.filter(pa.array(there)), record_key))
    is_known = np.concatenate(known) if known else np.zeros(0, dtype=np.bool_)
    digests, of_rows = np.unique(np.concatenate([np.zeros((0, 2), np.uint64), *found]), axis=0, return_inverse=True)
    first = np.zeros(len(is_known), dtype=np.bool_)
    if len(digests):
        of_rows = of_rows.reshape(-1).astype(np.int64)
        words = order_of_rows(digests, of_rows, record_key)
        order = np.lexsort((words, of_rows))
        starts = np.flatnonzero(np.diff(of_rows[order], prepend=-1))
        first[np.flatnonzero(is_known)[order[starts]]] = True
    return first
