"""Allowed: what a posterior guarantee allows a history and an output to say, decided with proven error or exactly.

Everything is said in lifts ``λ_s = P(s | h, y) / P(s)``. A guarantee bounds each of them on both sides (LIP, ALIP,
perfect privacy) or from above (PML), or the ratio of any two (LDP). A history that is within the bound must stay so
whatever is published. One that is beyond it by itself must not come to be worse in any respect in which
it is: row by row of the cone M, ``M P(S | h, y) <= max(0, M P(S | h))`` (METHOD section 9). Since posteriors average to
P(S | h) that is an equation where the history is outside, which whole numbers meet up to `TOLERANCE`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.alip import ALIP
from funnel.guarantees.attribute import Attribute
from funnel.guarantees.base import Guarantee, PosteriorGuarantee
from funnel.guarantees.exact import exp_below
from funnel.guarantees.ldp import LDP
from funnel.guarantees.lip import LIP
from funnel.guarantees.perfect import PerfectPrivacy
from funnel.guarantees.pml import PML
from funnel.guarantees.robust_guarantee import RobustRatio
from funnel.guarantees.rsrlip import RSRLIP
from funnel.guarantees.srlip import SRLIP
from funnel.history.distributions import BoolArray
from funnel.history.exact_distribution import WholeNumbers
from funnel.joint import FloatArray, IntArray

TOLERANCE: Final = Fraction(1, 10**9)
"""How much further than before, relatively, a lift may be that is beyond the bound by itself."""

Kept = PosteriorGuarantee | RobustRatio | SRLIP | RSRLIP
"""What can be kept over several versions: for the counted frequencies, or for all that a sample leaves open; and for
observers who know some of the published columns besides."""

# Quotients and products of a few numbers that are each known up to an error, the roundings of the test included.
_SEVERAL = 8
# More than budgets, products of them and margins of exponentials are off by, relatively.
_DOUBLES = 1e-12


@dataclass(frozen=True)
class Allowed:
    """The bounds of a guarantee as rationals at most as large as they should be.

    Attributes
    ----------
    up, down : Fraction or None
        ``λ_s <= up`` and ``1 <= down λ_s`` for every s; None for no bound on that side.
    apart : Fraction or None
        ``λ_s <= apart λ_t`` for all s and t.
    significance : Fraction or None
        α of a robust guarantee: the bounds are then for every distribution that the samples of all versions leave open.
    for_known : bool
        Whether they are for observers too who know some of the published columns.
    """

    up: Fraction | None
    down: Fraction | None
    apart: Fraction | None
    significance: Fraction | None = None
    for_known: bool = False

    def within(self, lifts: FloatArray, error: float) -> tuple[BoolArray, BoolArray]:
        """Whether lifts are within the bound for certain, and whether they are beyond it for certain.

        Parameters
        ----------
        lifts : ndarray, shape (k, c, b)
            Of outputs b; those that never occur are all 1.
        error : float
            Up to which each is known, relatively.

        Returns
        -------
        two ndarrays of bool, each (k, b)
        """
        slack = _SEVERAL * error
        most, least = lifts.max(axis=1), lifts.min(axis=1)
        inside, outside = np.ones(most.shape, dtype=bool), np.zeros(most.shape, dtype=bool)
        # Of an equation there is nothing between: lifts of exactly 1 are decided in whole numbers.
        for larger, smaller in self._compared(most, least):
            inside &= larger * (1 + slack) <= smaller
            outside |= larger * (1 - slack) > smaller
        return inside, outside

    def _compared(self, most: FloatArray, least: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        pairs = []
        if self.up is not None:
            pairs.append((most, np.full(most.shape, float(self.up))))
        if self.down is not None:
            pairs.append((np.ones(least.shape), float(self.down) * least))
        if self.apart is not None:
            pairs.append((most, float(self.apart) * least))
        return pairs

    def no_worse(self, lifts: FloatArray, before: FloatArray, error: float) -> BoolArray:
        """Whether outputs are no worse than the history itself, up to half of `TOLERANCE`, for certain.

        Parameters
        ----------
        lifts : ndarray, shape (k, c, b)
        before : ndarray, shape (k, c)
            The lifts of the histories themselves.
        error : float

        Returns
        -------
        ndarray of bool, shape (k, b)
        """
        slack = _SEVERAL * error
        room = (1 + float(TOLERANCE) / 2) * (1 - slack)
        holds = np.ones((len(lifts), lifts.shape[2]), dtype=bool)
        if self.up is not None:
            most = np.maximum(float(self.up), before * (1 - slack))
            holds &= (lifts * (1 + slack) <= most[:, :, None] * room).all(axis=1)
        if self.down is not None:
            least = np.minimum(1 / float(self.down), before * (1 + slack))
            holds &= (lifts * room >= least[:, :, None] * (1 + slack)).all(axis=1)
        if self.apart is not None:
            apart = float(self.apart)
            for s in range(lifts.shape[1]):
                excess = np.maximum(0.0, before[:, s, None] * (1 - slack) - apart * before * (1 + slack))
                others = apart * lifts + excess[:, :, None]
                holds &= (lifts[:, s, None, :] * (1 + slack) <= others * room).all(axis=1)
        return holds

    def nats(self, lifts: FloatArray, guarantee: Kept) -> FloatArray:
        """The level of every output in nats, lifts (k, c, b) to (k, b); infinite where no budget would do."""
        guarantee = bound_given(guarantee)
        with np.errstate(divide="ignore"):
            most, least = np.log(lifts.max(axis=1)), np.log(lifts.min(axis=1))
        if self.apart is not None:
            return np.asarray(most - least)
        up = np.maximum(most, 0.0)
        if isinstance(guarantee, PML):
            return np.asarray(up)
        down = np.maximum(-least, 0.0)
        if isinstance(guarantee, ALIP):
            up, down = up * _scale(guarantee, guarantee.upper), down * _scale(guarantee, guarantee.lower)
        return np.asarray(np.maximum(up, down))

    def within_exactly(self, outputs: WholeNumbers, prior: IntArray | WholeNumbers) -> bool:
        """`within` in whole numbers: P(s, y | h) up to a factor, (c, b), and how common every secret is, (c,)."""
        return all(
            (self.up is None or max(lifts) <= self.up)
            and (self.down is None or min(lifts) * self.down >= 1)
            and (self.apart is None or max(lifts) <= self.apart * min(lifts))
            for lifts in exact_lifts(outputs, prior)
        )

    def no_worse_exactly(self, outputs: WholeNumbers, prior: IntArray | WholeNumbers) -> bool:
        """`no_worse` in whole numbers, up to all of `TOLERANCE`: P(s, y | h) up to a factor, (c, b), and the prior."""
        before = exact_lifts(outputs.sum(axis=1, keepdims=True), prior)[0]
        return all(self._is_no_worse(lifts, before) for lifts in exact_lifts(outputs, prior))

    def _is_no_worse(self, lifts: list[Fraction], before: list[Fraction]) -> bool:
        room = 1 + TOLERANCE
        for lift, own in zip(lifts, before, strict=True):
            if self.up is not None and lift > room * max(self.up, own):
                return False
            if self.down is not None and lift * room < min(1 / self.down, own):
                return False
            for other, its in zip(lifts, before, strict=True):
                excess = Fraction(0) if self.apart is None else max(Fraction(0), own - self.apart * its)
                if self.apart is not None and lift > room * (self.apart * other + excess):
                    return False
        return True


@dataclass(frozen=True)
class Reserved:
    """What the share of a budget that is spent now allows; the rest is a reserve for what frequencies do later.

    Attributes
    ----------
    within : Allowed
        The smaller budget, or a hair less: what a history that is within it by itself must stay within.
    beyond : Allowed
        Or a hair more: nothing is asked of a history that is beyond this by itself.
    """

    within: Allowed
    beyond: Allowed

    @classmethod
    def of(cls, guarantee: Kept, reserve: float, knows_all: bool = False) -> Reserved | None:
        """For an observer of a guarantee; None where all of the budget may be spent, or there is none."""
        if reserve == 1 or guarantee.is_perfect:
            return None
        # Budgets are rounded to doubles, which whoever checks does not do.
        smaller = guarantee.budget * reserve
        within, beyond = (
            allowed_by(bound_given(guarantee.with_budget(smaller * share), knows_all))
            for share in (1 - _DOUBLES, 1 + _DOUBLES)
        )
        return cls(within, beyond)


def allowed_by(guarantee: Guarantee) -> Allowed:
    """What a guarantee allows.

    Raises
    ------
    SpecError
        If it is no bound on the posterior of the secret alone.
    """
    if isinstance(guarantee, RobustRatio | RSRLIP) and guarantee.over_boxes:
        return replace(allowed_by(guarantee.nominal), significance=Fraction(repr(guarantee.alpha)))
    if isinstance(guarantee, LIP):
        return Allowed(exp_below(guarantee.epsilon), exp_below(guarantee.epsilon), None)
    if isinstance(guarantee, ALIP):
        if guarantee.is_perfect:
            return Allowed(Fraction(1), Fraction(1), None)
        up, down = (None if math.isinf(side) else exp_below(side) for side in (guarantee.upper, guarantee.lower))
        return Allowed(up, down, None)
    if isinstance(guarantee, PML):
        return Allowed(exp_below(guarantee.epsilon), None, None)
    if isinstance(guarantee, LDP):
        return Allowed(None, None, exp_below(guarantee.epsilon))
    if isinstance(guarantee, PerfectPrivacy):
        return Allowed(Fraction(1), Fraction(1), None)
    if isinstance(guarantee, SRLIP):
        return replace(allowed_by(bound_given(guarantee)), for_known=True)
    raise SpecError(
        f"{guarantee} is no bound on the posterior of the secret alone, so it cannot be kept over several versions; "
        "choose lip, alip, pml, ldp, perfect, srlip or attribute, or a robust one of these over boxes"
    )


def bound_given(guarantee: Kept, knows_all: bool = False) -> PosteriorGuarantee:
    """What a guarantee asks under each distribution that it is for, of an observer with some knowledge of a person.

    Under srlip and attribute that is lip for all of them, but for one who knows all published columns under attribute:
    the odds of any two secrets are bounded then, whatever was believed before.
    """
    asked = guarantee.nominal if isinstance(guarantee, RobustRatio | RSRLIP) else guarantee
    if isinstance(asked, Attribute) and knows_all:
        return LDP(asked.epsilon)
    if isinstance(asked, SRLIP):
        return LIP(asked.epsilon)
    assert isinstance(asked, PosteriorGuarantee)
    return asked


def require_posterior(guarantee: Guarantee) -> Kept:
    """The guarantee, if it can be kept over several versions.

    Raises
    ------
    SpecError
        As `allowed_by`.
    """
    allowed_by(guarantee)
    assert isinstance(guarantee, Kept)
    return guarantee


def lifts_of(outputs: FloatArray, prior: IntArray) -> FloatArray:
    """λ from P(s, y | h) up to a factor: (k, c, b) to (k, c', b), of the c' secrets that occur in the prior (c,).

    Outputs that never occur have lifts of 1: nobody sees them.
    """
    seen = prior > 0
    shares = (prior[seen] / prior.sum()).astype(np.float64)
    totals = outputs.sum(axis=1, keepdims=True)
    posteriors = outputs[:, seen] / np.where(totals > 0, totals, 1.0)
    return np.asarray(np.where(totals > 0, posteriors / shares[:, None], 1.0))


def exact_lifts(outputs: WholeNumbers, prior: IntArray | WholeNumbers) -> list[list[Fraction]]:
    """λ of every output that occurs, in whole numbers: (c, b) to at most b lists of as many as occur in the prior."""
    seen, size = np.flatnonzero(prior), int(prior.sum())
    lifts = []
    for column in outputs.T.tolist():
        total = sum(column)
        if total:
            lifts.append([Fraction(column[s] * size, total * int(prior[s])) for s in seen])
    return lifts


def _scale(guarantee: ALIP, side: float) -> float:
    if math.isinf(side):
        return 0.0
    return guarantee.budget / side if side else math.inf
