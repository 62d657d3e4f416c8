"""Drawn: how often every (secret, input, output) was drawn, as exact sparse counts; evidence, and never public."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.errors import DataError
from funnel.joint import IntArray


@dataclass(frozen=True, eq=False)
class DrawnCounts:
    """Records by secret, by the input that they drew with, and by the output that they drew.

    Parameters
    ----------
    shape : tuple of int
        (c + 1, a + 1, b): the last secret and the last input stand for values outside their alphabets. With c = 0
        secrets were not told apart.
    cells : ndarray of int64, shape (k,)
        Cells of the table of that shape with a record in them, numbered in C order, ascending.
    records : ndarray of int64, shape (k,)
        Their counts, all above zero.

    Raises
    ------
    DataError
        If these are no such counts.
    """

    shape: tuple[int, int, int]
    cells: IntArray
    records: IntArray

    def __post_init__(self) -> None:
        if min(self.shape) < 1 or math.prod(self.shape) >= 2**63 or self.cells.shape != self.records.shape:
            raise DataError(f"counts of draws do not fit a table of {' × '.join(map(str, self.shape))} cells")
        if len(self.cells) and not 0 <= int(self.cells[0]) <= int(self.cells[-1]) < math.prod(self.shape):
            raise DataError("counts of draws are outside their table")
        if (np.diff(self.cells) <= 0).any() or (self.records <= 0).any():
            raise DataError("counts of draws are not in order, or not above zero")
        for array in (self.cells, self.records):
            array.setflags(write=False)

    @classmethod
    def of(cls, table: npt.NDArray[np.integer[Any]]) -> DrawnCounts:
        """The counts in a whole table, shape (c + 1, a + 1, b)."""
        flat = table.reshape(-1).astype(np.int64)
        cells = np.flatnonzero(flat)
        c, a, b = table.shape
        return cls((c, a, b), cells, flat[cells])

    @classmethod
    def of_pairs(cls, pairs: IntArray | DrawnCounts) -> DrawnCounts:
        """Records by input and output alone, shape (1, a + 1, b), of such a table (a + 1, b) or of counts by secret."""
        if not isinstance(pairs, DrawnCounts):
            return cls.of(pairs[np.newaxis])
        c, a, b = pairs.shape
        return pairs if c == 1 else cls.total((1, a, b), [(pairs.cells % (a * b), pairs.records)])

    @classmethod
    def total(cls, shape: tuple[int, int, int], parts: Iterable[tuple[IntArray, IntArray]]) -> DrawnCounts:
        """The sum of counts of parts, each as cells and their records, in any order."""
        some = [*parts, (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]
        every = np.concatenate([cells for cells, _ in some])
        cells, place = np.unique(every, return_inverse=True)
        records = np.zeros(len(cells), dtype=np.int64)
        np.add.at(records, place, np.concatenate([counts for _, counts in some]))
        return cls(shape, cells[records > 0], records[records > 0])

    @property
    def n(self) -> int:
        """Records."""
        return int(self.records.sum())

    @property
    def pairs(self) -> IntArray:
        """Records by input and output, shape (a + 1, b): a table that only small alphabets have memory for."""
        _, a, b = self.shape
        return self._margin(self.cells % (a * b), (a, b))

    @property
    def by_input(self) -> IntArray:
        """Records by input, shape (a + 1,)."""
        _, a, b = self.shape
        return self._margin(self.cells // b % a, (a,))

    @property
    def by_output(self) -> IntArray:
        """Records by output, shape (b,)."""
        b = self.shape[2]
        return self._margin(self.cells % b, (b,))

    @property
    def outside(self) -> int:
        """Records whose input was outside the alphabet."""
        return int(self.by_input[-1])

    @property
    def inputs(self) -> IntArray:
        """Records by secret and input, shape (c + 1, a + 1)."""
        c, a, b = self.shape
        return self._margin(self.cells // b, (c, a))

    def rows(self) -> Iterator[tuple[int, int, IntArray, IntArray]]:
        """Secret, input, the outputs drawn, rising, and their records, of every (secret, input) that was drawn for."""
        _, a, b = self.shape
        groups, starts = np.unique(self.cells // b, return_index=True)
        bounds = [*starts.tolist(), len(self.cells)]
        for group, (start, end) in zip(groups.tolist(), pairwise(bounds), strict=True):
            yield group // a, group % a, self.cells[start:end] % b, self.records[start:end]

    def _margin(self, places: IntArray, shape: tuple[int, ...]) -> IntArray:
        table = np.zeros(math.prod(shape), dtype=np.int64)
        np.add.at(table, places, self.records)
        return table.reshape(shape)
