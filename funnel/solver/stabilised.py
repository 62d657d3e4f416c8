"""Stabilised column generation: prices that stay near those of the best bound, for a hundred inputs and more.

The prices of a mixture of few columns are far from those of the optimum: what there is no column for seems to be worth
anything. Columns found at such prices are of no use later, and a bound proven at them is loose whatever boxes do: of
200 inputs, at the prices of a mixture 0.3 % of H(X) below the best one known, a single posterior was worth 3.7 % more
than nothing. So prices are kept within a distance of the centre, those at which the best bound was proven
(du Merle, Villeneuve, Desrosiers and Hansen 1999, Stabilized column generation); where they prove a better one, they
are the centre from then on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.lp import PenalisedProgramme
from funnel.solver.mixture import PROOF_SHARE, STILL, UNCHANGED, Mixture, MixtureSearch, Trace
from funnel.solver.region import Region
from funnel.solver.split import Split, best_split
from funnel.solver.tightening import TighteningPricer

# How far prices may be from the centre, in nats; and where p_X is to be met.
_OFF, _AT_ANY_PRICE = 0.4, 100.0
# The share of what is open between the centre's bound and the prices at hand that a new bound is to leave open.
_LEAVES = 0.3
# The target of a search at least, as a share of the requested gap.
_LEAST_TARGET = 0.02
# Pairs of columns in use that are climbed from; a column is worth one if it gains as many nats.
_PAIRS, _GAINS = 100, 1e-7
_UNUSED = 1e-12


class StabilisedColumns(MixtureSearch):
    """Column generation at prices near those of the best bound.

    Parameters
    ----------
    region : Region
        Its goal is the entropy, and it counts v itself.
    budget : Budget, optional
        Ends the search with the best mixture so far.
    """

    def __init__(self, region: Region, budget: Budget | None = None) -> None:
        super().__init__(region, budget)
        self._master = PenalisedProgramme(region.law, self._budget)
        # p_X itself: the protocol that says nothing.
        self.start_from(region.law[None])
        self._used, self._value = region.law[None], float(region.gains(region.law))

    def start_from(self, posteriors: FloatArray) -> None:
        """Take posteriors as first columns; see `MixtureSearch`."""
        self._master.add(posteriors, self.region.gains(posteriors))

    def run(self, gap: float, trace: Trace | None = None) -> Mixture:
        """Add columns until the bound is near enough; see `MixtureSearch`."""
        finished = self._to_its_end(lambda: self._generate(gap, trace))
        law = self.region.law
        try:
            split = best_split(np.vstack([law, self._used]), law, self._budget)
        except SolverError:
            # p_X alone is a mixture that says nothing; it is told that the search gave up.
            split, finished = Split(law[None], np.ones(1), float(self.region.gains(law[None])[0]), self._bound), False
        split = replace(split, bound=self._bound)
        # Of nearly parallel columns the mixture that is exactly p_X may be worth less than the one that was found.
        finished = finished and self._is_near(split.value, gap)
        return Mixture(split, finished, len(self._master), self._boxes)

    def _generate(self, gap: float, trace: Trace | None) -> bool:
        """Whether the search came to its end, or as near to it as doubles can; the mixture is there in any case."""
        region, master = self.region, self._master
        pricer = TighteningPricer(region, self._budget)
        self.start_from(pricer.corners)
        # Prices at which no posterior has a positive g - λ·v: the first bound costs nothing.
        centre = region.goal.first_prices(pricer.reach)
        self._prove(float(region.law @ centre), centre)
        still = 0
        while True:
            try:
                self._mix(centre)
                if trace is not None:
                    trace(self._value, self._bound)
                if self._bound - self._value <= PROOF_SHARE * gap:
                    return True
                if self._budget.expired or still > STILL:
                    return not self._budget.expired and self._is_near(self._value, gap)
                master.think(centre, _OFF)
                prices = self._climbed(pricer, gap)
            except SolverError:
                # Nearly parallel columns of a thin region. The mixture before is feasible and the bound true.
                return not self._budget.expired and self._is_near(self._value, gap)
            worth, least = float(region.law @ prices), self._bound
            priced = pricer.search(prices, max(_LEAVES * (least - worth), _LEAST_TARGET * gap))
            self._boxes += priced.boxes
            added = master.add(priced.columns, region.gains(priced.columns))
            if self._prove(worth + priced.bound, prices):
                centre = prices
            still = 0 if len(added) or self._bound < least - UNCHANGED * gap else still + 1

    def _climbed(self, pricer: TighteningPricer, gap: float) -> FloatArray:
        """Prices near the centre at which climbing finds little against what is open there."""
        region, master = self.region, self._master
        while True:
            mass, prices, _ = master.solve()
            used = master.posteriors(np.flatnonzero(mass > _UNUSED))
            # Where all of p_X is rather left out there is nothing in use yet.
            used = used if len(used) else pricer.corners
            self._budget.spend(10 * CALL + 2.0 * used.size)
            first, second = self._random.integers(len(used), size=(2, _PAIRS))
            found, values = pricer.climb(np.vstack([used, (used[first] + used[second]) / 2]), prices)
            found = found[values > _GAINS]
            added = master.add(found, region.gains(found))
            least = max(_LEAVES * (self._bound - float(region.law @ prices)), _LEAST_TARGET * gap)
            if self._budget.expired or not len(added) or values.max() < least:
                return prices

    def _mix(self, centre: FloatArray) -> None:
        """The best mixture of all columns that is p_X."""
        self._master.think(centre, _AT_ANY_PRICE)
        mass, _, wrong = self._master.solve()
        places = np.flatnonzero(mass > _UNUSED)
        if wrong < _UNUSED and self._master.value > self._value:
            self._used, self._value = self._master.posteriors(places), self._master.value
