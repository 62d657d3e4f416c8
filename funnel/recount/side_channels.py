"""The level of SRLIP, computed a second time: an observer who knows some of the published columns."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from operator import mul

from funnel.recount.channel import Channel, Symbols
from funnel.recount.ratios import Ratio, larger, starting_place


def worst_side_channel(channel: Channel, published: Symbols) -> Ratio:
    """The largest ``P(y|s,x_J)/P(y|x_J)``, or its inverse, over all sets J of columns and values that occur.

    PF (19), with J empty for LIP. For a protocol that reads the inputs alone all columns together say no more than the
    input itself; for one that reads the secret too they may.
    """
    columns = range(len(published[0]))
    most = len(columns) + 1 if channel.reads_secret else max(len(columns), 1)
    groups = [
        group for size in range(most) for known in combinations(columns, size) for group in _groups(published, known)
    ]
    # Per group the records of every secret, and those of all.
    sizes = [[sum(counts[u] for u in group) for counts in channel.counts] for group in groups]
    worst = Ratio(Fraction(1), *starting_place(channel))
    for y in range(len(channel.weights)):
        products = [list(map(mul, counts, channel.row(y, s))) for s, counts in enumerate(channel.counts)]
        for group, records in zip(groups, sizes, strict=True):
            masses = [sum(map(part.__getitem__, group)) for part in products]
            whole, number = sum(masses), sum(records)
            if not whole:
                continue
            for s, size in enumerate(records):
                if size:
                    # P(y|s,x_J) = (mass / size) and P(y|x_J) = (whole / number).
                    worst = larger(worst, masses[s] * number, whole * size, y, s)
                    worst = larger(worst, whole * size, masses[s] * number, y, s)
    return worst


def _groups(published: Symbols, known: tuple[int, ...]) -> list[list[int]]:
    """The inputs by the values of the columns that are known."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for u, symbol in enumerate(published):
        groups.setdefault(tuple(symbol[k] for k in known), []).append(u)
    return list(groups.values())
