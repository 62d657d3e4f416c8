"""Robust asymmetric local information privacy: ALIP for every law that the data cannot rule out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from funnel.guarantees.alip import ALIP
from funnel.guarantees.over_distributions import Sides
from funnel.guarantees.robust_guarantee import RobustRatio
from funnel.guarantees.two_sided import TwoSided
from funnel.joint import FloatArray


@dataclass(frozen=True)
class RALIP(RobustRatio, TwoSided):
    """(ε_l, ε_u)-ALIP with respect to S under every law in the boxes that the data do not rule out (METHOD section 5).

    Parameters
    ----------
    lower : float
        ε_l, nats, >= 0; infinite to bound the largest lift only.
    upper : float
        ε_u, nats, >= 0; infinite to bound the smallest lift only.
    alpha : float
        Significance of the boxes, strictly between 0 and 1.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[300, 100], [100, 500]])
    >>> protocol = funnel.fit("grr", joint, funnel.ALIP(0.5, 0.5))
    >>> funnel.RALIP(0.5, 0.5).holds(joint, protocol), funnel.RALIP(0.7, 0.7).holds(joint, protocol)
    (False, True)
    """

    name: ClassVar[str] = "ralip"
    title: ClassVar[str] = "robust asymmetric local information privacy"
    example: ClassVar[str] = "ralip:1.3,0.7,0.05"

    @property
    def sides(self) -> Sides:
        """Lifts and inverse lifts, each with its budget."""
        return Sides(up=self.upper, down=self.lower)

    def as_level(self, nats: float, budget: float) -> float:
        """A leakage by its budget, on the scale of the larger one."""
        return self.scaled(nats, budget)

    @property
    def nominal(self) -> ALIP:
        """ALIP of the same budgets."""
        return ALIP(self.lower, self.upper)

    @property
    def meaning(self) -> str:
        """The promise of ALIP, whatever the true frequencies are within what the data allow."""
        return f"{self.nominal.meaning[:-1]}, {self.under}."

    @property
    def lift_limits(self) -> tuple[float, float]:
        """(e^-ε_l, e^ε_u)."""
        return self.nominal.lift_limits

    def posterior_limits(self, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Range of P(s|y) for the estimated prior, which the boxes hold; as for ALIP."""
        return self.nominal.posterior_limits(prior)
