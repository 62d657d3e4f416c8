"""Lifts: how much each output changes the belief in each secret, and summaries of that per output."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real

import numpy as np

from funnel.errors import SpecError
from funnel.joint import FloatArray, Joint
from funnel.measures.distributions import secret_output_distribution
from funnel.protocol import Protocol

# Every summary below has shape (b,), leaves out secrets that never occur, and is nan for outputs that never occur.


def lift(joint: Joint, protocol: Protocol) -> FloatArray:
    """l(s, y) = P(s|y) / P(s), shape (c, b); nan where s or y never occurs (ALIP (1), METHOD section 1).

    Examples
    --------
    >>> funnel.measures.lift(joint, protocol).round(4).tolist()
    [[1.4941, 0.7882, 0.6065], [0.6706, 1.1412, 1.2623]]
    """
    law = secret_output_distribution(joint, protocol)
    outer = np.outer(joint.p_secret, law.sum(axis=0))
    return np.asarray(np.divide(law, outer, out=np.full(law.shape, np.nan), where=outer > 0))


def max_lift(joint: Joint, protocol: Protocol) -> FloatArray:
    """Λ(y) = max_s l(s, y) per output, shape (b,) (ALIP (2)); nan for outputs that never occur.

    At most e^εu under (εl, εu)-ALIP.

    Examples
    --------
    >>> funnel.measures.max_lift(joint, protocol).round(4).tolist()
    [1.4941, 1.1412, 1.2623]
    """
    return _per_output(joint, protocol, lambda _prior, lifts: lifts.max(axis=0))


def min_lift(joint: Joint, protocol: Protocol) -> FloatArray:
    """Ψ(y) = min_s l(s, y) per output, shape (b,) (ALIP (2)); nan for outputs that never occur.

    At least e^-εl under (εl, εu)-ALIP; 0 where an output excludes a secret.

    Examples
    --------
    >>> funnel.measures.min_lift(joint, protocol).round(4).tolist()
    [0.6706, 0.7882, 0.6065]
    """
    return _per_output(joint, protocol, lambda _prior, lifts: lifts.min(axis=0))


def l1_lift(joint: Joint, protocol: Protocol) -> FloatArray:
    """Σ_s p_s |l(s, y) − 1| per output, shape (b,) (ALIP (31)); nan for outputs that never occur.

    With ``L = e^εu, ψ = e^−εl`` at most ``2(L−1)(1−ψ)/(L−ψ)`` under (εl, εu)-ALIP. The bound ``e^εu − 1`` of ALIP
    proposition 3.1 holds only where ``1 − ψ ≤ L − 1`` (METHOD section 6.3).

    Examples
    --------
    >>> funnel.measures.l1_lift(joint, protocol).round(4).tolist()
    [0.3953, 0.1694, 0.3148]
    """
    return _per_output(joint, protocol, lambda prior, lifts: prior @ np.abs(lifts - 1))


def chi_squared_lift(joint: Joint, protocol: Protocol) -> FloatArray:
    """Σ_s p_s (l(s, y) − 1)² per output, shape (b,) (ALIP (32)); nan for outputs that never occur.

    At most ``(e^εu − 1)(1 − e^−εl)`` under (εl, εu)-ALIP. The bound ``(e^εu − 1)²`` of ALIP proposition 3.2 holds only
    where ``1 − e^−εl ≤ e^εu − 1`` (METHOD section 6.3).

    Examples
    --------
    >>> funnel.measures.chi_squared_lift(joint, protocol).round(4).tolist()
    [0.1628, 0.0299, 0.1032]
    """
    return _per_output(joint, protocol, lambda prior, lifts: prior @ (lifts - 1) ** 2)


def alpha_lift(joint: Joint, protocol: Protocol, alpha: float) -> FloatArray:
    """(Σ_s p_s l(s, y)^α)^(1/α) per output, shape (b,) (ALIP (33)); nan for outputs that never occur.

    Grows with α, is 1 for α = 1 and Λ(y) for α = ∞; at most e^εu under (εl, εu)-ALIP (proposition 3.3).

    Raises
    ------
    SpecError
        If α is not a number above 0.

    Examples
    --------
    >>> funnel.measures.alpha_lift(joint, protocol, 2).round(4).tolist()
    [1.0783, 1.0148, 1.0503]
    """
    order = checked_order(alpha)
    return _per_output(joint, protocol, lambda prior, lifts: _power_mean(prior, lifts, order))


def l1_lift_inverse(joint: Joint, protocol: Protocol) -> FloatArray:
    """Σ_s p_s |1/l(s, y) − 1| per output, shape (b,) (ALIP (34)); nan for outputs that never occur.

    Infinite where an output excludes a secret. Under (εl, εu)-ALIP at most ``max(e^εl − 1, 1 − e^−εu)``; the bound
    ``e^εl − 1`` of ALIP proposition 5.1 lacks the second term (METHOD section 6.3).

    Examples
    --------
    >>> funnel.measures.l1_lift_inverse(joint, protocol).round(4).tolist()
    [0.427, 0.1817, 0.3842]
    """
    return _per_output(joint, protocol, lambda prior, lifts: prior @ np.abs(_inverse(lifts) - 1))


def chi_squared_lift_inverse(joint: Joint, protocol: Protocol) -> FloatArray:
    """Σ_s p_s (1/l(s, y) − 1)² per output, shape (b,) (ALIP (35)); nan for outputs that never occur.

    Infinite where an output excludes a secret. Under (εl, εu)-ALIP at most ``max(e^εl − 1, 1 − e^−εu)²``; the bound
    ``(e^εl − 1)²`` of ALIP proposition 5.2 lacks the second term (METHOD section 6.3).

    Examples
    --------
    >>> funnel.measures.chi_squared_lift_inverse(joint, protocol).round(4).tolist()
    [0.1886, 0.0381, 0.1942]
    """
    return _per_output(joint, protocol, lambda prior, lifts: prior @ (_inverse(lifts) - 1) ** 2)


def alpha_lift_inverse(joint: Joint, protocol: Protocol, alpha: float) -> FloatArray:
    """(Σ_s p_s l(s, y)^−α)^(1/α) per output, shape (b,) (ALIP (36)); nan for outputs that never occur.

    Infinite where an output excludes a secret; 1/Ψ(y) for α = ∞; at most e^εl under (εl, εu)-ALIP (proposition 5.3).

    Raises
    ------
    SpecError
        If α is not a number above 0.

    Examples
    --------
    >>> funnel.measures.alpha_lift_inverse(joint, protocol, 2).round(4).tolist()
    [1.2302, 1.051, 1.2099]
    """
    order = checked_order(alpha)
    return _per_output(joint, protocol, lambda prior, lifts: _power_mean(prior, _inverse(lifts), order))


def _per_output(
    joint: Joint, protocol: Protocol, summary: Callable[[FloatArray, FloatArray], FloatArray]
) -> FloatArray:
    """A summary of (prior, lifts) for the secrets and outputs that occur, nan for the other outputs."""
    lifts = lift(joint, protocol)
    seen = joint.p_secret > 0
    occurs = ~np.isnan(lifts[seen][0])
    summaries = np.full(lifts.shape[1], np.nan)
    summaries[occurs] = summary(joint.p_secret[seen], lifts[seen][:, occurs])
    return summaries


def _inverse(lifts: FloatArray) -> FloatArray:
    return np.asarray(np.divide(1.0, lifts, out=np.full(lifts.shape, np.inf), where=lifts > 0))


def _power_mean(prior: FloatArray, values: FloatArray, order: float) -> FloatArray:
    """(Σ_s p_s v^α)^(1/α) per column, for values from 0 to infinity of which at least one is positive."""
    top = values.max(axis=0)
    if math.isinf(order):
        return np.asarray(top)
    means = np.full(top.shape, np.inf)
    finite = np.isfinite(top)
    values = values[:, finite]
    logs = np.log(values, out=np.full(values.shape, -np.inf), where=values > 0)
    means[finite] = np.exp(log_moment(np.broadcast_to(prior[:, None], logs.shape), order * logs) / order)
    return means


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
