"""Exact arithmetic behind every guarantee: integer distributions of (S, Y), and rational bounds on e^ε and ln."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from funnel.guarantees.base import Level, Witness
from funnel.joint import IntArray
from funnel.protocol import WeightArray

_DIGITS = 60
# Leaves room in the doubles for factors; no ratio of 63-bit weights and 31-bit counts exceeds e^90.
_LARGEST_EXPONENT = 600.0


def secret_output(counts: IntArray, weights: WeightArray) -> npt.NDArray[np.object_]:
    """Exact joint distribution of (S, Y) as integers: N[s, y] = Σ_x n[s, x] w[y, x], so P(s, y) = N[s, y] / (n 2^63).

    Parameters
    ----------
    counts : ndarray of int64, shape (c, a)
        Fewer than 2^31 records in all (`Joint` sees to it).
    weights : ndarray of uint64, shape (b, a)
        Each at most 2^63.

    Returns
    -------
    ndarray of Python integers, shape (c, b)

    Notes
    -----
    Cost O(a b c).
    """
    high, low = half_sums(counts, weights)
    return np.asarray(high.astype(object) * 2**32 + low.astype(object))


def half_sums(counts: IntArray, weights: WeightArray) -> tuple[WeightArray, WeightArray]:
    """N[s, y] of `secret_output` as ``high · 2^32 + low``, both of shape (c, b).

    The weights are split into 32-bit halves: each half-sum is below 2^31 · 2^32, so 64-bit arithmetic is exact.
    """
    tall = counts.astype(np.uint64)
    return tall @ (weights >> np.uint64(32)).T, tall @ (weights & np.uint64(0xFFFFFFFF)).T


def exp_below(epsilon: float) -> Fraction:
    """A rational that is at most e^ε, by a relative margin below 2^-46 up to ε = 128; exactly 1 for ε = 0.

    ``decimal`` rounds exp correctly to 60 digits, so one unit less in the last digit is a lower bound for the decimal
    value. The margin of 2^-50 covers every reading of ε and of e^ε as a double: whoever compares a level with
    ``math.exp(epsilon)`` reaches the same verdict. Above ε = 600 the bound is that of 600, which no ratio can reach.

    Raises
    ------
    ValueError
        If ε is negative or not finite.
    """
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise ValueError(f"epsilon must be a finite number >= 0, not {epsilon}")
    if epsilon == 0:
        return Fraction(1)
    epsilon = min(float(epsilon), _LARGEST_EXPONENT)
    smaller_reading = min(decimal.Decimal(repr(epsilon)), decimal.Decimal(epsilon))
    with decimal.localcontext(decimal.Context(prec=_DIGITS)) as context:
        below = context.next_minus(context.exp(context.create_decimal(smaller_reading)))
    return max(Fraction(1), Fraction(below) * (1 - Fraction(1, 2**50)))


def capped_exp(epsilon: float) -> float:
    """e^ε as a float, for optimisers; not above e^600, which no ratio can reach."""
    return math.exp(min(epsilon, _LARGEST_EXPONENT))


def log_above(ratio: Fraction) -> float:
    """The level ln(ratio) in nats as a float that is not below it (and at most one unit in the last place above).

    Raises
    ------
    ValueError
        If the ratio is below 1.
    """
    if ratio < 1:
        raise ValueError("a worst ratio is at least 1")
    if ratio == 1:
        return 0.0
    with decimal.localcontext(decimal.Context(prec=_DIGITS)) as context:
        # Near 1 the quotient loses digits to the leading 1; ln(1+d) <= d bounds it there without any rounding.
        excess = ratio - 1
        if excess < Fraction(1, 10**30):
            above = context.next_plus(
                context.divide(decimal.Decimal(excess.numerator), decimal.Decimal(excess.denominator))
            )
        else:
            context.rounding = decimal.ROUND_CEILING
            quotient = context.divide(decimal.Decimal(ratio.numerator), decimal.Decimal(ratio.denominator))
            above = context.next_plus(context.ln(quotient))
        value = float(above)
        return math.nextafter(value, math.inf) if decimal.Decimal(value) < above else value


def square_root_above(value: Fraction) -> Fraction:
    """A rational that is not below the square root, by a relative margin below 10^-50."""
    scale = 10**60
    above = math.isqrt(value.numerator * scale**2 // value.denominator) + 1
    return Fraction(0) if value == 0 else Fraction(above, scale)


def log_level(witness: Witness) -> Level:
    """The level of a guarantee on ratios: ln of the worst one, rounded up; infinite where there is none."""
    return Level(math.inf if witness.ratio is None else log_above(witness.ratio), witness)


def scaled_up(nats: float, side: float, budget: float) -> float:
    """A leakage of so many nats against a budget ``side`` as a level of the larger ``budget``, rounded up."""
    if nats <= 0 or math.isinf(side):
        return 0.0
    if side == budget:
        return nats
    if math.isinf(nats) or side == 0:
        return math.inf
    exact = Fraction(nats) * Fraction(budget) / Fraction(side)
    value = float(exact)
    return math.nextafter(value, math.inf) if Fraction(value) < exact else value
