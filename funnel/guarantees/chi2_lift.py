"""Bound on the χ²-lift and its inverse: the average squared distance of lifts from 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from funnel.guarantees.exact import exp_below, log_above, square_root_above
from funnel.guarantees.lift_bounds import LiftBound
from funnel.joint import FloatArray


@dataclass(frozen=True)
class Chi2Lift(LiftBound):
    """``Σ_s p_s (l(s,y) - 1)² <= (e^ε_u - 1)²`` and ``Σ_s p_s (1/l(s,y) - 1)² <= (e^ε_l - 1)²`` for every output y.

    ALIP equations (32) and (35), bounded as in its section 6.2. The average of the first over y is the χ²-divergence
    of S and Y.

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
    >>> protocol = funnel.fit("grr", joint, funnel.Chi2Lift(0.5, 0.5))
    >>> funnel.Chi2Lift(0.5, 0.5).holds(joint, protocol), funnel.LIP(0.5).holds(joint, protocol)
    (True, False)
    """

    name: ClassVar[str] = "chi2-lift"
    title: ClassVar[str] = "χ²-lift privacy"
    example: ClassVar[str] = "chi2-lift:1.3,0.7"

    def measure(self, lifts: Sequence[Fraction], prior: Sequence[Fraction]) -> Fraction:
        """Σ p (l - 1)²."""
        return sum((p * (lift - 1) ** 2 for p, lift in zip(prior, lifts, strict=True)), Fraction(0))

    def measures(self, lifts: FloatArray, prior: FloatArray) -> FloatArray:
        """Σ p (l - 1)²."""
        return np.asarray(prior @ (lifts - 1) ** 2)

    def nats(self, measure: Fraction) -> float:
        """ln(1 + √measure)."""
        return log_above(1 + square_root_above(measure))

    def float_nats(self, measures: FloatArray) -> FloatArray:
        """ln(1 + √measure)."""
        return np.log1p(np.sqrt(measures))

    def within(self, measure: Fraction, budget: float) -> bool:
        """measure <= (e^ε - 1)², with a rational just below e^ε."""
        return measure <= (exp_below(budget) - 1) ** 2
