"""Guarantees on ratios of two probabilities of an output: by what they compare, and over noisy counts too."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

from funnel.guarantees.base import Guarantee, Level, PosteriorGuarantee
from funnel.guarantees.budgets import TwoSided
from funnel.guarantees.count_box import CountBox, count_box
from funnel.guarantees.over_distributions import RatioGuarantee, SetGuarantee, Sides
from funnel.joint import FloatArray, Joint
from funnel.protocol import WeightArray


class Sided(PosteriorGuarantee):
    """LDP, LIP, ALIP or PML for the counts of a joint law; where these are noisy, for all that may be the true ones."""

    @property
    @abstractmethod
    def sides(self) -> Sides:
        """What is bounded."""

    @abstractmethod
    def counted_level(self, joint: Joint, weights: WeightArray) -> Level:
        """`level_for` where the counts are the law."""

    @abstractmethod
    def counted_holds(self, joint: Joint, weights: WeightArray) -> bool:
        """`holds_for` where the counts are the law."""

    @abstractmethod
    def counted_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """`output_levels` where the counts are the law."""

    @property
    def covers_noise(self) -> bool:
        """It is decided for every table within the bounds of the joint law."""
        return True

    def over_set(self, joint: Joint) -> SetGuarantee | None:
        """Over every table within the bounds, if there are any."""
        return None if joint.bounds is None else OverCounts(self)

    def level_for(self, joint: Joint, weights: WeightArray) -> Level:
        """The worst ratio, rounded up: under the counts, or under the worst table within their bounds."""
        over = self.over_set(joint)
        return self.counted_level(joint, weights) if over is None else over.level_for(joint, weights)

    def holds_for(self, joint: Joint, weights: WeightArray) -> bool:
        """Whether the worst ratio is at most a rational just below e^ε: under all tables within the bounds, if any."""
        over = self.over_set(joint)
        return self.counted_holds(joint, weights) if over is None else over.holds_for(joint, weights)

    def output_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """The level of each row, over the bounds of the counts if there are any."""
        over = self.over_set(joint)
        return self.counted_levels(joint, rows) if over is None else over.output_levels(joint, rows)


@dataclass(frozen=True)
class OverCounts(RatioGuarantee):
    """A guarantee over every table of counts that noise does not rule out: METHOD section 10, without any sampling.

    Parameters
    ----------
    base : Sided
        What has to hold under each of them.
    """

    base: Sided

    @property
    def budget(self) -> float:
        """That of the base."""
        return self.base.budget

    def with_budget(self, budget: float) -> Self:
        """With the base of another budget."""
        return type(self)(self.base.with_budget(budget))

    @property
    def sides(self) -> Sides:
        """Those of the base."""
        return self.base.sides

    def distributions(self, joint: Joint) -> CountBox:
        """All tables within the bounds of the joint law; its own counts alone where there are none."""
        return count_box(joint)

    def as_level(self, nats: float, budget: float) -> float:
        """As the base has it."""
        return self.base.scaled(nats, budget) if isinstance(self.base, TwoSided) else nats

    @property
    def is_perfect(self) -> bool:
        """As the base has it."""
        return self.base.is_perfect

    @property
    def covers_noise(self) -> bool:
        """That is what it is."""
        return True

    def __str__(self) -> str:
        return str(self.base)


def over_set(guarantee: Guarantee, joint: Joint) -> SetGuarantee | None:
    """A guarantee as one over a set of laws, if it is: over boxes, or over the bounds of a law known up to noise.

    None where it is decided for the counts alone, or over the χ² set (`funnel.guarantees.worst_case`).
    """
    return guarantee.over_set(joint)
