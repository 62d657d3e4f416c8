"""Tightening: what the conditions leave of a box of posteriors, and a search that begins with the largest share.

A chord over [0, u] is above ``v ln v`` by up to u/e, so a bound over a box is as good as its upper ends are small. If
one input has at least 0.6 of a posterior, the others have at most 0.4 together, and the conditions leave most of them
far less: an input that is common with a secret does not go with another one that is. Chord programmes know the
conditions, but not what they mean for chords.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.batch import Bases, Flags
from funnel.solver.boxes import OpenBoxes
from funnel.solver.budget import CALL, Budget
from funnel.solver.pricing import Priced, Pricer
from funnel.solver.region import DATA_ERROR, Region

# Where the largest share of a posterior is between two of these, it is a part of the region.
_LARGEST = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0)
# Units of work of an entry of a condition in a box; array operations of a condition.
_BY_ENTRY, _CALLS = 15.0, 18


class Tightening:
    """The conditions of a region, as they bound single shares in a box.

    Parameters
    ----------
    region : Region
        It counts v itself.
    """

    def __init__(self, region: Region) -> None:
        if region.image is not None:
            raise SolverError("boxes are tightened where the utility counts posteriors as they are")
        a, rows = region.inputs, region.one_sided()
        self._rows, self._free = rows[:, :a], np.minimum(rows[:, a:], 0.0).sum(axis=1)
        self._order = np.argsort(self._rows, axis=1, kind="stable")
        # Of a condition with entries up to 2: what it may be off by, and the rounding of sums over a box.
        self._margin = 4 * DATA_ERROR + 2.0**-49 * (rows.shape[1] + 8)

    def work(self, boxes: int) -> float:
        """Units of work of so many boxes."""
        return float(len(self._rows) * (_CALLS * CALL + _BY_ENTRY * boxes * self._rows.shape[1]))

    def tightened(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray, Flags]:
        """Smaller boxes with the same posteriors of the region.

        Parameters
        ----------
        lower, upper : ndarray, shape (N, a)

        Returns
        -------
        lower, upper : ndarray, shape (N, a)
        possible : ndarray of bool, shape (N,)
            Where not, no posterior of the region is in the box.

        Notes
        -----
        For any z, a condition ``G v <= 0`` and Σv = 1 say ``Σ (G_x - z) v_x <= -z``. Every term is at least its minimum
        over the box, so none is above its own minimum by more than -z is above the sum of all. The z that leaves least
        is the multiplier of Σv = 1 where the box is filled with the smallest entries first; any other is as true.
        O(N m a).
        """
        last = self._rows.shape[1] - 1
        possible = np.ones(len(lower), dtype=np.bool_)
        for row, order, free in zip(self._rows, self._order, self._free, strict=True):
            width = upper - lower
            filled = np.cumsum(width[:, order], axis=1)
            full = (filled < (1.0 - lower.sum(axis=1))[:, None]).sum(axis=1)
            level = row[order[np.minimum(full, last)]]
            over = row - level[:, None]
            rises = over > 0
            slack = self._margin - level - free - (over * np.where(rises, lower, upper)).sum(axis=1)
            possible &= slack >= 0
            room = np.maximum(slack, 0.0)[:, None] / np.maximum(np.abs(over), 1e-300)
            cut = room < width
            lower, upper = np.where(cut & ~rises, upper - room, lower), np.where(cut & rises, lower + room, upper)
        left = (1.0 - lower.sum(axis=1))[:, None] + self._margin
        upper = np.minimum(upper, lower + left)
        spare = (upper.sum(axis=1) - 1.0)[:, None] + self._margin
        possible &= (left[:, 0] >= 0) & (spare[:, 0] >= 0)
        return np.maximum(lower, upper - np.maximum(spare, 0.0)), upper, possible


def by_largest(reach: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Boxes (k, a) that cover all posteriors within their reach (a,): by how large the largest share is, and whose.

    Where several inputs have a share above the same step, it is the box of the first of them.
    """
    a = len(reach)
    lowers, uppers = [np.zeros((1, a))], [np.minimum(reach, _LARGEST[0])[None]]
    for least, most in pairwise(_LARGEST):
        whose = np.flatnonzero(reach > least)
        lower = np.zeros((len(whose), a))
        upper = np.tile(np.minimum(reach, min(most, 1.0 - least)), (len(whose), 1))
        upper[np.arange(a) < whose[:, None]] = np.minimum(upper, least)[np.arange(a) < whose[:, None]]
        every = np.arange(len(whose))
        lower[every, whose], upper[every, whose] = least, np.minimum(reach[whose], most)
        lowers.append(lower)
        uppers.append(upper)
    return np.vstack(lowers), np.vstack(uppers)


class TighteningPricer(Pricer):
    """Searches one region for maxima of ``g(v) - λ·v`` in boxes that are tightened; has the methods of `Pricer`.

    Parameters
    ----------
    region : Region
        Its goal is the entropy, and it counts v itself.
    budget : Budget, optional
        Ends a search with what it has proven so far.
    """

    def __init__(self, region: Region, budget: Budget | None = None) -> None:
        self._tightening = Tightening(region)
        super().__init__(region, budget)
        # They depend on no prices.
        self._first = self._left_of(*by_largest(self.reach))[:2]

    def _left_of(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray, Flags]:
        """What conditions leave of boxes (N, a), without those that they leave nothing of; and which are left, (N,)."""
        self._budget.spend(self._tightening.work(len(lower)))
        lower, upper, possible = self._tightening.tightened(lower, upper)
        return lower[possible], upper[possible], possible

    def search(self, prices: FloatArray, target: float) -> Priced:
        """Branch and bound on boxes that begin with who has the largest share, and how large it is."""
        return self._search_boxes(prices, target, *self._first)

    def _round_of(
        self,
        tree: OpenBoxes,
        prices: FloatArray,
        target: float,
        lower: FloatArray,
        upper: FloatArray,
        inherited: FloatArray,
        bases: Bases,
    ) -> FloatArray:
        lower, upper, possible = self._left_of(lower, upper)
        if not len(lower):
            return np.zeros((0, self.region.system.shape[1]))
        return super()._round_of(tree, prices, target, lower, upper, inherited[possible], bases[possible])
