"""Parts: pricing over a cone that is the union of several regions, one after another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from funnel.joint import FloatArray
from funnel.solver.budget import Budget
from funnel.solver.pricing import Priced, Pricer

# Nats by which a column must gain for a climb to have gained something.
_GAIN = 1e-6
# The share of a budget that searching such a part may take.
_FIRST = 0.7


class PartsPricer:
    """Searches a union of regions over the same distribution; has the methods of `Pricer`.

    Parameters
    ----------
    pricers : sequence of Pricer
        One for each region, at least one; what counts is the same in all.
    budget : Budget, optional
        Ends a search with what it has proven so far.
    rising : sequence of int, optional
        The parts to climb in first; all by default.
    """

    def __init__(
        self, pricers: Sequence[Pricer], budget: Budget | None = None, rising: Sequence[int] | None = None
    ) -> None:
        self._budget = Budget.of(budget)
        self._pricers = list(pricers)
        # Parts in which the last climb gained something; the others are tried again when it gained nowhere.
        self.rising = list(range(len(self._pricers)) if rising is None else rising)
        self.region = self._pricers[0].region
        self.reach: FloatArray = np.max([pricer.reach for pricer in self._pricers], axis=0)
        self.corners: FloatArray = np.vstack([pricer.corners for pricer in self._pricers])

    def gains(self, posteriors: FloatArray) -> FloatArray:
        """g of what the utility counts of posteriors (k, a); shape (k,)."""
        return self.region.gains(posteriors)

    def climb(self, starts: FloatArray, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ascend in every region from the same posteriors: only their slopes matter; see `Pricer.climb`."""
        found, values = self._climb(self.rising, starts, prices)
        if len(self.rising) < len(self._pricers) and values.max() <= _GAIN:
            others = [k for k in range(len(self._pricers)) if k not in self.rising]
            more, reached = self._climb(others, starts, prices)
            found, values = np.vstack([found, more]), np.concatenate([values, reached])
        return found, values

    def _climb(self, parts: list[int], starts: FloatArray, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        found = [self._pricers[k].climb(starts, prices) for k in parts]
        rising = [k for k, (_, values) in zip(parts, found, strict=True) if values.max() > _GAIN]
        self.rising = rising or self.rising
        return np.vstack([posteriors for posteriors, _ in found]), np.concatenate([values for _, values in found])

    def search(self, prices: FloatArray, target: float) -> Priced:
        """Columns above the target in any region, or a proof for all; see `Pricer.search`."""
        # Where columns were found last the most can be gained. The others need no proof below what is left open there.
        order = sorted(range(len(self._pricers)), key=lambda k: k not in self.rising)
        found = []
        for k in order:
            share = _FIRST if k in self.rising and len(order) > 1 else 1.0
            self._pricers[k].charge(self._budget.part(share))
            found.append(self._pricers[k].search(prices, target))
            self._pricers[k].charge(self._budget)
            target = max(target, found[-1].bound)
        columns = np.vstack([priced.columns for priced in found])
        best = np.argsort(columns @ prices - self.gains(columns), kind="stable")
        return Priced(columns[best], max(priced.bound for priced in found), sum(priced.boxes for priced in found))
