"""Budgets of guarantees: one ε, or one for what becomes less likely and one for what becomes likelier, in nats."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee, checked_number
from funnel.guarantees.exact import scaled_up


@dataclass(frozen=True)
class TwoSided(Guarantee):
    """A guarantee with a lower and an upper budget.

    Its level is a scale: the smallest value of the larger budget for which it holds while the two keep their
    proportion. With equal budgets that is the ε of the symmetric guarantee; an infinite budget bounds nothing.

    Parameters
    ----------
    lower : float
        Budget (nats) for the smallest lift, >= 0.
    upper : float
        Budget (nats) for the largest lift, >= 0.

    Raises
    ------
    SpecError
        If a budget is no number >= 0, or both are infinite.
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        checked_number(self, "lower", infinite=True)
        checked_number(self, "upper", infinite=True)
        if math.isinf(self.lower) and math.isinf(self.upper):
            raise SpecError(
                f"{self.name} needs a finite lower or upper budget (nats); two infinite ones promise nothing"
            )

    @property
    def budget(self) -> float:
        """The larger finite budget."""
        return max(value for value in (self.lower, self.upper) if math.isfinite(value))

    @property
    def is_perfect(self) -> bool:
        """A lift that is never below 1, or never above it, is always 1: its average is."""
        return self.lower == 0 or self.upper == 0

    def with_budget(self, budget: float) -> Self:
        """Both budgets scaled so that the larger is ``budget``; an infinite one stays infinite."""
        largest = self.budget
        if budget == largest:
            return self

        def scaled(side: float) -> float:
            return side if math.isinf(side) else budget if side == largest else side / largest * budget

        return replace(self, lower=scaled(self.lower), upper=scaled(self.upper))

    def scaled(self, nats: float, side: float) -> float:
        """What a leakage of so many nats on the side of this budget is as a level, rounded up."""
        return scaled_up(nats, side, self.budget)


@dataclass(frozen=True)
class OneBudget(Guarantee):
    """A guarantee with a budget ε.

    Parameters
    ----------
    epsilon : float
        Bound in nats, >= 0.

    Raises
    ------
    SpecError
        If ε is not a finite number >= 0.
    """

    epsilon: float

    def __post_init__(self) -> None:
        checked_number(self, "epsilon")

    @property
    def budget(self) -> float:
        """ε."""
        return self.epsilon

    def with_budget(self, budget: float) -> Self:
        """The same with another ε."""
        return replace(self, epsilon=budget)
