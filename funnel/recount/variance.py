"""The variance that a release explains of a column of numbers, computed a second time, in fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from funnel.errors import DataError
from funnel.recount.cells import bin_labels, edges_of, groups_of, is_decimal
from funnel.recount.channel import Channel
from funnel.spec import ReleaseSpec


def plain_variance(channel: Channel, numbers: Sequence[Fraction | None]) -> Fraction:
    """Var E[N|Y] / Var N for the number of every published input; O(a b c).

    An input without a number counts as the mean of those that have one. 0 where numbers do not vary.

    Raises
    ------
    DataError
        If numbers are not one for each input.
    """
    if len(numbers) != channel.a:
        raise DataError(f"there are {len(numbers):,} numbers for {channel.a:,} inputs")
    known = [(number, size) for number, size in zip(numbers, channel.records, strict=True) if number is not None]
    of_known = sum(size for _, size in known)
    mean = sum((number * size for number, size in known), Fraction()) / of_known if of_known else Fraction()
    apart = [Fraction() if number is None else number - mean for number in numbers]
    whole = sum((size * gap * gap for gap, size in zip(apart, channel.records, strict=True)), Fraction())
    if not whole:
        return Fraction()
    between = Fraction()
    for y in range(len(channel.weights)):
        masses = channel.masses_by_input(y)
        if mass := sum(part for _, part in masses):
            told = sum((part * apart[u] for u, part in masses), Fraction())
            between += told * told / mass
    return between / (channel.denominator * whole)


def plain_numbers(spec: ReleaseSpec, column: str, labels: Sequence[str]) -> list[Fraction | None]:
    """What number every category of a column stands for, by the spec: itself, or the mean of its bin.

    That is as the spec has it, or the middle; of a group of values the mean of theirs, each alike.

    Bins go from an edge to the next one, the first and the last to the ends of the range; of whole numbers to the last
    one under the next edge. None for missing and other values.

    Raises
    ------
    DataError
        If a category has no number, or bins no range.
    """
    intervals = plain_intervals(spec, column)
    if edges_of(spec, column) and not intervals:
        raise DataError(f"the bins of {column!r} have no range, so they stand for no numbers")
    middles = {name: (low + top) / 2 for name, (low, top) in intervals.items()}
    said = spec.numbers.get(column)
    if said is not None and said.means is not None:
        middles = dict(zip(intervals, (Fraction(mean) for mean in said.means), strict=True))
    members: dict[str, list[str]] = {}
    for value, group in groups_of(spec, column).items():
        members.setdefault(group, []).append(value)
    none_for = {spec.source.missing_label, spec.other_label(column)}
    found: list[Fraction | None] = []
    for label in labels:
        text = label.strip() if spec.source.decimal == "." else label.strip().replace(spec.source.decimal, ".")
        if label in middles:
            found.append(middles[label])
        elif is_decimal(text):
            found.append(Fraction(float(text)))
        elif label in none_for:
            found.append(None)
        elif label in members:
            known = [number for number in plain_numbers(spec, column, members[label]) if number is not None]
            found.append(sum(known, Fraction()) / len(known) if known else None)
        else:
            raise DataError(f"a category of {column!r} stands for no number")
    return found


def plain_intervals(spec: ReleaseSpec, column: str) -> dict[str, tuple[Fraction, Fraction]]:
    """The least and the largest number of every bin of a column; empty where it has no bins, or no range."""
    edges, said = edges_of(spec, column), spec.numbers.get(column)
    if not edges or said is None or said.range is None:
        return {}
    ends = [Fraction(str(end)) for end in (said.range[0], *edges, said.range[1])]
    if said.decimals is None and not said.whole:
        return dict(zip(bin_labels(edges), pairwise(ends), strict=True))
    parts = 10 ** (said.decimals or 0)
    # In parts of one, which all numbers have whole ones of: from the first that is not below, to the last that is not
    # above; the next edge is itself no part of a bin, the end of the range is.
    firsts = [-(-end * parts // 1) for end in ends[:-1]]
    lasts = [*(-(-end * parts // 1) - 1 for end in ends[1:-1]), ends[-1] * parts // 1]
    return {
        name: (Fraction(first, parts), Fraction(last, parts))
        for name, first, last in zip(bin_labels(edges), firsts, lasts, strict=True)
    }
