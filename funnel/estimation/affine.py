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
_STEPS = 25
# A step that shortens an interval by less than this part of it is the last one.
_NEAR = 1e-3
# How much of an aim may not be met, of one.
_MISSED = 1e-7
# Least weights, and least of what is divided by.
_SMALL, _LEAST = 1e-6, 1e-12


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
    outputs: FloatArray,
    slack: FloatArray,
    aims: FloatArray,
    n: int,
    left_out: float = 0.0,
    beyond: npt.NDArray[np.bool_] | None = None,
) -> AffineEstimates:
    """Estimates whose intervals are about as short as any unbiased one's.

    Of an estimate the half length is ``2 √(Σ w² r / n) + Σ |w| s + ρ max |c + w|``, but for a constant that no choice
    changes, where the largest is over what records of unknown channel may show. The first two terms are minimised by
    majorisation: they are below quadratic functions that touch them at the last weights, whose least value under the
    equations is a system of a + 1 unknowns. For the third a norm of fourth powers is taken. The shortest is kept.

    Parameters
    ----------
    channel : ndarray, shape (b, a)
        W, without the last row: what is left to one of a column is an output with weight zero.
    outputs : ndarray, shape (b,)
        r: shares of the outputs that are expected.
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
    b = len(channel)
    shown = np.append(np.zeros(b, dtype=np.bool_) if beyond is None else beyond, True) & (left_out > 0)
    spread, floor = np.maximum(outputs, 1.0 / n) / n, np.maximum(slack, _LEAST)
    constants, weights, told = np.zeros(len(aims)), np.zeros((len(aims), b)), np.zeros(len(aims), dtype=np.bool_)
    for row, aim in enumerate(aims):
        cost, pull, least, before = spread / np.sqrt(spread.mean()) + floor, np.zeros(b + 1), np.inf, np.inf
        for _ in range(_STEPS):
            found = _least(channel, cost, pull, aim)
            if found is None:
                break
            w, off = found[:-1], np.abs(found[-1] + np.append(found[:-1], 0.0)) * shown
            error, largest = float(np.sqrt((w**2) @ spread)), float(off.max())
            length = _QUANTILE * error + float(np.abs(w) @ slack) + left_out * largest
            if length < least:
                weights[row], constants[row], told[row], least = w, found[-1], True, length
            if abs(before - length) < _NEAR * length:
                break
            before = length
            # Weights that are zero stay nearly so.
            cost = _QUANTILE * spread / max(error, _LEAST) + floor / np.maximum(np.abs(w), _SMALL)
            norm = float((off**4).sum() ** 0.25)
            pull = left_out * off**2 / max(norm, _LEAST) ** 3
    return AffineEstimates(constants, weights, told)


def _least(channel: FloatArray, cost: FloatArray, pull: FloatArray, aim: FloatArray) -> FloatArray | None:
    """Weights (b,) and a constant of least ``Σ cost w² + Σ pull (c + w)²``, without bias; None if there are none.

    With ``D = cost + pull`` the weights are ``(W μ - pull c) / D`` for multipliers μ of the equations.
    """
    a = channel.shape[1]
    inverse = 1.0 / (cost + pull[:-1])
    scaled = channel * inverse[:, np.newaxis]
    ones = 1.0 - scaled.T @ pull[:-1]
    system = np.empty((a + 1, a + 1))
    system[:a, :a], system[:a, a], system[a, :a] = channel.T @ scaled, ones, ones
    system[a, a] = (pull[:-1] ** 2) @ inverse - pull.sum()
    try:
        solved = scipy.linalg.lstsq(system, np.append(aim, 0.0), cond=1e-12, check_finite=False)[0]
    except scipy.linalg.LinAlgError:
        return None
    weights = scaled @ solved[:a] - inverse * pull[:-1] * solved[a]
    missed = np.abs(weights @ channel + solved[a] - aim).max()
    known = missed <= _MISSED * max(1.0, float(np.abs(weights).max(initial=0.0)))
    return np.append(weights, solved[a]) if known else None
