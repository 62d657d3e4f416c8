"""Local differential privacy with respect to the secret: no two secrets differ in any output by more than e^ε."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from funnel.guarantees.base import Witness
from funnel.guarantees.budgets import OneBudget
from funnel.guarantees.events import CLOSE, probability, secret_comparisons
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.lift_guarantee import log_lifts
from funnel.guarantees.over_distributions import Sides
from funnel.guarantees.sided import Sided
from funnel.joint import FloatArray, Joint
from funnel.protocol import WeightArray
from funnel.wording import at_most


@dataclass(frozen=True)
class LDP(OneBudget, Sided):
    """ε-LDP with respect to S (PF definition 1, equations (1) and (5)).

    ``P(y|s) <= e^ε P(y|s')`` for every output y and all secrets s, s' that occur: between any two secrets, the odds
    that an observer holds change by at most a factor e^ε, whatever the prior of the secret.

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
    >>> protocol = funnel.fit("grr", joint, funnel.LDP(1.0))
    >>> funnel.LDP(1.0).holds(joint, protocol), funnel.LDP(0.9).holds(joint, protocol)
    (True, False)
    """

    name: ClassVar[str] = "ldp"
    title: ClassVar[str] = "local differential privacy"
    example: ClassVar[str] = "ldp:1.0"
    beyond: ClassVar[str] = (
        "The bound holds whatever an observer believed about the secret, but not for one who knows more about how the "
        "secret and the published columns go together for that person."
    )

    @property
    def sides(self) -> Sides:
        """Pairs of secrets."""
        return Sides(pairs=self.epsilon)

    def posterior_cone(self, prior: FloatArray) -> FloatArray:
        """Rows of ``π_s/p_s <= e^ε π_t/p_t`` for a posterior π and all s ≠ t, shape (c(c-1), c)."""
        lifts = np.diag(1 / prior)
        pairs = [(s, t) for s in range(len(prior)) for t in range(len(prior)) if s != t]
        if not pairs:
            return np.zeros((0, len(prior)))
        first, second = np.array(pairs).T
        return np.asarray(lifts[first] - capped_exp(self.epsilon) * lifts[second])

    def levelled_cone(self, prior: FloatArray) -> FloatArray | None:
        """Rows of ``m <= π_s/p_s <= e^ε m`` with the least lift m as the level: 2c of them (METHOD section 9).

        The lifts average to 1 under the prior, so the least is between 0 and 1. None for fewer than four secrets, of
        which there are no more pairs, and for a budget of 0, where all conditions are equations.
        """
        c = len(prior)
        if c * (c - 1) <= 2 * c or self.epsilon == 0:
            return None
        lifts, level = np.diag(1 / prior), np.ones((c, 1))
        return np.vstack([np.hstack([-lifts, level]), np.hstack([lifts, -capped_exp(self.epsilon) * level])])

    def worst(self, joint: Joint, weights: WeightArray) -> Witness:
        """Largest P(y|s)/P(y|s'), exactly; O(a b c) in floats, and integers for the outputs that come close."""
        comparisons = secret_comparisons(joint)
        ratios = comparisons.ratios(weights.astype(np.float64))
        outputs = np.flatnonzero(~np.isnan(ratios[0]))
        secrets = comparisons.secret
        excluding = outputs[(ratios[:, outputs] == 0).any(axis=0)]
        if len(excluding):
            y = int(excluding[0])
            return Witness(y, int(secrets[ratios[:, y].argmax()]), int(secrets[ratios[:, y].argmin()]), None, True)
        apart = ratios[:, outputs].max(axis=0) / ratios[:, outputs].min(axis=0)
        best = Witness(int(outputs[0]), int(secrets[0]), int(secrets[0]), Fraction(1), True)
        for y in outputs[apart >= apart.max() * (1 - CLOSE)]:
            given = {int(s): probability(joint.counts[s], weights[y]) for s in secrets}
            high = max(given, key=given.__getitem__)
            low = min(given, key=given.__getitem__)
            ratio = given[high] / given[low]
            if best.ratio is None or ratio > best.ratio:
                best = Witness(int(y), high, low, ratio, True)
        return best

    def counted_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """ln Γ = ln Λ - ln Ψ of each row."""
        lifts = log_lifts(joint, rows)
        return np.asarray(lifts.max(axis=0) - lifts.min(axis=0))

    @property
    def meaning(self) -> str:
        """How far odds can change."""
        return (
            "An observer who knows the frequencies of the published columns for each value of the secret, and nothing "
            "else about a person, changes the odds of one value of the secret against another by at most a factor "
            f"{at_most(capped_exp(self.epsilon))} after a published record of the person, however likely the observer "
            "held these values before."
        )

    @property
    def ratio_limit(self) -> float:
        """e^ε."""
        return capped_exp(self.epsilon)

    def posterior_limits(self, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Range of P(s|y): the odds of s against the others change by at most the factor."""
        others, factor = 1 - prior, self.ratio_limit
        return prior / (prior + factor * others), factor * prior / (factor * prior + others)
