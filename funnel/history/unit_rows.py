"""Rows of units: several records of a person in one version, which of them is first, and how one follows another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.errors import SpecError
from funnel.history.changes import Changes
from funnel.joint import IntArray, Joint

MOST_ROWS = 100
"""Rows that a unit may have in one version: each is a step of its own, and nobody learns from so few units."""

MOST_MEMBERS = 24
"""The same where rows are bounded one by one: each row for the secrets of all of them, or what is known of one."""


@dataclass(frozen=True, eq=False)
class UnitRows:
    """The rows of a version by the units that they are of, in the order in which they are drawn.

    Parameters
    ----------
    units : ndarray of int64, shape (rows,)
        The number of every row's unit, from 0 without gaps.
    places : ndarray of int64, shape (rows,)
        Which row of its unit it is, from 1 without gaps.
    """

    units: IntArray
    places: IntArray

    @classmethod
    def ordered(cls, units: IntArray, order: np.ndarray) -> UnitRows:
        """By words of the rows, (rows,), that have nothing to do with their values: the smallest word is first."""
        places = np.empty(len(units), dtype=np.int64)
        by_unit = np.lexsort((order, units))
        starts = np.flatnonzero(np.concatenate([[True], np.diff(units[by_unit]) > 0]))
        sizes = np.diff(starts, append=len(units))
        places[by_unit] = np.arange(len(units)) - np.repeat(starts, sizes) + 1
        return cls(np.asarray(units, dtype=np.int64), places)

    @property
    def count(self) -> int:
        """Units."""
        return int(self.units.max()) + 1

    @property
    def deepest(self) -> int:
        """Rows of the unit that has most."""
        return int(self.places.max())

    def at(self, place: int) -> IntArray:
        """The rows that are such a row of their units, by the number of the unit; shape (k,)."""
        here = np.flatnonzero(self.places == place)
        return np.asarray(here[np.argsort(self.units[here])])

    @property
    def last(self) -> IntArray:
        """The last row of every unit, shape (units,)."""
        sizes = np.bincount(self.units)
        here = np.flatnonzero(self.places == sizes[self.units])
        return np.asarray(here[np.argsort(self.units[here])])

    def require_bounded(
        self, secrets: IntArray, columns: Sequence[str], unit: Sequence[str], refused: str | None
    ) -> None:
        """Refuse units that have too many rows, or whose rows have several secrets where that is refused.

        Parameters
        ----------
        secrets : ndarray of int64, shape (rows,)
        columns, unit : sequence of str
        refused : str, optional
            Why no bound can be kept for the secret of every row, and what could be done; by default it can.

        Raises
        ------
        SpecError
            That says how many units, not which.
        """
        named = ", ".join(map(repr, unit))
        first = secrets[self.at(1)]
        differing = len(np.unique(self.units[secrets != first[self.units]]))
        if differing and refused is not None:
            raise SpecError(
                f"{differing:,} of {self.count:,} units ({named}) have several values of the secret "
                f"{', '.join(map(repr, columns))} in their rows, and {refused}, or give all rows of a unit the same "
                "value, such as whether it ever occurs"
            )
        most, why = (MOST_MEMBERS, " with secrets of their own") if differing else (MOST_ROWS, "")
        self.require_few(most, why, f"units ({named})")

    def require_few(self, most: int, why: str, units: str = "units") -> None:
        """Refuse units with more rows than so many.

        Raises
        ------
        SpecError
            That says how many units, not which.
        """
        if self.deepest > most:
            many = int(np.count_nonzero(np.bincount(self.units) > most))
            raise SpecError(
                f"{many:,} of {self.count:,} {units} have more than {most} rows{why}, the largest "
                f"{self.deepest:,}, and a bound over so many rows leaves nothing to tell: aggregate rows of a unit, or "
                "choose some of them"
            )


def row_changes(rows: UnitRows, cells: IntArray, first: Joint) -> Changes:
    """How the next row of a unit follows one, over all pairs of successive rows of all units.

    What follows a cell from which no unit has another row is taken from the first rows of units: of those with that
    secret where all rows of a unit have one, so that no probability leaves it, and else of all.

    Parameters
    ----------
    rows : UnitRows
    cells : ndarray of int64, shape (rows,)
    first : Joint
        Of the first row of every unit, counts (c, a).

    Returns
    -------
    Changes
        From any row to the next one. Its counts are of pairs of rows, not of units.
    """
    a = len(first.inputs)
    by_place = np.lexsort((rows.places, rows.units))
    follows = np.flatnonzero(np.diff(rows.units[by_place]) == 0)
    before, after = cells[by_place[follows]], cells[by_place[follows + 1]]
    pairs, records = np.unique(np.stack([before, after]), axis=1, return_counts=True)
    alone = np.setdiff1d(np.unique(cells), pairs[0])
    # There is one with the same secret, since every unit has a first row.
    shared = (pairs[0] // a == pairs[1] // a).all()
    like = (
        (alone[:, None] // a == np.arange(first.counts.size) // a) if shared else np.ones((len(alone), 1), dtype=bool)
    )
    at, instead = np.nonzero(like * first.counts.reshape(-1))
    before = np.concatenate([pairs[0], alone[at]])
    after = np.concatenate([pairs[1], instead])
    records = np.concatenate([records, first.counts.reshape(-1)[instead]])
    order = np.lexsort((after, before))
    return Changes(before[order], after[order], records[order])


def second_rows(rows: UnitRows, cells: IntArray, first: Joint) -> tuple[IntArray, IntArray]:
    """Units with two rows or more, by the secret and input of the first: whose second one has the same, and whose not.

    A unit is counted once, however many rows it has.

    Parameters
    ----------
    rows : UnitRows
        Any units may be missing.
    cells : ndarray of int64, shape (rows,)
    first : Joint
        Whose alphabets count.

    Returns
    -------
    two ndarrays of int64, each (c, a)
    """
    begun = np.zeros(int(rows.units.max(initial=0)) + 1, dtype=np.int64)
    begun[rows.units[rows.at(1)]] = cells[rows.at(1)]
    second, a = rows.at(2), len(first.inputs)
    before, after = begun[rows.units[second]], cells[second]
    same = before % a == after % a
    stayed, left = (
        np.bincount(some, minlength=first.counts.size).reshape(first.counts.shape)
        for some in (before[same], before[~same])
    )
    return stayed, left


def counted_cells(cells: IntArray, like: Joint) -> Joint:
    """The joint distribution of some rows, over the alphabets of another one."""
    counts = np.bincount(cells, minlength=like.counts.size).reshape(like.counts.shape)
    return Joint(counts, like.secret, like.inputs)
