"""Pointwise maximal leakage: no output makes any secret likelier by more than a factor e^ε; nominal and robust."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from funnel.guarantees.alip import ALIP
from funnel.guarantees.base import Level
from funnel.guarantees.budgets import OneBudget
from funnel.guarantees.over_distributions import Sides
from funnel.guarantees.robust_guarantee import RobustRatio
from funnel.guarantees.sided import Sided
from funnel.joint import FloatArray, Joint
from funnel.protocol import WeightArray


@dataclass(frozen=True)
class PML(OneBudget, Sided):
    """ε-pointwise maximal leakage from S to Y (Saeidian, Cervia, Oechtering, Skoglund 2023, theorem 1).

    ``P(y|s) <= e^ε P(y)`` for every output y and every secret s that occurs: the most that an output tells, in the
    worst case over all functions of the secret that somebody may want to guess, is ``ln max_s P(y|s)/P(y)``. It is
    ALIP with an infinite lower budget: a secret may become as unlikely as it likes.

    Parameters
    ----------
    epsilon : float
        Bound in nats, >= 0; zero is perfect privacy.

    Raises
    ------
    SpecError
        If ε is not a finite number >= 0.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> protocol = funnel.fit("grr", joint, funnel.PML(0.5))
    >>> round(funnel.PML(0.5).level(joint, protocol).value, 6), funnel.PML(0.4).holds(joint, protocol)
    (0.5, False)
    """

    name: ClassVar[str] = "pml"
    title: ClassVar[str] = "pointwise maximal leakage"
    example: ClassVar[str] = "pml:1.0"

    @property
    def _alip(self) -> ALIP:
        return ALIP(math.inf, self.epsilon)

    @property
    def sides(self) -> Sides:
        """Lifts."""
        return Sides(up=self.epsilon)

    @property
    def lift_limits(self) -> tuple[float, float]:
        """(0, e^ε)."""
        return self._alip.lift_limits

    def posterior_limits(self, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Range of P(s|y): no value rises by more than the factor, so none falls below what the others leave it."""
        return self._alip.posterior_limits(prior)

    def posterior_cone(self, prior: FloatArray) -> FloatArray:
        """Rows of ``π_s/p_s <= e^ε``, shape (c, c); equations for ε = 0."""
        return self._alip.posterior_cone(prior)

    def counted_level(self, joint: Joint, weights: WeightArray) -> Level:
        """ln of the largest lift, rounded up; O(a b c)."""
        return self._alip.counted_level(joint, weights)

    def counted_holds(self, joint: Joint, weights: WeightArray) -> bool:
        """Whether the largest lift is at most a rational just below e^ε."""
        return self._alip.counted_holds(joint, weights)

    def counted_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """ln Λ of each row."""
        return self._alip.counted_levels(joint, rows)

    @property
    def meaning(self) -> str:
        """How far a belief can rise."""
        return self._alip.meaning


@dataclass(frozen=True)
class RPML(RobustRatio, OneBudget):
    """ε-pointwise maximal leakage under every law in the boxes that the data do not rule out (METHOD section 5).

    Parameters
    ----------
    epsilon : float
        Bound in nats, >= 0.
    alpha : float
        Significance of the boxes, strictly between 0 and 1.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[300, 100], [100, 500]])
    >>> protocol = funnel.fit("grr", joint, funnel.PML(0.4))
    >>> funnel.RPML(0.4).holds(joint, protocol), funnel.RPML(0.6).holds(joint, protocol)
    (False, True)
    """

    name: ClassVar[str] = "rpml"
    title: ClassVar[str] = "robust pointwise maximal leakage"
    example: ClassVar[str] = "rpml:1.0,0.05"

    @property
    def nominal(self) -> PML:
        """PML of the same budget."""
        return PML(self.epsilon)
