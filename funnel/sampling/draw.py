"""Drawing: outputs of a protocol, a table or without its zeros, from codes and uniform words, exact to 63 bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.errors import DataError, SpecError
from funnel.protocol import DENOMINATOR, WORD_BITS, Protocol, exact_sums

CodeArray = npt.NDArray[np.int64]
OutputArray = npt.NDArray[np.unsignedinteger[Any]]

# The three tables then have at most 2^21 cells each and the one that every row reads stays in the processor's cache.
_MAX_TABLE_BITS = 14
_MAX_CELLS = 1 << 21
# A table that leaves open fewer rows than this in a cell with a threshold is fine enough; a smaller one is faster.
_OPEN_ROWS = 1 / 256
_CHUNK_ROWS = 1 << 15


class ChannelSampler:
    """Draws y ~ Q(.|x) for many records at once, from one uniform word a record.

    Let ``cum[x, y] = Σ_{y' ≤ y} weights[y', x]`` and u the top 63 bits of the word. The output is the y with
    ``cum[x, y-1] ≤ u < cum[x, y]``, for every u in [0, 2^63).

    **This is exact.** The last threshold is 2^63 > u and the first lower end is 0 ≤ u, so exactly one such y exists
    and nothing is clamped. The number of u that give y is ``weights[y, x]``, out of 2^63 equally likely ones: the
    probability is the protocol's, to the last bit, and zero for a weight of zero, wherever it stands. (63 bits, so
    that 2^63 itself is an unsigned 64-bit integer.)

    **The table changes nothing.** y(u) = #{y : cum[x, y] ≤ u} does not decrease in u. Cut [0, 2^63) into 2^k cells by
    the top k bits. Where y is the same for the first and the last u of a cell, it is the same for all between, and
    the table holds it. Otherwise a threshold lies inside the cell and y is found by bisection between its values at
    the two ends, on all 63 bits. At most b−1 of 2^k cells are of the second kind.

    Records whose input is outside the alphabet have code -1 and draw from the protocol's marginal.

    Parameters
    ----------
    weights : ndarray of uint64, shape (b, a)
        Each column sums to 2^63.
    marginal : ndarray of uint64, shape (b,)
        Sums to 2^63.

    Raises
    ------
    SpecError
        If shapes or types do not fit or a column does not sum to exactly 2^63.

    Notes
    -----
    Memory O(a·b + a·2^k), with k ≤ 14 the smallest for which on average at most one cell in 256 holds a threshold, if
    (a+1)·2^k ≤ 2^21 (k is at least 1). About 100 million rows/s at a = b = 16 and 60 million at a = b = 200 on one
    core; the table is the guide table of Chen and Asau (1974), on integers.
    """

    def __init__(self, weights: npt.NDArray[np.uint64], marginal: npt.NDArray[np.uint64]) -> None:
        if weights.dtype != np.uint64 or marginal.dtype != np.uint64:
            raise SpecError("the weights of a protocol must be unsigned 64-bit integers")
        if weights.ndim != 2 or marginal.shape != weights.shape[:1] or 0 in weights.shape:
            raise SpecError(f"weights of shape {weights.shape} do not fit a marginal of shape {marginal.shape}")
        columns = np.column_stack([weights, marginal])
        self.outputs, self.inputs = weights.shape
        for x, total in enumerate(exact_sums(columns)):
            if total != DENOMINATOR or (columns[:, x] > np.uint64(DENOMINATOR)).any():
                name = "the marginal" if x == self.inputs else f"column {x} of the weights"
                raise SpecError(f"{name} sums to {total} instead of 2^63, so it is not a probability distribution")
        # Partial sums of non-negative terms stay at or below 2^63, so none of them wraps around.
        self._thresholds = np.ascontiguousarray(np.cumsum(columns, axis=0, dtype=np.uint64).T)
        self._bits = _table_bits(self._thresholds)
        self._dtype = self.output_type(self.outputs)
        # The largest number of the type is no output; it marks cells with a threshold inside.
        self._split = np.iinfo(self._dtype).max
        low, high = _cell_ends(self._thresholds, self._bits)
        self._low, self._high = low.astype(self._dtype), high.astype(self._dtype)
        self._table = np.where(low == high, self._low, self._dtype.type(self._split))

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> ChannelSampler:
        """A sampler for a protocol's weights and marginal."""
        return cls(protocol.weights, protocol.marginal)

    @staticmethod
    def output_type(outputs: int) -> np.dtype[np.unsignedinteger[Any]]:
        """The type that so many outputs are numbered in; its largest number is none of them."""
        return np.dtype(np.uint8 if outputs < 2**8 else np.uint16 if outputs < 2**16 else np.uint32)

    def draw(self, codes: npt.NDArray[np.integer[Any]], words: npt.NDArray[np.uint64]) -> OutputArray:
        """Outputs for input codes and words.

        Parameters
        ----------
        codes : ndarray of integers, shape (rows,)
            Positions in the input alphabet, 0 to a-1; -1 for a value outside it.
        words : ndarray of uint64, shape (rows,)
            Uniform on [0, 2^64), independent over rows; the lowest bit is not used.

        Returns
        -------
        ndarray, shape (rows,)
            Positions in the output alphabet: uint8 for up to 255 outputs, uint16 for up to 65,535, else uint32.

        Raises
        ------
        DataError
            If a code is outside -1 to a-1, or codes and words are not integers of the same shape.
        """
        signed = checked_rows(codes, words, self.inputs)
        drawn: OutputArray = np.empty(len(codes), dtype=self._dtype)
        split = [self._look_up(signed, words, drawn, start) for start in range(0, len(codes), _CHUNK_ROWS)]
        if split:
            rows = np.concatenate(split)
            drawn[rows] = self._bisect(signed[rows], words[rows])
        return drawn

    def _look_up(self, codes: CodeArray, words: npt.NDArray[np.uint64], drawn: OutputArray, start: int) -> CodeArray:
        """Fill in the outputs of a chunk of rows and return the rows that a split cell leaves open."""
        rows = slice(start, start + _CHUNK_ROWS)
        cells = self._cells(codes[rows], words[rows])
        np.take(self._table.reshape(-1), cells, out=drawn[rows], mode="wrap")
        return np.flatnonzero(drawn[rows] == self._split) + start

    def _cells(self, codes: CodeArray, words: npt.NDArray[np.uint64]) -> CodeArray:
        # Code -1 counts from the end, where the marginal's row is.
        cells: CodeArray = codes << self._bits
        cells += (words >> np.uint64(WORD_BITS + 1 - self._bits)).view(np.int64)
        return cells

    def _bisect(self, codes: CodeArray, words: npt.NDArray[np.uint64]) -> CodeArray:
        """#{y : cum[x, y] ≤ u}, between its values at the ends of the word's cell; O(log b) steps for all rows."""
        cells, uniform = self._cells(codes, words), words >> np.uint64(1)
        low = self._low.reshape(-1)[cells].astype(np.int64)
        high = self._high.reshape(-1)[cells].astype(np.int64)
        while (low < high).any():
            middle = (low + high) >> 1
            # Where low = high the threshold there is above u, so those rows stay as they are.
            above = self._thresholds[codes, middle] > uniform
            low, high = np.where(above, low, middle + 1), np.where(above, middle, high)
        return low


def checked_rows(codes: npt.NDArray[np.integer[Any]], words: npt.NDArray[np.uint64], inputs: int) -> CodeArray:
    """The codes as signed numbers.

    Raises
    ------
    DataError
        If a code is outside -1 to a-1, or codes and words are not integers of the same shape.
    """
    if codes.shape != words.shape or codes.ndim != 1 or words.dtype != np.uint64 or codes.dtype.kind not in "iu":
        raise DataError(
            f"input codes {codes.dtype} {codes.shape} and words {words.dtype} {words.shape} must be "
            "one-dimensional, equally long, integers and unsigned 64-bit integers"
        )
    if len(codes) and (int(codes.min()) < -1 or int(codes.max()) >= inputs):
        raise DataError(f"input codes run from {codes.min()} to {codes.max()}, not from -1 to {inputs - 1}")
    return codes.astype(np.int64, copy=False)


def _table_bits(thresholds: npt.NDArray[np.uint64]) -> int:
    """k: fine enough that few cells hold a threshold, if tables of that size fit the memory set aside for them."""
    distributions = len(thresholds)
    inside = np.count_nonzero(np.diff(thresholds, axis=1, prepend=np.uint64(0))) / distributions
    wanted = math.ceil(math.log2(max(1.0, inside) / _OPEN_ROWS))
    return max(1, min(wanted, _MAX_TABLE_BITS, (_MAX_CELLS // distributions).bit_length() - 1))


def _cell_ends(thresholds: npt.NDArray[np.uint64], bits: int) -> tuple[CodeArray, CodeArray]:
    """y at the first and at the last u of every cell, (distributions, 2^bits), by counting thresholds in integers."""
    distributions, size = len(thresholds), (1 << bits) + 1
    width = np.uint64(WORD_BITS - bits)
    # cum ≤ i·2^width  iff  ⌈cum / 2^width⌉ ≤ i;   cum ≤ (i+1)·2^width − 1  iff  ⌊cum / 2^width⌋ ≤ i.
    round_up = np.uint64((1 << int(width)) - 1)
    ends = []
    for cells in ((thresholds + round_up) >> width, thresholds >> width):
        flat = cells.astype(np.int64) + size * np.arange(distributions)[:, np.newaxis]
        counts = np.bincount(flat.reshape(-1), minlength=distributions * size).reshape(distributions, size)
        ends.append(np.cumsum(counts, axis=1)[:, :-1])
    return ends[0], ends[1]


class SparseSampler:
    """Draws y ~ Q(.|x) for many records at once, from one uniform word a record, as `ChannelSampler` does.

    Let ``cum[x, y]`` be as there. An output of weight zero has the same cum as the one before, so the y with
    ``cum[x, y-1] ≤ u < cum[x, y]`` is never one of them, and those of one input that are left are told apart by
    bisection among them: for every u the output is that of the whole table, to the last bit.

    Parameters
    ----------
    protocol : Protocol

    Notes
    -----
    Memory O(weights that are not zero + b). A draw takes O(log k) steps where an input has k outputs.
    """

    def __init__(self, protocol: Protocol) -> None:
        weights = protocol.sparse
        self.outputs, self.inputs = weights.shape
        seen = np.flatnonzero(protocol.marginal)
        # The marginal is the distribution of one more input, the last.
        inputs = np.concatenate([weights.inputs, np.full(len(seen), self.inputs)])
        order = np.lexsort((np.concatenate([weights.outputs, seen]), inputs))
        values = np.concatenate([weights.values, protocol.marginal[seen]])[order]
        self._of = np.concatenate([weights.outputs, seen])[order].astype(ChannelSampler.output_type(self.outputs))
        self._starts = np.searchsorted(inputs[order], np.arange(self.inputs + 2))
        # Sums of whole inputs are multiples of 2^63, so modulo 2^64 the sums before an input are 0 or 2^63.
        with np.errstate(over="ignore"):
            upto = np.cumsum(values, dtype=np.uint64)
            before = np.concatenate([np.zeros(1, dtype=np.uint64), upto])[self._starts[:-1]]
            self._thresholds = upto - np.repeat(before, np.diff(self._starts))

    def draw(self, codes: npt.NDArray[np.integer[Any]], words: npt.NDArray[np.uint64]) -> OutputArray:
        """Outputs for input codes and words, as `ChannelSampler.draw` has them.

        Raises
        ------
        DataError
            If a code is outside -1 to a-1, or codes and words are not integers of the same shape.
        """
        signed = checked_rows(codes, words, self.inputs)
        places = np.where(signed < 0, self.inputs, signed)
        low, high = self._starts[places], self._starts[places + 1] - 1
        uniform = words >> np.uint64(1)
        # The last threshold of an input is 2^63 > u, so the place is between both ends.
        while (low < high).any():
            middle = (low + high) >> 1
            above = self._thresholds[middle] > uniform
            low, high = np.where(above, low, np.minimum(middle + 1, high)), np.where(above, middle, high)
        return self._of[low]
