"""Bounds on an average over the secrets of how far lifts, and inverse lifts, are from 1 (ALIP section 6)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from funnel.guarantees.base import Level, OutputGuarantee, Witness
from funnel.guarantees.budgets import TwoSided
from funnel.guarantees.events import probability, secret_comparisons
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

    @property
    def meaning(self) -> str:
        """An average over the values of the secret."""
        return (
            "For every published value, how far beliefs in the values of the secret change is bounded on average only, "
            "each value weighted by how common it is; the belief in a rare value may change far more."
        )

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
