"""How the values of a column become fewer categories."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, field_validator, model_validator

from funnel.settings.fields import Groups, Label, Line, Section, is_number
from funnel.wording import plain_number

# The category of values without a name of their own.
OTHER = "Other"


class Recode(Section):
    """``[recode.COLUMN]``: how the values of one column become fewer categories.

    Attributes
    ----------
    bins : tuple of numbers, "auto" or None
        Strictly increasing edges; ``[25, 65]`` makes "under 25", "25 to under 65" and "65 and over". With "auto" they
        are chosen (`funnel.binning`).
    period : "year", "quarter", "month" or None
        What of dates and points in time becomes the category: ``2026``, ``2026-Q3`` or ``2026-07``.
    format : str or None
        How the dates of a period are written: ``%d``, ``%m`` and ``%Y`` with what is between them, such as
        ``%d/%m/%Y``; by default as in 2026-12-31.
    groups : mapping of str to tuple of str, or None
        Names of new categories, each with the values that become it: texts of the source, or names of bins; also the
        name of the category of missing values, or that of ``other``.
    minimum_count : int or None
        Categories with fewer records than this become one, that of missing values among them, and so do the smallest
        others until that one has as many; applies after ``bins`` and ``groups``.
    other : str
        The name of that one; also of the category of all values that are not named, where [categories] lists the
        names or where they are learned under noise.
    """

    bins: tuple[int | float, ...] | Literal["auto"] | None = None
    period: Literal["year", "quarter", "month"] | None = None
    format: Line | None = None
    groups: Groups | None = None
    minimum_count: Annotated[StrictInt, Field(ge=1)] | None = None
    other: Label = OTHER

    @field_validator("bins", mode="before")
    @classmethod
    def _increasing(cls, value: object) -> object:
        if value is None or value == "auto":
            return value
        if not isinstance(value, (list, tuple)) or not value or not all(is_number(edge) for edge in value):
            raise ValueError('must be a list of at least one finite number, such as [25, 45, 65], or "auto"')
        for low, high in pairwise(value):
            if not low < high:
                raise ValueError(f"must increase from edge to edge, but {high} follows {low}")
        return tuple(value)

    @field_validator("format")
    @classmethod
    def _of_days(cls, value: str | None) -> str | None:
        if value is None:
            return None
        asked = re.findall("%(.?)", value)
        if "y" in asked:
            raise ValueError("has %y: two digits of a year leave its century open; write four of them in the source")
        if set(asked) - set("dmY") or len(asked) > len(set(asked)) or "Y" not in asked:
            raise ValueError('must have %Y, and %m and %d where dates have them, once each, such as "%d/%m/%Y"')
        if re.search("[0-9]", value):
            raise ValueError('has digits between its parts; give what is between them alone, such as "%d/%m/%Y"')
        return value

    @model_validator(mode="after")
    def _of_a_period(self) -> Self:
        if self.format is None:
            return self
        if self.period is None:
            raise ValueError('gives a format, which is that of dates, and no period; add period = "year" or "month"')
        if self.period != "year" and "%m" not in self.format:
            raise ValueError(f"has a {self.period} as its period, and a format without one; add %m to format")
        return self

    @model_validator(mode="after")
    def _something_to_do(self) -> Self:
        if self.bins is not None and self.period is not None:
            raise ValueError("gives bins and a period; numbers have the one, dates the other")
        if self.bins == "auto" and self.groups is not None:
            raise ValueError('gives groups of bins that are yet to be found; take groups out, or bins = "auto"')
        given = (self.bins, self.minimum_count, self.groups, self.period)
        if not any(setting is not None for setting in given) and "other" not in self.model_fields_set:
            raise ValueError("says nothing to do; give bins = [...], period, groups or minimum_count = ...")
        return self

    @property
    def group_of(self) -> dict[str, str]:
        """The group of every value that is in one."""
        return {value: name for name, values in (self.groups or {}).items() for value in values}

    def with_edges(self, edges: tuple[int | float, ...]) -> Self:
        """The same with these edges in place of those that are to be found."""
        return self.model_copy(update={"bins": edges})

    @property
    def edges(self) -> tuple[int | float, ...]:
        """The edges of the bins as far as they are known; empty without bins."""
        return self.bins if isinstance(self.bins, tuple) else ()

    @property
    def bin_labels(self) -> tuple[str, ...]:
        """Names of the bins from the lowest to the highest, one more than edges; empty without edges."""
        if not self.edges:
            return ()
        edges = [plain_number(edge) for edge in self.edges]
        between = [f"{low} to under {high}" for low, high in pairwise(edges)]
        return (f"under {edges[0]}", *between, f"{edges[-1]} and over")
