"""Affine estimates from a channel that is known but for rounding: as short as their intervals can be.

An estimate ``c + w f`` from the shares f of outputs is without bias for what is told of a channel if ``c + w W`` is one
for the true values that are counted and zero for others. Of all of these the one is taken whose interval is shortest:
its length is made of what is drawn and of how far what is told may be off (Donoho 1994, for a set of biases).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

from funnel.joint import FloatArray

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
    O(a² b) a step and cell, in at most 25 steps.
    """
    b, outputs = len(channel), channel @ shares
    shown = np.append(np.zeros(b, dtype=np.bool_) if beyond is None else beyond, True) & (left_out > 0)
    # That the shares of outputs can be off is part of the variance, too.
    spread, floor = (np.maximum(outputs, 1.0 / n) + slack) / n, np.maximum(slack, _LEAST)
    constants, weights, told = np.zeros(len(aims)), np.zeros((len(aims), b)), np.zeros(len(aims), dtype=np.bool_)
    for row, aim in enumerate(aims):
        cost, pull, least, before = spread / np.sqrt(spread.mean()) + floor, np.zeros(b + 1), np.inf, np.inf
        centre, mean = 0.0, float(aim @ shares)
        for smooth in _SLOW if left_out else _SMOOTH:
            found = _least(channel, cost, pull, aim, centre, mean)
            if found is None:
                break
            w, off = found[:-1], np.abs(found[-1] + np.append(found[:-1], 0.0)) * shown
            certain = float(shares @ (aim - found[-1]) ** 2) / n
            error, largest = float(np.sqrt(max(float((w**2) @ spread) - certain, smooth**2 / n))), float(off.max())
            length = _QUANTILE * error + float(np.abs(w) @ slack) + left_out * largest
            if length < least:
                weights[row], constants[row], told[row], least = w, found[-1], True, length
            if smooth < _SOON and not left_out and abs(before - length) < _NEAR * length:
                break
            before = length
            # Weights that are zero stay nearly so, but for the first steps: there they would never be anything else.
            cost = _QUANTILE * spread / error + floor / np.maximum(np.abs(w), smooth)
            centre = _QUANTILE / (n * error)
            near = off / max(largest, _LEAST)
            norm = max(float((near**_NORM).sum()), 1.0) ** (1 / _NORM)
            # Half of the way, since a norm of a high power is no longer below what touches it.
            pull = (pull + left_out * (near / norm) ** (_NORM - 2) / (norm * max(largest, _LEAST))) / 2
    return AffineEstimates(constants, weights, told)


def _least(
    channel: FloatArray, cost: FloatArray, pull: FloatArray, aim: FloatArray, centre: float, mean: float
) -> FloatArray | None:
    """Weights (b,) and a constant of least ``Σ cost w² + Σ pull (c + w)² - centre (c² - 2 c mean)``, without bias.

    None if there are none. With ``D = cost + pull`` the weights are ``(W μ - pull c) / D`` for multipliers μ of the
    equations.
    """
    a = channel.shape[1]
    inverse = 1.0 / (cost + pull[:-1])
    scaled = channel * inverse[:, np.newaxis]
    ones = 1.0 - scaled.T @ pull[:-1]
    system = np.empty((a + 1, a + 1))
    system[:a, :a], system[:a, a], system[a, :a] = channel.T @ scaled, ones, ones
    system[a, a] = (pull[:-1] ** 2) @ inverse - pull.sum() + centre
    try:
        solved = scipy.linalg.lstsq(system, np.append(aim, centre * mean), cond=1e-12, check_finite=False)[0]
    except scipy.linalg.LinAlgError:
        return None
    weights = scaled @ solved[:a] - inverse * pull[:-1] * solved[a]
    missed = np.abs(weights @ channel + solved[a] - aim).max()
    known = missed <= _MISSED * max(1.0, float(np.abs(weights).max(initial=0.0)))
    return np.append(weights, solved[a]) if known else None
