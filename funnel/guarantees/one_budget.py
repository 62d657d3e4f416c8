"""One budget ε in nats: what guarantees that are named after it have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from funnel.guarantees.base import Guarantee, checked_number


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
