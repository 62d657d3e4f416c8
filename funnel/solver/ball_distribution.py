"""Ball law: the law of a χ² ball that is worst for a row, inside the ball whatever rounding did."""

from __future__ import annotations

import numpy as np

from funnel.guarantees.chi2_ball import extreme_distribution
from funnel.joint import FloatArray

# Laws are drawn in until rounding is no doubt, by halves, as often.
_INSIDE, _INWARDS = 1 - 2.0**-40, 44


def worst_distribution(row: FloatArray, law: FloatArray, divergence: float) -> FloatArray:
    """A law R with ``Σ P̂²/R <= D`` whose average of a row is the largest, nearly, shape (u,).

    A half-space of a law outside the ball would cut off what the guarantee allows, and a bound would be none. The one
    that attains the largest average is at the end of the ball, where rounding puts it on either side.

    Parameters
    ----------
    row : ndarray, shape (u,)
        t, finite.
    law : ndarray, shape (u,)
        P̂, zeros allowed, summing to 1.
    divergence : float
        D >= 1.
    """
    found = extreme_distribution(row, law, divergence)
    low, high = 0.0, 1.0
    if _spread(found, law) <= divergence * _INSIDE:
        return found
    # Σ P̂²/R is convex, so it falls towards the estimate.
    for _ in range(_INWARDS):
        middle = (low + high) / 2
        inside = _spread((1 - middle) * found + middle * law, law) <= divergence * _INSIDE
        low, high = (low, middle) if inside else (middle, high)
    return np.asarray((1 - high) * found + high * law)


def _spread(found: FloatArray, law: FloatArray) -> float:
    seen = law > 0
    with np.errstate(divide="ignore"):
        return float((law[seen] ** 2 / found[seen]).sum())
