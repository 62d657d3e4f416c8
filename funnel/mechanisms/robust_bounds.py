"""What the papers know of the confidence set: least conditional probabilities and distances (RLDP (5), (11), (12))."""

from __future__ import annotations

import numpy as np

from funnel.guarantees.worst_case import Neighbourhood
from funnel.joint import FloatArray


def spread(near: Neighbourhood) -> FloatArray:
    """``a_s = ((√(1+B) + P̂_s - 1) / P̂_s)² - 1``, shape (c,): how far the law given s alone can deviate."""
    return np.asarray(((near.deviation + near.prior) / near.prior) ** 2 - 1)


def least_conditionals(near: Neighbourhood) -> FloatArray:
    """``P^min_{u|s}``, the smallest P(u|s) over F, shape (c, u) (RLDP (5))."""
    a, law = spread(near)[:, None], near.law
    root = np.sqrt(a**2 + 4 * a * law - 4 * a * law**2)
    return np.asarray(np.clip((a + 2 * law - root) / (2 * a + 2), 0.0, law))


def distances(near: Neighbourhood) -> FloatArray:
    """d_s, shape (c,): bounds on ``‖P_{U|s} - P̂_{U|s}‖₁`` over F (RLDP (11), which bounds the l1 norm)."""
    a, rarest = spread(near), near.law.min(axis=1)
    root = np.sqrt(a**2 + 4 * a * rarest - 4 * a * rarest**2)
    return np.asarray(np.where(a >= 1, (a * (1 - 2 * rarest) + root) / (a + 1), np.sqrt(a)))


def diameter(near: Neighbourhood) -> float:
    """d of RLDP (12): a bound on ``‖P_{U|s} - P_{U|s'}‖₁`` over F and all pairs."""
    apart = np.abs(near.law[:, None] - near.law[None]).sum(axis=2).max()
    return float(min(2.0, 2 * distances(near).max() + apart))
