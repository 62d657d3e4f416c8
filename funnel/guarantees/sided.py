"""Guarantees on ratios of two probabilities of an output: by what they compare, and over noisy counts too."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee, Level, OutputGuarantee, PosteriorGuarantee, Witness
from funnel.guarantees.count_box import CountBox, count_box
from funnel.guarantees.exact import exp_below, log_level
from funnel.guarantees.over_distributions import OfBase, RatioGuarantee, SetGuarantee, Sides
from funnel.joint import FloatArray, Joint
from funnel.protocol import WeightArray


class Counted(OutputGuarantee):
    """A guarantee for the counts of a joint distribution; where these are noisy, for all that may be the true ones."""

    covers_noise: ClassVar[bool] = True

    @abstractmethod
    def over_noise(self) -> SetGuarantee:
        """The same for every table of counts within the bounds of a joint distribution."""

    @abstractmethod
    def worst(self, joint: Joint, weights: WeightArray) -> Witness:
        """The worst ratio of two probabilities of an output, exactly, where the counts are the distribution."""

    @abstractmethod
    def counted_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """`output_levels` where the counts are the distribution."""

    def worst_between_parts(self, joint: Joint, weights: WeightArray) -> Witness:
        """The same where inputs are parts of classes of records, between which donors are drawn evenly.

        Raises
        ------
        SpecError
            If this is no bound for observers of such records.
        """
        raise SpecError(f"{self} is not decided between parts of classes of records; choose lip and srlip")

    def counted_level(self, joint: Joint, weights: WeightArray) -> Level:
        """`level_for` where the counts are the distribution: ln of the worst ratio, rounded up."""
        return log_level(self.worst(joint, weights))

    def counted_holds(self, joint: Joint, weights: WeightArray) -> bool:
        """`holds_for` where the counts are the distribution: the worst ratio is at most a rational just below e^ε."""
        ratio = self.worst(joint, weights).ratio
        return ratio is not None and ratio <= exp_below(self.budget)

    def over_set(self, joint: Joint) -> SetGuarantee | None:
        """Over every table within the bounds, if there are any."""
        return None if joint.bounds is None else self.over_noise()

    def level_for(self, joint: Joint, weights: WeightArray) -> Level:
        """The worst ratio, rounded up: under the counts, or under the worst table within their bounds."""
        if joint.parts is not None:
            return log_level(self.worst_between_parts(joint, weights))
        over = self.over_set(joint)
        return self.counted_level(joint, weights) if over is None else over.level_for(joint, weights)

    def holds_for(self, joint: Joint, weights: WeightArray) -> bool:
        """Whether the worst ratio is at most a rational just below e^ε: under all tables within the bounds, if any."""
        if joint.parts is not None:
            ratio = self.worst_between_parts(joint, weights).ratio
            return ratio is not None and ratio <= exp_below(self.budget)
        over = self.over_set(joint)
        return self.counted_holds(joint, weights) if over is None else over.holds_for(joint, weights)

    def output_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """The level of each row, over the bounds of the counts if there are any."""
        over = self.over_set(joint)
        return self.counted_levels(joint, rows) if over is None else over.output_levels(joint, rows)


class Sided(Counted, PosteriorGuarantee):
    """LDP, LIP, ALIP or PML."""

    @property
    @abstractmethod
    def sides(self) -> Sides:
        """What is bounded."""

    def over_noise(self) -> SetGuarantee:
        """The same ratios."""
        return OverCounts(self)


@dataclass(frozen=True)
class OverCounts(OfBase, RatioGuarantee):
    """A guarantee over every table of counts that noise does not rule out: METHOD section 10, without any sampling.

    Parameters
    ----------
    base : Sided
        What has to hold under each of them.
    """

    base: Sided
    covers_noise: ClassVar[bool] = True

    @property
    def sides(self) -> Sides:
        """Those of the base."""
        return self.base.sides

    def distributions(self, joint: Joint) -> CountBox:
        """All tables within the bounds of the joint distribution; its own counts alone where there are none."""
        return count_box(joint)


def over_set(guarantee: Guarantee, joint: Joint) -> SetGuarantee | None:
    """A guarantee over a set of distributions, if it is one: over boxes, or bounds known up to noise.

    None where it is decided for the counts alone, or over the χ² set (`funnel.guarantees.worst_case`).
    """
    return guarantee.over_set(joint)
