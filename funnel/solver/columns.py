"""Column generation: the best mixture of posteriors in a cone without listing the cone's vertices, with a bound."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from funnel.joint import FloatArray
from funnel.solver.bounds import negative_entropy
from funnel.solver.lp import MasterProgramme
from funnel.solver.pricing import Pricer
from funnel.solver.region import Region
from funnel.solver.split import Split

Tick = Callable[[float, float], None]
# The share of the requested gap that the proof may leave; the rest is for polishing and integer weights.
_PROOF_SHARE = 0.9


@dataclass(frozen=True, eq=False)
class Mixture:
    """What column generation found.

    Attributes
    ----------
    split : Split
        Posteriors, masses, value and bound (of Σ P(y) g(v_y), in nats).
    finished : bool
        False if the time limit or an interrupt ended it.
    columns, boxes, programmes : int
        Columns in the last mixture programme, boxes bounded, linear programmes solved.
    """

    split: Split
    finished: bool
    columns: int
    boxes: int
    programmes: int


def optimal_over_cone(
    rows: FloatArray,
    law: FloatArray,
    gap: float = 1e-6,
    time_limit: float | None = None,
    image: FloatArray | None = None,
    tick: Tick | None = None,
) -> Mixture:
    """Maximise Σ_y P(y) g(image v_y) over all ways to write p_X as a mixture of posteriors v_y in a cone.

    Parameters
    ----------
    rows : ndarray, shape (m, a)
        The cone on rows T of a channel, ``rows T <= 0``, as `Guarantee.cone` gives it.
    law : ndarray, shape (a,)
        p_X > 0.
    gap : float
        Requested bound - value, nats.
    time_limit : float, optional
        Seconds.
    image : ndarray, shape (d, a), optional
        What the utility counts, in posterior coordinates (columns summing to 1): for a protocol that reads (s, x) and
        is judged by I(X;Y), the 0/1 matrix that sums v over s (METHOD section 3).
    tick : callable, optional
        Told (value, bound) as they improve.

    Raises
    ------
    SolverError
        If the law is outside the cone or a linear programme fails.
    """
    return ColumnGeneration(Region.of(rows / law, law, image)).run(gap, time_limit, tick)


class ColumnGeneration:
    """One region's mixture problem; after `run`, rows may be added and it may run again from its columns."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self._pricer = Pricer(region)
        self._master = MasterProgramme(region.law)
        self._master.add(region.law, float(negative_entropy(region.counts(region.law))))
        self._add(self._pricer.corners)
        self._boxes = 0

    def run(self, gap: float, time_limit: float | None = None, tick: Tick | None = None) -> Mixture:
        """Add columns until the bound is within the gap, the time is over, or the user interrupts.

        For any prices λ the optimum is at most ``λ·p_X + max (g(v) - λ·v)``; the search bounds the second term, so
        the smallest such sum so far is a bound at any moment.
        """
        started = time.perf_counter()
        deadline = None if time_limit is None else started + time_limit
        bound = 0.0
        finished = False
        try:
            while not finished:
                mass, prices = self._master.solve()
                value = float(self._master.gains @ mass)
                if (deadline is None or time.perf_counter() < deadline) and self._climb(prices, mass, gap):
                    continue
                priced = self._pricer.search(prices, _PROOF_SHARE * gap, deadline)
                self._boxes += priced.boxes
                bound = min(bound, self._bound(prices, priced.bound))
                if tick is not None:
                    tick(value, bound)
                self._add(priced.columns)
                finished = not len(priced.columns) and priced.bound <= _PROOF_SHARE * gap
                if deadline is not None and time.perf_counter() > deadline:
                    break
        except KeyboardInterrupt:
            # What was found so far is feasible and its bound true: that is what an interrupt asks for.
            finished = False
        return self._mixture(bound, finished)

    def _bound(self, prices: FloatArray, most: float) -> float:
        law = self.region.law
        rounding = 2.0**-50 * (len(law) + 8) * float(np.abs(prices) @ law + 1.0)
        return float(prices @ law) + most + rounding

    def _add(self, columns: FloatArray) -> None:
        for column, gain in zip(columns, self._pricer.gains(columns), strict=True):
            self._master.add(column, float(gain))

    def _climb(self, prices: FloatArray, mass: FloatArray, gap: float) -> bool:
        """Ascend from the columns in use; true if that gave new ones."""
        found, values = self._pricer.climb(self._master.posteriors[mass > 0], prices)
        _, first = np.unique(np.round(values, 9), return_index=True)
        new = found[first][values[first] > max(gap, 1e-9)]
        self._add(new)
        return len(new) > 0

    def _mixture(self, bound: float, finished: bool) -> Mixture:
        mass, prices = self._master.solve()
        if math.isinf(bound):
            bound = 0.0
        used = mass > 1e-13
        split = Split(self._master.posteriors[used], mass[used], float(self._master.gains @ mass), bound)
        return Mixture(split, finished, len(self._master), self._boxes, self._pricer.programmes)
