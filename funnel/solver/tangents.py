"""Tangents: columns for a goal of which only value and slopes are known; nothing is proven of what is left."""

from __future__ import annotations

import numpy as np

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.budget import CALL
from funnel.solver.pricing import Priced, Pricer


class TangentPricer(Pricer):
    """Climbs along the tangents of any convex goal; has the methods of `Pricer`, but for what bounds.

    The tangent of a convex function lies below it, so the best posterior along a tangent is at least as good as
    where it touches. A search that has to prove something needs a pricer of its goal's own.
    """

    def climb(self, starts: FloatArray, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ascend from posteriors (k, a): maximise the tangent of g, repeatedly, until that stops helping.

        Returns
        -------
        posteriors : ndarray, shape (k, a)
        values : ndarray, shape (k,)
            ``g - λ·v``.
        """
        best, values = starts.copy(), self.gains(starts) - starts @ prices
        for first in range(0, len(starts), self._most):
            rising, bases = np.arange(first, min(first + self._most, len(starts))), None
            while len(rising) and not self._budget.expired:
                self._budget.spend(30 * CALL + len(rising) * 80.0 * self.region.inputs)
                slopes = self.region.goal.slopes(self.region.counts(best[rising]))
                answers = self._whole(self._costs(slopes, prices), bases)
                inside, found = self._posteriors(answers.points)
                better = self.gains(found) - found @ prices
                improved = inside & (better > values[rising] + 1e-12)
                rising, bases = rising[improved], answers.bases[improved]
                best[rising], values[rising] = found[improved], better[improved]
        return best, values

    def search(self, prices: FloatArray, target: float, patience: int = 3) -> Priced:
        """Nothing: it would have to bound what it does not find.

        Raises
        ------
        SolverError
            Always.
        """
        raise SolverError("climbing along tangents bounds nothing; ask for columns without a proof")
