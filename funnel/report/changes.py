"""How much outputs change beliefs: logarithms of lifts, and the largest ratio between two secrets."""

from __future__ import annotations

import numpy as np

from funnel.joint import FloatArray


def log_lift(lift: FloatArray) -> FloatArray:
    """ln of lifts: minus infinity where an output excludes a secret, nan where the lift is."""
    return np.log(lift, out=np.full(lift.shape, -np.inf), where=lift != 0)


def output_ratios(lift: FloatArray) -> FloatArray:
    """Largest P(y|s)/P(y|s') of every output, shape (b,), from lifts (c, b), since the P(y) cancel.

    Infinite where y excludes a secret that another record of y may have; nan where y never occurs.
    """
    known = ~np.isnan(lift)
    most = np.where(known, lift, -np.inf).max(axis=0)
    least = np.where(known, lift, np.inf).min(axis=0)
    ratios = np.where(known.any(axis=0), np.inf, np.nan)
    return np.asarray(np.divide(most, least, out=ratios, where=known.any(axis=0) & (least > 0)))
