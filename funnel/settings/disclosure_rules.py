"""Rules of disclosure control, decided in whole numbers, and the section of a spec that names them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, Field, StrictFloat, StrictInt

from funnel.errors import SpecError
from funnel.settings.count_protection import PROTECTIONS, ProtectionName
from funnel.settings.fields import Section, Texts

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# Counts are below 2^31, so that the numerator of a share times a count fits 64 bits.
_DIGITS = 1_000_000
# Largest shares in classes of records are whole parts of this.
_PARTS = 10_000


@dataclass(frozen=True)
class Rules:
    """What a table may hold; decided in whole numbers.

    Parameters
    ----------
    minimum_cell : int
        A cell (secret, published combination) that occurs has at least as many records; 1 for no such rule.
    dominance : float
        In no combination does one value of the secret have a larger share of the records than this, unless it has in
        the whole table; 1 for no such rule.
    unique_share : float
        Largest share of records whose published combination is theirs alone; 1 for no such rule.
    by_class : bool
        Whether combinations are classes of records. `dominance` is then the largest share of the doubt that a class
        may take away: a value of the secret that the share π of all records has may have the share
        π + dominance · (1 - π) in a class, rounded down to four decimals (0088).

    Raises
    ------
    SpecError
        If a number is out of its range.
    """

    minimum_cell: int = 10
    dominance: float = 0.95
    unique_share: float = 0.0
    by_class: bool = False

    def __post_init__(self) -> None:
        if self.minimum_cell < 1:
            raise SpecError(f"minimum_cell must be at least 1, not {self.minimum_cell}")
        for name in ("dominance", "unique_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise SpecError(f"{name} must be a share between 0 and 1, not {getattr(self, name)}")

    def small(self, cells: IntArray) -> BoolArray:
        """Which cells occur, but with fewer records than the minimum."""
        return (cells > 0) & (cells < self.minimum_cell)

    def above(self, part: IntArray, whole: IntArray) -> BoolArray:
        """Where a part is a larger share of the whole than `dominance`; nowhere where there is no record."""
        return np.asarray(part * self._share.denominator > whole * self._share.numerator)

    def dominant(self, cells: IntArray, whole: IntArray, of_secret: IntArray, n: int) -> BoolArray:
        """Which cells have too large a share of their combination.

        Parameters
        ----------
        cells : (c, k) int
            Records by value of the secret and combination.
        whole : (c, k) or (k,) int
            Records of the combinations.
        of_secret : (c,) int
            Of all n records those with each value of the secret.
        n : int
        """
        if not self.by_class:
            return np.asarray(self.above(cells, whole) & ~self.above(of_secret, np.asarray(n))[:, np.newaxis])
        shares = [Fraction(count, n) for count in of_secret.tolist()]
        limits = np.array([int(_PARTS * (share + self._share * (1 - share))) for share in shares], dtype=np.int64)
        return np.asarray(cells * _PARTS > whole * limits[:, np.newaxis])

    @cached_property
    def _share(self) -> Fraction:
        return Fraction(str(self.dominance)).limit_denominator(_DIGITS)

    def lone(self, alone: int, records: int) -> bool:
        """Whether more records are alone in their combination than may be."""
        return alone > Fraction(str(self.unique_share)) * records


# Of classes of records whose secret is published, where a spec does not say it.
DOMINANCE_OF_PUBLISHED = 0.995
# All of them are published.
_DECIMALS = 6


def _short(share: float) -> float:
    if round(share, _DECIMALS) != share:
        raise ValueError(f"must have at most {_DECIMALS} decimals")
    return share


Share = Annotated[StrictFloat, Field(ge=0, le=1, allow_inf_nan=False), AfterValidator(_short)]


class DisclosureSettings(Section):
    """``[disclosure]``: the rules of statistical offices that public frequencies are held against before a release.

    Attributes
    ----------
    minimum_cell : int
        Records that every combination of secret and published values has, if any has it; 1 for no such rule.
    dominance : float
        Largest share of the records of a published combination that may have one value of the secret, unless it has
        that share of all records; 1 for no such rule. In classes of records it is the largest share of the doubt that a
        class takes away, and 0.995 by default where the secret is published.
    unique_share : float
        Largest share of all records whose published combination may be theirs alone; 1 for no such rule.
    on_breach : "refuse", "report" or None
        Whether a release that breaks a rule is refused, or the reports say so. By default it is refused, but where the
        frequencies are protected by noise: there it is only told what they leave beyond doubt.
    ordered : tuple of str
        Columns of which only neighbours may be grouped, in the order in which [categories] lists their values; of
        numbers, dates, bins and labels such as 30-39 it is so anyway.
    blank : tuple of str
        Columns that may be published though nothing is told of them: as one value, "any value", where grouping for a
        threshold leaves no two, or so that no share of their values can be estimated.
    """

    minimum_cell: Annotated[StrictInt, Field(ge=1)] = 10
    dominance: Annotated[Share, Field(gt=0)] = 0.95
    unique_share: Share = 0.0
    on_breach: Literal["refuse", "report"] | None = None
    ordered: Texts = ()
    blank: Texts = ()

    @property
    def rules(self) -> Rules:
        """These rules, to hold counts against."""
        return Rules(self.minimum_cell, self.dominance, self.unique_share)

    def refuses(self, protection: ProtectionName) -> bool:
        """Whether a release that breaks a rule is refused, with frequencies that are protected so."""
        return not PROTECTIONS[protection].is_noisy if self.on_breach is None else self.on_breach == "refuse"
