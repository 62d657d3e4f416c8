"""Local information privacy: no output changes the probability of any secret by more than e^ε; nominal and robust."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from funnel.guarantees.base import Level, Witness
from funnel.guarantees.budgets import OneBudget
from funnel.guarantees.events import extremes, secret_comparisons
from funnel.guarantees.exact import capped_exp, exp_below, log_level
from funnel.guarantees.over_distributions import Sides
from funnel.guarantees.robust_guarantee import RobustRatio
from funnel.guarantees.sided import Sided
from funnel.joint import FloatArray, Joint
from funnel.protocol import WeightArray
from funnel.wording import at_most


@dataclass(frozen=True)
class LIP(OneBudget, Sided):
    """ε-LIP with respect to S (PF definition 2, equation (2)).

    ``e^-ε P(y) <= P(y|s) <= e^ε P(y)`` for every output y and every secret s that occurs. Since
    ``P(y|s)/P(y) = P(s|y)/P(s)``, whoever sees y changes their belief in any s by at most a factor e^ε.

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

    @property
    def sides(self) -> Sides:
        """Lifts and inverse lifts."""
        return Sides(up=self.epsilon, down=self.epsilon)

    def posterior_cone(self, prior: FloatArray) -> FloatArray:
        """Rows of ``π_s/p_s <= e^ε`` and ``π_s/p_s >= e^-ε`` for a posterior π summing to 1, shape (2c, c)."""
        lifts = np.diag(1 / prior)
        return np.vstack([lifts - capped_exp(self.epsilon), np.exp(-self.epsilon) - lifts])

    def worst(self, joint: Joint, weights: WeightArray) -> Witness:
        """Largest of P(y|s)/P(y) and P(y)/P(y|s), exactly; O(a b c)."""
        return worst_lift(joint, weights)

    def counted_level(self, joint: Joint, weights: WeightArray) -> Level:
        """ln of the worst ratio, rounded up."""
        return log_level(self.worst(joint, weights))

    def counted_holds(self, joint: Joint, weights: WeightArray) -> bool:
        """Whether the worst ratio is at most a rational just below e^ε."""
        ratio = self.worst(joint, weights).ratio
        return ratio is not None and ratio <= exp_below(self.epsilon)

    def counted_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """max(ln Λ, |ln Ψ|) of each row: the largest and the smallest lift."""
        return np.asarray(np.abs(log_lifts(joint, rows)).max(axis=0))

    @property
    def meaning(self) -> str:
        """How far a belief can change."""
        return (
            "Whoever sees a published record, and knows how common each value of the secret is, changes their belief "
            f"in any of them by at most a factor {at_most(capped_exp(self.epsilon))}."
        )

    @property
    def lift_limits(self) -> tuple[float, float]:
        """(e^-ε, e^ε)."""
        return 1 / capped_exp(self.epsilon), capped_exp(self.epsilon)

    def posterior_limits(self, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Range of P(s|y): both limits are attained by a posterior that meets (2) for all s."""
        return posterior_range(prior, *self.lift_limits)


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


def worst_lift(joint: Joint, weights: WeightArray) -> Witness:
    """Where a lift is furthest from 1 in either direction, exactly."""
    comparisons = secret_comparisons(joint)
    up, down = extremes(comparisons, weights)
    upward = down.ratio is not None and (up.ratio is None or up.ratio >= down.ratio)
    worst = up if upward else down
    return Witness(worst.output, int(comparisons.secret[worst.pair]), None, worst.ratio, upward)


def log_lifts(joint: Joint, rows: FloatArray) -> FloatArray:
    """ln P(s|y)/P(s) of rows (k, a), shape (secrets that occur, k); 0 where the output never occurs."""
    ratios = secret_comparisons(joint).ratios(rows)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.where(np.isnan(ratios), 1.0, ratios)))


def posterior_range(prior: FloatArray, least: float, most: float) -> tuple[FloatArray, FloatArray]:
    """Range of P(s|y) where every lift lies between two limits: no value gains more than all others can lose."""
    others = 1 - prior
    low = np.maximum(prior * least, 1 - most * others)
    high = np.minimum(prior * most, 1 - least * others)
    return np.clip(low, 0, 1), np.clip(high, 0, 1)
