"""Whole: all rows of a version of which some are drawn, as an observer sees them who cannot tell which row is which."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from funnel.history.allowed import Kept
from funnel.history.exact_distribution import WholeNumbers
from funnel.history.library import balanced, spoken_weights
from funnel.history.observed import Observed
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import DENOMINATOR, WORD_BITS, WeightArray


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
    speaking : int
        Rows but those of units that are forgotten.
    now : ndarray of uint64, shape (b,)
        The constant row of the rows that are drawn next. It is that of all others but before the first rows of units,
        where the whole has to be right on average.
    due : ndarray of Python integers, shape (b,)
        How often the rows that were drawn had to publish each value by their constant rows.

    Notes
    -----
    A constant row tells nothing, so the beginning, where nothing is drawn, meets every guarantee. A step that leaves
    the whole within the guarantee can always be made: the constant row itself is one.
    """

    joint: Joint
    constant: WeightArray
    said: WholeNumbers
    drawn: IntArray
    speaking: int
    now: WeightArray
    due: WholeNumbers

    @classmethod
    def beginning(cls, joint: Joint, constant: WeightArray, speaking: int) -> Whole:
        """Nothing drawn."""
        b, a = len(constant), len(joint.inputs)
        nothing = np.zeros((b, a), dtype=object)
        return cls(joint, constant, nothing, np.zeros(a, dtype=np.int64), speaking, constant, nothing.sum(axis=1))

    def parted(self, first: IntArray, declared: Kept) -> Whole:
        """With constant rows of their own for the first rows of units, so many of each input, (a,), and for all others.

        Tables are right by these as by one for all, and more records can stay as they are. Where all rows would not
        keep the bound by that, one is for all.
        """
        others = np.ldexp(self.constant.astype(np.float64), -WORD_BITS) * self.speaking - first
        if first.sum() == self.speaking or (others < 0).any():
            return self
        found = replace(self, now=_distribution(first), constant=_distribution(others))
        silent = replace(found, said=found.now.astype(object)[:, None] * first.astype(object), drawn=first)
        return found if declared.holds_for(self.joint, silent.weights()) else self

    def owed(self, rows: int) -> WholeNumbers:
        """How often the next so many rows have to publish each value, (b,), in units of 2^-63 of a record."""
        return np.asarray(self.due + self.now.astype(object) * rows - self.said.sum(axis=1))

    def with_rows(self, observed: Observed, library: WeightArray, channels: IntArray) -> Whole:
        """Once some more rows are drawn from channels of a library, (m, b, a), one for every entry of ``observed``.

        Those of units that are forgotten stay at the constant row.
        """
        drawn = observed.joint.counts.sum(axis=0)
        drawn = drawn if observed.silent is None else drawn - observed.silent
        said = self.said + spoken_weights(observed, library, channels)
        due = self.due + self.now.astype(object) * int(drawn.sum())
        return replace(self, said=said, drawn=self.drawn + drawn, now=self.constant, due=due)

    def weights(self) -> WeightArray:
        """W(y|x) over all rows, (b, a); columns sum to 2^63."""
        sizes = self.joint.counts.sum(axis=0)
        coming = (sizes - self.drawn).astype(object)
        sums = self.said + self.constant.astype(object)[:, None] * coming
        weights = (sums // np.maximum(sizes, 1).astype(object)).astype(np.uint64)
        weights[:, sizes == 0] = self.constant[:, None]
        return np.asarray(balanced(weights[None])[0])

    def ended(self) -> Whole:
        """Once all rows are drawn but those of units that are forgotten: they are drawn from that of all others."""
        if not self.speaking or self.speaking == self.joint.n:
            return self
        distribution = balanced((self.said.sum(axis=1) // self.speaking).astype(np.uint64)[None, :, None])[0, :, 0]
        return replace(self, constant=np.asarray(distribution))

    def conditions(self, cone: FloatArray, records: IntArray) -> FloatArray:
        """What rows with so many records of each input, (a,), add to the conditions (k, c) on the whole; (k, a)."""
        shares = self.joint.counts / np.maximum(self.joint.counts.sum(axis=0), 1)
        return np.asarray(cone @ (shares * records) / self.joint.n)

    def excess(self, cone: FloatArray) -> FloatArray:
        """By how much W misses conditions (k, c), by output and condition; (b, k)."""
        return np.asarray((self.weights().astype(np.float64) / DENOMINATOR) @ (cone @ self.joint.p).T)


def _distribution(numbers: FloatArray | IntArray) -> WeightArray:
    """Weights (b,) in proportion to numbers; sums to 2^63."""
    weights = np.ldexp(numbers / numbers.sum(), WORD_BITS).astype(np.uint64)
    return np.asarray(balanced(weights[None, :, None])[0, :, 0])
