"""Limits: what true counts may be, given noisy ones, by proven tails of the noise."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from flint import arb, ctx, fmpq

from funnel.bounds import Bounds
from funnel.errors import SpecError
from funnel.frequencies.noise import Noise

IntArray = npt.NDArray[np.int64]

# Wider distributions of totals than this would take gigabytes.
_MAX_TERMS = 1 << 25
# Half of the unit in the last place of a double.
_UNIT = 2.0**-53


def bounds_of(noisy: IntArray, noise: Noise) -> Bounds:
    """Bounds that the true counts are within, but for a probability of at most beta over the noise.

    Half of beta is for the c·a cells together, half for the totals of the c secrets together. The counts that are
    published, the noisy ones clipped at 0, are always within the bounds: totals are widened to theirs.

    Parameters
    ----------
    noisy : ndarray of int64, shape (c, a)
        Counts with noise, not clipped.
    noise : Noise
        What was added.

    Raises
    ------
    SpecError
        If the noise is so wide, or the table so large, that the tails cannot be computed.
    """
    within, of_totals = limits_of(noisy.shape, noise)
    lower, upper = np.maximum(noisy - within, 0), np.maximum(noisy + within, 0)
    published = np.maximum(noisy, 0).sum(axis=1)
    sums = noisy.sum(axis=1)
    least = np.maximum(sums - of_totals, lower.sum(axis=1))
    most = np.minimum(np.maximum(sums + of_totals, published), upper.sum(axis=1))
    return Bounds(lower, upper, np.stack([least, most], axis=1), noise.beta)


def limits_of(shape: tuple[int, ...], noise: Noise) -> tuple[int, int]:
    """How far noise moves a count, and the total of a secret, but for a probability of beta for the table as a whole.

    Parameters
    ----------
    shape : (int, int)
        Secrets and inputs.
    """
    c, a = shape
    beta = Fraction(noise.beta)
    return cell_limit(noise.scale, beta / (2 * c * a)), total_limit(noise.scale, a, beta / (2 * c))


def moves_limit(counts: int, scale: float, beta: float) -> int:
    """How far noise moves one of so many counts of changes at most, but for a probability of beta for all of them."""
    return cell_limit(scale, Fraction(beta) / counts)


def cell_limit(scale: float, tail: Fraction) -> int:
    """The least t with P(|Z| > t) <= tail for one discrete Laplace Z, exactly: 2 α^(t+1) / (1 + α)."""
    return max(0, _least_power(scale, 2, tail) - 1)


def naming_limit(scale: float, tail: Fraction) -> int:
    """The least m above 1 with P(1 + Z >= m) <= tail, exactly: α^(m-1) / (1 + α)."""
    return 1 + max(1, _least_power(scale, 1, tail))


def _least_power(scale: float, factor: int, tail: Fraction) -> int:
    """The least k >= 0 with ``factor α^k / (1 + α) <= tail``, for ``α = e^(-1/scale)``.

    α is transcendental, so the two sides are never equal, and intervals that are narrow enough decide.
    """

    def is_enough(k: int) -> bool:
        before = ctx.prec
        try:
            ctx.prec = 64
            while True:
                alpha = (-1 / arb(fmpq(*Fraction(scale).as_integer_ratio()))).exp()
                gap = factor * alpha**k - (1 + alpha) * arb(fmpq(*tail.as_integer_ratio()))
                if gap <= 0 or gap > 0:
                    return bool(gap <= 0)
                ctx.prec *= 2
        finally:
            ctx.prec = before

    # From here on it is a step or two: without the 1 + α it would be .7 scale of them.
    k = max(0, math.ceil(scale * (math.log(factor) - math.log(float(tail)) - math.log1p(math.exp(-1 / scale)))))
    while not is_enough(k):
        k += 1
    while k > 0 and is_enough(k - 1):
        k -= 1
    return k


def total_limit(scale: float, a: int, tail: Fraction) -> int:
    """A t with P(|Z_1 + … + Z_a| > t) <= tail, for independent discrete Laplace Z; the least, all but.

    The sum is the difference of two negative binomial variables (a discrete Laplace one is the difference of two
    geometric ones), so its tail is a sum of products of positive numbers, and rounding errors are bounded: what is
    compared is above the true tail by less than a millionth of it. O(sqrt(a) scale) time and memory.

    Raises
    ------
    SpecError
        If the distribution is too wide to be computed.
    """
    if a == 1:
        return cell_limit(scale, tail)
    distribution, outside, steps = _negative_binomial(scale, a, float(tail) * 1e-6)
    beyond = np.cumsum(distribution[::-1])[::-1]
    # A step rounds four times, α is off by two units and by 1 / scale of them, and terms are added up in as many steps:
    # in both factors, in the sum of products, and twice in the total. That is 26 + 4 / scale; more leaves room.
    excess = 1 + (40 + 8 / scale) * steps * _UNIT
    # What is left out of either variable, on each of the two sides.
    allowed = (float(tail) * (1 - 4 * _UNIT) / 2 - 2 * outside) / excess

    def is_enough(t: int) -> bool:
        far = beyond[t + 1 :]
        return float(np.dot(distribution[: len(far)], far)) <= allowed if len(far) else allowed >= 0

    low, high = -1, len(distribution)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _negative_binomial(scale: float, a: int, negligible: float) -> tuple[npt.NDArray[np.float64], float, int]:
    """Probabilities of a sum of ``a`` geometric variables around its mode, what is outside of them, and steps taken.

    ``P(j + 1) / P(j) = α (a + j) / (j + 1)``: multiplied up and down from the mode, then divided by their sum.
    """
    alpha = math.exp(-1 / scale)
    mode = max(0, math.floor((a - 1) * alpha / (1 - alpha)))
    deviation = math.sqrt(a * alpha) / (1 - alpha)
    # Both tails fall at least as fast as those of one geometric variable, and near the mode as a normal distribution.
    reach = math.ceil((deviation + scale) * 2 * (math.sqrt(-2 * math.log(negligible)) - math.log(negligible) / 8))
    while True:
        if reach > _MAX_TERMS:
            raise SpecError(
                f"noise of scale {scale:g} on {a:,} counts a secret is too wide for proven bounds; raise epsilon in "
                "[frequencies], or publish fewer combinations"
            )
        up = np.arange(mode, mode + reach, dtype=np.float64)
        down = np.arange(mode, max(0, mode - reach), -1, dtype=np.float64)
        above = np.cumprod(alpha * (a + up) / (up + 1))
        below = np.cumprod(down / (alpha * (a + down - 1)))
        total = 1 + above.sum() + below.sum()
        end = mode + reach
        ratio = alpha * (a + end) / (end + 1)
        outside = math.inf if ratio >= 1 else float(above[-1]) * ratio / (1 - ratio)
        if down.size and down[-1] > 1:
            fall = (down[-1] - 1) / (alpha * (a + down[-1] - 2))
            outside += math.inf if fall >= 1 else float(below[-1]) * fall / (1 - fall)
        if outside / total * 1.001 <= negligible:
            break
        reach *= 2
    distribution = np.concatenate([below[::-1], [1.0], above]) / total
    return distribution, outside / total * 1.001, len(distribution)
