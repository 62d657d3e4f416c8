"""Local information privacy: no output changes the probability of any secret by more than e^ε; nominal and robust."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from funnel.guarantees.any_column import AnyColumn
from funnel.guarantees.base import Level, Witness
from funnel.guarantees.budgets import OneBudget
from funnel.guarantees.class_limits import ClassLimits
from funnel.guarantees.exact import capped_exp, log_level
from funnel.guarantees.lift_guarantee import LiftGuarantee
from funnel.guarantees.over_distributions import Sides
from funnel.guarantees.robust_guarantee import RobustRatio
from funnel.joint import Joint
from funnel.protocol import WeightArray
from funnel.wording import at_most


@dataclass(frozen=True)
class LIP(OneBudget, LiftGuarantee):
    """ε-LIP with respect to S (PF definition 2, equation (2)).

    ``e^-ε P(y) <= P(y|s) <= e^ε P(y)`` for every output y and every secret s that occurs. Since
    ``P(y|s)/P(y) = P(s|y)/P(s)``, an observer who sees y changes their belief in any s by at most a factor e^ε.

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
    >>> protocol = funnel.fit("grr", joint, funnel.LIP(0.5))
    >>> round(funnel.LIP(0.5).level(joint, protocol).value, 6), funnel.LIP(0.4).holds(joint, protocol)
    (0.5, False)
    """

    name: ClassVar[str] = "lip"
    title: ClassVar[str] = "local information privacy"
    example: ClassVar[str] = "lip:1.0"
    covers_parts: ClassVar[bool] = True

    @property
    def sides(self) -> Sides:
        """Lifts and inverse lifts."""
        return Sides(up=self.epsilon, down=self.epsilon)

    def worst_between_parts(self, joint: Joint, weights: WeightArray) -> Witness:
        """For observers who know nothing else of a person than what the counts of classes say."""
        return AnyColumn.of(joint, knowing=False).worst(weights)

    @property
    def meaning(self) -> str:
        """How far a belief can change."""
        return (
            "An observer who knows the frequencies, and nothing else about a person, changes the belief in any value "
            f"of the secret by at most a factor {at_most(capped_exp(self.epsilon))} after a published record of the "
            "person."
        )


@dataclass(frozen=True)
class RLIP(RobustRatio, OneBudget):
    """ε-LIP with respect to S under every distribution in the boxes that the data do not rule out (METHOD section 5).

    ``e^-ε P(y) <= P(y|s) <= e^ε P(y)`` for every output y, every secret s and every distribution P of (S, X) with
    p(x|s) and p(s) between their simultaneous Clopper–Pearson limits: with probability at least 1 - α over the sample
    that is LIP(ε) in the population, for every number of records. Between parts of classes of records it holds for
    every share of a secret in a class that held-out records do not rule out (`funnel.guarantees.class_limits`).

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
    >>> protocol = funnel.fit("grr", joint, funnel.LIP(0.5))
    >>> funnel.RLIP(0.5).holds(joint, protocol), funnel.RLIP(0.7, alpha=0.05).holds(joint, protocol)
    (False, True)
    """

    name: ClassVar[str] = "rlip"
    of: ClassVar[type[LIP]] = LIP
    title: ClassVar[str] = "robust local information privacy"
    example: ClassVar[str] = "rlip:1.0,0.05"
    covers_parts: ClassVar[bool] = True

    def level_for(self, joint: Joint, weights: WeightArray) -> Level:
        """Over the boxes, or over what held-out records leave open of the secret in classes of records."""
        if joint.parts is None:
            return super().level_for(joint, weights)
        return log_level(ClassLimits.of(joint, self.alpha).worst(weights))

    def holds_for(self, joint: Joint, weights: WeightArray) -> bool:
        """The same, against the budget."""
        if joint.parts is None:
            return super().holds_for(joint, weights)
        return not ClassLimits.of(joint, self.alpha).broken(weights, self.budget)
