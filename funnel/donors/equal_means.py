"""Equal means: masses of several posteriors, cut into parts of few posteriors that all have the mean of the whole."""

from __future__ import annotations

import numpy as np

from funnel.joint import FloatArray

# Masses that are so small a share of the whole are rounding of what was cut off.
_REST = 1e-13


def equal_means(posteriors: FloatArray, masses: FloatArray) -> FloatArray:
    """Parts of masses that have the same mean posterior, so that either can take the place of the whole.

    A mean of c numbers is one of at most c of the posteriors (Carathéodory): as much of these is cut off as there is,
    which uses one of them up, and what is left has the same mean again.

    Parameters
    ----------
    posteriors : ndarray, shape (c, k)
    masses : ndarray, shape (k,)

    Returns
    -------
    ndarray, shape (parts, k)
        At most k parts, of c masses or fewer each, and a last one of what rounding leaves.
    """
    from scipy.optimize import nnls

    left, whole = np.array(masses), float(masses.sum())
    mean = posteriors @ masses / whole
    parts: list[FloatArray] = []
    for _ in range(len(masses)):
        there = np.flatnonzero(left > _REST * whole)
        if len(there) <= 1:
            break
        try:
            # The columns that the method uses are independent, so there are at most c.
            some, _ = nnls(posteriors[:, there], mean)
        except RuntimeError:
            # It found none in time: what is left stays together.
            break
        used = some > 0
        part = np.zeros(len(left))
        part[there[used]] = some[used] * (left[there[used]] / some[used]).min()
        parts.append(part)
        left = np.maximum(left - part, 0.0)
    return np.array([*parts, left])
