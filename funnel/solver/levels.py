"""Levels: columns of a cone whose parts, one a secret, only have to keep between two common levels, as PolyOpt's.

All corners of the part of one secret are known at once.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.goal import negative_entropy

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]
# A corner that breaks a condition by this share only is listed all the same: too many corners never lower a bound.
_LOOSE = 1e-9
_NONE, _FLOOR, _CEILING = 0, 1, 2


class Block:
    """Corners of ``{T >= 0, floor <= μ + rest T_i <= ceiling for all i}`` with ``μ = least·T``, for any two levels.

    There are two kinds. Either every T_i is 0 or at one of the levels, which fixes μ; or μ is the floor itself, every
    T_i but one is 0 or at the ceiling, and that one makes up what μ lacks.

    Parameters
    ----------
    least, distribution : ndarray, shape (u,)
        Weights of μ, whose sum is below 1, and masses p > 0 of the symbols.
    rest : float

    Notes
    -----
    3^u + u 2^(u-1) corners. What is summed over symbols is summed once; a pair of levels then costs a few numbers a
    corner.
    """

    def __init__(self, least: FloatArray, distribution: FloatArray, rest: float) -> None:
        size = len(least)
        patterns = np.array(list(itertools.product((_NONE, _FLOOR, _CEILING), repeat=size)))
        ends = patterns[(patterns != _FLOOR).all(axis=1)]
        # The one that makes up μ, beside every choice for the others.
        filled = [(ends[ends[:, place] == _NONE], place) for place in np.flatnonzero(least > 0)]
        self._least, self._distribution, self._rest = least, distribution, rest
        self._floor, self._ceiling = patterns == _FLOOR, patterns == _CEILING
        self._zero = (patterns == _NONE).any(axis=1)
        self._high = np.concatenate([rows == _CEILING for rows, _ in filled])
        self._filled = np.concatenate([np.full(len(rows), place) for rows, place in filled])
        self._least_floor, self._least_ceiling = self._floor @ least, self._ceiling @ least
        self._distribution_floor, self._distribution_ceiling = self._floor @ distribution, self._ceiling @ distribution
        self._least_high, self._distribution_high = self._high @ least, self._high @ distribution

    def listed(self, floor: FloatArray, ceiling: FloatArray, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``Σ p T (ln(p T) - λ)`` and ``Σ p T`` of every corner for N pairs of levels; both (N, corners).

        Where there is no such corner, minus infinity and 0.

        Parameters
        ----------
        floor, ceiling : ndarray, shape (N,)
        prices : ndarray, shape (u,)
            λ.
        """
        linear = self._distribution * (np.log(self._distribution) - prices)
        low, high, fits = self._first_kind(floor, ceiling)
        mass = low * self._distribution_floor + high * self._distribution_ceiling
        term = xlogy(low, low) * self._distribution_floor + xlogy(high, high) * self._distribution_ceiling
        term += low * (self._floor @ linear) + high * (self._ceiling @ linear)
        height, missing, fill = self._second_kind(floor, ceiling)
        distribution = self._distribution[self._filled]
        mass2 = np.outer(height, self._distribution_high) + missing * distribution
        term2 = np.outer(xlogy(height, height), self._distribution_high) + xlogy(missing, missing) * distribution
        term2 += np.outer(height, self._high @ linear) + missing * linear[self._filled]
        possible = np.hstack([fits, fill]) & (floor <= ceiling)[:, None]
        terms = np.where(possible, np.hstack([term, term2]), -np.inf)
        return terms, np.where(possible, np.hstack([mass, mass2]), 0.0)

    def corner(self, floor: FloatArray, ceiling: FloatArray, which: Places) -> FloatArray:
        """The corners T numbered ``which`` (N,) for N pairs of levels; shape (N, u)."""
        low, high, _ = self._first_kind(floor, ceiling)
        height, missing, _ = self._second_kind(floor, ceiling)
        rows = np.zeros((len(which), len(self._distribution)))
        every, first = np.arange(len(which)), len(self._floor)
        one = which < first
        at = which[one]
        rows[one] = self._floor[at] * low[one, at][:, None] + self._ceiling[at] * high[one, at][:, None]
        at = which[~one] - first
        rows[~one] = self._high[at] * height[~one][:, None]
        rows[every[~one], self._filled[at]] = missing[~one, at]
        return rows

    def _first_kind(self, floor: FloatArray, ceiling: FloatArray) -> tuple[FloatArray, FloatArray, Flags]:
        """T at the floor and T at the ceiling in every corner, and whether it is one; all (N, 3^u)."""
        above = np.outer(ceiling, self._least_ceiling) + np.outer(floor, self._least_floor)
        average = above / (self._rest + self._least_floor + self._least_ceiling)
        low, high = (floor[:, None] - average) / self._rest, (ceiling[:, None] - average) / self._rest
        slack = -_LOOSE * ceiling[:, None]
        fits = (low >= slack) | (self._distribution_floor == 0)
        fits &= (high >= slack) | (self._distribution_ceiling == 0)
        fits &= (average >= floor[:, None] + slack) | ~self._zero
        return np.maximum(low, 0.0), np.maximum(high, 0.0), fits

    def _second_kind(self, floor: FloatArray, ceiling: FloatArray) -> tuple[FloatArray, FloatArray, Flags]:
        """T at the ceiling (N,), T of the one that makes up μ, and whether that is a corner; (N, u 2^(u-1))."""
        height = np.maximum(ceiling - floor, 0.0) / self._rest
        missing = (floor[:, None] - np.outer(height, self._least_high)) / self._least[self._filled]
        slack = _LOOSE * ceiling[:, None]
        fits = (missing >= -slack) & (missing <= height[:, None] + slack)
        return height, np.maximum(missing, 0.0), fits


# All corners of a part are listed, 3 to the number of its symbols.
LARGEST_PART = 7
# Levels are widened by this share before corners are computed, far more than the corners' rounding.
_WIDER = 1e-11
_LARGEST = 100.0
_TANGENTS = 14
_CLOSE = 1e-9
_GRID = 7
_TRIED = 32
_STEP = 1e-4
# Units of work of listing corners and finding a multiplier for them: for each corner, and array operations a part.
_BY_CORNER, _CALLS = 120.0, 120


@dataclass(frozen=True, eq=False)
class LevelCone:
    """Rows T over (s, u) with ``W(s, i) <= factor W(t, j)`` for all secrets s ≠ t and all i, j.

    Here ``W(s, i) = Σ_u least(s, u) T(s, u) + rest(s) T(s, i)`` and ``rest(s) = 1 - Σ_u least(s, u)``: the corners of
    the distributions given s that are nowhere below ``least`` (RLDP (6)).

    Attributes
    ----------
    distribution : ndarray, shape (c, u)
        p(s, u); where it is 0, T is the average ``Σ p T``.
    least : ndarray, shape (c, u)
        At most p(u|s), so 0 where p is.
    factor : float
        At least 1.
    """

    distribution: FloatArray
    least: FloatArray
    factor: float

    @property
    def rest(self) -> FloatArray:
        """Shape (c,)."""
        return np.asarray(1 - self.least.sum(axis=1))

    def ends(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least and the largest W of each secret, (N, c), for rows T (N, seen cells) with ``Σ p T = 1``."""
        whole = np.ones((len(rows), *self.distribution.shape))
        whole[:, self.distribution > 0] = rows
        weighed = (whole * self.least).sum(axis=2, keepdims=True) + self.rest[:, None] * whole
        return weighed.min(axis=2), weighed.max(axis=2)

    def contains(self, rows: FloatArray) -> Flags:
        """Whether such rows meet the conditions, up to rounding."""
        lowest, highest = self.ends(rows)
        pairs = highest[:, :, None] <= self.factor * lowest[:, None, :] * (1 + 1e-10)
        return np.asarray((pairs | np.eye(len(self.distribution), dtype=bool)).all(axis=(1, 2)))


class LevelPricer:
    """Climbs in a `LevelCone` to maxima of ``g(v) - λ·v`` over ``v = p T``, ``Σ v = 1``, and proves nothing.

    Let s* have the smallest W, m, and let n be the smallest W of the other secrets. Then the conditions say: W of s*
    is in ``[m, factor n]`` and W of all others in ``[n, factor m]``. Given s*, m, n and a multiplier ν of ``Σ v = 1``
    the parts separate, and since g is convex the maximum is at a corner of each part. What remains is a search over
    s*, m and n: two dimensions, whatever the size of the cone.

    Parameters
    ----------
    cone : LevelCone
        Parts of at most `LARGEST_PART` symbols, two secrets or more, every ``rest`` above 0.
    budget : Budget, optional
        Charged.
    """

    def __init__(self, cone: LevelCone, budget: Budget | None = None) -> None:
        self.cone = cone
        self._budget = Budget.of(budget)
        self._seen = cone.distribution > 0
        self._distribution = cone.distribution[self._seen]
        self._span = float(np.log(cone.factor))
        self._places = np.split(np.arange(len(self._distribution)), np.cumsum(self._seen.sum(axis=1))[:-1])
        self._blocks = [
            Block(cone.least[s, seen], cone.distribution[s, seen], float(rest))
            for s, (seen, rest) in enumerate(zip(self._seen, cone.rest, strict=True))
        ]
        u = self._seen.sum(axis=1)
        self._corners = float((3.0**u + u * 2.0 ** (u - 1)).sum())
        # W is at most factor n <= factor² m, and m at most the average 1.
        heaviest = cone.factor**2 / (cone.rest[:, None] + cone.least)[self._seen]
        self.reach = np.minimum(1.0, self._distribution * heaviest * (1 + _CLOSE))
        self.corners = self._distribution[None] / self._distribution.sum()

    @classmethod
    def of(cls, cone: LevelCone, budget: Budget | None = None) -> Self | None:
        """A pricer for the cone, or None if it has too many symbols or distributions too certain for this way."""
        c, u = cone.distribution.shape
        usable = c > 1 and u <= LARGEST_PART and cone.factor > 1 and bool((cone.rest > 1e-6).all())
        return cls(cone, budget) if usable and bool((cone.least[cone.distribution > 0] > 0).all()) else None

    def gains(self, posteriors: FloatArray) -> FloatArray:
        """g of posteriors (k, a); shape (k,)."""
        return negative_entropy(posteriors)

    def climb(self, starts: FloatArray, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ascend from posteriors (k, a) and from a grid of levels; see `Pricer.climb`."""
        first = np.linspace(-2 * self._span, 0, _GRID)
        grid = np.array(
            [
                (s, m, n)
                for s in range(len(self._blocks))
                for m in first
                for n in np.linspace(max(m, -self._span), m + self._span, _GRID)
            ]
        )
        found, values = self._columns(grid[:, 0].astype(np.intp), grid[:, 1:], prices)
        found = np.vstack([found, starts])
        values = np.concatenate([values, self.gains(starts) - starts @ prices])
        best = np.argsort(-values, kind="stable")[:_TRIED]
        found, values = found[best], values[best]
        return self._ascend(found, values, prices)

    def _ascend(self, posteriors: FloatArray, values: FloatArray, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Move posteriors to the best corners between their own levels, repeatedly, until that stops helping."""
        best, values = posteriors.copy(), values.copy()
        rising = np.arange(len(best))
        while len(rising):
            moved, reached = self._columns(*self._levels(best[rising]), prices)
            moved, reached = moved.reshape(4, len(rising), -1), reached.reshape(4, len(rising))
            top, here = reached.argmax(axis=0), np.arange(len(rising))
            better = reached[top, here] > values[rising] + _STEP
            best[rising[better]] = moved[top, here][better]
            values[rising[better]] = reached[top, here][better]
            rising = rising[better]
        return best, values

    def _levels(self, posteriors: FloatArray) -> tuple[Places, FloatArray]:
        """s* (4 N,) and logarithms of (m, n), shape (4 N, 2): the outermost levels each posterior (N, a) allows."""
        lowest, highest = self.cone.ends(posteriors / self._distribution)
        secret, every = lowest.argmin(axis=1), np.arange(len(posteriors))
        own = np.arange(len(self.cone.distribution)) == secret[:, None]
        firsts = (lowest[every, secret], np.where(own, 0.0, highest).max(axis=1) / self.cone.factor)
        seconds = (np.where(own, np.inf, lowest).min(axis=1), highest[every, secret] / self.cone.factor)
        pairs = [np.stack([m, n], axis=1) for m in firsts for n in seconds]
        return np.tile(secret, 4), np.log(np.maximum(np.concatenate(pairs), 1e-300))

    def _columns(self, secret: Places, levels: FloatArray, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posteriors of the best corners at given logarithms of (m, n), shape (N, 2), and their values.

        Where the corners do not make a posterior of the cone, minus infinity.
        """
        terms, masses = self._listed(secret, levels, prices)
        multiplier = _multiplier(terms, masses)
        rows = np.zeros((len(secret), len(self._distribution)))
        for s, (block, places, term, mass) in enumerate(zip(self._blocks, self._places, terms, masses, strict=True)):
            best = (term - multiplier[:, None] * mass).argmax(axis=1)
            rows[:, places] = block.corner(*self._ends(s, secret, levels), best)
        total = rows @ self._distribution
        rows /= np.where(total > 0, total, 1.0)[:, None]
        posteriors = rows * self._distribution
        values = np.where(self.cone.contains(rows) & (total > 0), self.gains(posteriors) - posteriors @ prices, -np.inf)
        return posteriors, values

    def _ends(self, s: int, secret: Places, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The levels that the part of s is between, for logarithms of (m, n), shape (N, 2); both (N,)."""
        own = secret == s
        floor = np.exp(np.where(own, levels[:, 0], levels[:, 1])) * (1 - _WIDER)
        ceiling = self.cone.factor * np.exp(np.where(own, levels[:, 1], levels[:, 0])) * (1 + _WIDER)
        return floor, ceiling

    def _listed(
        self, secret: Places, levels: FloatArray, prices: FloatArray
    ) -> tuple[list[FloatArray], list[FloatArray]]:
        """Terms and masses of all corners of every part, each (N, corners)."""
        self._budget.spend(_CALLS * CALL * len(self._blocks) + _BY_CORNER * len(secret) * self._corners)
        found = [
            block.listed(*self._ends(s, secret, levels), prices[places])
            for s, (block, places) in enumerate(zip(self._blocks, self._places, strict=True))
        ]
        return [terms for terms, _ in found], [masses for _, masses in found]


def _multiplier(terms: list[FloatArray], masses: list[FloatArray]) -> FloatArray:
    """ν that minimises ``ν + Σ_s max (term - ν mass)``, nearly; shape (N,)."""
    number = len(terms[0])
    low, high = np.full(number, -_LARGEST), np.full(number, _LARGEST)
    # Values and slopes of a convex function at both ends; where its tangents meet is tried next.
    (low_value, low_slope), (high_value, high_slope) = (_tangent(terms, masses, end) for end in (low, high))
    best, least = np.where(low_value < high_value, low, high), np.minimum(low_value, high_value)
    for _ in range(_TANGENTS):
        steep = high_slope - low_slope
        usable = (steep > 0) & np.isfinite(low_value) & np.isfinite(high_value)
        drop = np.where(usable, low_value, 0.0) - np.where(usable, high_value, 0.0)
        meet = (drop + high_slope * high - low_slope * low) / np.where(usable, steep, 1.0)
        middle = np.where(usable, np.clip(meet, low, high), low)
        value, slope = _tangent(terms, masses, middle)
        best, least = np.where(value < least, middle, best), np.minimum(value, least)
        falls = slope < 0
        if not (usable & (np.where(usable, value, 0.0) > low_value + low_slope * (middle - low) + _CLOSE)).any():
            break
        low, low_value, low_slope = (
            np.where(falls, new, old) for new, old in ((middle, low), (value, low_value), (slope, low_slope))
        )
        high, high_value, high_slope = (
            np.where(falls, old, new) for new, old in ((middle, high), (value, high_value), (slope, high_slope))
        )
    return best


def _tangent(
    terms: list[FloatArray], masses: list[FloatArray], multiplier: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Value and slope of ``ν + Σ_s max (term - ν mass)``, both (N,)."""
    value, slope, every = multiplier.copy(), np.ones_like(multiplier), np.arange(len(multiplier))
    for term, mass in zip(terms, masses, strict=True):
        reduced = term - multiplier[:, None] * mass
        best = reduced.argmax(axis=1)
        value, slope = value + reduced[every, best], slope - mass[every, best]
    return value, slope
