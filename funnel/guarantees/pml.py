"""Pointwise maximal leakage: no output makes any secret likelier by more than a factor e^ε; nominal and robust."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from funnel.guarantees.budgets import OneBudget
from funnel.guarantees.lift_guarantee import LiftGuarantee
from funnel.guarantees.over_distributions import Sides
from funnel.guarantees.robust_guarantee import RobustRatio


@dataclass(frozen=True)
class PML(OneBudget, LiftGuarantee):
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
    def sides(self) -> Sides:
        """Lifts."""
        return Sides(up=self.epsilon)


@dataclass(frozen=True)
class RPML(RobustRatio, OneBudget):
    """ε-pointwise maximal leakage under every distribution in the boxes that the data allow (METHOD section 5).

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
    of: ClassVar[type[PML]] = PML
    title: ClassVar[str] = "robust pointwise maximal leakage"
    example: ClassVar[str] = "rpml:1.0,0.05"
