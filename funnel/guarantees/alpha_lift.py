"""Bound on the α-lift and its inverse: the average of lifts to the power α."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.base import checked_number
from funnel.guarantees.exact import exp_below, log_above
from funnel.guarantees.lift_bounds import LiftBound
from funnel.joint import FloatArray

_LARGEST_ORDER = 1000


@dataclass(frozen=True)
class AlphaLift(LiftBound):
    """``(Σ_s p_s l(s,y)^α)^(1/α) <= e^ε_u`` and ``(Σ_s p_s l(s,y)^-α)^(1/α) <= e^ε_l`` for every output y.

    ALIP equations (33) and (36), bounded as in its section 6.2; as α grows it tends to ALIP. The order is a whole
    number, so that powers of rationals are rational and the decision is exact.

    Parameters
    ----------
    lower : float
        ε_l, nats, >= 0; infinite to leave the inverse free.
    upper : float
        ε_u, nats, >= 0; infinite to bound the inverse only.
    alpha : float
        Order, a whole number from 2 to 1000.

    Raises
    ------
    SpecError
        If the order is something else.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> protocol = funnel.fit("grr", joint, funnel.AlphaLift(0.5, 0.5, 2))
    >>> funnel.AlphaLift(0.5, 0.5, 2).holds(joint, protocol), funnel.LIP(0.5).holds(joint, protocol)
    (True, False)
    """

    alpha: float = 2.0
    name: ClassVar[str] = "alpha-lift"
    title: ClassVar[str] = "α-lift privacy"
    example: ClassVar[str] = "alpha-lift:1.3,0.7,2"

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_number(self, "alpha", unit="")
        if self.alpha != round(self.alpha) or not 2 <= self.alpha <= _LARGEST_ORDER:
            raise SpecError(f"{self.name} needs a whole alpha from 2 to {_LARGEST_ORDER}, not {self.alpha!r}")

    @property
    def _order(self) -> int:
        return int(self.alpha)

    def measure(self, lifts: Sequence[Fraction], prior: Sequence[Fraction]) -> Fraction:
        """Σ p l^α."""
        return sum((p * lift**self._order for p, lift in zip(prior, lifts, strict=True)), Fraction(0))

    def measures(self, lifts: FloatArray, prior: FloatArray) -> FloatArray:
        """(Σ p l^α)^(1/α), scaled by the largest lift so that powers stay in the floats."""
        largest = np.maximum(lifts.max(axis=0), 1e-300)
        powers = prior @ np.where(np.isinf(largest), 1.0, lifts / largest) ** self._order
        return np.asarray(largest * powers ** (1 / self._order))

    def nats(self, measure: Fraction) -> float:
        """ln(measure) / α."""
        if measure <= 1:
            # Never below 1, by convexity.
            return 0.0
        return float(np.nextafter(log_above(measure) / self._order, np.inf))

    def float_nats(self, measures: FloatArray) -> FloatArray:
        """ln of the power mean."""
        return np.maximum(np.log(measures), 0.0)

    def within(self, measure: Fraction, budget: float) -> bool:
        """measure <= e^(α ε), with a rational just below e^ε."""
        return measure <= exp_below(budget) ** self._order
