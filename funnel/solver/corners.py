"""Corners: the part of one secret in a cone whose parts keep between two levels, all its corners at once."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from funnel.joint import FloatArray

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
