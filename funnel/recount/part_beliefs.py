"""Part beliefs a second time: what observers of no column, or of any at once, conclude from parts of classes.

A protocol is between parts of classes: "3.2" is a part of the class "3". Observers know of the secret what the counts
of classes say. A published record of a part is the person's own, where the part stays, or that of a donor: any person
of the part that is drawn, each as likely. Where the secret is published too, either counts by the probability that the
published one has. All is computed in whole numbers from counts of classes and of values.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import lcm
from operator import add

from funnel.errors import DataError
from funnel.recount.channel import Row, Symbols, entries_of
from funnel.recount.ratios import Ratio, larger

Symbol = tuple[str, ...]
# Columns with their values, that an observer may know at once.
Known = tuple[tuple[str, str], ...]
# Of an output the place of its part, and by the place of every part that it comes from the weights, secret by secret.
Arrivals = tuple[int, dict[int, list[int]]]
# Between the name of a class and the number of one of its parts.
PART = "."
# So little above a bound is rounding, relatively.
_ROUNDING = 1e-9
# A bound of more nats bounds nothing, and floats hold e to that power.
_MOST = 600.0
# So little of a record, where donors stand along lines, that it is nothing.
_HARDLY = 1e-9


def class_of(part: Symbol) -> str:
    """The class that a part of the protocol belongs to; itself where it is no part."""
    return part[-1].split(PART)[0]


def people_by_part(
    records: Mapping[tuple[Symbol, Symbol], int], columns: Sequence[str], of: Callable[[Symbol], Symbol], at_once: int
) -> dict[Known, dict[Symbol, int]]:
    """The people in every part, with values of so many columns or fewer, from counts of (secret, record)."""
    people: Counter[Symbol] = Counter()
    for (_, record), count in records.items():
        people[record] += count
    parts, counts = [of(record) for record in people], [*people.values()]
    found: dict[Known, dict[Symbol, int]] = {}
    for size in range(1, at_once + 1):
        for places in combinations(range(len(columns)), size):
            inside: defaultdict[tuple[Symbol, Symbol], int] = defaultdict(int)
            there = zip(*([record[j] for record in people] for j in places), strict=True)
            for key, count in zip(zip(there, parts, strict=True), counts, strict=True):
                inside[key] += count
            names = [columns[j] for j in places]
            for (values, part), count in inside.items():
                found.setdefault(tuple(zip(names, values, strict=True)), {})[part] = count
    return found


def counts_of_classes(counts: Mapping[tuple[Symbol, Symbol], int]) -> Counter[tuple[Symbol, Symbol]]:
    """Counts of secrets and classes, from those of secrets and parts."""
    found: Counter[tuple[Symbol, Symbol]] = Counter()
    for (secret, part), count in counts.items():
        found[secret, (class_of(part),)] += count
    return found


def _shares(counts: Sequence[Sequence[int]], parts: Symbols) -> tuple[list[int], list[list[int]]]:
    """People of every part, and the secrets of one of them as the class says, a × c, all in one unit.

    Raises
    ------
    DataError
        If a part has no people.
    """
    sizes = [sum(column) for column in zip(*counts, strict=True)]
    if not all(sizes):
        raise DataError("a part of a class has no records")
    of_class: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(counts))
    for k, part in enumerate(parts):
        for s, row in enumerate(counts):
            of_class[class_of(part)][s] += row[k]
    unit = lcm(*(sum(of) for of in of_class.values()))
    tells = [[number * (unit // sum(of)) for number in of] for of in (of_class[class_of(part)] for part in parts)]
    return sizes, tells


def beliefs(counts: Sequence[Sequence[int]], inputs: Symbols, secret: Symbols) -> list[list[int]]:
    """What is believed of secrets and inputs, c × a, in proportion: people of a part, by the secrets of its class.

    Inputs are parts, or a secret and a part.
    """
    parts = tuple(dict.fromkeys(x[-1:] for x in inputs))
    place = {part: k for k, part in enumerate(parts)}
    table = [[0] * len(parts) for _ in secret]
    for of, row in zip(table, counts, strict=True):
        for x, count in zip(inputs, row, strict=True):
            of[place[x[-1:]]] += count
    sizes, tells = _shares(table, parts)
    people = [(x[:-1], sizes[place[x[-1:]]], tells[place[x[-1:]]]) for x in inputs]
    return [[size * of[s] if own in ((), one) else 0 for own, size, of in people] for s, one in enumerate(secret)]


@dataclass(frozen=True, eq=False)
class KnownValues:
    """A protocol between parts, or classes, and observers who know values of a person, whichever columns these are of.

    Parameters
    ----------
    counts : sequence of sequence of int, c × a
        Of secrets and parts.
    inputs, outputs : Symbols
        The parts, in the order of counts; and what is published, in that of weights: parts, or secrets and parts.
    weights : sequence of rows
        Of every output, in the order of the inputs; or by secret, and then in this order.
    denominator : int
    people : mapping of Known to mapping of part to int
        As `people_by_part` has them.
    even : bool
        Whether a donor is any person of the part. Else people of two classes stand along lines, and from how many of
        those with the values a record comes depends on who stands where: the worst of all that is taken.
    held_out : sequence of c mappings of class to int, optional
        Records of every secret by which classes were not chosen.
    """

    counts: Sequence[Sequence[int]]
    inputs: Symbols
    outputs: Symbols
    weights: Sequence[Row]
    denominator: int
    people: Mapping[Known, Mapping[Symbol, int]]
    even: bool = True
    held_out: Sequence[Mapping[str, int]] | None = None

    @property
    def content(self) -> list[object]:
        """What all of it is beside counts and weights, as a text says it."""
        people = [(known, sorted(of.items())) for known, of in sorted(self.people.items())]
        held_out = None if self.held_out is None else [sorted(of.items()) for of in self.held_out]
        return [self.inputs, self.outputs, people, held_out]

    @cached_property
    def _shares(self) -> tuple[list[int], list[list[int]]]:
        return _shares(self.counts, self.inputs)

    @cached_property
    def _arrivals(self) -> list[Arrivals]:
        """Of every output.

        Raises
        ------
        DataError
            If an output is no part, or weights are of other inputs.
        """
        places = {part: k for k, part in enumerate(self.inputs)}
        c, a = len(self.counts), len(self.inputs)
        found = []
        for output, row in zip(self.outputs, self.weights, strict=True):
            if (own := places.get(output[-1:])) is None or len(row) not in (a, c * a):
                raise DataError("a protocol between parts of classes has other outputs than inputs")
            of_part: dict[int, list[int]] = {}
            for x, weight in entries_of(row):
                secret, k = divmod(x, a)
                by_secret = of_part.setdefault(k, [0] * c)
                by_secret[:] = (
                    [weight] * c if len(row) == a else [*by_secret[:secret], weight, *by_secret[secret + 1 :]]
                )
            found.append((own, of_part))
        return found

    def views(self, known: Known) -> Iterator[tuple[tuple[int, int], float]]:
        """What observers who know these values conclude from a record with them, or without, and of how many people.

        A conclusion is the largest change of a belief as a quotient; what divides is 0 where a secret is ruled out.
        """
        sizes, tells = self._shares
        of = self.people[known]
        having = {k: number for k, part in enumerate(self.inputs) if (number := of.get(part, 0))}
        prior = _sum((number, tells[k]) for k, number in having.items())
        unit = sum(tells[0]) * self.denominator
        for own, weights in self._arrivals:
            mine, size = having.get(own, 0), sizes[own]
            come, stay, moved = [0] * len(prior), [0] * len(prior), 0
            free: list[list[int]] = []
            for k, by_secret in weights.items():
                number = size if k == own else having.get(k, 0)
                people = [number * weight * share for weight, share in zip(by_secret, tells[k], strict=True)]
                moved += 0 if k == own else sum(people)
                if k == own:
                    stay = people
                elif self.even or number == sizes[k]:
                    come = list(map(add, come, people))
                elif sum(people) > _HARDLY * number * unit:
                    # Of a class in which not all are known to be any part may be there.
                    free.append([one * sizes[k] // number for one in people])
            least = 0.0 if self.even else _HARDLY * size * unit
            both = list(map(add, come, stay))
            apart = _change(prior, come, free, least) if moved and mine < size else (1, 1)
            alike = _change(prior, both, free, least) if mine else (1, 1)
            if self.even:
                yield apart, moved * (size - mine) / (size * unit)
                yield alike, sum(both) * mine / (size * unit)
            else:
                yield (
                    max(apart, alike, key=lambda change: change[0] / change[1] if change[1] else math.inf),
                    moved / unit,
                )
                yield alike, sum(stay) * mine / (size * unit)

    def worst(self) -> Ratio:
        """The largest change of a belief, for all values of all columns."""
        found = Ratio()
        for known in self.people:
            for change, _ in self.views(known):
                found = larger(found, *change)
        return found

    def concluded(self, budget: float) -> dict[tuple[str, ...], tuple[float, float]]:
        """What observers of some columns conclude at most: level, nats, and the share of people beyond; by columns."""
        worst: dict[tuple[str, ...], Ratio] = {}
        outside: defaultdict[tuple[str, ...], float] = defaultdict(float)
        everybody = sum(map(sum, self.counts))
        beyond = math.exp(min(_MOST, budget * (1 + _ROUNDING) + _ROUNDING))
        for known in self.people:
            columns = tuple(column for column, _ in known)
            for (above, below), people in self.views(known):
                worst[columns] = larger(worst.get(columns, Ratio()), above, below)
                if not below or above / below > beyond:
                    outside[columns] += people / everybody
        return {columns: (ratio.nats, outside[columns]) for columns, ratio in worst.items()}


def _sum(parts: Iterable[tuple[int, Sequence[int]]]) -> list[int]:
    """Sums of rows, each so many times."""
    rows = [[times * number for number in row] for times, row in parts]
    return [sum(column) for column in zip(*rows, strict=True)]


def _change(prior: Sequence[int], seen: Sequence[int], free: Sequence[Sequence[int]], least: float) -> tuple[int, int]:
    """The largest change of a belief by masses, of which any part of the free ones may be missing."""
    above, below, total = 1, 1, sum(prior)
    start = seen if sum(seen) > least else [0] * len(seen)
    for s, before in enumerate(prior):
        for largest in (True, False) if before else ():
            after, whole = start[s], sum(start)
            for masses in sorted(free, key=lambda masses: masses[s] / sum(masses), reverse=largest):
                mine, theirs = masses[s] * whole, after * sum(masses)
                # A further part moves the share towards its own: as long as it is the more extreme one.
                if whole and (mine <= theirs if largest else mine >= theirs):
                    break
                after, whole = after + masses[s], whole + sum(masses)
            up, down = after * total, before * whole
            for one, other in ((up, down), (down, up)):
                if one * below > above * other:
                    above, below = one, other
    return above, below
