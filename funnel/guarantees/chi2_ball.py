"""Averages over a χ² ball: largest and smallest mean of a row over all conditional distributions the data allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from funnel.joint import FloatArray

# The multiplier is sought from just above the largest entry to this many times the spread of the row: farther out the
# bound is linear to rounding, and rounding is all that would be gained.
_NEAREST, _FARTHEST = 1e-60, 1e6
_HALVINGS = 46
_UNIT = 2.0**-53
# Distributions are drawn in until rounding is no doubt, by halves, as often.
_INSIDE, _INWARDS = 1 - 2.0**-40, 44


@dataclass(frozen=True, eq=False)
class Tilt:
    """A multiplier for each row: where its bound is (nearly) attained.

    Attributes
    ----------
    distance : ndarray, shape (N,)
        η - max t, in the unit of the rows.
    mass : ndarray, shape (N,)
        S = Σ_u P̂_u √(η - t_u).
    top, width : ndarray, shape (N,)
        max t over all cells and max t - min t.
    cells : int
        u, the length of a row.
    """

    distance: FloatArray
    mass: FloatArray
    top: FloatArray
    width: FloatArray
    cells: int

    def above(self, divergence: FloatArray) -> FloatArray:
        """A number not below any average of the row within the divergence D >= 1; shapes (N,) or (N, k).

        For any η >= max t and any distribution R, Cauchy and Schwarz give ``Σ R (η - t) · Σ P̂²/R >= (Σ P̂ √(η -
        t))²``, so ``Σ R t <= η - S²/D`` whenever ``Σ P̂²/R <= D``: a bound whatever η is, attained at the best one.
        Cells with P̂ = 0 may have R > 0: they enter through max t.

        The margin covers rounding: S has a relative error below (u + 4) 2^-53, so S² one below (2u + 9) 2^-53; an
        error of 2^-53 max t in the row moves S²/D by less than twice that, since the slope below is at most D. Where
        max t = 0 no entry is subtracted from another, so that relative errors of η and S²/D are all there is: a mean of
        what is nearly never more than 0 is told apart from it however small it is.
        """
        distance, mass, top, width = (
            value.reshape(value.shape + (1,) * (divergence.ndim - 1))
            for value in (self.distance, self.mass, self.top, self.width)
        )
        square = mass**2
        size = np.where(top == 0, distance + square / divergence, np.abs(top) + width + distance + square)
        margin = (4 * self.cells + 32) * _UNIT * size
        # No average is above the largest entry, which is known but for its own rounding.
        return np.asarray(np.minimum(top + 4 * _UNIT * np.abs(top), top + distance - square / divergence + margin))


def tilt(rows: FloatArray, distribution: FloatArray, divergence: FloatArray) -> Tilt:
    """The multipliers for which `Tilt.above` is the true maximum, up to the precision of a bisection.

    Parameters
    ----------
    rows : ndarray, shape (N, u)
        t, finite.
    distribution : ndarray, shape (N, u)
        P̂_{U|s}, zeros allowed, each row summing to 1.
    divergence : ndarray, shape (N,)
        D >= 1.

    Notes
    -----
    The bound is convex in η, with slope ``1 - (Σ P̂ √(η - t)) (Σ P̂ / √(η - t)) / D``: bisection on its sign, in
    logarithms. O(N u) a step, 46 steps.
    """
    top = rows.max(axis=1)
    gaps = top[:, None] - rows
    width = gaps.max(axis=1)
    unit = np.where(width > 0, width, 1.0)
    relative = gaps / unit[:, None]
    low = np.full(len(rows), np.log(_NEAREST))
    high = np.full(len(rows), np.log(_FARTHEST))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        roots = np.sqrt(np.exp(middle)[:, None] + relative)
        slope = (distribution * roots).sum(axis=1) * (distribution / roots).sum(axis=1)
        # Too steep a slope means too close to the largest entry.
        farther = slope > divergence
        low, high = np.where(farther, middle, low), np.where(farther, high, middle)
    distance = np.where(width > 0, np.exp(high), 0.0) * unit
    mass = (distribution * np.sqrt(distance[:, None] + gaps)).sum(axis=1)
    return Tilt(distance, mass, top, width, rows.shape[1])


def tightest(found: Tilt, rows: FloatArray, distribution: FloatArray, divergence: FloatArray) -> Tilt:
    """Of rows whose largest entry is 0, the multiplier η = 0 where that proves more than the one that was found.

    Parameters
    ----------
    found : Tilt
        Of `tilt`, which sought among η > 0: where the mean is below the rounding of these, nothing is proven by them.
    rows, distribution, divergence
        As of `tilt`.
    """
    gaps = np.where(found.top[:, None] == 0, -rows, 0.0)
    plain = Tilt(np.zeros(len(rows)), (distribution * np.sqrt(gaps)).sum(axis=1), found.top, found.width, found.cells)
    better = (found.top == 0) & (plain.above(divergence) < found.above(divergence))
    return replace(found, distance=np.where(better, 0.0, found.distance), mass=np.where(better, plain.mass, found.mass))


def extreme_distribution(row: FloatArray, distribution: FloatArray, divergence: float) -> FloatArray:
    """A distribution R with ``Σ P̂²/R <= D`` of largest average of the row, (u,): the witness of the bound."""
    divergences = np.array([divergence])
    distance = tilt(row[None], distribution[None], divergences).distance
    return np.asarray(attaining(distance, row[None], distribution[None], divergences)[0])


def attaining(distance: FloatArray, rows: FloatArray, distribution: FloatArray, divergence: FloatArray) -> FloatArray:
    """The distributions (N, u) of multipliers that `tilt` found: in their balls, with the largest averages of the rows.

    Parameters
    ----------
    distance : ndarray, shape (N,)
    rows, distribution : ndarray, shape (N, u)
    divergence : ndarray, shape (N,)
    """
    top = rows.max(axis=1, keepdims=True)
    roots = np.sqrt(distance[:, None] + (top - rows))
    weights = np.where(roots > 0, distribution / np.where(roots > 0, roots, 1.0), 0.0)
    total = weights.sum(axis=1, keepdims=True)
    spread = np.where(total > 0, weights / np.where(total > 0, total, 1.0), distribution)
    free = (distribution == 0) & (rows == top) & (total > 0)
    number = free.sum(axis=1)
    if not number.any():
        return np.asarray(spread)
    # What the divergence leaves goes to the cells that were never seen: their share costs only the others' shrinking.
    used = np.where(distribution > 0, distribution**2 / np.where(distribution > 0, spread, 1.0), 0.0).sum(axis=1)
    share = np.where(number > 0, np.maximum(0.0, 1.0 - used / divergence), 0.0)[:, None]
    return np.asarray((1 - share) * spread + share * free / np.maximum(number, 1)[:, None])


def worst_distribution(row: FloatArray, distribution: FloatArray, divergence: float) -> FloatArray:
    """A distribution R with ``Σ P̂²/R <= D`` whose average of a row is the largest, nearly, shape (u,).

    A half-space of a distribution outside the ball would cut off what the guarantee allows, and a bound would be none.
    The one that attains the largest average is at the end of the ball, where rounding puts it on either side.

    Parameters
    ----------
    row : ndarray, shape (u,)
        t, finite.
    distribution : ndarray, shape (u,)
        P̂, zeros allowed, summing to 1.
    divergence : float
        D >= 1.
    """
    found = extreme_distribution(row, distribution, divergence)
    return drawn_in(found, distribution, lambda one: _spread(one, distribution) <= divergence * _INSIDE)


def drawn_in(found: FloatArray, estimate: FloatArray, is_inside: Callable[[FloatArray], bool]) -> FloatArray:
    """A distribution, or if it is outside a ball by a hair, the nearest towards the estimate without rounding doubt.

    χ² is convex, so that it falls all the way to the estimate, where it is 0.
    """
    if is_inside(found):
        return found
    low, high = 0.0, 1.0
    for _ in range(_INWARDS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_inside((1 - middle) * found + middle * estimate) else (middle, high)
    return np.asarray((1 - high) * found + high * estimate)


def _spread(found: FloatArray, distribution: FloatArray) -> float:
    seen = distribution > 0
    with np.errstate(divide="ignore"):
        return float((distribution[seen] ** 2 / found[seen]).sum())
