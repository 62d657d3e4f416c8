"""Split: a way to write p_X as a mixture of posteriors, with its value and a bound on every such mixture's."""

from __future__ import annotations

from dataclasses import dataclass

from funnel.joint import FloatArray


@dataclass(frozen=True, eq=False)
class Split:
    """A way to write p_X as a mixture of posteriors.

    Attributes
    ----------
    posteriors : ndarray, shape (k, a)
        The posteriors used, k <= a.
    mass : ndarray, shape (k,)
        P(y) of each, > 0.
    value : float
        Σ_y P(y) Σ_x v_x ln v_x in nats; the utility is this plus H(X).
    bound : float
        No mixture of posteriors in the cone has a larger value, whatever the LP solver's tolerances were.
    """

    posteriors: FloatArray
    mass: FloatArray
    value: float
    bound: float
