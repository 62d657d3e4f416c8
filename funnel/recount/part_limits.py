"""Part limits: the largest change of a belief under all shares of a secret in classes that held-out records allow.

Classes are chosen without the records that are held out, so these are a sample of the population for them. Of every
class they give limits of Clopper and Pearson for the share of each secret, which the share by all counts is within.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from funnel.errors import DataError, SpecError
from funnel.recount.channel import entries_of
from funnel.recount.count_box import UNIT, Limits, lower_limit, upper_limit
from funnel.recount.packed import divided_up
from funnel.recount.part_beliefs import KnownValues, class_of
from funnel.recount.ratios import Ratio, larger

# People of a secret, or held-out records, by the name of a class.
ByClass = Mapping[str, int]


def worst_in_population(known: KnownValues, alpha: Fraction) -> Ratio:
    """The largest change of a belief about a secret by a published record, over all shares within their limits.

    With F(y, h) people of class h published as y, n_h people of it and q_h the share of the secret there, the change is
    ``(Σ F(y, h) q_h / Σ F(y, h)) / (Σ n_h q_h / n)``: a share may be anything within its limits, whatever the others.

    Raises
    ------
    SpecError
        If the protocol reads the secret.
    DataError
        If no records are held out, or they are not some of those that are counted.
    """
    counts: list[dict[str, int]] = [{} for _ in known.counts]
    for of, row in zip(counts, known.counts, strict=True):
        for part, number in zip(known.inputs, row, strict=True):
            of[class_of(part)] = of.get(class_of(part), 0) + number
    limits = class_limits(counts, known.held_out, alpha)
    sizes = {name: sum(of[name] for of in counts) for name in counts[0]}
    people = list(map(sum, zip(*known.counts, strict=True)))
    worst = Ratio()
    for row in known.weights:
        if len(row) != len(people):
            raise SpecError(
                "a bound for a population is not decided where the secret is published with parts of classes"
            )
        seen = dict.fromkeys(sizes, 0)
        for k, weight in entries_of(row):
            seen[class_of(known.inputs[k])] += people[k] * weight
        worst = _largest_change(worst, [*seen.values()], [*sizes.values()], limits)
    return worst


def class_limits(counts: Sequence[ByClass], held_out: Sequence[ByClass] | None, alpha: Fraction) -> list[list[Limits]]:
    """Limits of the share of every secret in every class, c × g, in `UNIT`: each side of each at ``alpha / (2 c g)``.

    Parameters
    ----------
    counts, held_out : sequence of c mappings of the same g classes
        All records with a secret, and those of them that are held out.
    alpha : Fraction

    Raises
    ------
    DataError
        As `worst_in_population`.
    """
    if held_out is None or [of.keys() for of in held_out] != [of.keys() for of in counts]:
        raise DataError("records of every class and secret have to be held out for a bound for a population")
    tail = alpha / (2 * len(counts) * len(counts[0]))
    found = []
    for all_of, of in zip(counts, held_out, strict=True):
        row = []
        for name, mine in all_of.items():
            people, trials, number = sum(one[name] for one in counts), sum(one[name] for one in held_out), of[name]
            if not people or not 0 <= number <= mine:
                raise DataError("the records that are held out are not among those that are counted")
            low, high = lower_limit(number, trials, tail), upper_limit(number, trials, tail)
            row.append((min(low, mine * UNIT // people), max(high, divided_up(mine * UNIT, people))))
        found.append(row)
    return found


def _largest_change(
    worst: Ratio, seen: Sequence[int], sizes: Sequence[int], limits: Sequence[Sequence[Limits]]
) -> Ratio:
    """The larger of a ratio and the largest change by one published record, or its inverse, of any secret.

    The change is a quotient of sums that are straight in every share, so it is largest, or smallest, at a corner, and
    there a share is at its upper limit exactly if ``F(y, h) / n_h`` is on one side of a threshold: all are tried.
    """
    whole, everybody = sum(seen), sum(sizes)
    if not whole:
        return worst
    # Quotients that differ do so by more than 2^-bits, so that rounding down keeps their order.
    bits = 2 * max(sizes).bit_length()
    order = sorted(range(len(sizes)), key=lambda h: (seen[h] << bits) // sizes[h])
    for of_secret in limits:
        for places in (order, order[::-1]):
            above = sum(number * low for number, (low, _) in zip(seen, of_secret, strict=True))
            below = sum(number * low for number, (low, _) in zip(sizes, of_secret, strict=True))
            for h in (None, *places):
                if h is not None:
                    low, high = of_secret[h]
                    above, below = above + seen[h] * (high - low), below + sizes[h] * (high - low)
                # Where nobody has the secret nothing is believed of it.
                if below:
                    up, down = above * everybody, below * whole
                    worst = larger(larger(worst, up, down), down, up)
    return worst
