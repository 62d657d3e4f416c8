"""The level of SRLIP and of attribute protection, computed a second time: observers who know published columns."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import chain, combinations

from funnel.recount.channel import Channel, Symbols
from funnel.recount.count_box import CountBox
from funnel.recount.distribution_box import limits_at, sides_of
from funnel.recount.ratios import Ratio, larger, worse
from funnel.recount.worst_boxes import lifts_over

Group = tuple[int, ...]


def _known(published: Symbols, most: int) -> list[Group]:
    """What observers may know: the inputs with the same values of a set of columns, of all sets of at most so many."""
    found: list[Group] = []
    for known in (some for size in range(most + 1) for some in combinations(range(len(published[0])), size)):
        groups: dict[tuple[str, ...], list[int]] = {}
        for u, symbol in enumerate(published):
            groups.setdefault(tuple(symbol[k] for k in known), []).append(u)
        found += map(tuple, groups.values())
    return found


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
    known = _known(published, columns if channel.reads_secret else max(columns - 1, 0))
    return _worst(channel, known, box, alpha)


def worst_attribute(channel: Channel, published: Symbols, box: CountBox | None, alpha: Fraction | None) -> Ratio:
    """The same over proper sets of columns, and the largest ``T(y|s,u)/T(y|s',u)`` if the protocol reads the secret."""
    known = _known(published, max(len(published[0]) - 1, 0))
    return worse(_worst(channel, known, box, alpha), _worst_label(channel))


def _worst(channel: Channel, known: Sequence[Group], box: CountBox | None, alpha: Fraction | None) -> Ratio:
    """LIP among the records of each group: for its counts, every part of a table in a box, or every law of a group.

    The limits of the laws of all groups share the significance equally.
    """
    if box is None and alpha is None:
        counted = ((group, tuple(tuple(row[u] for u in group) for row in channel.counts)) for group in known)
        lifts = [
            lifts_over(_within(channel, group, counts), None) for group, counts in counted if any(map(any, counts))
        ]
        return _worst_of(lifts)
    parts = [(group, (box or CountBox.exactly(channel.counts)).part(group)) for group in known]
    # Counts only say where to start in a box, so one record of each cell will do.
    within = [(_within(channel, group, ((1,) * len(group),) * channel.c), part) for group, part in parts]
    if alpha is None:
        possible = [(one, part) for one, part in within if any(most for _, most in part.totals)]
        return _worst_of([lifts_over(one, part) for one, part in possible])
    tail = alpha / sum(sides_of(part) for _, part in parts)
    return _worst_of([lifts_over(one, limits_at(part, tail)) for one, part in within])


def _worst_of(lifts: Sequence[tuple[Ratio, Ratio]]) -> Ratio:
    return reduce(worse, chain.from_iterable(lifts), Ratio())


def _within(channel: Channel, group: Group, counts: tuple[tuple[int, ...], ...]) -> Channel:
    """The protocol as it is on some inputs, with counts of these."""
    c = channel.c if channel.reads_secret else 1
    weights = tuple(
        tuple(row[u] for s in range(c) for row in (channel.row(y, s),) for u in group)
        for y in range(len(channel.weights))
    )
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
