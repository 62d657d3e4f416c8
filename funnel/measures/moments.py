"""Logarithms of weighted sums of exponentials, exact in the limit of small and of large exponents; and orders α."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

from funnel.errors import SpecError
from funnel.joint import FloatArray

# Beyond this order every measure equals its limit for α = ∞ to the last bit, and products with it would overflow.
_LARGEST_ORDER = 1e300
# e^700 is finite, and any weight times it is far from the range where the first of the two formulas is used.
_LARGEST_EXPONENT = 700.0


def checked_order(alpha: float) -> float:
    """The order α as a float, infinite from 1e300 on.

    Raises
    ------
    SpecError
        If α is not a number above 0.
    """
    given: object = alpha
    try:
        order = math.nan if isinstance(given, bool) or not isinstance(given, Real) else float(given)
    except OverflowError:
        order = math.inf
    if not order > 0:
        raise SpecError(f"the order alpha must be a number above 0 (math.inf for the limit), not {given!r}")
    return math.inf if order > _LARGEST_ORDER else order


def log_moment(weights: FloatArray, exponents: FloatArray) -> FloatArray:
    """``ln Σ_i w_i e^(x_i)`` along the first axis, for weights that sum to 1 there.

    Accurate relative to the exponents when they are all small, where ``log(sum(exp))`` would return the rounding of
    the weights: so that quotients such as ``ln(Σ w e^(tz)) / t`` keep their digits as t → 0. Large exponents do not
    overflow.

    Parameters
    ----------
    weights, exponents : ndarray, shape (k, ...)
        Exponents below infinity; those at weight zero are not looked at. At least one exponent of positive weight is
        finite.
    """
    x = np.where(weights > 0, exponents, -np.inf)
    top = x.max(axis=0)
    shifted = top + np.log((weights * np.exp(x - top)).sum(axis=0))
    excess = (weights * np.expm1(np.minimum(x, _LARGEST_EXPONENT))).sum(axis=0)
    near = np.abs(excess) < 0.5
    return np.where(near, np.log1p(np.where(near, excess, 0.0)), shifted)
