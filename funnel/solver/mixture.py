"""Mixture: what a search for the best split of p_X found; how searches begin, end, and take bounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from funnel.errors import Terminated
from funnel.joint import FloatArray
from funnel.solver.budget import Budget
from funnel.solver.region import Region
from funnel.solver.split import Split

Trace = Callable[[float, float], None]
# The share of the requested gap that the proof may leave; the rest is for polishing and integer weights.
PROOF_SHARE = 0.9
# Exchanges of prices in a row that may change neither value nor bound by this share of the gap: what doubles can do.
STILL, UNCHANGED = 60, 1e-3
# Nats that doubles can keep open in a thin region. A search that does not move with more than this open gave up.
_DOUBLES = 1e-3


@dataclass(frozen=True, eq=False)
class Mixture:
    """What a search found.

    Attributes
    ----------
    split : Split
        Posteriors, masses, value and bound (of Σ P(y) g(v_y), in nats).
    finished : bool
        False if the budget ended it, or if it gave up: nothing moved, or a programme failed, far from the gap.
    columns, boxes : int
        Columns in the last mixture programme, boxes bounded.
    """

    split: Split
    finished: bool
    columns: int
    boxes: int


class MixtureSearch(ABC):
    """A search for the best mixture of posteriors of one region, with a bound on every mixture.

    For any prices λ the optimum is at most ``λ·p_X + max (g(v) - λ·v)``; whoever bounds the second term has a bound, so
    the smallest such sum so far is one at any moment.

    Parameters
    ----------
    region : Region
    budget : Budget, optional
        Ends the search with the best mixture so far.
    """

    def __init__(self, region: Region, budget: Budget | None) -> None:
        self.region = region
        self._budget = Budget.of(budget)
        # Only where to start looking: the outcome is certified, and the same in every run.
        self._random = np.random.default_rng(0)
        self._bound = region.goal.most(region.counts(region.law))
        self._boxes = 0

    @abstractmethod
    def start_from(self, posteriors: FloatArray) -> None:
        """Take posteriors (k, a) of the region as first columns, such as those of a protocol that is known to be good.

        If p_X is a mixture of them, nothing found later is worse than that mixture.
        """

    @abstractmethod
    def run(self, gap: float, trace: Trace | None = None) -> Mixture:
        """Add columns until the bound is within the gap, the budget is spent, or the user interrupts.

        Parameters
        ----------
        gap : float
            Requested bound - value, nats.
        trace : callable, optional
            Told (value, bound) as they improve.
        """

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
