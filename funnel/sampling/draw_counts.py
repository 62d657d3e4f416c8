"""Draw counts: how often each secret and input met each output, counted as rows are drawn; what an audit compares."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.drawn import DrawnCounts
from funnel.errors import DataError
from funnel.joint import IntArray
from funnel.sampling.codes import CodeArray

# A table is gone through once for so many rows for each of its cells, or this many, whichever is less.
_ROWS_PER_CELL = 4
_MOST_HELD = 1 << 19
_LEAST_HELD = 1 << 16
# Larger tables are not held: their cells are sorted instead.
_MAX_TABLE = 1 << 22


class CellCounts:
    """Counts of (secret, input, output) over many batches of rows.

    Rows are held until they are many more than the cells of the table: going through a large table for every batch
    would take longer than drawing it.

    Parameters
    ----------
    inputs, outputs : int
        a and b.
    secrets : int
        c; 0 if secrets are not told apart.
    """

    def __init__(self, inputs: int, outputs: int, secrets: int = 0) -> None:
        self._inputs, self._outputs, self._secrets = inputs, outputs, secrets
        self._shape = (secrets + 1, inputs + 1, outputs)
        size = math.prod(self._shape)
        self._table = np.zeros(size, dtype=np.int64) if size <= _MAX_TABLE else None
        self._sorted: tuple[IntArray, IntArray] = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        self._cells = np.empty(min(max(_ROWS_PER_CELL * size, _LEAST_HELD), _MOST_HELD), dtype=np.int64)
        self._held = 0

    def add(self, inputs: CodeArray, outputs: npt.NDArray[np.integer[Any]], secrets: CodeArray | None = None) -> None:
        """Count some rows.

        Parameters
        ----------
        inputs : ndarray of integers, shape (rows,)
            Input codes, -1 outside the alphabet.
        outputs : ndarray of integers, shape (rows,)
            Output codes.
        secrets : ndarray of integers, shape (rows,), optional
            Codes of the secret, -1 outside its alphabet; where secrets are told apart.

        Raises
        ------
        DataError
            If a code is outside its alphabet, the lengths differ, or there are secrets where none were expected or the
            reverse.
        """
        if (secrets is None) != (self._secrets == 0):
            raise DataError("draws are counted by secret for all rows or for none")
        if inputs.shape != outputs.shape or (secrets is not None and secrets.shape != outputs.shape):
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
            if secrets is not None:
                cells += secrets[start:stop] * ((self._inputs + 1) * self._outputs)
            self._held += len(cells)
            if self._held == len(self._cells):
                self._count()
            start = stop

    def counts(self) -> DrawnCounts:
        """The counts so far."""
        self._count()
        cells, records = self._sorted
        if self._table is not None:
            cells = np.flatnonzero(self._table)
            records = self._table[cells]
        lines, outputs = np.divmod(cells, self._outputs)
        secrets, inputs = np.divmod(lines, self._inputs + 1)
        secrets, inputs = (secrets - 1) % (self._secrets + 1), (inputs - 1) % (self._inputs + 1)
        cells = (secrets * (self._inputs + 1) + inputs) * self._outputs + outputs
        return DrawnCounts.total(self._shape, [(cells, records)])

    def _count(self) -> None:
        cells = self._cells[: self._held]
        # From the outsiders, whose code is -1; put right in the end.
        cells += self._outputs + (self._inputs + 1) * self._outputs * bool(self._secrets)
        if self._table is not None:
            self._table += np.bincount(cells, minlength=len(self._table))
        elif len(cells):
            found = DrawnCounts.total(self._shape, [self._sorted, np.unique(cells, return_counts=True)])
            self._sorted = found.cells, found.records
        self._held = 0
