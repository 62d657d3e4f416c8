"""Averages over secrets of how far lifts and inverse lifts are from 1, bounded: l1-, χ²-, α-lift (ALIP section 6)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.base import Level, OutputGuarantee, Witness, checked_number
from funnel.guarantees.budgets import TwoSided
from funnel.guarantees.events import probability, secret_comparisons
from funnel.guarantees.exact import exp_below, log_above, square_root_above
from funnel.joint import FloatArray, Joint
from funnel.protocol import WeightArray

# Floats find the outputs that come this close (nats) to the largest; exact arithmetic decides among them.
_CLOSE = 1e-9


@dataclass(frozen=True)
class LiftBound(TwoSided, OutputGuarantee):
    """A bound on a measure of the lifts l(s,y) of every output, and on the same measure of their inverses 1/l(s,y).

    Both measures are expressed in nats, on the scale on which (ε_l, ε_u)-ALIP would bound them where
    1 - e^-ε_l <= e^ε_u - 1 (METHOD section 6.3): a relaxation of ALIP. The upper budget bounds the measure of lifts,
    the lower one that of inverse lifts.
    """

    extent: ClassVar[str] = "a maximum over all published values of an average over the values of the secret"
    meaning: ClassVar[str] = (
        "For every published value, how far an observer who knows the frequencies alone changes the beliefs in the "
        "values of the secret is bounded on average only, each value weighted by how common it is; the belief in a "
        "rare value may change far more."
    )

    @abstractmethod
    def measure(self, lifts: Sequence[Fraction], prior: Sequence[Fraction]) -> Fraction:
        """The measure of the lifts (c,) of one output, exactly."""

    @abstractmethod
    def measures(self, lifts: FloatArray, prior: FloatArray) -> FloatArray:
        """The measure in floats: lifts (c, k), prior (c,) to (k,)."""

    @abstractmethod
    def nats(self, measure: Fraction) -> float:
        """A measure as nats, rounded up."""

    @abstractmethod
    def float_nats(self, measures: FloatArray) -> FloatArray:
        """Measures as nats, in floats."""

    @abstractmethod
    def within(self, measure: Fraction, budget: float) -> bool:
        """Whether a measure is provably within a budget (nats)."""

    def level_for(self, joint: Joint, weights: WeightArray) -> Level:
        """The larger of both sides, each by its budget, rounded up."""
        levels = []
        for side, inverse in ((self.upper, False), (self.lower, True)):
            output, measure = self._worst(joint, weights, inverse)
            nats = math.inf if measure is None else self.nats(measure)
            levels.append((self.scaled(nats, side), output, not inverse))
        value, output, upward = max(levels, key=lambda level: level[0])
        return Level(value, Witness(output, self._contributor(joint, weights[output], upward), None, None, upward))

    def holds_for(self, joint: Joint, weights: WeightArray) -> bool:
        """Whether both measures of every output are provably within their budgets."""
        for side, inverse in ((self.upper, False), (self.lower, True)):
            if math.isinf(side):
                continue
            _, measure = self._worst(joint, weights, inverse)
            if measure is None or not self.within(measure, side):
                return False
        return True

    def output_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """The larger of both sides of each row, each by its budget."""
        up, down = self._float_sides(joint, rows)
        upper = np.array([self.scaled(float(value), self.upper) for value in up])
        lower = np.array([self.scaled(float(value), self.lower) for value in down])
        return np.asarray(np.maximum(upper, lower))

    def risks(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """The sum of both sides, each bounded side only, in nats (ALIP section 6.2)."""
        up, down = self._float_sides(joint, rows)
        sides = [side for side, budget in ((up, self.upper), (down, self.lower)) if math.isfinite(budget)]
        return np.asarray(sum(sides))

    def _float_sides(self, joint: Joint, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        ratios = secret_comparisons(joint).ratios(rows)
        lifts = np.where(np.isnan(ratios), 1.0, ratios)
        prior = joint.p_secret[joint.p_secret > 0]
        with np.errstate(divide="ignore"):
            inverse = 1.0 / lifts
        # A large measure of many secrets exceeds the floats only where no budget would do.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            sides = tuple(self.float_nats(self.measures(side, prior)) for side in (lifts, inverse))
        return sides[0], sides[1]

    def _worst(self, joint: Joint, weights: WeightArray, inverse: bool) -> tuple[int, Fraction | None]:
        """The output of the largest measure, and that measure exactly; None where it is infinite."""
        occurring = np.flatnonzero((joint.counts.any(axis=0) & (weights > 0)).any(axis=1))
        values = self._float_sides(joint, weights[occurring].astype(np.float64))[int(inverse)]
        if np.isposinf(values).any() and inverse:
            return int(occurring[values.argmax()]), None
        largest = values.max()
        # Where floats overflow, every such output is compared exactly.
        close = occurring[(values >= largest - _CLOSE * (1 + largest)) | ~np.isfinite(values)]
        exact = [(self.measure(*_exact_lifts(joint, weights[y], inverse)), int(y)) for y in close]
        measure, output = max(exact, key=lambda pair: pair[0])
        return output, measure

    def _contributor(self, joint: Joint, row: WeightArray, upward: bool) -> int:
        """The secret whose lift is furthest out on this side."""
        comparisons = secret_comparisons(joint)
        lifts = comparisons.ratios(row[None].astype(np.float64))[:, 0]
        return int(comparisons.secret[lifts.argmax() if upward else lifts.argmin()])


def _exact_lifts(joint: Joint, row: WeightArray, inverse: bool) -> tuple[list[Fraction], list[Fraction]]:
    seen = np.flatnonzero(joint.counts.any(axis=1))
    average = probability(joint.counts.sum(axis=0), row)
    lifts = [probability(joint.counts[s], row) / average for s in seen]
    prior = [Fraction(int(joint.counts[s].sum()), joint.n) for s in seen]
    return [1 / lift for lift in lifts] if inverse else lifts, prior


class DistanceBound(LiftBound):
    """A bound on ``Σ_s p_s |l(s,y) - 1|^k``, by ``(e^ε - 1)^k``; k is 1 or 2."""

    power: ClassVar[int]

    def measure(self, lifts: Sequence[Fraction], prior: Sequence[Fraction]) -> Fraction:
        """Σ p |l - 1|^k."""
        return sum((p * abs(lift - 1) ** self.power for p, lift in zip(prior, lifts, strict=True)), Fraction(0))

    def measures(self, lifts: FloatArray, prior: FloatArray) -> FloatArray:
        """Σ p |l - 1|^k."""
        return np.asarray(prior @ np.abs(lifts - 1) ** self.power)

    def nats(self, measure: Fraction) -> float:
        """ln(1 + measure^(1/k))."""
        return log_above(1 + (measure if self.power == 1 else square_root_above(measure)))

    def float_nats(self, measures: FloatArray) -> FloatArray:
        """ln(1 + measure^(1/k))."""
        return np.log1p(measures if self.power == 1 else np.sqrt(measures))

    def within(self, measure: Fraction, budget: float) -> bool:
        """measure <= (e^ε - 1)^k, with a rational just below e^ε."""
        return measure <= (exp_below(budget) - 1) ** self.power


@dataclass(frozen=True)
class L1Lift(DistanceBound):
    """``Σ_s p_s |l(s,y) - 1| <= e^ε_u - 1`` and ``Σ_s p_s |1/l(s,y) - 1| <= e^ε_l - 1`` for every output y.

    ALIP equations (31) and (34), bounded as in its section 6.2. The average of the first over y is twice the total
    variation of S and Y.

    Parameters
    ----------
    lower : float
        ε_l, nats, >= 0; infinite to leave the inverse free.
    upper : float
        ε_u, nats, >= 0; infinite to bound the inverse only.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> protocol = funnel.fit("grr", joint, funnel.L1Lift(0.3, 0.3))
    >>> funnel.L1Lift(0.3, 0.3).holds(joint, protocol), funnel.LIP(0.3).holds(joint, protocol)
    (True, False)
    """

    name: ClassVar[str] = "l1-lift"
    title: ClassVar[str] = "l1-lift privacy"
    example: ClassVar[str] = "l1-lift:1.3,0.7"
    power: ClassVar[int] = 1


@dataclass(frozen=True)
class Chi2Lift(DistanceBound):
    """``Σ_s p_s (l(s,y) - 1)² <= (e^ε_u - 1)²`` and ``Σ_s p_s (1/l(s,y) - 1)² <= (e^ε_l - 1)²`` for every output y.

    ALIP equations (32) and (35), bounded as in its section 6.2. The average of the first over y is the χ²-divergence
    of S and Y.

    Parameters
    ----------
    lower : float
        ε_l, nats, >= 0; infinite to leave the inverse free.
    upper : float
        ε_u, nats, >= 0; infinite to bound the inverse only.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> protocol = funnel.fit("grr", joint, funnel.Chi2Lift(0.5, 0.5))
    >>> funnel.Chi2Lift(0.5, 0.5).holds(joint, protocol), funnel.LIP(0.5).holds(joint, protocol)
    (True, False)
    """

    name: ClassVar[str] = "chi2-lift"
    title: ClassVar[str] = "χ²-lift privacy"
    example: ClassVar[str] = "chi2-lift:1.3,0.7"
    power: ClassVar[int] = 2


_LARGEST_ORDER = 1000


@dataclass(frozen=True)
class AlphaLift(LiftBound):
    """``(Σ_s p_s l(s,y)^α)^(1/α) <= e^ε_u`` and ``(Σ_s p_s l(s,y)^-α)^(1/α) <= e^ε_l`` for every output y.

    ALIP equations (33) and (36), bounded as in its section 6.2; as α grows it tends to ALIP. The order is a whole
    number, so that powers of rationals are rational and the decision is exact.

    Parameters
    ----------
    lower : float
        ε_l, nats, >= 0; infinite to leave the inverse free.
    upper : float
        ε_u, nats, >= 0; infinite to bound the inverse only.
    alpha : float
        Order, a whole number from 2 to 1000.

    Raises
    ------
    SpecError
        If the order is something else.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> protocol = funnel.fit("grr", joint, funnel.AlphaLift(0.5, 0.5, 2))
    >>> funnel.AlphaLift(0.5, 0.5, 2).holds(joint, protocol), funnel.LIP(0.5).holds(joint, protocol)
    (True, False)
    """

    alpha: float = 2.0
    name: ClassVar[str] = "alpha-lift"
    title: ClassVar[str] = "α-lift privacy"
    example: ClassVar[str] = "alpha-lift:1.3,0.7,2"

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_number(self, "alpha", unit="")
        if self.alpha != round(self.alpha) or not 2 <= self.alpha <= _LARGEST_ORDER:
            raise SpecError(f"{self.name} needs a whole alpha from 2 to {_LARGEST_ORDER}, not {self.alpha!r}")

    @property
    def _order(self) -> int:
        return int(self.alpha)

    def measure(self, lifts: Sequence[Fraction], prior: Sequence[Fraction]) -> Fraction:
        """Σ p l^α."""
        return sum((p * lift**self._order for p, lift in zip(prior, lifts, strict=True)), Fraction(0))

    def measures(self, lifts: FloatArray, prior: FloatArray) -> FloatArray:
        """(Σ p l^α)^(1/α), scaled by the largest lift so that powers stay in the floats."""
        largest = np.maximum(lifts.max(axis=0), 1e-300)
        powers = prior @ np.where(np.isinf(largest), 1.0, lifts / largest) ** self._order
        return np.asarray(largest * powers ** (1 / self._order))

    def nats(self, measure: Fraction) -> float:
        """ln(measure) / α."""
        if measure <= 1:
            # Never below 1, by convexity.
            return 0.0
        return float(np.nextafter(log_above(measure) / self._order, np.inf))

    def float_nats(self, measures: FloatArray) -> FloatArray:
        """ln of the power mean."""
        return np.maximum(np.log(measures), 0.0)

    def within(self, measure: Fraction, budget: float) -> bool:
        """measure <= e^(α ε), with a rational just below e^ε."""
        return measure <= exp_below(budget) ** self._order
