"""What whole records explain of numbers, and what they are worth for estimates: computed a second time, and judged."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from funnel.audit.grouped.estimates import ROOM, Estimates, TableAgain
from funnel.audit.grouped.figures import is_told, step_of
from funnel.audit.grouped.law import PublishedLaw

NumbersAgain = Mapping[str, Mapping[str, Fraction | float | None]]
# Of figures that sums in floating point lead to.
_NOISE = 1e-7
# Trials are as fine as the release itself where a prefix has to have at least this part of the records in both.
_TRIED = 250


def explained_again(law: PublishedLaw, column: str, numbers: Mapping[str, Fraction | float | None]) -> float:
    """Var E[N | record] / Var N of a column whose values stand for some numbers, from the law of published records.

    A value without a number counts as the mean of the others. 0 where numbers do not vary.
    """
    values, of_row = law.true[law.columns.index(column)]
    people = np.bincount(of_row, weights=law.people, minlength=len(values)).astype(np.int64).tolist()
    told = [None if numbers[value] is None else Fraction(numbers[value] or 0) for value in values]
    known = sum(size for size, number in zip(people, told, strict=True) if number is not None)
    if not known:
        return 0.0
    mean = sum((size * number for size, number in zip(people, told, strict=True) if number is not None), Fraction())
    mean /= known
    gaps = [Fraction() if number is None else number - mean for number in told]
    whole = sum((size * gap**2 for size, gap in zip(people, gaps, strict=True)), Fraction())
    if not whole:
        return 0.0
    # In standard deviations, so that nothing is lost by far numbers.
    unit = math.sqrt(whole / int(law.people.sum()))
    apart = np.array([float(gap) / unit for gap in gaps])
    sums = np.zeros(len(law.records))
    np.add.at(sums, law.published, law.masses * apart[of_row[law.rows]])
    masses = np.zeros(len(law.records))
    np.add.at(masses, law.published, law.masses)
    there = masses > 0
    return math.fsum((sums[there] ** 2 / masses[there]).tolist()) / float(law.people.sum())


def worth_limits(estimates: Estimates) -> tuple[float, float]:
    """Between what the worth for estimates lies, as two computations of the shortest intervals may differ."""
    tables, columns = estimates.tables, len(estimates.columns)
    every = columns + columns * (columns - 1) // 2
    ends = [
        math.fsum(0.0 if one is None else _table_worth(one, estimates.records, room) for one in tables.values())
        for room in (ROOM, 1 / ROOM)
    ]
    return ends[0] / every, ends[1] / every


def _table_worth(table: TableAgain, records: int, room: float) -> float:
    """Of one table, were intervals longer by some factor; a cell that could be anything counts as nothing."""
    variances = table.shares * (1 - table.shares)
    if not variances.sum() > 0:
        return 1.0
    untold = table.untold(room)
    worth = 0.0
    for variance, error, nothing in zip(variances.tolist(), table.errors.tolist(), untold.tolist(), strict=True):
        if variance > 0 and not nothing:
            worth += variance**2 / (variance + records * (room * error) ** 2)
    return worth / float(variances.sum())


def purpose_complaints(told: Mapping[str, Any], chosen_by: str) -> Iterator[str]:
    """Whether a document says what the release was made for, and tells the figures of that and of nothing else."""
    if told["chosen_by"] != chosen_by:
        yield f"they say that ways were compared by {told['chosen_by']!r}, and it was {chosen_by!r}"
    if bool(told["explained"]) != (chosen_by == "variance"):
        yield "what is explained of numbers is told just where that was asked for; here it is not so"
    if (told["worth"] is not None) != (chosen_by == "estimation"):
        yield "what records are worth for estimates is told just where that was asked for; here it is not so"


def explained_complaints(
    told: Sequence[Mapping[str, Any]], law: PublishedLaw, numbers: NumbersAgain | None, rounded: bool
) -> Iterator[str]:
    """Whether what is told of columns of numbers follows.

    Parameters
    ----------
    told : sequence of mapping
        ``explained`` of a document.
    law : PublishedLaw
    numbers : mapping, or None
        What the values of every column of numbers stand for, by the spec; None to take what is stated.
    rounded : bool
        Whether shares are told to a step, as all public ones.
    """
    if numbers is not None and [one["column"] for one in told] != list(numbers):
        yield "what is explained is not told of the columns of numbers that the spec names"
        return
    for one in told:
        column = one["column"]
        stated = dict(zip(one["values"], one["numbers"], strict=True))
        if column not in law.columns or set(stated) < set(law.true[law.columns.index(column)][0]):
            yield f"numbers of {column!r} are not those of its values"
            continue
        if numbers is not None:
            wanted = {value: None if n is None else float(n) for value, n in numbers[column].items()}
            if stated != wanted:
                yield f"values of {column!r} are said to stand for other numbers than they do"
                continue
        exact, share = explained_again(law, column, stated), one["share"]
        fits = is_told(share, exact, step_of(int(law.people.sum()))) if rounded else abs(share - exact) <= _NOISE
        if not fits:
            yield f"of the variance of {column!r} {share!r} is said to be explained, which is not what follows"


def worth_complaints(told: float | None, limits: tuple[float, float], step: float = 0.0) -> Iterator[str]:
    """Whether the worth for estimates is one that follows from the effective channels."""
    low, high = limits
    if told is not None and not low - step - _NOISE <= told <= high + step + _NOISE:
        yield f"records are said to be worth {told!r} for estimates, and it is between {low:.4f} and {high:.4f}"


def tried_complaints(found: Mapping[str, Any], robust: bool) -> Iterator[str]:
    """Whether the way that was taken is the best of those tried, by what they were compared by, as findings tell.

    What other ways are worth only the maker knows; of the one that was taken it is known where trials were as fine as
    the release.
    """
    ways = found["tried"]
    if not ways or ways[0].get("worth") is None:
        return
    first = ways[0]
    if [list(group) for group in first["groups"]] != [list(group) for group in found["groups"]]:
        yield "the best of the ways that were tried has other groups than were published"
    if first["schedule"] != found["schedule"]:
        yield "the best of the ways that were tried has another schedule than was taken"
    if any(way["worth"] > first["worth"] for way in ways):
        yield "a way that was tried is said to be better than the one that was taken"
    if found["chosen_by"] == "information":
        if any(abs(way["worth"] - way["kept"]) > _NOISE for way in ways):
            yield "by information ways are compared by what they keep, and other figures are told"
    elif not robust and found["rows"] // _TRIED <= found["people"]:
        explained = [one["share"] for one in found["explained"]]
        final = found["worth"] if found["chosen_by"] == "estimation" else math.fsum(explained) / max(1, len(explained))
        if final is None or abs(first["worth"] - final) > _NOISE:
            yield f"the way that was taken is said to be worth {first['worth']!r}, and the release {final!r}"
