"""What a guarantee promises about one record, as limits on beliefs, on lifts and on ratios."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from funnel.guarantees import LDP, LIP, Guarantee
from funnel.joint import FloatArray


@dataclass(frozen=True, eq=False)
class Promise:
    """The limits that a guarantee sets.

    Attributes
    ----------
    kind : str
        Which words fit: ``"lip"``, ``"ldp"`` or ``"other"``.
    factor : float
        e^ε.
    belief : tuple of two ndarrays of shape (c,), or None
        Least and largest P(s|y) that the guarantee allows, for an observer whose prior is the estimated one.
    lift_limits : tuple of two floats, or None
        Least and largest lift P(s|y)/P(s) allowed, where the guarantee limits lifts one by one.
    ratio_limit : float or None
        Largest P(y|s)/P(y|s') allowed, where the guarantee compares secrets.
    """

    kind: str
    factor: float
    belief: tuple[FloatArray, FloatArray] | None
    lift_limits: tuple[float, float] | None
    ratio_limit: float | None


def promise(guarantee: Guarantee, prior: FloatArray) -> Promise:
    """The limits that a guarantee sets for a prior of the secret, shape (c,).

    A guarantee that this module has no limits for is reported by its exact level alone, so that adding one does not
    need a change here.
    """
    factor = math.exp(guarantee.epsilon)
    match guarantee:
        case LIP():
            return Promise("lip", factor, _lip_belief(prior, factor), (1 / factor, factor), None)
        case LDP():
            return Promise("ldp", factor, _ldp_belief(prior, factor), None, factor)
        case _:
            return Promise("other", factor, None, None, None)


def _lip_belief(prior: FloatArray, factor: float) -> tuple[FloatArray, FloatArray]:
    """Exact range of P(s|y) under LIP.

    A value cannot gain more than the factor, nor more than all other values lose, each at most by the factor; both
    limits are attained by some posterior that meets PF (2) for all s.
    """
    others = 1 - prior
    low = np.maximum(prior / factor, 1 - factor * others)
    high = np.minimum(factor * prior, 1 - others / factor)
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def _ldp_belief(prior: FloatArray, factor: float) -> tuple[FloatArray, FloatArray]:
    """Exact range of P(s|y) under LDP: the odds of s against the others change by at most the factor."""
    others = 1 - prior
    return prior / (prior + factor * others), factor * prior / (factor * prior + others)
