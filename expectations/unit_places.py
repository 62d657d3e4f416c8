"""Unit places: which row of a unit comes first, second, …, derived once more from the release secret alone.

Rows of a unit are drawn one after the other, and public tables are of the first ones. So their order must say nothing:
the row with the smallest word is first, and the word is the CBC-MAC of the unit's digest and of the number of the row
among those of its unit in the source.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from funnel.pipeline.expectations.keyed_answers import aes_blocks, derived
from funnel.recount.register_files import Entry
from funnel.release.snapshot import Snapshot
from funnel.sampling import KEY_COLUMN, RecordKey

_ROW = np.dtype([("unit", "V16"), ("place", "<i8"), ("cell", "<i8")])
_BATCH_ROWS = 1 << 16

Rows = npt.NDArray[np.void]


def misplaced_rows(entry: Entry, key: RecordKey, snapshot: Snapshot) -> int:
    """How many rows of a register's version are not the row of their unit that the secret makes them.

    Parameters
    ----------
    entry : Entry
        Of a version whose units have several rows.
    key : RecordKey
        With the release secret.
    snapshot : Snapshot
        The records in the order of the source.

    Notes
    -----
    Rows of forgotten people are in the snapshot alone. O(n log n) time, and arrays of some 100 bytes a row.
    """
    due = {row.tobytes() for row in _derived_rows(entry, key, snapshot)}
    return sum(row.tobytes() not in due for row in _of_register(entry))


def _of_register(entry: Entry) -> Rows:
    """The rows as the register has them."""
    table = pq.read_table(entry.rows, columns=["high", "low", "row", "cell"])
    high, low, place, cell = (column.to_numpy() for column in table.columns)
    return _rows(np.stack([high, low], axis=1), place, cell)


def _derived_rows(entry: Entry, key: RecordKey, snapshot: Snapshot) -> Rows:
    """The rows of the snapshot, each at its place by the secret."""
    secrets = {symbol: s for s, symbol in enumerate(entry.chapter.secret)}
    inputs = {symbol: x for x, symbol in enumerate(entry.chapter.inputs)}
    split, a = len(entry.secret_columns), entry.chapter.a
    digests, cells = bytearray(), []
    with pq.ParquetFile(snapshot.data.path) as file:
        columns = [*entry.secret_columns, *entry.input_columns]
        for batch in file.iter_batches(_BATCH_ROWS, columns=[*columns, KEY_COLUMN]):
            digests += b"".join(batch.column(KEY_COLUMN).to_pylist())
            texts = zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
            cells += [secrets[row[:split]] * a + inputs[row[split:]] for row in texts]
    units = np.frombuffer(bytes(digests), dtype="<u8").reshape(-1, 2)
    number = _numbers(units)
    first, second = (derived(key, "word", purpose, 32) for purpose in ("row of a unit", "order of the rows of a unit"))
    blocks = np.stack([number, np.zeros_like(number)], axis=1).astype("<u8")
    keys = np.frombuffer(aes_blocks(first, units.tobytes()), dtype="<u8").reshape(-1, 2) ^ blocks
    words = np.frombuffer(aes_blocks(second, keys.tobytes()), dtype="<u8").reshape(-1, 2)[:, 0]
    order = np.lexsort((words, units[:, 1], units[:, 0]))
    place = np.empty(len(units), dtype=np.int64)
    place[order] = _numbers(units[order]) + 1
    return _rows(units, place, np.array(cells, dtype=np.int64))


def _numbers(units: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """How many rows before each are of the same unit."""
    order = np.lexsort((np.arange(len(units)), units[:, 1], units[:, 0]))
    begins = np.append(True, (np.diff(units[order], axis=0) != 0).any(axis=1))
    starts = np.maximum.accumulate(np.where(begins, np.arange(len(units)), 0))
    found = np.empty(len(units), dtype=np.int64)
    found[order] = np.arange(len(units)) - starts
    return found


def _rows(units: npt.NDArray[np.uint64], place: npt.NDArray[np.int64], cell: npt.NDArray[np.int64]) -> Rows:
    found = np.empty(len(units), dtype=_ROW)
    found["unit"] = np.ascontiguousarray(units, dtype="<u8").view("V16").reshape(-1)
    found["place"], found["cell"] = place, cell
    return found
