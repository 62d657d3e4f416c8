"""The level of SRLIP and of attribute protection, computed a second time: observers who know published columns."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from operator import mul

from funnel.recount.channel import Channel, Symbols
from funnel.recount.count_box import CountBox
from funnel.recount.distribution_box import limits_at, sides_of
from funnel.recount.ratios import Ratio, larger, worse
from funnel.recount.worst_counts import largest_lifts_over_counts
from funnel.recount.worst_distributions import largest_lifts_over_distributions

Group = tuple[int, ...]


@dataclass(frozen=True)
class Known:
    """What observers may know: every group of inputs with the same values of some set of published columns.

    Attributes
    ----------
    groups : tuple of tuple of int
        Places of inputs u; all inputs are one of them, for an observer who knows none.
    """

    groups: tuple[Group, ...]

    @classmethod
    def of(cls, published: Symbols, most: int) -> Known:
        """Of all sets of at most so many columns."""
        columns = range(len(published[0]))
        sets = (known for size in range(most + 1) for known in combinations(columns, size))
        return cls(tuple(group for known in sets for group in _groups(published, known)))


def worst_srlip(channel: Channel, published: Symbols, box: CountBox | None, alpha: Fraction | None) -> Ratio:
    """The largest ``P(y|s,x_J)/P(y|x_J)``, or its inverse, over sets J of columns, their values, and what may be true.

    PF (19), with J empty for LIP. For a protocol that reads the inputs alone all columns together say no more than the
    input itself; for one that reads the secret too they may.

    Parameters
    ----------
    channel : Channel
    published : Symbols
        The values of the published columns of every input u.
    box : CountBox, optional
        Every table of counts that may be the true one.
    alpha : Fraction, optional
        Over all laws that those do not rule out at this significance; without it, over the tables alone.
    """
    columns = len(published[0])
    known = Known.of(published, columns if channel.reads_secret else max(columns - 1, 0))
    return _worst(channel, known, box, alpha)


def worst_attribute(channel: Channel, published: Symbols, box: CountBox | None, alpha: Fraction | None) -> Ratio:
    """The same over proper sets of columns, and the largest ``T(y|s,u)/T(y|s',u)`` if the protocol reads the secret."""
    known = Known.of(published, max(len(published[0]) - 1, 0))
    return worse(_worst(channel, known, box, alpha), _worst_label(channel))


def _worst(channel: Channel, known: Known, box: CountBox | None, alpha: Fraction | None) -> Ratio:
    if alpha is not None:
        return _worst_distribution(channel, known, box or CountBox.exactly(channel.counts), alpha)
    return _worst_counted(channel, known) if box is None else _worst_table(channel, known, box)


def _worst_counted(channel: Channel, known: Known) -> Ratio:
    """For the counts alone."""
    # Per group the records of every secret, and those of all.
    sizes = [[sum(counts[u] for u in group) for counts in channel.counts] for group in known.groups]
    worst = Ratio()
    for y in range(len(channel.weights)):
        products = [list(map(mul, counts, channel.row(y, s))) for s, counts in enumerate(channel.counts)]
        for group, records in zip(known.groups, sizes, strict=True):
            masses = [sum(map(part.__getitem__, group)) for part in products]
            whole, number = sum(masses), sum(records)
            if not whole:
                continue
            for s, size in enumerate(records):
                if size:
                    # P(y|s,x_J) = (mass / size) and P(y|x_J) = (whole / number).
                    worst = larger(worst, masses[s] * number, whole * size)
                    worst = larger(worst, whole * size, masses[s] * number)
    return worst


def _worst_table(channel: Channel, known: Known, box: CountBox) -> Ratio:
    """For every table in a box: LIP among the records of each group, for every part of a table."""
    worst = Ratio()
    for group in known.groups:
        part = box.part(group)
        if any(most for _, most in part.totals):
            lifts = largest_lifts_over_counts(_within(channel, group, part), part)
            worst = worse(worst, worse(*lifts))
    return worst


def _worst_distribution(channel: Channel, known: Known, box: CountBox, alpha: Fraction) -> Ratio:
    """For every law that no table in a box rules out; the limits of all groups share the significance equally."""
    parts = [box.part(group) for group in known.groups]
    tail = alpha / sum(map(sides_of, parts))
    worst = Ratio()
    for group, part in zip(known.groups, parts, strict=True):
        lifts = largest_lifts_over_distributions(_within(channel, group, part), limits_at(part, tail))
        worst = worse(worst, worse(*lifts))
    return worst


def _within(channel: Channel, group: Group, part: CountBox) -> Channel:
    """The protocol as it is on some inputs; its counts only say where to start, so one record of each cell will do."""
    c = channel.c if channel.reads_secret else 1
    weights = tuple(
        tuple(row[u] for s in range(c) for row in (channel.row(y, s),) for u in group)
        for y in range(len(channel.weights))
    )
    counts = tuple((1,) * len(group) for _ in part.totals)
    return Channel(counts, weights, channel.denominator, channel.reads_secret)


def _worst_label(channel: Channel) -> Ratio:
    """The largest ratio of the weights of two secrets for one input u, whoever has them."""
    worst = Ratio()
    if not channel.reads_secret:
        return worst
    for y in range(len(channel.weights)):
        for weights in zip(*(channel.row(y, s) for s in range(channel.c)), strict=True):
            high = max(weights)
            worst = larger(worst, high, min(weights)) if high else worst
    return worst


def _groups(published: Symbols, known: tuple[int, ...]) -> list[Group]:
    """The inputs by the values of the columns that are known."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for u, symbol in enumerate(published):
        groups.setdefault(tuple(symbol[k] for k in known), []).append(u)
    return [tuple(group) for group in groups.values()]
