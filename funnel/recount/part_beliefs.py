"""Part beliefs a second time: what observers of no column, or of any one, conclude from records of parts of classes.

A protocol is between parts of classes: "3.2" is a part of the class "3". Observers know of the secret what the counts
of classes say. A published record of a part is the person's own, where the part stays, or that of a donor: any person
of the part that is drawn, each as likely. All is computed in whole numbers from counts of classes and of values.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from funnel.errors import DataError
from funnel.recount.channel import Row, Symbols, entries_of
from funnel.recount.ratios import Ratio, larger, worse

Symbol = tuple[str, ...]
Value = tuple[str, str]
# Between the name of a class and the number of one of its parts.
PART = "."
# So little above a bound is rounding, relatively.
_ROUNDING = 1e-9


def class_of(part: Symbol) -> str:
    """The class that a part of the protocol belongs to; itself where it is no part."""
    return part[-1].split(PART)[0]


def people_by_part(
    records: Mapping[tuple[Symbol, Symbol], int], columns: Sequence[str], of: Callable[[Symbol], Symbol]
) -> dict[Value, Counter[Symbol]]:
    """Of every value of a column the people in every part, from counts of (secret, record) and the part of a record."""
    having: defaultdict[Value, Counter[Symbol]] = defaultdict(Counter)
    for (_, record), count in records.items():
        part = of(record)
        for value in zip(columns, record, strict=True):
            having[value][part] += count
    return dict(having)


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


def beliefs(counts: Sequence[Sequence[int]], parts: Symbols) -> list[list[int]]:
    """What is believed of secrets and parts, c × a, in proportion: people of a part, by the secrets of its class."""
    sizes, tells = _shares(counts, parts)
    return [[size * of[s] for size, of in zip(sizes, tells, strict=True)] for s in range(len(counts))]


@dataclass(frozen=True, eq=False)
class View:
    """What an observer who knows a value of a person may see of them: records of one part, with the value or without.

    Attributes
    ----------
    prior, seen : sequence of int
        By secret: before, and after; each in proportion.
    people : Fraction
        Who are seen so, on average.
    """

    prior: Sequence[int]
    seen: Sequence[int]
    people: Fraction

    @property
    def ratio(self) -> Ratio:
        """The largest change of a belief."""
        found, prior, seen = Ratio(), sum(self.prior), sum(self.seen)
        for before, after in zip(self.prior, self.seen, strict=True):
            if before:
                found = larger(found, after * prior, before * seen)
                found = larger(found, before * seen, after * prior)
        return found


@dataclass(frozen=True, eq=False)
class KnownValues:
    """A protocol between parts, and observers who know a value of a person, whichever column it is of.

    Parameters
    ----------
    counts : sequence of sequence of int, c × a
        Of secrets and parts.
    inputs, outputs : Symbols
        The parts, in the order of counts and of weights.
    weights : sequence of rows
        Of every output, in the order of the inputs.
    denominator : int
    people : mapping of (column, value) to mapping of part to int
        As `people_by_part` has them.
    """

    counts: Sequence[Sequence[int]]
    inputs: Symbols
    outputs: Symbols
    weights: Sequence[Row]
    denominator: int
    people: Mapping[Value, Mapping[Symbol, int]]

    @property
    def content(self) -> list[object]:
        """What all of it is beside counts and weights, as a text says it."""
        people = [(value, sorted(of.items())) for value, of in sorted(self.people.items())]
        return [self.inputs, self.outputs, people]

    def views(self, value: Value) -> Iterator[View]:
        """What observers of a value may see, with the people to whom it happens.

        Raises
        ------
        DataError
            If an output is no part.
        """
        sizes, tells = _shares(self.counts, self.inputs)
        having = [self.people[value].get(part, 0) for part in self.inputs]
        places = {part: k for k, part in enumerate(self.inputs)}
        prior = _sum((number, tells[k]) for k, number in enumerate(having))
        for output, row in zip(self.outputs, self.weights, strict=True):
            if (own := places.get(output)) is None:
                raise DataError("a protocol between parts of classes has other outputs than inputs")
            weights = dict(entries_of(row))
            stay = weights.pop(own, 0)
            come = [(weight * having[k], tells[k]) for k, weight in weights.items() if having[k]]
            moved = sum(times for times, _ in come)
            agreeing = Fraction(having[own], sizes[own])
            if come and having[own] < sizes[own]:
                yield View(prior, _sum(come), moved * (1 - agreeing) / self.denominator)
            if having[own] and (come or stay):
                alike = moved * agreeing + stay * having[own]
                yield View(prior, _sum([*come, (stay * sizes[own], tells[own])]), alike / self.denominator)

    def worst(self) -> Ratio:
        """The largest change of a belief, for all values of all columns."""
        found = Ratio()
        for value in self.people:
            for view in self.views(value):
                found = worse(found, view.ratio)
        return found

    def concluded(self, budget: float) -> dict[str, tuple[float, float]]:
        """Of every column what observers conclude at most who know it: level, nats, and the share of people beyond."""
        found: dict[str, tuple[float, float]] = {}
        everybody = sum(map(sum, self.counts))
        for value in self.people:
            level, outside = found.get(value[0], (0.0, 0.0))
            for view in self.views(value):
                nats = view.ratio.nats
                level = max(level, nats)
                if nats > budget * (1 + _ROUNDING) + _ROUNDING:
                    outside += float(view.people / everybody)
            found[value[0]] = level, outside
        return found


def _sum(parts: Iterable[tuple[int, Sequence[int]]]) -> list[int]:
    """Sums of rows, each so many times."""
    rows = [[times * number for number in row] for times, row in parts]
    return [sum(column) for column in zip(*rows, strict=True)]
