"""Names of groups of values: the values themselves where they are short enough, else the first and how many more."""

from __future__ import annotations

from collections.abc import Collection, Sequence

# A longer name makes tables and figures hard to read.
_LONGEST = 60
EVERYTHING = "any value"
_OTHERS = "others"


def group_names(
    groups: Sequence[Sequence[str]], taken: Collection[str], values: int, unnamed: Collection[str] = ()
) -> tuple[str, ...]:
    """A name for every group of several values, different from one another and from all that are taken.

    Parameters
    ----------
    groups : sequence of sequences of str
        Disjoint, each with its values in order.
    taken : collection of str
        Names of the values of the column.
    values : int
        How many values the column has: a group of all of them tells nothing, and its name says so.
    unnamed : collection of str
        Values that no name may have in it.

    Examples
    --------
    >>> group_names([["9th", "10th"], ["a" * 40, "b" * 40, "c"]], {"9th"}, 9)[0]
    '9th or 10th'
    """
    names: list[str] = []
    for members in groups:
        told = [value for value in members if value not in unnamed]
        name = " or ".join([*told, *([_OTHERS] if len(told) < len(members) else [])])
        if len(members) == values:
            name = EVERYTHING
        elif len(name) > _LONGEST:
            first = told[0] if told and len(told[0]) <= _LONGEST else f"{(told or members)[0][:_LONGEST]}…"
            name = f"{first} or {len(members) - 1} {_OTHERS}"
        free, number = name, 2
        while free in taken or free in names:
            free, number = f"{name} ({number})", number + 1
        names.append(free)
    return tuple(names)
