"""Robust local differential privacy: the bound holds for every distribution that the data cannot rule out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from funnel.confidence import confidence_radius
from funnel.errors import DataError
from funnel.guarantees.base import Level, Witness
from funnel.guarantees.budgets import OneBudget
from funnel.guarantees.chi2_ball import worst_distribution
from funnel.guarantees.exact import capped_exp, exp_below
from funnel.guarantees.ldp import LDP
from funnel.guarantees.over_distributions import over_inputs, telling_rows
from funnel.guarantees.reading import rows_by_secret as rows_by_secret
from funnel.guarantees.reading import secret_by_input as secret_by_input
from funnel.guarantees.robust_guarantee import RobustRatio
from funnel.guarantees.worst_case import (
    Neighbourhood,
    attaining_distribution,
    pair_ratios,
    refined,
    within,
    worst_pair,
)
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import DENOMINATOR, WeightArray

# Outweighs the rounding of a rational to a float.
_BELOW = 1 - Fraction(1, 2**52)


@dataclass(frozen=True)
class RLDP(RobustRatio, OneBudget):
    """(ε, F)-robust LDP with respect to S (RLDP definition 2, equation (3)).

    ``P(y|s) <= e^ε P(y|s')`` for every output y, all secrets s, s', and every distribution P of (S, X) in a set that
    holds the true distribution with probability 1 - α: boxes of Clopper–Pearson limits, valid for every number of
    records and decided in whole numbers; or the paper's F = {P : Σ (P̂ - P)²/P <= B}, which is asymptotic. Combinations
    that were never seen may have positive probability in both. Works for protocols that read (S, X), as in the paper,
    and for those that read X alone, with S merely correlated: the robust privacy funnel.

    Parameters
    ----------
    epsilon : float
        Bound in nats, >= 0.
    alpha : float
        Significance of the set, strictly between 0 and 1.
    set : str
        ``"boxes"``, or ``"chi2"`` for F.

    Raises
    ------
    SpecError
        If a number is out of range, or there is no such set.
    DataError
        When used, if a value of the secret never occurs: no distribution is ruled out for it then.

    Notes
    -----
    Over F the level is an upper bound on the worst case that is tight to about 1e-8 (`funnel.guarantees.worst_case`):
    it may err towards refusing only.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[300, 100], [100, 500]])
    >>> protocol = funnel.fit("grr", joint, funnel.LDP(1.0))
    >>> funnel.RLDP(1.15, 0.05).holds(joint, protocol), funnel.RLDP(1.2, 0.05).holds(joint, protocol)
    (False, True)
    >>> funnel.RLDP(1.15, 0.05, set="chi2").holds(joint, protocol)
    True
    """

    name: ClassVar[str] = "rldp"
    of: ClassVar[type[LDP]] = LDP
    title: ClassVar[str] = "robust local differential privacy"
    example: ClassVar[str] = "rldp:1.0,0.05"
    sets: ClassVar[tuple[str, ...]] = ("boxes", "chi2")
    beyond: ClassVar[str] = (
        "The bound holds whatever an observer believed about the secret, but not for one who knows more than the "
        "sample tells about how the secret and the published columns go together for that person."
    )

    @property
    def precision(self) -> float:
        """How closely levels over F are known."""
        return 0.0 if self.over_boxes else 1e-8

    @property
    def arithmetic(self) -> str:
        """Whole numbers over boxes; floats with a proof over F."""
        return "in exact arithmetic" if self.over_boxes else "with every rounding taken against the release"

    def neighbourhood(self, joint: Joint) -> Neighbourhood:
        """F around the counts of the joint distribution that a channel reads."""
        return neighbourhood_of(secret_by_input(joint)[0], self.alpha, joint)

    def level_for(self, joint: Joint, weights: WeightArray) -> Level:
        """ln of the largest ratio over the set, rounded up, with the distribution that attains it."""
        if self.over_boxes:
            return super().level_for(joint, weights)
        rows = rows_by_secret(joint, weights / np.float64(DENOMINATOR))
        used = telling_rows(weights)
        if not len(used):
            first = int(np.flatnonzero(weights.any(axis=1))[0])
            return Level(0.0, Witness(first, 0, 0, None, True))
        around = self.neighbourhood(joint)
        worst = worst_pair(rows[used], around)
        distribution = attaining_distribution(rows[used], around, worst) if math.isfinite(worst.ratio) else None
        witness = Witness(
            int(used[worst.output]),
            worst.high,
            worst.low,
            None,
            True,
            distribution=None if distribution is None else tuple(tuple(float(p) for p in row) for row in distribution),
        )
        return Level(_log_above(worst.ratio), witness)

    def holds_for(self, joint: Joint, weights: WeightArray) -> bool:
        """Whether no ratio exceeds a number just below e^ε; over F in floats: in doubt, no."""
        if self.over_boxes:
            return super().holds_for(joint, weights)
        rows = rows_by_secret(joint, weights / np.float64(DENOMINATOR))
        return within(rows[telling_rows(weights)], self.neighbourhood(joint), limit_below(self.epsilon))

    def output_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """The largest |ln P(y|s)/P(y|s')| over the set of each row; over F upper bounds."""
        if self.over_boxes:
            return super().output_levels(joint, rows)
        pairs = pair_ratios(rows_by_secret(joint, rows), self.neighbourhood(joint))
        return np.asarray(np.log(pairs.above.max(axis=(1, 2))))

    def half_spaces(self, joint: Joint, rows: FloatArray, most: int = 4) -> tuple[FloatArray, IntArray, FloatArray]:
        """As declared; over F those of the pairs of secrets that are worst, at the worst share of the deviation."""
        if self.over_boxes:
            return super().half_spaces(joint, rows, most)
        near, limit, stack = self.neighbourhood(joint), capped_exp(self.epsilon), rows_by_secret(joint, rows)
        pairs = pair_ratios(stack, near)
        # What is found on the grid of θ is a little less than the worst: search the worst pairs of every row closely.
        order = np.argsort(-pairs.found.reshape(len(rows), -1), axis=1, kind="stable")[:, :most]
        of = np.repeat(np.arange(len(rows)), order.shape[1])
        places = np.column_stack([of, *np.unravel_index(order.ravel(), pairs.found.shape[1:])])
        places = places[places[:, 1] != places[:, 2]]
        bounds, shares = refined(stack, near, pairs, places)
        broken = bounds > limit
        tables = np.zeros((int(broken.sum()), *near.distribution.shape))
        for table, (y, s, t), share in zip(tables, places[broken], shares[broken], strict=True):
            one, two = near.divergence(np.array([s, t]), np.array([share, 1 - share])).tolist()
            table[s] = worst_distribution(stack[y, s], near.distribution[s], one)
            table[t] = -limit * worst_distribution(-stack[y, t], near.distribution[t], two)
        return over_inputs(joint, tables), places[broken, 0], bounds[broken] / limit - 1

    def posterior_limits(self, prior: FloatArray) -> None:
        """None is told."""


def neighbourhood_of(counts: IntArray, alpha: float, joint: Joint) -> Neighbourhood:
    """F around counts (c, u).

    Raises
    ------
    DataError
        If a secret never occurs.
    """
    sizes = counts.sum(axis=1)
    if (sizes == 0).any():
        never = joint.secret.labels[int(np.flatnonzero(sizes == 0)[0])]
        raise DataError(
            f"no record has {', '.join(joint.secret.columns)} {never!r}, so the data set no bound on what could be "
            "said about it; leave the value out, or use a guarantee that is not robust"
        )
    n = int(sizes.sum())
    return Neighbourhood(counts / sizes[:, None], sizes / n, confidence_radius(counts.size, n, alpha))


def limit_below(epsilon: float) -> float:
    """A float that is not above the rational below e^ε that every other guarantee is decided with."""
    return float(exp_below(epsilon) * _BELOW)


def _log_above(ratio: float) -> float:
    if math.isinf(ratio) or ratio == 1.0:
        return 0.0 if ratio == 1.0 else math.inf
    return math.nextafter(math.nextafter(math.log(ratio), math.inf), math.inf)
