"""Label LDP: how an output depends on the secret of a record whose other columns are known, whoever has them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from funnel.guarantees.base import Witness
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.over_distributions import BROKEN
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import WeightArray

Flags = npt.NDArray[np.bool_]

# Roundings of a quotient of two whole numbers in extended precision, with room to spare.
_ROUNDINGS = 4


def all_labels(joint: Joint) -> Flags:
    """Every entry (c, u) of what a channel reads that reads the secret."""
    c = len(joint.secret)
    return np.ones((c, len(joint.inputs) // c), dtype=bool)


def label_rows(labels: Flags, epsilon: float) -> FloatArray:
    """Rows of ``T_{s,u} - e^ε T_{s',u} <= 0`` for all u and s ≠ s', shape (m, c u); of the entries (c, u) that count.

    O(c² u) rows.
    """
    c, u = labels.shape
    high, low = np.nonzero(~np.eye(c, dtype=bool))
    pair, column = np.nonzero(labels[high] & labels[low])
    return _differences(high[pair], low[pair], column, u, c * u, epsilon)


def _differences(high: IntArray, low: IntArray, column: IntArray, u: int, inputs: int, epsilon: float) -> FloatArray:
    spaces = np.zeros((len(column), inputs))
    every = np.arange(len(column))
    spaces[every, high * u + column] = 1.0
    spaces[every, low * u + column] = -capped_exp(epsilon)
    return spaces


def label_half_spaces(
    labels: Flags, rows: FloatArray, epsilon: float, most: int
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Of rows (k, c u) the pair of secrets that each column u sets furthest apart, where that is too far."""
    c, u = labels.shape
    stack = rows.reshape(len(rows), c, u)
    high, low = _extremes(stack, labels)
    top, bottom = (np.take_along_axis(stack, place[:, None], axis=1)[:, 0] for place in (high, low))
    by = _ratios(top, bottom) / capped_exp(epsilon) - 1
    order = np.argsort(-by, axis=1, kind="stable")[:, :most]
    of, column = np.repeat(np.arange(len(rows)), order.shape[1]), order.ravel()
    kept = by[of, column] > BROKEN
    of, column = of[kept], column[kept]
    spaces = _differences(high[of, column], low[of, column], column, u, c * u, epsilon)
    return spaces, of, by[of, column]


def label_levels(labels: Flags, rows: FloatArray) -> FloatArray:
    """The largest ``ln T_{s,u}/T_{s',u}`` of each row (k, c u), shape (k,); 0 where u never gets the output."""
    stack = rows.reshape(len(rows), *labels.shape)
    top = np.where(labels, stack, 0.0).max(axis=1)
    bottom = np.where(labels, stack, np.inf).min(axis=1)
    return np.asarray(np.log(np.maximum(_ratios(top, bottom), 1.0)).max(axis=1))


def _extremes(stack: FloatArray, labels: Flags) -> tuple[IntArray, IntArray]:
    """The secrets with the largest and the least entry of (k, c, u), each (k, u)."""
    return np.where(labels, stack, -1.0).argmax(axis=1), np.where(labels, stack, np.inf).argmin(axis=1)


def _ratios(top: FloatArray, bottom: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(top > 0, top / bottom, 0.0))


def worst_label(joint: Joint, weights: WeightArray) -> Witness:
    """The largest ``T(y|s,u)/T(y|s',u)`` over all outputs, columns and pairs of secrets of the alphabet, exactly.

    Whether anybody has (s, u) does not matter. For weights (b, c u), secrets slowest; O(b c u).
    """
    c, b = len(joint.secret), len(weights)
    stack = weights.reshape(b, c, -1)
    high, low = stack.argmax(axis=1), stack.argmin(axis=1)
    top, bottom = stack.max(axis=1), stack.min(axis=1)
    given = np.flatnonzero([column not in joint.secret.columns for column in joint.inputs.columns])

    def witness(y: int, u: int, ratio: Fraction | None) -> Witness:
        symbol = joint.inputs.symbols[u]
        known = tuple((joint.inputs.columns[k], symbol[k]) for k in given)
        return Witness(y, int(high[y, u]), int(low[y, u]), ratio, True, known)

    excluding = np.argwhere((bottom == 0) & (top > 0))
    if len(excluding):
        return witness(int(excluding[0, 0]), int(excluding[0, 1]), None)
    # Whole numbers below 2^64 are exact in extended precision, so quotients leave few to be compared as fractions.
    ratios = np.where(top > 0, top, 1).astype(np.longdouble) / np.where(top > 0, bottom, 1)
    near = np.argwhere(ratios >= ratios.max() * (1 - _ROUNDINGS * np.finfo(np.longdouble).eps))
    pairs = {(int(top[y, u]), int(bottom[y, u])): (y, u) for y, u in reversed(near.tolist())}
    ratio, (y, u) = max(
        ((Fraction(*pair) if pair[1] else Fraction(1), place) for pair, place in pairs.items()),
        key=lambda one: (one[0], -one[1][0], -one[1][1]),
    )
    return witness(y, u, ratio)
