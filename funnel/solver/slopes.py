"""Slopes: pricing for the square of a mean; and which pricer a goal has."""

from __future__ import annotations

import numpy as np

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.bounds import linear_bounds
from funnel.solver.budget import CALL, Budget
from funnel.solver.goal import SquaredMean
from funnel.solver.pricing import Priced, Pricer
from funnel.solver.region import Region

# Slopes tried first, over the whole range, and how often climbing repeats.
_GRID, _CLIMBS = 17, 20
# Intervals of slopes bounded in one round.
_ROUND = 64
# Where an interval is cut at least, as a share of its length from its ends; and the shortest that is cut.
_INNER, _NARROW = 0.05, 1e-9
# What the arithmetic of chords and parabolas can be off by, relative to its largest term.
_ROUNDING = 2.0**-48


class SlopePricer(Pricer):
    """Searches one region for maxima of ``(m·v)² - λ·v``; has the methods of `Pricer`.

    For every number t is ``t² = max_s (s t - s²/4)``. So the maximum is that of ``F(s) - s²/4`` over slopes s, where
    ``F(s) = max (s m - λ)·v`` over the region is one linear programme, and convex. Between two slopes F is therefore
    below its chord, and a chord minus a parabola has its maximum in closed form: a bound that needs no more of the two
    programmes than that their own bounds are true (`linear_bounds`). It is above the maximum by at most the square of a
    quarter of the distance of the slopes, and by nothing where both programmes have the same vertex.

    Parameters
    ----------
    region : Region
        Its goal is a `SquaredMean`, and what is counted is v itself.
    budget : Budget, optional
        Ends a search with what it has proven so far.
    """

    def __init__(self, region: Region, budget: Budget | None = None) -> None:
        if not isinstance(region.goal, SquaredMean) or region.image is not None:
            raise SolverError("slopes price the square of a mean of what is read")
        self._numbers = region.goal.numbers
        super().__init__(region, budget)

    def _reach(self) -> tuple[FloatArray, FloatArray]:
        """No coordinate is bounded; the least and the largest mean, and the points between them at no prices."""
        free = np.zeros(self.region.inputs)
        ends, corners = self._programmes_at(np.array([1.0, -1.0]), free)
        highest = np.abs(self._numbers).max()
        # The slope at which a posterior is worth its square is twice its mean.
        self._lowest, self._highest = 2 * max(-float(ends[1]), -highest), 2 * min(float(ends[0]), highest)
        _, between = self._programmes_at(self._grid(), -(self._numbers**2))
        return np.ones(self.region.counted), np.vstack([corners, between])

    def _grid(self) -> FloatArray:
        return np.linspace(self._lowest, self._highest, _GRID)

    def _programmes_at(self, slopes: FloatArray, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Upper bounds on F at slopes (k,), and the posteriors of those that were solved (k', a)."""
        costs = self._costs(slopes[:, None] * self._numbers, prices)
        bounds, found = np.full(len(slopes), np.inf), [np.zeros((0, self.region.inputs))]
        for first in range(0, len(slopes), self._most):
            if self._budget.expired:
                break
            here = slice(first, first + self._most)
            self._budget.spend(30 * CALL + len(costs[here]) * self.region.rows.size)
            answers = self._whole(costs[here])
            zeros, ones = np.zeros_like(costs[here]), np.ones_like(costs[here])
            duals = np.where(answers.empty[:, None], 0.0, answers.duals)
            bounds[here] = linear_bounds(self.region, costs[here], duals, zeros, ones)
            inside, posteriors = self._posteriors(answers.points)
            found.append(posteriors[inside & answers.solved])
        # Whatever the programmes said: v is a distribution, and levels cost nothing.
        largest = costs[:, : self.region.inputs].max(axis=1)
        return np.minimum(bounds, largest + _ROUNDING * (1.0 + np.abs(largest))), np.vstack(found)

    def climb(self, starts: FloatArray, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ascend from posteriors (k, a) and from a grid of slopes: the slope of the best posterior is twice its mean.

        Returns
        -------
        posteriors : ndarray, shape (k', a)
        values : ndarray, shape (k',)
            ``g - λ·v``.
        """
        slopes = np.unique(np.concatenate([2 * (starts @ self._numbers), self._grid()]).round(9))
        best, values = starts, self.gains(starts) - starts @ prices
        for _ in range(_CLIMBS):
            if self._budget.expired:
                break
            _, found = self._programmes_at(slopes, prices)
            reached = self.gains(found) - found @ prices
            before = values.max(initial=-np.inf)
            best, values = np.vstack([best, found]), np.concatenate([values, reached])
            if not len(found) or values.max() <= before + 1e-12:
                break
            slopes = np.unique((2 * (found @ self._numbers)).round(9))
        return best, values

    def search(self, prices: FloatArray, target: float) -> Priced:
        """Branch and bound on intervals of slopes: columns above the target, or a proof that there is none.

        Parameters
        ----------
        prices : ndarray, shape (a,)
            λ.
        target : float
            What is proven to stay below it is dropped.
        """
        slopes = self._grid()
        at, columns = self._programmes_at(slopes, prices)
        low, high, at_low, at_high = slopes[:-1], slopes[1:], at[:-1], at[1:]
        bounds, best = _bounds(low, high, at_low, at_high)
        found, boxes, closed, since = self._above(columns, prices, target), 0, target, 0
        while True:
            boxes += len(bounds)
            narrow = (high - low) <= _NARROW * (1.0 + np.abs(high))
            closed = max(closed, float(bounds[narrow].max(initial=-np.inf)))
            going = np.flatnonzero(~narrow & (bounds > closed))
            if not len(going):
                return Priced(self._above(found, prices, target), closed, boxes)
            if self._budget.expired or (len(found) and since > self.patience):
                most = max(closed, float(bounds[going].max()))
                return Priced(self._above(found, prices, target), most, boxes)
            going = going[np.argsort(-bounds[going], kind="stable")]
            cut, kept = going[:_ROUND], going[_ROUND:]
            margin = _INNER * (high[cut] - low[cut])
            middle = np.clip(best[cut], low[cut] + margin, high[cut] - margin)
            at_middle, columns = self._programmes_at(middle, prices)
            new = self._above(columns, prices, target)
            found, since = np.vstack([found, new]), since + 1 if len(found) else 0
            low = np.concatenate([low[kept], low[cut], middle])
            high = np.concatenate([high[kept], middle, high[cut]])
            at_low, at_high = (
                np.concatenate([at_low[kept], at_low[cut], at_middle]),
                np.concatenate([at_high[kept], at_middle, at_high[cut]]),
            )
            bounds, best = _bounds(low, high, at_low, at_high)

    def _above(self, columns: FloatArray, prices: FloatArray, target: float) -> FloatArray:
        """Those of the columns that are above the target, each once, the best first."""
        values = self.gains(columns) - columns @ prices
        _, first = np.unique(np.round(values, 9), return_index=True)
        first = first[::-1]
        return np.asarray(columns[first][values[first] > target])


def _bounds(
    low: FloatArray, high: FloatArray, at_low: FloatArray, at_high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The most that a chord of F minus s²/4 reaches on each interval (k,), with rounding, and where."""
    steep = (at_high - at_low) / np.maximum(high - low, 1e-300)
    with np.errstate(invalid="ignore"):
        best = np.where(np.isfinite(steep), np.clip(2 * steep, low, high), (low + high) / 2)
        value = np.where(np.isfinite(steep), at_low + steep * (best - low), np.maximum(at_low, at_high)) - best**2 / 4
    size = 1.0 + np.abs(at_low) + np.abs(at_high) + high**2 + low**2
    return value + _ROUNDING * size, best


def pricer_of(region: Region, budget: Budget | None = None) -> Pricer:
    """What finds and bounds columns of a region, as its goal needs it."""
    return SlopePricer(region, budget) if isinstance(region.goal, SquaredMean) else Pricer(region, budget)
