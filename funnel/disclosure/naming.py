"""Names of groups of values: the values themselves where they are short enough, else the first and how many more."""

from __future__ import annotations

from collections.abc import Collection, Sequence

# A longer name makes tables and figures hard to read.
_LONGEST = 60
EVERYTHING = "any value"


def group_names(groups: Sequence[Sequence[str]], taken: Collection[str], values: int) -> tuple[str, ...]:
    """A name for every group of several values, different from one another and from all that are taken.

    Parameters
    ----------
    groups : sequence of sequences of str
        Disjoint, each with its values in order.
    taken : collection of str
        Names of the values of the column.
    values : int
        How many values the column has: a group of all of them tells nothing, and its name says so.

    Examples
    --------
    >>> group_names([["9th", "10th"], ["a" * 40, "b" * 40, "c"]], {"9th"}, 9)[0]
    '9th or 10th'
    """
    names: list[str] = []
    for members in groups:
        name = EVERYTHING if len(members) == values else " or ".join(members)
        if len(name) > _LONGEST:
            first = members[0] if len(members[0]) <= _LONGEST else f"{members[0][:_LONGEST]}…"
            name = f"{first} or {len(members) - 1} others"
        free, number = name, 2
        while free in taken or free in names:
            free, number = f"{name} ({number})", number + 1
        names.append(free)
    return tuple(names)
