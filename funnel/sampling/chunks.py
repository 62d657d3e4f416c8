"""Streams of rows, cut to even sizes or to bounded ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

RowArray = npt.NDArray[Any]
"""Rows of output codes, shape (rows,), or records."""


def even_chunks(arrays: Iterable[RowArray], rows: int) -> Iterator[RowArray]:
    """The same rows in the same order, in arrays of exactly ``rows`` rows; only the last one may be shorter.

    What is made from a chunk (a spilled run, a row group of a file) then depends on the rows alone, not on how they
    were partitioned on the way. Arrays are held until a chunk is full and must not be overwritten meanwhile.

    Parameters
    ----------
    arrays : iterable of ndarray
        Arrays of one dtype and one trailing shape.
    rows : int
        Rows per chunk, at least 1; also what bounds the memory.
    """
    held: list[RowArray] = []
    count = 0
    for array in arrays:
        start = 0
        while start < len(array):
            part = array[start : start + rows - count]
            start += len(part)
            count += len(part)
            held.append(part)
            if count == rows:
                yield _joined(held)
                held, count = [], 0
    if held:
        yield _joined(held)


def sliced(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same batches, those of more than ``rows`` rows in slices of as many."""
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def _joined(parts: list[RowArray]) -> RowArray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
