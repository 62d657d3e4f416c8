"""Utility I(X;Y) of a unary encoding in proven bounds, without its 2^a outputs."""

from __future__ import annotations

import math

import numpy as np

from funnel.joint import FloatArray, IntArray, Joint
from funnel.mechanisms.unary.encoding import UnaryEncoding
from funnel.protocol import DENOMINATOR

_COARSEST, _FINEST = 1 << 12, 1 << 20
_MOST_WORK = 1 << 25
_CLOSE_ENOUGH = 1e-9
# Largest relative error of one float operation.
_UNIT = 2.0**-53


def unary_utility(joint: Joint, encoding: UnaryEncoding) -> tuple[float, float]:
    """Lower and upper bound (nats) on I(X;Y), typically 1e-9 apart.

    With k = e^α - 1 and ``P(A|x) = b_A (1 + k [x in A])`` the information is
    ``I = α P(x in Y) - Σ_A b_A (1 + k p(A)) ln(1 + k p(A)) = α/2 - E f(W) / (2 (1 - q))``, where
    ``f(u) = (1 + k u) ln(1 + k u)``, ``W = Σ_x p_x B_x``, and the B_x are independent, each 1 with probability q.

    The law of W is put on a grid of step h, each p_x split between its two neighbours so that its mean stays. Such
    noise makes the expectation of a convex f larger, never smaller: that bounds I from below. It becomes larger by at
    most ``Σ_x q (E f(p_x + noise) - f(p_x))``, since f'' falls and so the other terms of W can only make the effect
    of the noise smaller: that bounds I from above. Errors of floats are added to both.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a), over the inputs of the encoding.
    encoding : UnaryEncoding

    Raises
    ------
    DataError
        If the encoding is for other inputs.

    Notes
    -----
    O(a · steps): the grid is refined from 2^12 to at most 2^20 steps, and at most 2^25/a, until the bounds are 1e-9
    apart. A grid finer than the number of records is that of their counts, on which the bounds differ by float errors
    only. For α beyond 10 nats and symbols rarer than 10^-5 they can stay 1e-6 apart.
    """
    encoding.require(joint)
    counts = joint.counts.sum(axis=0)
    counts = counts[counts > 0]
    q = encoding.other_weight / DENOMINATOR
    # 1/(2(1-q)); exact integers before the one division.
    factor = DENOMINATOR / (2 * (DENOMINATOR - encoding.other_weight))
    steps, spread = _grid(counts, joint.n, encoding)
    law = _law(counts, joint.n, steps, q)
    places = np.flatnonzero(law)
    mean = math.fsum(law[places] * _f(places / steps, encoding))
    # Every entry of the law is a sum of products of positive numbers, at most eight roundings a symbol.
    error = mean * (8 * len(counts) + 64) * _UNIT
    slack = 16 * _UNIT * (encoding.alpha + factor * mean)
    base = encoding.alpha / 2 - factor * mean
    lower = max(0.0, base - factor * error - slack)
    upper = max(0.0, base + factor * (error + spread) + slack)
    return lower, upper


def _grid(counts: IntArray, n: int, encoding: UnaryEncoding) -> tuple[int, float]:
    """Number of grid steps for [0, 1] and a bound on what the grid adds to E f(W)."""
    factor = DENOMINATOR / (2 * (DENOMINATOR - encoding.other_weight))
    steps = _COARSEST
    while steps < n:
        spread = _spread(counts, n, steps, encoding)
        if factor * spread <= _CLOSE_ENOUGH or 2 * steps > min(_FINEST, _MOST_WORK // len(counts)):
            return steps, spread
        steps *= 2
    # All p_x are on the grid of the counts.
    return n, 0.0


def _split(counts: IntArray, n: int, steps: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """Grid point below each p_x, and the probabilities of that point and of the next, each rounded once."""
    below, rest = np.divmod(counts * steps, n)
    return below, (n - rest) / n, rest / n


def _spread(counts: IntArray, n: int, steps: int, encoding: UnaryEncoding) -> float:
    """Upper bound of Σ_x q (E f(p_x + noise) - f(p_x)): from f'' and, for small p_x, from f itself."""
    k, q = float(encoding.excess), encoding.other_weight / DENOMINATOR
    below, stay, move = _split(counts, n, steps)
    # f''(u) = k²/(1 + k u), at the lower grid point at most; the variance of the noise is stay · move / steps².
    curvature = k / (1 + k * (below / steps)) * (k * q) * stay * move / (2 * float(steps) ** 2)
    ends = stay * _f(below / steps, encoding) + move * _f((below + 1) / steps, encoding)
    chord = q * (ends - _f(counts / n, encoding) + 64 * _UNIT * ends)
    return math.fsum(np.minimum(curvature, chord)) * (1 + 64 * _UNIT)


def _law(counts: IntArray, n: int, steps: int, q: float) -> FloatArray:
    """Law of the sum of all p_x B_x on the grid, one symbol after another."""
    below, stay, move = _split(counts, n, steps)
    law = np.zeros(steps + len(counts) + 1)
    law[0] = 1.0
    reach = 1
    for shift, here, next_one in zip(below.tolist(), stay.tolist(), move.tolist(), strict=True):
        with_it = law[:reach] * q
        law[:reach] *= 1 - q
        law[shift : shift + reach] += with_it * here
        if next_one > 0:
            law[shift + 1 : shift + 1 + reach] += with_it * next_one
        reach += shift + (1 if next_one > 0 else 0)
    return law


def _f(u: FloatArray, encoding: UnaryEncoding) -> FloatArray:
    growth = float(encoding.excess) * u
    return np.asarray((1 + growth) * np.log1p(growth))
