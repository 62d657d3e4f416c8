"""Pairs: how often each input met each output, which is what an audit compares with the protocol."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.errors import DataError
from funnel.sampling.codes import CodeArray

# A table is gone through once for so many rows for each of its cells, or this many, whichever is less.
_ROWS_PER_CELL = 4
_MOST_HELD = 1 << 19
_LEAST_HELD = 1 << 16


class PairCounts:
    """Counts of (input, output) pairs over many batches of rows.

    Rows are held until they are many more than the cells of the table: going through a large table for every batch
    would take longer than drawing it.

    Parameters
    ----------
    inputs, outputs : int
        a and b.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        self._inputs, self._outputs = inputs, outputs
        # The first line counts inputs outside the alphabet, whose code is -1.
        self._table = np.zeros((inputs + 1) * outputs, dtype=np.int64)
        self._cells = np.empty(min(max(_ROWS_PER_CELL * len(self._table), _LEAST_HELD), _MOST_HELD), dtype=np.int64)
        self._held = 0

    def add(self, inputs: CodeArray, outputs: npt.NDArray[np.integer[Any]]) -> None:
        """Count some rows.

        Parameters
        ----------
        inputs : ndarray of integers, shape (rows,)
            Input codes, -1 outside the alphabet.
        outputs : ndarray of integers, shape (rows,)
            Output codes.

        Raises
        ------
        DataError
            If a code is outside its alphabet or the lengths differ.
        """
        if inputs.shape != outputs.shape:
            raise DataError(f"{len(inputs)} input codes do not fit {len(outputs)} output codes")
        ranges = (("input", inputs, -1, self._inputs), ("output", outputs, 0, self._outputs))
        for what, codes, first, size in ranges:
            if len(codes) and not first <= int(codes.min()) <= int(codes.max()) < size:
                raise DataError(f"{what} codes run from {codes.min()} to {codes.max()}, not from {first} to {size - 1}")
        start = 0
        while start < len(inputs):
            stop = min(start + len(self._cells) - self._held, len(inputs))
            cells = self._cells[self._held : self._held + stop - start]
            np.multiply(inputs[start:stop], self._outputs, out=cells, dtype=np.int64)
            cells += outputs[start:stop]
            self._held += len(cells)
            if self._held == len(self._cells):
                self._count()
            start = stop

    def table(self) -> npt.NDArray[np.int64]:
        """The counts so far, shape (a + 1, b); the last line is of inputs outside the alphabet."""
        self._count()
        return np.roll(self._table.reshape(self._inputs + 1, self._outputs), -1, axis=0)

    def _count(self) -> None:
        cells = self._cells[: self._held]
        cells += self._outputs
        self._table += np.bincount(cells, minlength=len(self._table))
        self._held = 0


def count_pairs(
    inputs: CodeArray, outputs: npt.NDArray[np.integer[Any]], input_count: int, output_count: int
) -> npt.NDArray[np.int64]:
    """The pairs of some rows, shape (a + 1, b); see `PairCounts`, which counts many batches faster.

    Raises
    ------
    DataError
        As `PairCounts.add`.
    """
    counts = PairCounts(input_count, output_count)
    counts.add(inputs, outputs)
    return counts.table()
