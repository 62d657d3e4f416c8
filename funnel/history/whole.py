"""Whole: all rows of a version of which some are drawn, as an observer sees them who cannot tell which row is which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.history.exact_distribution import WholeNumbers
from funnel.history.library import balanced, spoken_weights
from funnel.history.observed import Observed
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import DENOMINATOR, WeightArray


@dataclass(frozen=True, eq=False)
class Whole:
    """The rows of a version, some of them drawn from known channels and all others, so far, from one constant row.

    Parameters
    ----------
    joint : Joint
        Counts (c, a) of all rows.
    constant : ndarray of uint64, shape (b,)
        What rows that are yet to come are taken to be drawn from; sums to 2^63.
    said : ndarray of Python integers, shape (b, a)
        The weights that rows which were drawn had, added up by output and input.
    drawn : ndarray of int64, shape (a,)
        How many those are.

    Notes
    -----
    A constant row tells nothing, so the beginning, where nothing is drawn, meets every guarantee. A step that leaves
    the whole within the guarantee can always be made: the constant row itself is one.
    """

    joint: Joint
    constant: WeightArray
    said: WholeNumbers
    drawn: IntArray

    @classmethod
    def beginning(cls, joint: Joint, constant: WeightArray) -> Whole:
        """Nothing drawn."""
        a = len(joint.inputs)
        return cls(joint, constant, np.zeros((len(constant), a), dtype=object), np.zeros(a, dtype=np.int64))

    def with_rows(self, observed: Observed, library: WeightArray, channels: IntArray) -> Whole:
        """Once some more rows are drawn from channels of a library, (m, b, a), one for every entry of ``observed``.

        Those of units that are forgotten stay at the constant row.
        """
        drawn = observed.joint.counts.sum(axis=0)
        drawn = drawn if observed.silent is None else drawn - observed.silent
        said = self.said + spoken_weights(observed, library, channels)
        return Whole(self.joint, self.constant, said, self.drawn + drawn)

    def weights(self) -> WeightArray:
        """W(y|x) over all rows, (b, a); columns sum to 2^63."""
        sizes = self.joint.counts.sum(axis=0)
        coming = (sizes - self.drawn).astype(object)
        sums = self.said + self.constant.astype(object)[:, None] * coming
        weights = (sums // np.maximum(sizes, 1).astype(object)).astype(np.uint64)
        weights[:, sizes == 0] = self.constant[:, None]
        return np.asarray(balanced(weights[None])[0])

    def ended(self) -> Whole:
        """Once all rows are drawn but those of units that are forgotten: they are drawn from the law of all others."""
        speaking = int(self.drawn.sum())
        if not speaking or speaking == self.joint.n:
            return self
        law = np.asarray(balanced((self.said.sum(axis=1) // speaking).astype(np.uint64)[None, :, None])[0, :, 0])
        return Whole(self.joint, law, self.said, self.drawn)

    def conditions(self, cone: FloatArray, records: IntArray) -> FloatArray:
        """What rows with so many records of each input, (a,), add to the conditions (k, c) on the whole; (k, a)."""
        shares = self.joint.counts / np.maximum(self.joint.counts.sum(axis=0), 1)
        return np.asarray(cone @ (shares * records) / self.joint.n)

    def excess(self, cone: FloatArray) -> FloatArray:
        """By how much W misses conditions (k, c), by output and condition; (b, k)."""
        return np.asarray((self.weights().astype(np.float64) / DENOMINATOR) @ (cone @ self.joint.p).T)
