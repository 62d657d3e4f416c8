"""The level of a guarantee and whether it holds, computed a second time in plain fractions, from its text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import chain, combinations

from flint import arb

from funnel.errors import DataError, SpecError
from funnel.recount.channel import Channel, Symbols, alike, entries_of
from funnel.recount.count_box import CountBox, count_sides, distribution_box, limits_at
from funnel.recount.intervals import ball, below, float_above
from funnel.recount.part_beliefs import KnownValues
from funnel.recount.part_limits import worst_in_population
from funnel.recount.promise import Promise, read_promise
from funnel.recount.ratios import (
    LIFTS,
    Leakage,
    Ratio,
    SecretInformation,
    Side,
    larger,
    level_above,
    scaled,
    sides_of,
    worse,
)
from funnel.recount.robust import worst_robust_odds
from funnel.recount.run_results import once
from funnel.recount.worst_boxes import Possible, worst_of

Group = tuple[int, ...]


@dataclass(frozen=True)
class Average:
    """What is averaged over the secrets, and what it is compared with.

    Attributes
    ----------
    of : callable
        The summand of a lift l, to be weighted with p_s.
    least : int
        The sum where the output tells nothing: the smallest that there is, and all that a budget of 0 allows.
    limit : callable
        The bound on the sum as a function of the budget in nats.
    nats : callable
        Its inverse: the budget for which the sum is the bound.
    """

    of: Callable[[Fraction], Fraction]
    least: int
    limit: Callable[[arb], arb]
    nats: Callable[[arb], arb]


def average_of(kind: str, order: int) -> Average:
    """ALIP (31)–(36) with the bounds of its section 6.2."""
    if kind == "l1-lift":
        return Average(lambda lift: abs(lift - 1), 0, lambda nats: nats.exp() - 1, lambda value: value.log1p())
    if kind == "chi2-lift":
        return Average(
            lambda lift: (lift - 1) ** 2, 0, lambda nats: (nats.exp() - 1) ** 2, lambda value: value.sqrt().log1p()
        )
    return Average(lambda lift: lift**order, 1, lambda nats: (nats * order).exp(), lambda value: value.log() / order)


@dataclass(frozen=True)
class WorstAverage:
    """The largest average over outputs; ``value`` None where it is infinite."""

    average: Average
    value: Fraction | None

    def within(self, nats: Fraction) -> bool:
        """Whether it is at most what the budget allows."""
        value = self.value
        if value is None or value == self.average.least:
            return value is not None
        # Beyond 0 the bound is transcendental, and the sum is not.
        return nats > 0 and below(value, lambda: self.average.limit(ball(nats)))

    @property
    def nats(self) -> float:
        """The budget that allows it, rounded up."""
        value = self.value
        if value is None:
            return math.inf
        return 0.0 if value == self.average.least else float_above(lambda: self.average.nats(ball(value)))


def worst_averages(channel: Channel, average: Average) -> tuple[WorstAverage, WorstAverage]:
    """The largest ``Σ_s p_s f(l(s,y))`` and the largest ``Σ_s p_s f(1/l(s,y))`` over outputs."""
    shares = {s: Fraction(channel.sizes[s], channel.n) for s in channel.secrets}
    found: list[Fraction | None] = [Fraction(average.least)] * 2
    for masses in channel.outputs():
        lifts = channel.lifts(masses)
        for side, inverse in enumerate((False, True)):
            best = found[side]
            if best is None or (inverse and min(lifts.values()) == 0):
                found[side] = None
                continue
            parts = (shares[s] * average.of(1 / lift if inverse else lift) for s, lift in lifts.items())
            found[side] = max(best, sum(parts, Fraction(0)))
    return WorstAverage(average, found[0]), WorstAverage(average, found[1])


# What is decided for observers of records between parts of classes.
_BETWEEN_PARTS = ("lip", "srlip", "attribute", "rlip")
_AVERAGES = ("l1-lift", "chi2-lift", "alpha-lift")


def _known(published: Symbols, most: int) -> list[Group]:
    """What observers may know: the inputs with the same values of a set of columns, of all sets of at most so many."""
    places = range(len(published[0]))
    known = (some for size in range(most + 1) for some in combinations(places, size))
    return [tuple(group) for some in known for group in alike(published, some).values()]


def _worst_known(
    promise: Promise, channel: Channel, published: Symbols, box: CountBox | None, known: KnownValues | None
) -> Ratio:
    """The largest ``P(y|s,x_J)/P(y|x_J)``, or its inverse, over sets J of columns, their values, and what may be true.

    PF (19), with J empty for LIP. For a protocol that reads the inputs alone all columns together say no more than the
    input itself; for one that reads the secret too they may. ``attribute`` is about proper sets of columns, and the
    largest ``T(y|s,u)/T(y|s',u)`` if the protocol reads the secret. What may be true is the counts, every table in the
    box, or all distributions that those do not rule out. Between parts of classes, it is what ``known`` says.
    """
    if known is not None and promise.kind == "rlip":
        return worst_in_population(known, promise.number("alpha"))
    is_attribute = promise.kind.endswith("attribute")
    if known is not None:
        worst = _worst_of([worst_of(LIFTS, channel, None)])
        if promise.kind == "srlip":
            # Who knows all columns knows the part.
            parts = [(u,) for u in range(channel.a)] if channel.reads_secret else []
            worst = worse(worse(worst, known.worst()), _worst(channel, parts, None, None))
    else:
        columns = len(published[0])
        most = columns if channel.reads_secret and not is_attribute else max(columns - 1, 0)
        alpha = promise.number("alpha") if promise.distributions else None
        worst = _worst(channel, _known(published, most), box, alpha)
    return worse(worst, _worst_label(channel)) if is_attribute else worst


def _worst(channel: Channel, known: Sequence[Group], box: CountBox | None, alpha: Fraction | None) -> Ratio:
    """LIP among the records of each group: for its counts, parts of a table in a box, or all distributions of a group.

    The limits of the distributions of all groups share the significance equally.
    """
    if box is None and alpha is None:
        counted = ((group, tuple(tuple(row[u] for u in group) for row in channel.counts)) for group in known)
        lifts = [
            worst_of(LIFTS, _within(channel, group, counts), None) for group, counts in counted if any(map(any, counts))
        ]
        return _worst_of(lifts)
    parts = [(group, (box or CountBox.exactly(channel.counts)).part(group)) for group in known]
    # Counts only say where to start in a box, so one record of each cell will do.
    within = [(_within(channel, group, ((1,) * len(group),) * channel.c), part) for group, part in parts]
    if alpha is None:
        possible = [(one, part) for one, part in within if any(most for _, most in part.totals)]
        return _worst_of([worst_of(LIFTS, one, part) for one, part in possible])
    tail = alpha / sum(count_sides(part) for _, part in parts)
    return _worst_of([worst_of(LIFTS, one, limits_at(part, tail)) for one, part in within])


def _worst_of(lifts: Sequence[Sequence[Ratio]]) -> Ratio:
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


# What is about observers who know published columns.
_SIDE_CHANNELS = ("srlip", "rsrlip", "attribute", "rattribute")


@dataclass(frozen=True)
class PlainLevel:
    """What a protocol leaks, measured by the kind of guarantee that was promised.

    Attributes
    ----------
    promise : Promise
        As it was read from the text.
    nats : float
        The smallest budget for which the guarantee holds (of two budgets the larger, while they keep their
        proportion); never below it, and within a few units of the last place of it. Infinite if none would do.
    holds : bool
        Whether the guarantee holds with the budget of the text: decided exactly, without any margin. For ``rldp``:
        whether a proof in whole numbers was found that it does.
    """

    promise: Promise
    nats: float
    holds: bool


def plain_level(
    guarantee: str | Promise,
    counts: Sequence[Sequence[int]],
    weights: Sequence[Sequence[int]],
    denominator: int = 2**63,
    *,
    reads_secret: bool = False,
    published: Symbols | None = None,
    box: CountBox | None = None,
) -> PlainLevel:
    """The level of a protocol, and whether it meets a guarantee, by an implementation that shares no code with others.

    Parameters
    ----------
    guarantee : str or Promise
        As a spec writes it, such as ``"lip:1.0"``, ``"alip:1.3,0.7"`` or ``"perfect"``.
    counts : c × a whole numbers
        Records with secret s and published input u.
    weights : b × a whole numbers, or b × (c a)
        Of every output for every input that the protocol reads; where it reads (s, u), s varies slowest.
    denominator : int
        What the weights of one input add up to.
    reads_secret : bool
        Whether inputs are pairs (s, u).
    published : tuple of a tuples of text, optional
        The values of the published columns of every input u: ``srlip``, ``attribute`` and their robust forms need them.
    box : CountBox, optional
        Where the counts are known up to noise: every table that they may be. A promise that covers noise is then
        about all of these; any other about ``counts`` alone.

    Returns
    -------
    PlainLevel

    Raises
    ------
    SpecError
        If the text is no guarantee, or one about what observers know is asked about without ``published``.
    DataError
        If counts and weights are no protocol over these inputs, or the counts are not in their box.

    Notes
    -----
    O(a b c) products of whole numbers; ``srlip`` and its kind 2^m times as many for m published columns. Definitions:
    PF (1), (2), (19); ALIP (5), (31)–(36); RLDP (2), (3).
    """
    return level_of(guarantee, Channel.of(counts, weights, denominator, reads_secret), published, box)


def level_of(
    guarantee: str | Promise,
    channel: Channel,
    published: Symbols | None = None,
    box: CountBox | None = None,
    known: KnownValues | None = None,
) -> PlainLevel:
    """`plain_level` of counts and weights that fit each other.

    Between parts of classes, ``known`` is what observers of any columns may know: ``srlip`` is for these then, and
    ``rlip`` for a population that its held-out records are a sample of.
    """
    promise = guarantee if isinstance(guarantee, Promise) else read_promise(guarantee)
    if box is not None and not box.hold(channel.counts):
        raise DataError("the public counts are not within their own bounds")

    def content() -> object:
        rows = [[*entries_of(row)] for row in channel.weights]
        further = None if known is None else known.content
        return promise, channel.counts, rows, channel.denominator, channel.reads_secret, published, box, further

    return once(lambda: _level(promise, channel, published, box, known), content)


def _level(
    promise: Promise, channel: Channel, published: Symbols | None, box: CountBox | None, known: KnownValues | None
) -> PlainLevel:
    if promise.parts:
        return _of_all(promise, [_level(part, channel, published, box, known) for part in promise.parts])
    if known is not None and (promise.kind not in _BETWEEN_PARTS or box is not None):
        raise SpecError(f"{promise.kind} is not decided between parts of classes of records")
    found: Sequence[tuple[Side, Leakage]]
    if known is not None or promise.kind in _SIDE_CHANNELS:
        if published is None or len(published) != channel.a:
            raise SpecError(
                f"{promise.kind} is about what an observer knows of the published columns: name the value of each"
            )
        found = [(Side(promise.kind, promise.budget), _worst_known(promise, channel, published, box, known))]
    elif promise.kind == "mi":
        found = [(Side(promise.kind, promise.budget), SecretInformation.of(channel))]
    elif promise.distributions == "chi2":
        worst = worst_robust_odds(channel, promise.number("alpha"))
        found = [(Side("odds", promise.budget), worst)]
    elif promise.kind in _AVERAGES:
        order = int(promise.numbers.get("alpha") or 0)
        averages = worst_averages(channel, average_of(promise.kind, order))
        bounds = zip(("lift", "inverse"), (promise.numbers["upper"], promise.numbers["lower"]), averages, strict=True)
        found = [(Side(name, bound), worst) for name, bound, worst in bounds if bound is not None]
    else:
        possible: Possible = box if promise.covers_noise else None
        if promise.distributions is not None:
            possible = distribution_box(box or CountBox.exactly(channel.counts), promise.number("alpha"))
        sides = sides_of(promise)
        found = list(zip(sides, worst_of(sides, channel, possible), strict=True))
    level = level_above(promise, [side for side, _ in found], [worst for _, worst in found])
    return PlainLevel(promise, level, all(worst.within(side.nats) for side, worst in found))


def _of_all(promise: Promise, levels: Sequence[PlainLevel]) -> PlainLevel:
    """Of guarantees that all hold: the largest level, each as what the largest budget would have to be."""
    scales = [scaled(one.nats, one.promise.budget, promise.budget) for one in levels]
    return PlainLevel(promise, max(scales), all(one.holds for one in levels))
