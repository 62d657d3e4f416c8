"""Bounds on lifts P(s|y)/P(s), by which outputs change beliefs, and on their inverses: LIP, ALIP and PML."""

from __future__ import annotations

import math

import numpy as np

from funnel.guarantees.base import Level, Witness
from funnel.guarantees.events import extremes, secret_comparisons
from funnel.guarantees.exact import capped_exp, exp_below, log_level, scaled_up
from funnel.guarantees.sided import Sided
from funnel.joint import FloatArray, Joint
from funnel.protocol import WeightArray
from funnel.wording import at_most


class LiftGuarantee(Sided):
    """A bound on all lifts and inverse lifts, each by the budget that `sides` has; an infinite one bounds nothing."""

    def posterior_cone(self, prior: FloatArray) -> FloatArray:
        """Rows of ``π_s/p_s <= e^ε_u`` and ``π_s/p_s >= e^-ε_l``, shape (2c, c), or (c, c) for one finite budget."""
        lifts, sides = np.diag(1 / prior), self.sides
        if self.is_perfect:
            # Lifts that are all on one side of 1 are all 1. Said as equations: rounding leaves a flat cone empty.
            return np.vstack([lifts - 1, 1 - lifts])
        rows = [np.zeros((0, len(prior)))]
        if math.isfinite(sides.up):
            rows.append(lifts - capped_exp(sides.up))
        if math.isfinite(sides.down):
            rows.append(np.exp(-sides.down) - lifts)
        return np.vstack(rows)

    def _extremes(self, joint: Joint, weights: WeightArray) -> list[tuple[float, Witness]]:
        """The largest lift and the largest inverse, each with its budget; O(a b c)."""
        compared, sides = secret_comparisons(joint), self.sides
        up, down = extremes(compared, weights)
        return [
            (budget, Witness(found.output, int(compared.secret[found.pair]), None, found.ratio, upward))
            for budget, found, upward in ((sides.up, up, True), (sides.down, down, False))
        ]

    def worst(self, joint: Joint, weights: WeightArray) -> Witness:
        """Where a lift is furthest from 1 in either direction, by its budget, exactly."""
        return self.counted_level(joint, weights).witness

    def counted_level(self, joint: Joint, weights: WeightArray) -> Level:
        """The larger of both sides, each by its budget, rounded up."""
        levels = [
            Level(scaled_up(log_level(witness).value, budget, self.budget), witness)
            for budget, witness in self._extremes(joint, weights)
        ]
        # Whole numbers tell ratios apart that floats do not; which is larger matters where both sides have one budget.
        even = self.sides.up == self.sides.down
        return max(levels, key=lambda level: (level.value, level.witness.ratio or 0 if even else 0))

    def counted_holds(self, joint: Joint, weights: WeightArray) -> bool:
        """Whether both worst ratios are at most rationals just below e^ε_u and e^ε_l."""
        return all(
            math.isinf(budget) or (witness.ratio is not None and witness.ratio <= exp_below(budget))
            for budget, witness in self._extremes(joint, weights)
        )

    def counted_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """The larger of ln Λ and |ln Ψ| of each row, each by its budget: the largest and the smallest lift."""
        lifts, sides = log_lifts(joint, rows), self.sides
        return np.maximum(self._share(lifts.max(axis=0), sides.up), self._share(-lifts.min(axis=0), sides.down))

    def _share(self, nats: FloatArray, side: float) -> FloatArray:
        if math.isinf(side):
            return np.zeros_like(nats)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(nats > 0, nats if side == self.budget else nats / side * self.budget, 0.0)

    @property
    def meaning(self) -> str:
        """How far a belief can rise and fall."""
        up, down = self.sides.up, self.sides.down
        rise = "" if math.isinf(up) else f"rises by more than a factor {at_most(capped_exp(up))}"
        fall = "" if math.isinf(down) else f"falls by more than a factor {at_most(capped_exp(down))}"
        return (
            f"No belief in a value of the secret {' or '.join(filter(None, (rise, fall)))} after a published record of "
            "a person, for an observer who knows the frequencies, and nothing else about the person."
        )

    @property
    def lift_limits(self) -> tuple[float, float]:
        """(e^-ε_l, e^ε_u)."""
        up, down = self.sides.up, self.sides.down
        least = 0.0 if math.isinf(down) else 1 / capped_exp(down)
        return least, math.inf if math.isinf(up) else capped_exp(up)

    def posterior_limits(self, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Range of P(s|y): both limits are attained by a posterior that meets the bound for all s."""
        # No lift exceeds that of certainty about the rarest secret that occurs.
        certain = 1 / float(prior[prior > 0].min())
        return posterior_range(prior, self.lift_limits[0], min(self.lift_limits[1], certain))


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
