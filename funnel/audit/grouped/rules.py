"""The rules of disclosure control for what a record shows: no row of a channel is about people whom they keep out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from funnel.recount.grouped import Followed, RowTable


@dataclass(frozen=True)
class AskedRules:
    """What is asked of the table of secrets and rows, of all who draw from one channel.

    Attributes
    ----------
    least : int
        People of every cell that is not empty.
    share : Fraction
        The largest share of one secret in a row, unless it has that of all people.
    alone : Fraction
        The largest share of people whose row is theirs alone.
    """

    least: int
    share: Fraction
    alone: Fraction


def row_complaints(followed: Followed, asked: AskedRules) -> Iterator[str]:
    """Whether every row of weights is about as many people as the rules ask for, in whole numbers.

    A row is what inputs with the same weights have in common; who is behind it is expected over all prefixes that draw
    from the channel, exactly.
    """
    n = sum(followed.sizes)
    # A secret that so many have anyway is no news of a row.
    common = [Fraction(size, n) > asked.share for size in followed.sizes]
    for table in followed.tables:
        where = f"channel {table.channel + 1} of stage {table.stage + 1}"
        small = sum(0 < mass < asked.least * table.unit for masses in table.masses for mass in masses)
        if small:
            yield f"{where} has weights that follow from {small:,} cells of fewer than {asked.least:,} people"
        if dominated := sum(_dominated(masses, common, asked.share) for masses in table.masses):
            yield f"{where} has weights that follow from {dominated:,} rows in which one secret is above the rule"
        if _alone(table) > asked.alone * sum(map(sum, table.masses)):
            yield f"{where} has weights that follow from people who are alone"


def _dominated(masses: tuple[int, ...], common: list[bool], share: Fraction) -> bool:
    whole = sum(masses)
    return any(
        mass * share.denominator > whole * share.numerator and not known
        for mass, known in zip(masses, common, strict=True)
    )


def _alone(table: RowTable) -> int:
    """The mass of rows for which fewer than two people are expected."""
    return sum(sum(masses) for masses in table.masses if sum(masses) < 2 * table.unit)
