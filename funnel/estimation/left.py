"""What is left of a share that cannot be told: its least and largest value over all laws that fit the outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from funnel.errors import SolverError
from funnel.joint import FloatArray, IntArray


def intervals_left(
    channel: FloatArray,
    counts: IntArray,
    fitted: FloatArray,
    members: FloatArray,
    confidence: float,
    at_most: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The range of ``members @ p`` over all laws p that give outputs probabilities which their counts do not rule out.

    The limits of outputs are exact ones for a binomial (Clopper and Pearson 1934), all of them together with the given
    confidence (Bonferroni); answers of records whose true values stand fast vary less than that. So every range holds
    the truth with at least this confidence, all ranges at once.

    Parameters
    ----------
    channel : ndarray, shape (b, a)
    counts : ndarray of int, shape (b,)
    fitted : ndarray, shape (a,)
        A law whose outputs are within the limits, whatever the counts are.
    members : ndarray, shape (k, a)
        Zeros and ones.
    confidence : float
    at_most : ndarray, shape (a,)
        What shares can be at most, 1 where nothing is known.

    Returns
    -------
    lower, upper : ndarray, shape (k,)

    Notes
    -----
    2 k linear programmes in a variables.
    """
    from scipy.optimize import linprog
    from scipy.stats import beta

    n, b = int(counts.sum()), len(counts)
    tail = (1 - confidence) / (2 * b)
    low = np.where(counts > 0, beta.ppf(tail, counts, n - counts + 1), 0.0)
    high = np.where(counts < n, beta.ppf(1 - tail, counts + 1, n - counts), 1.0)
    outputs = channel @ fitted
    low, high = np.minimum(low, outputs), np.maximum(high, outputs)
    solve: Any = linprog
    found = np.empty((2, len(members)))
    for place, aim in enumerate(members):
        for row, sign in enumerate((1.0, -1.0)):
            result = solve(
                sign * aim,
                A_ub=np.vstack([channel, -channel]),
                b_ub=np.concatenate([high, -low]),
                A_eq=np.ones((1, channel.shape[1])),
                b_eq=[1.0],
                bounds=np.stack([np.zeros(len(at_most)), at_most], axis=1),
                method="highs",
            )
            if result.status != 0:
                raise SolverError("the limits of a share that cannot be told were not found; use a group of its values")
            found[row, place] = sign * result.fun
    return np.clip(found[0], 0.0, 1.0), np.clip(found[1], 0.0, 1.0)
