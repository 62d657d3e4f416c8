"""Rounded: whether a published channel is the effective one of a register, on a grid that tells of no single people.

And whether the effective one is what the people of the register drew from on average.

All weights but the largest of a column are multiples of 2^(63-k) and not zero, rounded up from one sixteenth of a step
on, which is the same for all, and that one has what is left, for one k from a step of public shares to 28; or so are
those with a share 2^-10 of the distribution of the output mixed in. Where no usual way keeps the bound it is another
channel on a grid, as near as it is said to be. It never says that more is kept than is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from funnel.errors import DataError
from funnel.recount.balance import average_complaints, is_invariant
from funnel.recount.channel import Channel, by_secret
from funnel.recount.chapters import NEW, WHOLE, Chapter
from funnel.recount.count_box import CountBox
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.levels import plain_level
from funnel.recount.plain_distributions import share_step
from funnel.recount.promise import read_promise
from funnel.recount.ratios import PlainInformation, plain_information
from funnel.recount.register_files import Entry
from funnel.recount.register_people import Followed
from funnel.recount.released import ReleasedProtocol

Weights = Sequence[Sequence[int]]

_BITS, _COARSEST, _FINEST, _MIXED, _PARTS = 63, 8, 28, 10, 16
# Ways that are tried before a channel is moved: to the nearest step, up, and up with a little of the distribution mixed
# in.
_USUAL = ((0, 8), (0, 16), (1, 16))
# Of mutual information that is computed twice in floats, nats.
_NOISE = 1e-9
# What rounding may cost: a share of I(X;Y), or a step of public shares of H(X).
_COST = 1e-2


def rounding_complaints(
    told: Weights,
    exact: Weights,
    chapter: Chapter,
    perfect: bool,
    *,
    off: float | None = None,
    box: CountBox | None = None,
    as_it_is: bool = False,
) -> Iterator[str]:
    """In what way a published channel is not the effective one, rounded, as parts of sentences.

    Parameters
    ----------
    told, exact : b × a whole numbers
        Weights of the published channel and of the effective one, in the order of the chapter; columns add up to 2^63.
    chapter : Chapter
        If one of its channels is the effective one, that tells of no shares of people, and is published as it is.
    perfect : bool
        Whether perfect privacy is promised, which no grid keeps.
    off : float, optional
        By how much any share may be off, as it is said; None in documents that do not say. Only where it is said may a
        channel be another one than a rounding.
    box : CountBox, optional
        All tables that noise leaves open, in the order of the chapter.
    as_it_is : bool
        Whether it has to be the effective one to the last unit: of an invariant release under noise, whose balance no
        rounding keeps, and whose channel follows from public tables.

    Notes
    -----
    O(a b) whole numbers for each of 34 ways on every grid that all published weights are on; and where it is none of
    them, a level in plain fractions for each of 33 roundings.
    """
    told, exact, a = [list(row) for row in told], [list(row) for row in exact], chapter.a
    if as_it_is:
        if told != exact or off != 0:
            yield "is not the effective one to the last unit, and no other is in balance"
        return
    counts = by_secret(chapter.counts, a)
    step = share_step(sum(chapter.counts))
    first = max(_COARSEST, math.ceil(-math.log2(step)))
    both = (exact, _mixed(exact, [sum(column) for column in zip(*counts, strict=True)]))
    furthest = max(abs(one - other) for row in zip(told, exact, strict=True) for one, other in zip(*row, strict=True))
    unit = math.gcd(1 << (_BITS - _COARSEST), *(weight for row in told for weight in row))
    true = plain_information(Channel.of(counts, exact, WHOLE))
    slack = max(_COST * true.utility, step * true.entropy) + _NOISE
    finer = [bits for bits in range(first, _FINEST + 1) if not unit % (1 << (_BITS - bits))]
    ways = [(one, part) for one in both for part in range(_PARTS + 1)]
    if all(told != _on_grid(one, bits, part) for bits in finer for one, part in ways):
        grids = range(first, _FINEST + 1, 2)
        usual = (_on_grid(both[which], bits, part) for bits in grids for which, part in _USUAL)
        if told == exact:
            if not perfect and not _is_one_of(exact, chapter):
                yield "is the effective channel to the last unit, which tells how many people have which history"
        elif off is None or not finer or not _same_support(told, exact):
            yield "is not the effective channel, rounded to a grid"
        elif any(_would_do(one, counts, chapter.guarantee, box, true, slack) for one in usual):
            yield "is not the effective channel, rounded to a grid, though a rounding keeps the bound"
    kept = plain_information(Channel.of(counts, told, WHOLE))
    if not true.utility - slack <= kept.utility <= true.utility + _NOISE:
        yield "keeps more than the effective channel, or far less"
    if off is not None and off != -(-furthest // unit) * unit / WHOLE:
        yield f"is said to be within {off} of the effective one, and is not, or nearer"


def channel_complaints(
    content: Mapping[str, Any], released: ReleasedProtocol, entry: Entry, public: PublicFrequencies | None
) -> Iterator[str]:
    """In what way the channel of a release is not the effective one of its entry in the register, rounded.

    Parameters
    ----------
    content : mapping
        Of its ``protocol.json``.
    released : ReleasedProtocol
        The same protocol.
    entry : Entry
    public : PublicFrequencies or None
        Its public frequencies, where noise protects the exact ones.
    """
    chapter = entry.chapter
    outputs, effective = entry.told
    if set(released.inputs) != set(chapter.inputs) or set(released.outputs) != set(outputs):
        yield "has other values than the register"
        return
    xs = [released.inputs.index(symbol) for symbol in chapter.inputs]
    told = [[released.weights[released.outputs.index(symbol)][x] for x in xs] for symbol in outputs]
    if public is None and is_invariant(content):
        yield from average_complaints(effective, [sum(chapter.counts[x :: chapter.a]) for x in range(chapter.a)])
    yield from rounding_complaints(
        told,
        effective,
        chapter,
        read_promise(chapter.guarantee).kind == "perfect",
        off=content["rounded"],
        box=box_of(public, chapter),
        as_it_is=public is not None and is_invariant(content),
    )


def open_complaints(entry: Entry, public: PublicFrequencies | None, robust: bool) -> Iterator[str]:
    """What is wrong with what an entry takes for open under noise, where that is asked for."""
    found = entry.left_open
    if (robust and public is not None) is not (found is not None):
        yield "is not about what noise leaves open, as the spec asks, or is although the spec does not ask"
    if found is None:
        return
    counts = (found.noisy, float(found.beta), found.epsilon)
    if public is None or counts != (tuple(map(tuple, public.noisy)), public.beta, public.epsilon_counts):
        yield "takes other noisy counts for the published ones"
    if public is not None and found.changes != public.changes:
        yield "takes other noisy tables of changes for the published ones"
    if public is not None and found.rows != public.rows:
        yield "takes other noisy tables of rows for the published ones"


def box_of(public: PublicFrequencies | None, chapter: Chapter) -> CountBox | None:
    """All tables that published noisy counts leave open, in the order of a chapter; None where there is no noise.

    Raises
    ------
    DataError
        If they are about other values.
    """
    if public is None:
        return None
    if (set(public.secret), set(public.inputs)) != (set(chapter.secret), set(chapter.inputs)):
        raise DataError("the public frequencies are about other values than the register")
    box = public.possible
    ss, xs = [public.secret.index(s) for s in chapter.secret], [public.inputs.index(x) for x in chapter.inputs]
    lower, upper = ([[table[s][x] for x in xs] for s in ss] for table in (box.lower, box.upper))
    return CountBox.of(lower, upper, [box.totals[s] for s in ss])


def _same_support(told: Weights, exact: Weights) -> bool:
    """Whether the same is possible; or everything is, and whatever was not has one and the same weight, the least."""
    pairs = [(one, other) for row in zip(told, exact, strict=True) for one, other in zip(*row, strict=True)]
    added = {one for one, other in pairs if not other}
    least = min(one for one, _ in pairs)
    return all(bool(one) == bool(other) for one, other in pairs) or (least > 0 and added == {least})


def _would_do(
    weights: Weights,
    counts: Sequence[Sequence[int]],
    guarantee: str,
    box: CountBox | None,
    true: PlainInformation,
    slack: float,
) -> bool:
    """Whether a rounding keeps the bound and tells as much as it may, beyond doubt."""
    # The largest weight of a column has what is left, and that may be nothing.
    if min(max(column) if min(column) >= 0 else 0 for column in zip(*weights, strict=True)) == 0:
        return False
    if not plain_level(guarantee, counts, weights, box=box).holds:
        return False
    kept = plain_information(Channel.of(counts, weights, WHOLE)).utility
    return true.utility - slack + 2 * _NOISE <= kept <= true.utility - _NOISE


def _is_one_of(exact: Weights, chapter: Chapter) -> bool:
    """Whether one of the channels is it; one of donors over classes, where going on and beginning add up."""
    k, a = len(exact), chapter.a
    for rows in chapter.channels.values():
        found = [[0] * a for _ in range(k)]
        for y, row in enumerate(rows):
            for x, weight in row:
                if x < a:
                    found[y % k][x] += weight
        if found == exact:
            return True
    return False


def _on_grid(exact: Weights, bits: int, part: int) -> list[list[int]]:
    unit = 1 << (_BITS - bits)
    more = min(unit * part // _PARTS, unit - 1)
    columns = []
    for column in zip(*exact, strict=True):
        largest = column.index(max(column))
        found = [max((weight + more) // unit, int(weight > 0)) for weight in column]
        found = [steps * unit for steps in found]
        found[largest] = WHOLE - sum(found) + found[largest]
        columns.append(found)
    return [list(row) for row in zip(*columns, strict=True)]


def _mixed(exact: Weights, people: Sequence[int]) -> Weights:
    distribution = [sum(weight * n for weight, n in zip(row, people, strict=True)) // sum(people) for row in exact]
    return [
        [weight - (weight >> _MIXED) + (q >> _MIXED) if weight else 0 for weight in row]
        for row, q in zip(exact, distribution, strict=True)
    ]


def history_complaints(entry: Entry, followed: Followed, missing: int, coming: bool) -> Iterator[str]:
    """Histories and the published channel of an entry that are not those of its people.

    The published channel is the mean of all channels, over the people who drew from each; its weights are whole numbers
    that add up to 2^63, so that each may be off by as many as there are outputs. People who were forgotten before the
    version draw from the distribution of the output of all others, whatever they are. Once some of a version are
    forgotten that was published, nobody can tell any more what they drew from; the mean is then known up to their
    share.
    """
    chapter = entry.chapter
    if any(sum(column) != WHOLE for column in zip(*entry.effective, strict=True)):
        yield "the weights of the effective channel do not add up to 2^63"
    new = {NEW} if missing else set()
    had, has = set(followed.people) - new, set(chapter.followed) - new
    known = coming or not missing
    # With noise there are histories that are expected and that nobody has.
    if not had <= has or (had != has and not entry.protected and known):
        yield "it has channels for other histories than its people had"
    # With noise it is that of people who are expected, and judged with their distributions.
    if not entry.protected and (wrong := _not_the_mean(entry, followed.by_channel, known)):
        yield f"{wrong:,} weights of the effective channel are not the mean of what people drew from"


def _not_the_mean(entry: Entry, by_channel: Mapping[tuple[int, int], int], known: bool) -> int:
    """Weights that are not the mean; if it is not ``known`` what some drew from, those that it cannot be."""
    chapter = entry.chapter
    people = [0] * chapter.a
    drawn = [[0] * chapter.a for _ in range(chapter.b)]
    by_input: dict[int, dict[int, int]] = {}
    for (k, x), count in by_channel.items():
        people[x] += count
        by_input.setdefault(k, {})[x] = count
    silent = [max(0, sum(chapter.counts[x :: chapter.a]) - count) for x, count in enumerate(people)]
    for k, counts in by_input.items():
        for y, row in enumerate(chapter.channels[k]):
            for x, weight in row:
                drawn[y][x] += counts.get(x, 0) * weight
    if not known:
        # Whatever they drew from, its weights are from zero to 2^63.
        return sum(
            not -room <= entry.effective[y][x] * (people[x] + gone) - drawn[y][x] <= gone * WHOLE + room
            for x, gone in enumerate(silent)
            for room in (2 * chapter.b * (people[x] + gone),)
            for y in range(chapter.b if people[x] + gone else 0)
        )
    others = sum(people)
    if not others:
        # All of them are forgotten: any distribution tells nothing.
        return sum(len(set(row[x] for x in range(chapter.a) if silent[x])) > 1 for row in entry.effective)
    distribution = [sum(row) for row in drawn]
    wrong = 0
    for x, count in enumerate(map(sum, zip(people, silent, strict=True))):
        for y in range(chapter.b if count else 0):
            expected = drawn[y][x] * others + silent[x] * distribution[y]
            # A unit more an output where the distribution of all others was rounded too.
            room = chapter.b * (2 if silent[x] else 1)
            wrong += abs(entry.effective[y][x] * count * others - expected) > room * count * others
    return wrong
