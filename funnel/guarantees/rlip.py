"""Robust local information privacy: LIP for every law that the data cannot rule out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from funnel.guarantees.exact import capped_exp
from funnel.guarantees.lip import LIP, posterior_range
from funnel.guarantees.one_budget import OneBudget
from funnel.guarantees.over_distributions import Sides
from funnel.guarantees.robust_guarantee import RobustRatio
from funnel.joint import FloatArray
from funnel.wording import at_most


@dataclass(frozen=True)
class RLIP(RobustRatio, OneBudget):
    """ε-LIP with respect to S under every law in the boxes that the data do not rule out (METHOD section 5).

    ``e^-ε P(y) <= P(y|s) <= e^ε P(y)`` for every output y, every secret s and every law P of (S, X) with p(x|s) and
    p(s) between their simultaneous Clopper–Pearson limits: with probability at least 1 - α over the sample that is
    LIP(ε) in the population, for every number of records.

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
    title: ClassVar[str] = "robust local information privacy"
    example: ClassVar[str] = "rlip:1.0,0.05"

    @property
    def nominal(self) -> LIP:
        """LIP of the same budget."""
        return LIP(self.epsilon)

    @property
    def sides(self) -> Sides:
        """Lifts and inverse lifts."""
        return Sides(up=self.epsilon, down=self.epsilon)

    @property
    def meaning(self) -> str:
        """The promise of LIP, whatever the true frequencies are within what the data allow."""
        factor = at_most(capped_exp(self.epsilon))
        return (
            "Whoever sees a published record, and knows how common each value of the secret is, changes their belief "
            f"in any of them by at most a factor {factor}, {self.under}."
        )

    @property
    def lift_limits(self) -> tuple[float, float]:
        """(e^-ε, e^ε)."""
        return 1 / capped_exp(self.epsilon), capped_exp(self.epsilon)

    def posterior_limits(self, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Range of P(s|y) for the estimated prior, which the boxes hold; as for LIP."""
        return posterior_range(prior, *self.lift_limits)
