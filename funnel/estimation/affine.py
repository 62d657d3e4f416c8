"""Affine estimates from a channel that is known but for rounding: as short as their intervals can be.

An estimate ``c + w f`` from the shares f of outputs is without bias for what is told of a channel if ``c + w W`` is one
for the true values that are counted and zero for others. Of all of these the one is taken whose interval is shortest:
its length is made of what is drawn and of how far what is told may be off (Donoho 1994, for a set of biases).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dposv

from funnel.joint import FloatArray, IntArray

# Normal intervals at about 95 %, to weigh drawing against rounding; whichever is asked for, all estimates are valid.
_QUANTILE = 2.0
# From where on weights, and errors of drawing in units of those of one record, count as zero: less in every step.
_SMOOTH = tuple(max(1e-6, 0.1 * 0.3**step) for step in range(25))
# A step that shortens an interval by less than this part of it is the last one, but for the first ones.
# Where records of unknown channel weigh, the way is not always downhill, and slower.
_SLOW = tuple(10.0**-power for power in range(1, 7) for _ in range(6))
_NEAR, _SOON = 1e-3, 1e-3
# How much of an aim may not be met, of one.
_MISSED = 1e-7
# Smaller singular values, of the largest one, are those of columns that depend on each other: told probabilities are
# multiples of steps, and weights of the inverse size would say nothing. So much of ones may seem outside of a space.
_DEPENDENT, _INSIDE = 1e-10, 1e-8
# The power of the norm that a largest one is taken for.
_NORM = 8
# Least of what is divided by.
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class AffineEstimates:
    """Estimates of k cells.

    Attributes
    ----------
    constants : ndarray, shape (k,)
        c.
    weights : ndarray, shape (k, b)
        w.
    told : ndarray of bool, shape (k,)
        Whether the equations can be met at all.
    """

    constants: FloatArray
    weights: FloatArray
    told: npt.NDArray[np.bool_]


def shortest(
    channel: FloatArray,
    shares: FloatArray,
    slack: FloatArray,
    aims: FloatArray,
    n: int,
    left_out: float = 0.0,
    beyond: npt.NDArray[np.bool_] | None = None,
) -> AffineEstimates:
    """Estimates whose intervals are about as short as any unbiased one's.

    Of an estimate of ``m p`` the half length is ``2 σ + Σ |w| s + ρ max |c + w|``, where the largest is over what
    records of unknown channel may show, and ``n σ² = Σ w² r - Σ p (m - c)²`` for the shares r of outputs: records are
    as they are. The first two terms are minimised by majorisation: they are below quadratic functions that touch them
    at the last weights, whose least value under the equations is a system of a + 1 unknowns. For the third a norm of
    eighth powers is taken. The shortest is kept.

    Parameters
    ----------
    channel : ndarray, shape (b, a)
        W, without the last row: what is left to one of a column is an output with weight zero.
    shares : ndarray, shape (a,)
        p: a law of the true values.
    slack : ndarray, shape (b,)
        s: by how much these can be off.
    aims : ndarray, shape (k, a)
        Zeros and ones.
    n : int
        Records.
    left_out : float
        ρ: the largest share of records of whose channel nothing is known.
    beyond : ndarray of bool, shape (b,)
        What these may show, besides the output with weight zero.

    Notes
    -----
    O(r² b) a step and cell for the rank r of W, in at most 25 steps, or 36 where records of unknown channel weigh.
    """
    b = len(channel)
    shown = np.append(np.zeros(b, dtype=np.bool_) if beyond is None else beyond, True) & (left_out > 0)
    # That the shares of outputs can be off is part of the variance, too.
    spread, floor = (np.maximum(channel @ shares, 1.0 / n) + slack) / n, np.maximum(slack, _LEAST)
    found = AffineEstimates(np.zeros(len(aims)), np.zeros((len(aims), b)), np.zeros(len(aims), dtype=np.bool_))
    equations, least = _Equations.of(channel, aims), np.full(len(aims), np.inf)
    # All cells take the same steps, each until it is done: those that are not, and what belongs to them, row by row.
    cells, before, mean = np.arange(len(aims)), least, aims @ shares
    cost = np.tile(spread / np.sqrt(spread.sum() / max(b, 1)) + floor, (len(aims), 1))
    pull, centre = np.zeros((len(aims), b + 1)), np.zeros(len(aims))
    for smooth in _SLOW if left_out else _SMOOTH:
        w, c = equations.least(cells, cost, pull, centre, mean[cells])
        size = np.abs(w)
        missed = np.abs(w @ channel + c[:, np.newaxis] - aims[cells]).max(axis=1)
        known = missed <= _MISSED * np.maximum(1.0, size.max(axis=1, initial=0.0))
        off = np.abs(np.hstack([w, np.zeros((len(w), 1))]) + c[:, np.newaxis]) * shown
        certain, largest = (aims[cells] - c[:, np.newaxis]) ** 2 @ shares / n, off.max(axis=1)
        error = np.sqrt(np.maximum(w**2 @ spread - certain, smooth**2 / n))
        length = _QUANTILE * error + size @ slack + left_out * largest
        better = known & (length < least[cells])
        of_better = cells[better]
        found.weights[of_better], found.constants[of_better], found.told[of_better] = w[better], c[better], True
        least[of_better] = length[better]
        done = ~known
        if smooth < _SOON and not left_out:
            done |= np.abs(before - length) < _NEAR * length
        cells, before, size, error = cells[~done], length[~done], size[~done], error[~done]
        if not len(cells):
            break
        # Weights that are zero stay nearly so, but for the first steps: there they would never be anything else.
        cost = _QUANTILE * spread / error[:, np.newaxis] + floor / np.maximum(size, smooth)
        centre, pull = _QUANTILE / (n * error), pull[~done]
        if left_out:
            largest = np.maximum(largest[~done], _LEAST)[:, np.newaxis]
            near = off[~done] / largest
            norm = np.maximum((near**_NORM).sum(axis=1, keepdims=True), 1.0) ** (1 / _NORM)
            # Half of the way, since a norm of a high power is no longer below what touches it.
            pull = (pull + left_out * (near / norm) ** (_NORM - 2) / (norm * largest)) / 2
    return found


@dataclass(frozen=True, eq=False)
class _Equations:
    """That estimates are without bias, ``wᵀ W = m - c``, as so many equations as there are independent ones.

    With the singular value decomposition ``W = U Σ Vᵀ``, r values being positive, the equations can be met if and only
    if ``m - c`` is in the row space, ``V Vᵀ (m - c) = m - c``, and there they say ``Uᵀ w = Σ⁻¹ Vᵀ (m - c)``: both have
    the same solutions w, so that the least of these under any cost is the same one. U has orthonormal columns, so for
    positive D the matrix ``Uᵀ D⁻¹ U`` is positive definite, and its condition is no worse than that of D.

    Attributes
    ----------
    basis : ndarray, shape (b, r)
        U.
    aims : ndarray, shape (k, r)
        ``Σ⁻¹ Vᵀ m`` of every cell.
    ones : ndarray, shape (r,)
        ``Σ⁻¹ Vᵀ 1``.
    constants : ndarray, shape (k,), or None
        c where it follows from the equations: if the vector of ones is not in the row space.
    """

    basis: FloatArray
    aims: FloatArray
    ones: FloatArray
    constants: FloatArray | None

    @classmethod
    def of(cls, channel: FloatArray, aims: FloatArray) -> _Equations:
        """For aims (k, a)."""
        left, values, right = np.linalg.svd(channel, full_matrices=False)
        rank = int((values > _DEPENDENT * values.max(initial=0.0)).sum())
        row_space = right[:rank] / values[:rank, np.newaxis]
        outside = 1.0 - right[:rank].T @ right[:rank].sum(axis=1)
        # What is outside of the row space W does not reach; where that is a part of the constant, it is all there is.
        free = bool(np.abs(outside).max() <= _INSIDE)
        constants = None if free else aims @ outside / (outside @ outside)
        return cls(left[:, :rank], aims @ row_space.T, row_space.sum(axis=1), constants)

    def least(
        self, cells: IntArray, cost: FloatArray, pull: FloatArray, centre: FloatArray, mean: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Of some cells (j,) the weights (j, b) and constants (j,) of least ``Σ cost w² + Σ pull (c + w)²``.

        Less ``centre (c² - 2 c mean)``. With ``D = cost + pull`` the weights are ``(U μ - pull c) / D`` for multipliers
        μ of the equations, so ``w = w₀ + c w₁``; of this line the constant is the stationary point.
        """
        touched = pull[:, :-1]
        inverse = 1.0 / (cost + touched)
        # Right sides of both parts of the line, and multipliers in their place.
        sides = np.stack([self.aims[cells], (inverse * touched) @ self.basis - self.ones], axis=2)
        root = np.sqrt(inverse)
        for row, side in enumerate(sides if len(self.ones) else ()):
            scaled = self.basis * root[row][:, np.newaxis]
            _, side[:], info = dposv(dsyrk(1.0, scaled.T), side)
            if info:
                # Not positive definite in doubles: nothing is known from here on.
                side[:] = np.nan
        first, along = np.moveaxis(sides, 2, 0) @ self.basis.T
        first, along = first * inverse, (along - touched) * inverse
        if self.constants is not None:
            constants = self.constants[cells]
        else:
            bent = (cost * along**2 + touched * (1 + along) ** 2).sum(axis=1) + pull[:, -1] - centre
            slope = (first * (cost * along + touched * (1 + along))).sum(axis=1) + centre * mean
            constants = -slope / bent
        return first + constants[:, np.newaxis] * along, constants
