"""Pricing: the posteriors that a mixture lacks most, and a proof of how much any posterior could still add."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from funnel.joint import FloatArray
from funnel.solver.batch import Answers, Bases, BatchProgramme, Flags
from funnel.solver.bounds import linear_bounds, priced_bounds, proven_empty
from funnel.solver.boxes import OpenBoxes, hole, trimmed
from funnel.solver.budget import CALL, Budget
from funnel.solver.region import Region

_CLEAN = 1e-12
# How far a point may be outside the region to serve as a column; the final weights are verified exactly anyway.
_OUTSIDE = 1e-9
# Zeros get the slope of the chord over this share of what a symbol can reach.
_FIRST_STEP = 0.005
_WORTHWHILE = 0.05
# Work of one round of branch and bound, in numbers of all tableaux: enough to keep array operations busy.
_ROUND = 2**19
# The same for large tableaux, where the rounds have few boxes: memory.
_LARGEST_ROUND = 2**22
# Numbers of all tableaux of one stack of programmes over the whole region: memory, and how soon a budget is noticed.
_STACK = 2**20
# Boxes whose sides are all this short are not cut any more: doubles say no more about what is inside.
_NARROW = 1e-13
# A bound of which cuts could take off no more than this share of what is too much is left as it is.
_LITTLE = 0.01
# Units of work of a round, besides its programmes: for a coordinate of a box, for an open box, array operations.
_BY_SIDE, _BY_OPEN, _CALLS = 80.0, 60.0, 150


@dataclass(frozen=True, eq=False)
class Priced:
    """Outcome of a search.

    Attributes
    ----------
    columns : ndarray, shape (k, a)
        Posteriors in the region with ``g - λ·v`` above the target, best first.
    bound : float
        No posterior in the region has a larger ``g - λ·v``.
    boxes : int
        Boxes bounded.
    """

    columns: FloatArray
    bound: float
    boxes: int


class Pricer:
    """Searches one region for maxima of ``g(w) - λ·v``, for one λ after another.

    Parameters
    ----------
    region : Region
    budget : Budget, optional
        Ends a search with what it has proven so far.

    Attributes
    ----------
    patience : int
        Rounds of a search after something was found: new prices help more than what is left at these.
    """

    patience = 3

    def __init__(self, region: Region, budget: Budget | None = None) -> None:
        self.region = region
        self._budget = Budget.of(budget)
        self._programme = BatchProgramme(region, self._budget)
        first = region.counted if region.image is not None else 0
        self._inputs = slice(first, first + region.inputs)
        n = region.system.shape[1]
        self._ones, self._zeros = np.ones((1, n)), np.zeros((1, n))
        least = int(np.clip(_LARGEST_ROUND // region.system.size, 1, 16))
        self._round = int(np.clip(_ROUND // region.system.size, least, 1024))
        self._most = max(1, _STACK // region.system.size)
        self._root = self._start()
        self.reach, self.corners = self._reach()

    def charge(self, budget: Budget) -> None:
        """Charge another budget from now on, and end with it."""
        self._budget = budget
        self._programme.charge(budget)

    def _start(self) -> Bases:
        """A basis of the whole region to start from."""
        answer = self._programme.maximise(
            np.linspace(1.0, 2.0, self._ones.shape[1])[None],
            self._zeros,
            self._ones,
            self._programme.slack_basis(),
            steps=2000,
        )
        # p_X is in the region, so there is a point; any basis will do to start from.
        return answer.bases

    def _whole(self, costs: FloatArray, bases: Bases | None = None, most: float = 1.0) -> Answers:
        """Maximise costs (N, n) over the whole region, from the given bases or from the first one there was."""
        number = len(costs)
        ones, zeros = np.repeat(self._ones, number, axis=0), np.repeat(self._zeros, number, axis=0)
        ones[:, self._inputs] *= most
        start = self._root[np.zeros(number, dtype=np.intp)] if bases is None else bases
        return self._programme.maximise(costs, zeros, ones, start, steps=1000)

    def _reach(self) -> tuple[FloatArray, FloatArray]:
        """Upper bounds on every w_x in the region, safely, and the points that reach them, the first columns."""
        reach, corners = np.ones(self.region.counted), [np.zeros((0, self.region.inputs))]
        for first in range(0, self.region.counted, self._most):
            if self._budget.expired:
                # No w_x exceeds 1.
                break
            here = np.arange(first, min(first + self._most, self.region.counted))
            costs = np.zeros((len(here), self.region.system.shape[1]))
            costs[np.arange(len(here)), here] = 1.0
            answers = self._whole(costs)
            zeros, ones = np.zeros_like(costs), np.ones_like(costs)
            duals = np.where(answers.empty[:, None], 0.0, answers.duals)
            reach[here] = np.minimum(linear_bounds(self.region, costs, duals, zeros, ones), 1.0)
            inside, posteriors = self._posteriors(answers.points[answers.solved])
            corners.append(posteriors[inside])
        return reach, np.vstack(corners)

    def _posteriors(self, points: FloatArray) -> tuple[Flags, FloatArray]:
        """The v of points, without dust, and whether they are in the region up to a solver's tolerance."""
        found = points[:, self._inputs]
        found = np.where(found < _CLEAN, 0.0, found)
        totals = found.sum(axis=1, keepdims=True)
        found = found / np.where(totals > 0, totals, 1.0)
        activity = found @ self.region.rows[:, : self.region.inputs].T
        if self.region.levels:
            levels = points[:, -self.region.levels :] / np.where(totals > 0, totals, 1.0)
            activity += levels @ self.region.rows[:, self.region.inputs :].T
        inside = np.abs(totals[:, 0] - 1) < 1e-6
        inside &= (activity <= _OUTSIDE).all(axis=1) & (activity >= self.region.least - _OUTSIDE).all(axis=1)
        return inside, found

    def highest(self, costs: FloatArray) -> tuple[Flags, FloatArray]:
        """The posteriors (k, a) of highest costs (k, n), and which of them were found in the region."""
        answers = self._whole(costs)
        inside, found = self._posteriors(answers.points)
        return inside & answers.solved, found

    def gains(self, posteriors: FloatArray) -> FloatArray:
        """g of what the utility counts of posteriors (k, a); shape (k,)."""
        return self.region.gains(posteriors)

    def _costs(self, slopes: FloatArray, prices: FloatArray) -> FloatArray:
        free = np.zeros((len(slopes), self.region.levels))
        if self.region.image is None:
            return np.hstack([slopes - prices, free])
        return np.hstack([slopes, np.broadcast_to(-prices, (len(slopes), len(prices))), free])

    def _slopes(self, posteriors: FloatArray) -> FloatArray:
        """Slopes of g at posteriors (k, a), in what is counted: (k, d).

        v ln v is steeper at zero than any chord, so zeros get the slope of a small chord instead, without which no new
        symbol would ever be tried.
        """
        return np.asarray(np.log(np.maximum(self.region.counts(posteriors), _FIRST_STEP * self.reach)) + 1.0)

    def climb(self, starts: FloatArray, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ascend from posteriors (k, a): maximise the tangent of g, repeatedly, until that stops helping.

        g is convex, so each step raises ``g - λ·v``.

        Returns
        -------
        posteriors : ndarray, shape (k, a)
        values : ndarray, shape (k,)
            ``g - λ·v``.
        """
        best, values = starts.copy(), self.gains(starts) - starts @ prices
        for first in range(0, len(starts), self._most):
            rising = np.arange(first, min(first + self._most, len(starts)))
            bases = None
            while len(rising) and not self._budget.expired:
                self._budget.spend(30 * CALL + len(rising) * (_BY_SIDE * self.region.inputs + self.region.rows.size))
                answers = self._whole(self._costs(self._slopes(best[rising]), prices), bases)
                inside, found = self._posteriors(answers.points)
                better = self.gains(found) - found @ prices
                improved = inside & (better > values[rising] + 1e-12)
                rising, bases = rising[improved], answers.bases[improved]
                best[rising], values[rising] = found[improved], better[improved]
        return best, values

    def along_tangents(self, posteriors: FloatArray, prices: FloatArray) -> Iterator[Answers]:
        """What is best along the tangents of ``g - λ·v`` at posteriors (k, a), a stack of programmes at a time.

        No share is at an upper end, which is beyond the 1 that all of them sum to: it is in the basis or 0.
        """
        costs = self._costs(self._slopes(posteriors), prices)
        for first in range(0, len(posteriors), self._most):
            if not self._budget.expired:
                yield self._whole(costs[first : first + self._most], most=2.0)

    def multipliers(self, posteriors: FloatArray, mass: FloatArray, prices: FloatArray) -> FloatArray:
        """What each of the region's conditions is worth to a mixture of posteriors (k, a), along tangents; shape (m,).

        Programmes that the budget ended count nothing.
        """
        found, at = np.zeros(len(self.region.rows)), 0
        for answers in self.along_tangents(posteriors, prices):
            solved = np.where(answers.solved, mass[at : at + len(answers.solved)], 0.0)
            found += solved @ np.abs(answers.duals[:, self.region.equalities :])
            at += len(answers.solved)
        return found

    def search(self, prices: FloatArray, target: float) -> Priced:
        """Branch and bound on boxes: columns above the target, or a proof that there is none (METHOD section 3).

        The boxes of largest bounds are bounded again by their chord programmes, many at a time, then cut in two where
        the chord is furthest from v ln v. What the multipliers prove to stay below the target is cut off both the
        ends and the middle of a box before that, so boxes shrink fast once the bound is near the target.

        Parameters
        ----------
        prices : ndarray, shape (a,)
            λ.
        target : float
            Nats; parts of the region proven to stay below it are dropped.
        """
        return self._search_boxes(prices, target, np.zeros((1, self.region.counted)), self.reach[None])

    def _search_boxes(self, prices: FloatArray, target: float, lower: FloatArray, upper: FloatArray) -> Priced:
        """`search` of what is in boxes to begin with, shape (k, d)."""
        region = self.region
        found, boxes, rounds, since, best = np.zeros((0, region.inputs)), 0, 0, 0, 0.0
        tree = OpenBoxes(self._root, region.counted)
        root = np.zeros(len(lower), dtype=np.intp)
        tree.put(lower.copy(), upper.copy(), np.full(len(lower), np.inf), self._root, root)
        # What is not above a box that is left as it is does not matter any more.
        while tree.bound > tree.closed:
            late = self._budget.expired
            # New prices would change the bound by about what the best column gains: until then, go on here.
            if late or (since > self.patience and best > _WORTHWHILE * tree.bound):
                return Priced(found, max(target, tree.bound, tree.closed), boxes)
            self._budget.spend(_CALLS * CALL + _BY_OPEN * len(tree))
            lower, upper, inherited, bases = tree.take(self._round)
            self._budget.spend(len(lower) * (_BY_SIDE * lower.shape[1] + 4.0 * region.system.size))
            boxes += len(lower)
            points = self._round_of(tree, prices, max(target, tree.closed), lower, upper, inherited, bases)
            rounds += 1
            # Points below the target mostly climb to columns that are known: try them less and less often.
            new = self._promising(points, prices, target, everything=rounds & (rounds - 1) == 0)
            since = since + 1 if len(found) else 0
            if len(new):
                best = max(best, float((self.gains(new) - new @ prices).max()))
                found = np.vstack([found, new])
        return Priced(found, max(target, tree.closed), boxes)

    def _are_columns(self, points: FloatArray, prices: FloatArray, target: float) -> Flags:
        """Which points are posteriors of the region above the target; shape (N,)."""
        inside, posteriors = self._posteriors(points)
        return np.asarray(inside & (self.gains(posteriors) - posteriors @ prices > target))

    def _promising(self, points: FloatArray, prices: FloatArray, target: float, everything: bool) -> FloatArray:
        """Columns above the target that are reached from the best of these points, each once."""
        inside, posteriors = self._posteriors(points)
        posteriors = posteriors[inside]
        values = self.gains(posteriors) - posteriors @ prices
        order = np.argsort(-values, kind="stable")[:16]
        order = order[values[order] > (-np.inf if everything else target)]
        if not len(order):
            return posteriors[:0]
        found, values = self.climb(posteriors[order], prices)
        _, first = np.unique(np.round(values, 9), return_index=True)
        return np.asarray(found[first[::-1]][values[first[::-1]] > target])

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
        """Bound boxes, put back the parts of them that may reach above the target, return points of the region."""
        region, d = self.region, self.region.counted
        width = upper - lower
        low, high = xlogy(lower, lower), xlogy(upper, upper)
        steep = np.log(np.maximum(upper, 1e-300)) + 1.0
        slopes = np.where(width > 1e-9, (high - low) / np.maximum(width, 1e-9), steep)
        constant = (low - slopes * lower).sum(axis=1)
        if region.image is None and not region.levels:
            all_lower, all_upper = lower, upper
        else:
            rest = (len(lower), region.system.shape[1] - d)
            all_lower, all_upper = np.hstack([lower, np.zeros(rest)]), np.hstack([upper, np.ones(rest)])
        answers = self._programme.maximise(
            self._costs(slopes, prices), all_lower, all_upper, bases, target - constant - 1e-10
        )
        duals = np.where(answers.empty[:, None], 0.0, answers.duals)
        bounds, rho, margins = priced_bounds(region, prices, duals, lower, upper)
        bounds = np.minimum(bounds, inherited)
        empty = answers.empty.copy()
        if empty.any():
            empty[empty] = proven_empty(region, answers.duals[empty], all_lower[empty], all_upper[empty])
        points = answers.points[answers.solved]
        counted = np.clip(answers.points[:, :d], lower, upper)
        chord_gap = low + slopes * (counted - lower) - xlogy(counted, counted)
        above = (bounds > target) & ~empty
        # Cuts lower a bound by what the chords are above g, not by the margin for rounding, nor by what a programme of
        # a thin region is outside of it. Where only those are left, and no column, no cut is of use.
        excess = np.maximum(chord_gap, 0.0).sum(axis=1)
        tight = above & answers.solved & (excess <= np.maximum(margins, _LITTLE * (bounds - target)))
        tight[tight] = ~self._are_columns(answers.points[tight], prices, target)
        final = above & (tight | (width.max(axis=1) <= _NARROW))
        tree.close(bounds[final])
        going = np.flatnonzero(above & ~final)
        if not len(going):
            return points
        lower, upper, rho, counted, chord_gap = (part[going] for part in (lower, upper, rho, counted, chord_gap))
        slack = bounds[going] - target
        # Programmes that ended without a point are cut where they are widest.
        lost = ~answers.solved[going] | (chord_gap.max(axis=1) <= 1e-13)
        chord_gap[lost] = (upper - lower)[lost]
        where = chord_gap.argmax(axis=1)
        every = np.arange(len(going))
        lower, upper = trimmed(rho, lower, upper, slack)
        at_low, at_high, at = lower[every, where], upper[every, where], counted[every, where]
        left, right, exists = hole(rho[every, where], at_low, at_high, slack)
        span = at_high - at_low
        middle = np.where(lost, (at_low + at_high) / 2, np.clip(at, at_low + 0.02 * span, at_high - 0.02 * span))
        first_upper, second_lower = upper.copy(), lower.copy()
        first_upper[every, where] = np.where(exists, left, middle)
        second_lower[every, where] = np.where(exists, right, middle)
        new_lower, new_upper = np.concatenate([lower, second_lower]), np.concatenate([first_upper, upper])
        new_bounds = np.concatenate([bounds[going], bounds[going]])
        possible = (new_lower.sum(axis=1) <= 1 + 1e-9) & (new_upper.sum(axis=1) >= 1 - 1e-9)
        tree.put(
            new_lower[possible],
            new_upper[possible],
            new_bounds[possible],
            answers.bases,
            np.concatenate([going, going])[possible],
        )
        return points
