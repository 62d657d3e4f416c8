"""Drawing from a sparse protocol: the same outputs for the same words, from the weights that are not zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.protocol import Protocol
from funnel.sampling.draw import ChannelSampler, OutputArray, checked_rows


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
        # The marginal is the law of one more input, the last.
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
