"""Rounded: whether a published channel is the effective one of a register, on a grid that tells of no single people.

All weights but the largest of a column are multiples of 2^(63-k) and not zero, rounded up from one sixteenth of a step
on, which is the same for all, and that one has what is left, for one k from a step of public shares to 28; or so are
those with a share 2^-10 of the law of the output mixed in. It never says that more is kept than is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from funnel.recount.chapters import WHOLE, Chapter
from funnel.recount.information import plain_information

Weights = Sequence[Sequence[int]]

_BITS, _COARSEST, _FINEST, _MIXED, _PARTS = 63, 8, 28, 10, 16
# Of mutual information that is computed twice in floats, nats.
_NOISE = 1e-9
# What rounding may cost: a share of I(X;Y), or a step of public shares of H(X).
_COST = 1e-2
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


def rounding_complaints(told: Weights, exact: Weights, chapter: Chapter, perfect: bool) -> Iterator[str]:
    """In what way a published channel is not the effective one, rounded, as parts of sentences.

    Parameters
    ----------
    told, exact : b × a whole numbers
        Weights of the published channel and of the effective one, in the order of the chapter; columns add up to 2^63.
    chapter : Chapter
        If one of its channels is the effective one, that tells of no shares of people, and is published as it is.
    perfect : bool
        Whether perfect privacy is promised, which no grid keeps.

    Notes
    -----
    O(a b) whole numbers for each of 34 ways on every grid that all published weights are on.
    """
    told, exact, a = [list(row) for row in told], [list(row) for row in exact], chapter.a
    counts = [chapter.counts[start : start + a] for start in range(0, len(chapter.counts), a)]
    step = next((step for step in _STEPS if step * sum(chapter.counts) >= 10 * (1 - 1e-12)), _STEPS[-1])
    first = max(_COARSEST, math.ceil(-math.log2(step)))
    mixed = _mixed(exact, [sum(column) for column in zip(*counts, strict=True)])
    ways = [(one, part) for one in (exact, mixed) for part in range(_PARTS + 1)]
    finer = [
        bits for bits in range(first, _FINEST + 1) if not any(w % (1 << (_BITS - bits)) for row in told for w in row)
    ]
    if all(told != _on_grid(one, bits, part) for bits in finer for one, part in ways):
        if told != exact:
            yield "is not the effective channel, rounded to a grid"
        elif not perfect and not _is_one_of(exact, chapter):
            yield "is the effective channel to the last unit, which tells how many people have which history"
        return
    kept, true = plain_information(counts, told), plain_information(counts, exact)
    slack = max(_COST * true.utility, step * true.entropy) + _NOISE
    if not true.utility - slack <= kept.utility <= true.utility + _NOISE:
        yield "keeps more than the effective channel, or far less"


def _is_one_of(exact: Weights, chapter: Chapter) -> bool:
    known = [{x: weight for x, weight in enumerate(row) if weight} for row in exact]
    return any([dict(row) for row in rows] == known for rows in chapter.channels.values())


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
    law = [sum(weight * n for weight, n in zip(row, people, strict=True)) // sum(people) for row in exact]
    return [
        [weight - (weight >> _MIXED) + (q >> _MIXED) if weight else 0 for weight in row]
        for row, q in zip(exact, law, strict=True)
    ]
