"""Bound on the l1-lift and its inverse: the average distance of lifts from 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from funnel.guarantees.exact import exp_below, log_above
from funnel.guarantees.lift_bounds import LiftBound
from funnel.joint import FloatArray


@dataclass(frozen=True)
class L1Lift(LiftBound):
    """``Σ_s p_s |l(s,y) - 1| <= e^ε_u - 1`` and ``Σ_s p_s |1/l(s,y) - 1| <= e^ε_l - 1`` for every output y.

    ALIP equations (31) and (34), bounded as in its section 6.2. The average of the first over y is twice the total
    variation of S and Y.

    Parameters
    ----------
    lower : float
        ε_l, nats, >= 0; infinite to leave the inverse free.
    upper : float
        ε_u, nats, >= 0; infinite to bound the inverse only.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> protocol = funnel.fit("grr", joint, funnel.L1Lift(0.3, 0.3))
    >>> funnel.L1Lift(0.3, 0.3).holds(joint, protocol), funnel.LIP(0.3).holds(joint, protocol)
    (True, False)
    """

    name: ClassVar[str] = "l1-lift"
    title: ClassVar[str] = "l1-lift privacy"
    example: ClassVar[str] = "l1-lift:1.3,0.7"

    def measure(self, lifts: Sequence[Fraction], prior: Sequence[Fraction]) -> Fraction:
        """Σ p |l - 1|."""
        return sum((p * abs(lift - 1) for p, lift in zip(prior, lifts, strict=True)), Fraction(0))

    def measures(self, lifts: FloatArray, prior: FloatArray) -> FloatArray:
        """Σ p |l - 1|."""
        return np.asarray(prior @ np.abs(lifts - 1))

    def nats(self, measure: Fraction) -> float:
        """ln(1 + measure)."""
        return log_above(1 + measure)

    def float_nats(self, measures: FloatArray) -> FloatArray:
        """ln(1 + measure)."""
        return np.log1p(measures)

    def within(self, measure: Fraction, budget: float) -> bool:
        """measure <= e^ε - 1, with a rational just below e^ε."""
        return 1 + measure <= exp_below(budget)
