"""Robust local differential privacy: the bound holds for every law that the data cannot rule out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from funnel.confidence import confidence_radius
from funnel.errors import DataError, SpecError
from funnel.guarantees.base import Level, OutputGuarantee, Witness, checked_number
from funnel.guarantees.exact import capped_exp, exp_below
from funnel.guarantees.one_budget import OneBudget
from funnel.guarantees.worst_case import Neighbourhood, attaining_law, pair_ratios, within, worst_pair
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import DENOMINATOR, WeightArray
from funnel.wording import at_most

# Outweighs the rounding of a rational to a float.
_BELOW = 1 - Fraction(1, 2**52)


@dataclass(frozen=True)
class RLDP(OneBudget, OutputGuarantee):
    """(ε, F)-robust LDP with respect to S (RLDP definition 2, equation (3)).

    ``P(y|s) <= e^ε P(y|s')`` for every output y, all secrets s, s', and every law P of (S, X) in the confidence set
    F = {P : Σ (P̂ - P)²/P <= B}, which holds the true law with probability 1 - α. Combinations that were never seen
    may have positive probability in F. Works for protocols that read (S, X), as in the paper, and for those that read
    X alone, with S merely correlated: the robust privacy funnel.

    Parameters
    ----------
    epsilon : float
        Bound in nats, >= 0.
    alpha : float
        Significance of F, strictly between 0 and 1.

    Raises
    ------
    SpecError
        If a number is out of range.
    DataError
        When used, if a value of the secret never occurs: F then says nothing about it.

    Notes
    -----
    The level is an upper bound on the worst case over F that is tight to about 1e-8 (`funnel.guarantees.worst_case`):
    it may err towards refusing only. F itself is asymptotic in n.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[300, 100], [100, 500]])
    >>> protocol = funnel.fit("grr", joint, funnel.LDP(1.0))
    >>> funnel.RLDP(1.0, 0.05).holds(joint, protocol), funnel.RLDP(1.2, 0.05).holds(joint, protocol)
    (False, True)
    """

    alpha: float = 0.05
    name: ClassVar[str] = "rldp"
    title: ClassVar[str] = "robust local differential privacy"
    example: ClassVar[str] = "rldp:1.0,0.05"
    precision: ClassVar[float] = 1e-8
    arithmetic: ClassVar[str] = "with every rounding taken against the release"
    beyond: ClassVar[str] = (
        "The bound holds whatever an observer believed about the secret, but not for one who knows more than the "
        "sample tells about how the secret and the published columns go together for that person."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_number(self, "alpha", unit="")
        if not 0 < self.alpha < 1:
            raise SpecError(f"rldp needs a significance alpha strictly between 0 and 1, not {self.alpha!r}")

    def neighbourhood(self, joint: Joint) -> Neighbourhood:
        """F around the counts of the joint law that a channel reads."""
        return neighbourhood_of(secret_by_input(joint)[0], self.alpha, joint)

    def level_for(self, joint: Joint, weights: WeightArray) -> Level:
        """ln of the largest ratio over F, rounded up, with the law that attains it."""
        rows = rows_by_secret(joint, weights / np.float64(DENOMINATOR))
        used = _telling(weights)
        if not len(used):
            first = int(np.flatnonzero(weights.any(axis=1))[0])
            return Level(0.0, Witness(first, 0, 0, None, True))
        around = self.neighbourhood(joint)
        worst = worst_pair(rows[used], around)
        law = attaining_law(rows[used], around, worst) if math.isfinite(worst.ratio) else None
        witness = Witness(
            int(used[worst.output]),
            worst.high,
            worst.low,
            None,
            True,
            law=None if law is None else tuple(tuple(float(p) for p in row) for row in law),
        )
        return Level(_log_above(worst.ratio), witness)

    def holds_for(self, joint: Joint, weights: WeightArray) -> bool:
        """Whether the upper bound on every ratio is at most a float below e^ε; in doubt, no."""
        rows = rows_by_secret(joint, weights / np.float64(DENOMINATOR))
        return within(rows[_telling(weights)], self.neighbourhood(joint), limit_below(self.epsilon))

    def output_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """Upper bounds on the largest |ln P(y|s)/P(y|s')| over F of each row."""
        pairs = pair_ratios(rows_by_secret(joint, rows), self.neighbourhood(joint))
        return np.asarray(np.log(pairs.above.max(axis=(1, 2))))

    @property
    def significance(self) -> float:
        """α."""
        return self.alpha

    @property
    def ratio_limit(self) -> float:
        """e^ε."""
        return capped_exp(self.epsilon)

    @property
    def meaning(self) -> str:
        """The promise of LDP, whatever the true frequencies are within what the data allow."""
        return (
            "Whoever sees a published record changes the odds they give to one value of the secret against another by "
            f"at most a factor {at_most(capped_exp(self.epsilon))}, under every law of the data that the sample does "
            f"not rule out at significance {self.alpha:g}, not under the estimated one alone."
        )


def _telling(weights: WeightArray) -> npt.NDArray[np.intp]:
    """Outputs that are likelier from one input than from another: all others tell nothing, whatever rounding says."""
    return np.flatnonzero((weights != weights[:, :1]).any(axis=1))


def secret_by_input(joint: Joint) -> tuple[IntArray, bool]:
    """Counts (c, u) of secret and input, and whether the channel reads the secret, from the joint law that it reads."""
    width = len(joint.secret.columns)
    c, a = joint.counts.shape
    if joint.inputs.columns[:width] != joint.secret.columns:
        return joint.counts, False
    cube = joint.counts.reshape(c, c, a // c)
    return cube[np.arange(c), np.arange(c)], True


def rows_by_secret(joint: Joint, rows: FloatArray) -> FloatArray:
    """``T_{s,u}``, shape (k, c, u), of rows (k, a) over what the channel reads."""
    counts, reads_secret = secret_by_input(joint)
    if reads_secret:
        return rows.reshape(len(rows), *counts.shape)
    return np.ascontiguousarray(np.broadcast_to(rows[:, None, :], (len(rows), *counts.shape)))


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
