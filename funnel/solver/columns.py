"""Column generation: the best mixture of posteriors in a cone without listing the cone's vertices, with a bound."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from funnel.errors import SolverError, Terminated
from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.levels import LevelPricer
from funnel.solver.lp import MasterProgramme
from funnel.solver.parts import PartsPricer
from funnel.solver.pricing import Pricer
from funnel.solver.region import Region
from funnel.solver.slopes import pricer_of
from funnel.solver.split import Mixture, Split, Trace
from funnel.solver.threshold_pricing import ThresholdPricer

# The share of the requested gap that the proof may leave; the rest is for moving inside and integer weights.
_PROOF_SHARE = 0.9
# Exchanges of prices in a row that may change neither value nor bound by this share of the gap: what doubles can do.
_STILL, _UNCHANGED = 60, 1e-3
# Nats that doubles can keep open in a thin region. A search that does not move with more than this open gave up.
_DOUBLES = 1e-3
_STARTS = 48
# Where no bound is asked for, fewer: rounds of cutting planes climb again after each.
_STARTS_OF_ROUNDS = 4
# Of the prices of a search, what is taken from those of the best bound so far, where a search takes long.
_KEPT = 0.5
# A column that gains less than this share of the gap there is: rather work on the bound.
_WORTHWHILE = 0.02

_AnyPricer = Pricer | LevelPricer | PartsPricer


class ColumnGeneration:
    """A search for the best mixture of posteriors of one region, with a bound on every mixture.

    For any prices λ the optimum is at most ``λ·p_X + max (g(v) - λ·v)``; whoever bounds the second term has a bound, so
    the smallest such sum so far is one at any moment. Prices are those of the best mixture of the columns so far.

    Parameters
    ----------
    region : Region
    budget : Budget, optional
        Ends the search with the best mixture so far.
    pricer : optional
        What finds and bounds columns; by default what the goal of the region needs.
    """

    def __init__(self, region: Region, budget: Budget | None = None, pricer: _AnyPricer | None = None) -> None:
        self.region = region
        self._budget = Budget.of(budget)
        # Only where to start looking: the outcome is certified, and the same in every run.
        self._random = np.random.default_rng(0)
        self._bound = region.goal.most(region.counts(region.distribution))
        self._boxes = 0
        self._pricer = pricer
        self._master = MasterProgramme(region.distribution, self._budget)
        # p_X itself is in the region: the protocol that says nothing is where every search starts.
        self._master.add(region.distribution, float(region.gains(region.distribution)))
        self._mass = np.ones(1)
        # λ of the last mixture programme.
        self.prices = np.zeros(region.inputs)

    def start_from(self, posteriors: FloatArray) -> None:
        """Take posteriors (k, a) of the region as first columns, such as those of a protocol that is known to be good.

        If p_X is a mixture of them, nothing found later is worse than that mixture.
        """
        for posterior, gain in zip(posteriors, self.region.gains(posteriors), strict=True):
            self._master.add(posterior, float(gain))

    def run(self, gap: float, trace: Trace | None = None, proving: bool = True) -> Mixture:
        """Add columns until the bound is within the gap, the budget is spent, or the user interrupts.

        Parameters
        ----------
        gap : float
            Requested bound - value, nats.
        trace : callable, optional
            Told (value, bound) as they improve.
        proving : bool
            False ends it where climbing gains little: the bound is then one that costs nothing, far above.
        """
        finished = self._to_its_end(lambda: self._generate(gap, trace, proving))
        mass = self._mass
        used = mass > 1e-13
        value = float(self._master.gains[: len(mass)][used] @ mass[used])
        split = Split(self._master.posteriors[: len(mass)][used], mass[used], value, self._bound)
        return Mixture(split, finished, len(self._master), self._boxes)

    def _generate(self, gap: float, trace: Trace | None, proving: bool) -> bool:
        """Whether the search came to its end, or as near to it as doubles can; the mixture is there in any case."""
        pricer = self._pricer if self._pricer is not None else pricer_of(self.region, self._budget)
        self._add(pricer, pricer.corners)
        # Prices at which no posterior has a positive g - λ·v: the first bound costs nothing.
        first = self.region.goal.first_prices(pricer.reach)
        self._prove(float(self.region.counts(self.region.distribution) @ first), first)
        target = _PROOF_SHARE * gap
        best, least, still, value = -np.inf, np.inf, 0, -np.inf
        centre: FloatArray | None = None
        while True:
            try:
                mass, prices = self._master.solve(bounded=True)
            except SolverError:
                # Nearly parallel columns of a thin region. The mixture before is feasible and the bound true.
                return not self._budget.expired and self._is_near(value, gap)
            self._mass, self.prices = mass, prices
            value = float(self._master.gains @ mass)
            if trace is not None:
                trace(value, self._bound)
            if self._budget.expired:
                return False
            moved = value > best + _UNCHANGED * gap or self._bound < least - _UNCHANGED * gap
            best, least, still = max(best, value), min(least, self._bound), 0 if moved else still + 1
            near = self._is_near(value, gap)
            # Far from the gap it may take more exchanges before anything moves, one for every input.
            patience = _STILL + (0 if near else self.region.inputs)
            if still > 2 * patience:
                return near
            starts = _STARTS if proving else _STARTS_OF_ROUNDS
            climbed = self._climb(pricer, prices, mass, max(gap, _WORTHWHILE * (self._bound - value)), starts)
            if climbed and still <= patience:
                continue
            if not proving or isinstance(pricer, LevelPricer):
                return True
            if centre is not None and not near and isinstance(pricer, ThresholdPricer):
                # Less and less of them where nothing moved: columns found there may be worth nothing to the mixture.
                kept = _KEPT ** (1 + still)
                prices = (1 - kept) * prices + kept * centre
            priced = pricer.search(prices, target)
            self._boxes += priced.boxes
            if self._prove(float(prices @ self.region.distribution) + priced.bound, prices):
                centre = prices
            self._add(pricer, priced.columns)
            if not len(priced.columns) and not self._budget.expired:
                # Nothing lies above the target, or what does is rounding: unless programmes of boxes failed.
                if trace is not None:
                    trace(value, self._bound)
                return self._is_near(value, gap)

    def _to_its_end(self, search: Callable[[], bool]) -> bool:
        """Whether a search came to its end; not where the budget is spent or the user interrupts."""
        try:
            with self._budget.interruptible():
                return not self._budget.expired and search()
        except Terminated:
            # SIGTERM asks for nothing but an end.
            raise
        except KeyboardInterrupt:
            # What was found so far is feasible and its bound true: that is what an interrupt asks for.
            self._budget.interrupt()
            return False

    def _prove(self, bound: float, prices: FloatArray) -> bool:
        """Take a bound that was evaluated at these prices; whether it is the least so far."""
        size = float(np.abs(prices).max())
        bound += 2.0**-50 * (self.region.inputs + 8) * (size + 1.0)
        lower = bound < self._bound
        self._bound = min(self._bound, bound)
        return lower

    def _is_near(self, value: float, gap: float) -> bool:
        """Whether no more than the gap, or than doubles can keep open, is between a value and the bound."""
        return self._bound - value <= max(gap, _DOUBLES)

    def _add(self, pricer: _AnyPricer, columns: FloatArray) -> None:
        for column, gain in zip(columns, pricer.gains(columns), strict=True):
            self._master.add(column, float(gain))

    def _climb(self, pricer: _AnyPricer, prices: FloatArray, mass: FloatArray, least: float, most: int) -> bool:
        """Ascend from the columns in use and from mixtures of two of them; true if one gained more than asked."""
        self._budget.spend(10 * CALL + 2.0 * len(self._master) * self.region.inputs)
        used = self._master.posteriors[mass > 0]
        first, second = self._random.integers(len(used), size=(2, min(most, 3 * self.region.inputs)))
        starts = np.vstack([used, (used[first] + used[second]) / 2])
        found, values = pricer.climb(starts, prices)
        _, places = np.unique(np.round(values, 9), return_index=True)
        self._add(pricer, found[places][values[places] > 1e-9])
        return bool(values.max() > least)
