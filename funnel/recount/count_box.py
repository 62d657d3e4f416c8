"""A box of counts: every table of whole numbers that published frequencies leave possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from funnel.errors import DataError

Table = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class CountBox:
    """Limits of every count and of the total of every secret.

    Attributes
    ----------
    lower, upper : tuple of tuple of int, c × a
        Least and largest number of records with secret s and published input u.
    totals : tuple of pairs of int, length c
        Least and largest number of records with each secret; already as narrow as the cells make them.

    Raises
    ------
    DataError
        If no table is within these limits.
    """

    lower: Table
    upper: Table
    totals: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        shapes = [[len(row) for row in table] for table in (self.lower, self.upper)]
        fits = shapes[0] == shapes[1] and len(set(shapes[0])) == 1 and len(self.totals) == len(self.lower)
        if not fits or any(
            not 0 <= low <= high
            for lows, highs in zip(self.lower, self.upper, strict=True)
            for low, high in zip(lows, highs, strict=True)
        ):
            raise DataError("the limits of the counts do not fit each other")
        totals = tuple(
            (max(least, sum(lows)), min(most, sum(highs)))
            for (least, most), lows, highs in zip(self.totals, self.lower, self.upper, strict=True)
        )
        if any(least > most for least, most in totals):
            raise DataError("no table of counts is within the limits of its cells and of its totals")
        object.__setattr__(self, "totals", totals)

    @classmethod
    def of(
        cls, lower: Sequence[Sequence[int]], upper: Sequence[Sequence[int]], totals: Sequence[Sequence[int]]
    ) -> CountBox:
        """A box of any sequences of numbers, arrays of numpy among them."""
        pairs = tuple((int(least), int(most)) for least, most in totals)
        return cls(_table(lower), _table(upper), pairs)

    @classmethod
    def exactly(cls, counts: Sequence[Sequence[int]]) -> CountBox:
        """The box of one table."""
        table = _table(counts)
        return cls(table, table, tuple((sum(row), sum(row)) for row in table))

    def part(self, inputs: Sequence[int]) -> CountBox:
        """Every table of some inputs alone that is part of a table in the box.

        The others take from a total what their cells allow: between the sum of their least and of their largest.
        """
        inside = set(inputs)
        others = [u for u in range(len(self.lower[0])) if u not in inside]
        totals = tuple(
            (least - sum(highs[u] for u in others), most - sum(lows[u] for u in others))
            for (least, most), lows, highs in zip(self.totals, self.lower, self.upper, strict=True)
        )
        lower, upper = (tuple(tuple(row[u] for u in inputs) for row in table) for table in (self.lower, self.upper))
        return CountBox(lower, upper, totals)

    def hold(self, counts: Sequence[Sequence[int]]) -> bool:
        """Whether a table is within the limits."""
        table = _table(counts)
        return (
            [len(row) for row in table] == [len(row) for row in self.lower]
            and all(
                low <= count <= high
                for lows, row, highs in zip(self.lower, table, self.upper, strict=True)
                for low, count, high in zip(lows, row, highs, strict=True)
            )
            and all(least <= sum(row) <= most for (least, most), row in zip(self.totals, table, strict=True))
        )


def _table(rows: Sequence[Sequence[int]]) -> Table:
    return tuple(tuple(int(value) for value in row) for row in rows)
