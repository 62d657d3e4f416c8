"""Sparse weights: the integer weights of a channel output by output, without the zeros, for wide tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.errors import SpecError

_WeightArray = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
# What a table of all entries may take: beyond, only the entries that are not zero are looked at.
_LARGEST_TABLE = 4 * 10**9


@dataclass(frozen=True, eq=False)
class SparseWeights:
    """A table of weights (b, a), as the entries of each output that are not zero.

    Attributes
    ----------
    starts : ndarray of int64, shape (b + 1,)
        Entries of output y are those from ``starts[y]`` to ``starts[y + 1]``.
    inputs : ndarray of int64, shape (number of entries,)
        The input of each entry; rising within an output.
    values : ndarray of uint64, shape (number of entries,)
        Its weight, > 0.
    width : int
        a, the number of inputs.

    Raises
    ------
    SpecError
        If the arrays do not fit each other, an input is named twice by an output, or a weight is zero.
    """

    starts: Places
    inputs: Places
    values: _WeightArray
    width: int

    def __post_init__(self) -> None:
        if self.values.dtype != np.uint64:
            raise SpecError(f"protocol weights must be unsigned 64-bit integers, not {self.values.dtype}")
        fits = len(self.starts) > 0 and self.inputs.shape == self.values.shape == (int(self.starts[-1]),)
        if not fits or self.starts[0] != 0 or (np.diff(self.starts) < 0).any():
            raise SpecError("the entries of sparse weights do not fit their outputs")
        rising = np.diff(self.inputs) > 0
        # Where an output begins, its first input may be any.
        begins = self.starts[1:-1]
        rising[begins[(begins > 0) & (begins < len(self.inputs))] - 1] = True
        if not rising.all() or (len(self.inputs) and not 0 <= self.inputs.min() <= self.inputs.max() < self.width):
            raise SpecError("every output of sparse weights must name its inputs once, in their order")
        if not self.values.all():
            raise SpecError("sparse weights leave zeros out")
        for array in (self.starts, self.inputs, self.values):
            array.setflags(write=False)

    @classmethod
    def of(cls, weights: _WeightArray) -> SparseWeights:
        """The entries of a table (b, a) that are not zero."""
        rows, columns = np.nonzero(weights)
        return cls.of_entries(rows, columns, weights[rows, columns], weights.shape)

    @classmethod
    def of_entries(
        cls, outputs: npt.ArrayLike, inputs: npt.ArrayLike, values: _WeightArray, shape: tuple[int, ...]
    ) -> SparseWeights:
        """A table of that shape (b, a) from its entries in any order; zeros among them are left out."""
        rows, columns = np.asarray(outputs, dtype=np.int64), np.asarray(inputs, dtype=np.int64)
        there = values > 0
        rows, columns, values = rows[there], columns[there], values[there]
        order = np.lexsort((columns, rows))
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))]).astype(np.int64)
        return cls(starts, columns[order], values[order], shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """(b, a)."""
        return len(self.starts) - 1, self.width

    @cached_property
    def outputs(self) -> Places:
        """The output of each entry."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def row(self, output: int) -> tuple[Places, _WeightArray]:
        """The inputs of an output, and their weights."""
        here = slice(int(self.starts[output]), int(self.starts[output + 1]))
        return self.inputs[here], self.values[here]

    def table(self) -> _WeightArray:
        """All entries, shape (b, a).

        Raises
        ------
        SpecError
            If such a table would not fit the memory that a protocol may take.
        """
        b, a = self.shape
        if 8.0 * b * a > _LARGEST_TABLE:
            raise SpecError(
                f"the weights of {b:,} outputs for {a:,} inputs do not fit memory as a table; use the sparse ones, "
                "protocol.sparse"
            )
        whole = np.zeros((b, a), dtype=np.uint64)
        whole[self.outputs, self.inputs] = self.values
        return whole

    @property
    def transposed(self) -> SparseWeights:
        """The same by input, shape (a, b): of every input its outputs."""
        return SparseWeights.of_entries(self.inputs, self.outputs, self.values, (self.width, len(self.starts) - 1))

    def chosen(self, outputs: Places) -> SparseWeights:
        """The weights of these outputs, in this order."""
        sizes = np.diff(self.starts)[outputs]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        at = np.arange(starts[-1]) - np.repeat(starts[:-1] - self.starts[outputs], sizes)
        return SparseWeights(starts, self.inputs[at], self.values[at], self.width)

    def sums_by_input(self) -> list[int]:
        """What the weights of every input sum to, exactly; length a."""
        return self._sums(self.inputs, self.width, np.ones(1, dtype=np.uint64))

    def masses(self, counts: npt.NDArray[np.integer[Any]]) -> list[int]:
        """``Σ_x n_x w[y, x]`` of every output for counts (a,) of fewer than 2^31 records in all, exactly; length b."""
        return self._sums(self.outputs, len(self.starts) - 1, counts.astype(np.uint64)[self.inputs])

    def _sums(self, places: Places, size: int, times: _WeightArray) -> list[int]:
        # Halves times counts below 2^31 in all: no sum of them reaches 2^63.
        low, high = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.uint64)
        np.add.at(low, places, (self.values & _LOW) * times)
        np.add.at(high, places, (self.values >> _HALF) * times)
        return [(h << 32) + lo for h, lo in zip(high.tolist(), low.tolist(), strict=True)]

    def blocks(self, size: int) -> Iterator[tuple[int, Places, _WeightArray]]:
        """The outputs a few at a time: the first of them, the inputs they have, and their weights for these.

        Parameters
        ----------
        size : int
            Outputs at once.

        Yields
        ------
        first : int
        inputs : ndarray of int, shape (k,)
            Rising.
        weights : ndarray of uint64, shape (at most size, k)
        """
        for first in range(0, len(self.starts) - 1, size):
            last = min(first + size, len(self.starts) - 1)
            here = slice(int(self.starts[first]), int(self.starts[last]))
            inputs, columns = np.unique(self.inputs[here], return_inverse=True)
            weights = np.zeros((last - first, len(inputs)), dtype=np.uint64)
            weights[self.outputs[here] - first, columns] = self.values[here]
            yield first, inputs, weights
