"""What the numbers of a column are."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import count
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, field_validator, model_validator

from funnel.settings.fields import Line, Section, as_tuple, is_number

# Bins of a declared range have at most so many edges.
MOST_ROUND_EDGES = 9
# Whole numbers that a double tells apart.
_MOST_STEPS = 2**53


def drawn_name(column: str) -> str:
    """The name of the column of numbers that are drawn within the intervals of a column."""
    return f"{column} (number)"


class NumberSettings(Section):
    """``[numbers.COLUMN]``: what the numbers of a column are.

    Attributes
    ----------
    range : pair of numbers or None
        The least number there can be and the largest: known before the source is read, not found in it. It closes the
        first and the last interval.
    whole : bool
        Whether there are whole numbers only: then "25 to under 45" is from 25 to 44.
    unit : str or None
        What is counted or measured, such as "years" or "US dollars".
    decimals : int or None
        Digits after the point that numbers have: of 2, "10 to under 20" is from 10.00 to 19.99.
    means : tuple of numbers or None
        What the numbers of every bin are on average, known before the source is read; by default the middle of each.
    draw : "within" or None
        Whether a table is published beside the records that has a number of its interval for every record.
    """

    range: Annotated[tuple[int | float, int | float] | None, BeforeValidator(as_tuple)] = None
    whole: StrictBool = False
    unit: Line | None = None
    decimals: Annotated[StrictInt, Field(ge=0, le=9)] | None = None
    means: Annotated[tuple[int | float, ...] | None, BeforeValidator(as_tuple)] = None
    draw: Literal["within"] | None = None

    @field_validator("means", mode="before")
    @classmethod
    def _one_a_bin(cls, value: object) -> object:
        if value is None or (isinstance(value, (list, tuple)) and value and all(map(is_number, value))):
            return None if value is None else tuple(value)
        raise ValueError("must be a list with a number for every bin, from the lowest to the highest")

    @field_validator("range", mode="before")
    @classmethod
    def _from_least_to_largest(cls, value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or len(value) != 2 or not all(is_number(end) for end in value):
            raise ValueError("must be the least and the largest number there can be, such as [0, 120]")
        if not value[0] < value[1]:
            raise ValueError(f"must go from the least to the largest number, but {value[1]} follows {value[0]}")
        return tuple(value)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("says nothing; give range, whole, decimals or unit")
        if self.whole and self.decimals:
            raise ValueError(f"has whole numbers with {self.decimals} decimals; take whole or decimals out")
        if self.draw is None:
            return self
        if self.range is None or self.step is None:
            raise ValueError(
                'draw = "within" needs to know which numbers there are; give range = [least, largest], and whole = '
                "true or the number of decimals"
            )
        if max(map(abs, self.range)) / self.step > _MOST_STEPS:
            raise ValueError("has more numbers than can be drawn from; give fewer decimals, or a smaller range")
        return self

    @property
    def step(self) -> Fraction | None:
        """What numbers are multiples of; None where any number there is may be one."""
        if self.decimals is not None:
            return Fraction(1, 10**self.decimals)
        return Fraction(1) if self.whole else None

    @property
    def round_edges(self) -> tuple[int | float, ...]:
        """Edges that are a function of the range: multiples of 1, 2 or 5 times a power of ten, at most nine of them.

        Of the steps that make so few the least; of whole numbers one that is whole.
        """
        if self.range is None:
            return ()
        # As the decimals that were written.
        low, high = (Fraction(str(end)) for end in self.range)
        power = math.floor(math.log10(float(high - low))) - 2
        for k in count():
            step = Fraction((1, 2, 5)[k % 3]) * Fraction(10) ** (power + k // 3)
            if self.whole and step.denominator > 1:
                continue
            first = math.floor(low / step) + 1
            last = math.ceil(high / step) - 1
            if last - first < MOST_ROUND_EDGES:
                edges = [step * j for j in range(first, last + 1)]
                # A range within one step is cut in its middle.
                edges = edges or [(low + high) / 2]
                return tuple(int(edge) if edge.denominator == 1 else float(edge) for edge in edges)
        raise AssertionError("steps grow without end")
