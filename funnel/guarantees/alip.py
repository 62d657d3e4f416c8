"""Asymmetric local information privacy: a budget for secrets that become likelier and one for less likely ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from funnel.guarantees.base import Level, Witness
from funnel.guarantees.budgets import TwoSided
from funnel.guarantees.events import Extreme, extremes, secret_comparisons
from funnel.guarantees.exact import capped_exp, exp_below, log_above
from funnel.guarantees.lip import log_lifts, posterior_range
from funnel.guarantees.over_distributions import Sides
from funnel.guarantees.robust_guarantee import RobustRatio
from funnel.guarantees.sided import Sided
from funnel.joint import FloatArray, Joint
from funnel.protocol import WeightArray
from funnel.wording import at_most


@dataclass(frozen=True)
class ALIP(TwoSided, Sided):
    """(ε_l, ε_u)-ALIP with respect to S (ALIP definition 3, equation (5)).

    ``e^-ε_l P(y) <= P(y|s) <= e^ε_u P(y)`` for every output y and every secret s that occurs. It implies
    (ε_l + ε_u)-LDP and I(S;Y) <= ε_u (ALIP proposition 1).

    Parameters
    ----------
    lower : float
        ε_l, nats, >= 0; infinite to bound the largest lift only.
    upper : float
        ε_u, nats, >= 0; infinite to bound the smallest lift only.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> protocol = funnel.fit("grr", joint, funnel.ALIP(0.5, 0.3))
    >>> funnel.ALIP(0.5, 0.3).holds(joint, protocol), funnel.ALIP(0.1, 0.3).holds(joint, protocol)
    (True, False)
    """

    name: ClassVar[str] = "alip"
    title: ClassVar[str] = "asymmetric local information privacy"
    example: ClassVar[str] = "alip:1.3,0.7"

    @property
    def sides(self) -> Sides:
        """Lifts and inverse lifts, each with its budget."""
        return Sides(up=self.upper, down=self.lower)

    def posterior_cone(self, prior: FloatArray) -> FloatArray:
        """Rows of ``π_s/p_s <= e^ε_u`` and ``π_s/p_s >= e^-ε_l``, shape (2c, c), or (c, c) for one finite budget."""
        lifts = np.diag(1 / prior)
        if self.is_perfect:
            # Lifts that are all on one side of 1 are all 1. Said as equations: rounding leaves a flat cone empty.
            return np.vstack([lifts - 1, 1 - lifts])
        rows = [np.zeros((0, len(prior)))]
        if math.isfinite(self.upper):
            rows.append(lifts - capped_exp(self.upper))
        if math.isfinite(self.lower):
            rows.append(np.exp(-self.lower) - lifts)
        return np.vstack(rows)

    def counted_level(self, joint: Joint, weights: WeightArray) -> Level:
        """The larger of both sides, each by its budget, rounded up; O(a b c)."""
        comparisons = secret_comparisons(joint)
        up, down = extremes(comparisons, weights)
        above, below = self.scaled(_nats(up), self.upper), self.scaled(_nats(down), self.lower)
        worst, upward = (up, True) if above >= below else (down, False)
        secret = int(comparisons.secret[worst.pair])
        return Level(max(above, below), Witness(worst.output, secret, None, worst.ratio, upward))

    def counted_holds(self, joint: Joint, weights: WeightArray) -> bool:
        """Whether both worst ratios are at most rationals just below e^ε_u and e^ε_l."""
        sides = zip(extremes(secret_comparisons(joint), weights), (self.upper, self.lower), strict=True)
        return all(
            math.isinf(budget) or (worst.ratio is not None and worst.ratio <= exp_below(budget))
            for worst, budget in sides
        )

    def counted_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """The larger of ln Λ and |ln Ψ| of each row, each by its budget."""
        lifts = log_lifts(joint, rows)
        return np.maximum(self._share(lifts.max(axis=0), self.upper), self._share(-lifts.min(axis=0), self.lower))

    def risks(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """ln Λ + |ln Ψ|: the reading of ALIP algorithm 1 that reproduces the paper (METHOD section 4)."""
        lifts = log_lifts(joint, rows)
        return np.asarray(lifts.max(axis=0) - lifts.min(axis=0))

    def _share(self, nats: FloatArray, side: float) -> FloatArray:
        return np.array([self.scaled(float(value), side) for value in nats])

    @property
    def meaning(self) -> str:
        """How far a belief can rise and fall."""
        rise = "" if math.isinf(self.upper) else f"rises by more than a factor {at_most(capped_exp(self.upper))}"
        fall = "" if math.isinf(self.lower) else f"falls by more than a factor {at_most(capped_exp(self.lower))}"
        return (
            "Whoever sees a published record, and knows how common each value of the secret is, has no belief in any "
            f"of them that {' or '.join(filter(None, (rise, fall)))}."
        )

    @property
    def lift_limits(self) -> tuple[float, float]:
        """(e^-ε_l, e^ε_u)."""
        least = 0.0 if math.isinf(self.lower) else 1 / capped_exp(self.lower)
        return least, math.inf if math.isinf(self.upper) else capped_exp(self.upper)

    def posterior_limits(self, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Range of P(s|y) for every s; exact, as for LIP."""
        # No lift exceeds that of certainty about the rarest secret that occurs.
        certain = 1 / float(prior[prior > 0].min())
        return posterior_range(prior, self.lift_limits[0], min(self.lift_limits[1], certain))


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

    def as_level(self, nats: float, budget: float) -> float:
        """A leakage by its budget, on the scale of the larger one."""
        return self.scaled(nats, budget)

    @property
    def nominal(self) -> ALIP:
        """ALIP of the same budgets."""
        return ALIP(self.lower, self.upper)


def _nats(extreme: Extreme) -> float:
    return math.inf if extreme.ratio is None else log_above(extreme.ratio)
