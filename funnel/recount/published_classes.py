"""Records published by class: whether they are as many as the protocol makes, and what observers conclude of theirs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from funnel.recount.classes import PlainClasses
from funnel.recount.part_beliefs import KnownValues, people_by_part
from funnel.recount.released import ReleasedProtocol

Record = tuple[str, ...]
# A value of the secret, where that is published, a column, and a value of it.
Cell = tuple[Record, str, str]
# A true release is refused by chance with at most this probability, over all values of all columns together; and as
# often by the records that nobody is published with.
_FALSE_ALARMS = 5e-11
# What sums of floats can make of a variance that is none.
_NO_VARIANCE = 1e-9
# What probabilities are multiples of.
_UNIT = 2**63


@dataclass(frozen=True, eq=False)
class PublishedByClass:
    """The published records of a release by class, beside the true ones.

    Parameters
    ----------
    classes : PlainClasses
    true : mapping of (secret, record) to int
        Of the source.
    published : mapping of (secret, record, class) to int
        As they are in the file, with what it says of their class; the secret empty where it is not published.
    moves : mapping of (input, output) to float
        The protocol: of a class, after the secret where that is published.
    """

    classes: PlainClasses
    true: Mapping[tuple[Record, Record], int]
    published: Mapping[tuple[Record, Record, str], int]
    moves: Mapping[tuple[Record, Record], float]

    @cached_property
    def _people(self) -> list[tuple[Record, Record, int]]:
        """True records, each with what the protocol reads of it and how many there are."""
        reads_secret = any(len(x) > 1 for x, _ in self.moves)
        return [
            ((*secret, self.classes.of(record)) if reads_secret else (self.classes.of(record),), record, count)
            for (secret, record), count in self.true.items()
        ]

    @cached_property
    def _sizes(self) -> Counter[str]:
        """Records of every class."""
        found: Counter[str] = Counter()
        for x, _, count in self._people:
            found[x[-1]] += count
        return found

    @property
    def misplaced(self) -> int:
        """Published records that say another class than theirs."""
        return sum(count for (_, record, name), count in self.published.items() if self.classes.of(record) != name)

    @property
    def unknown(self) -> int:
        """Published records that nobody has."""
        true = {record for _, record in self.true}
        return sum(count for (_, record, _), count in self.published.items() if record not in true)

    def unlikely(self) -> Iterator[Cell]:
        """Secrets, columns and values of which the file has another number than the protocol and donors bring.

        Records are drawn one by one, so the number in a cell is a sum of independent zeros and ones. By Bernstein's
        inequality it is off its mean μ by t with probability 2 exp(-t² / (2 (V + t / 3))) at most, where the variance V
        is at most that of records which leave the cell, or come to it.
        """
        shown: Counter[Cell] = Counter()
        for (secret, record, _), count in self.published.items():
            for j, value in enumerate(record):
                shown[secret, self.classes.columns[j], value] += count
        means, variances = self.expected
        for cell, mean in means.items():
            if abs(shown[cell] - mean) > _bernstein(variances[cell], 1, len(means)):
                yield cell

    @property
    def gone(self) -> tuple[int, float, float]:
        """Records like no other that nobody is published with: their number, and the least and the most it may be.

        One is gone if its person leaves their class and no donor is taken there. A person of class g takes its place
        with a probability p of at most W = P(h|g), and these p sum to W n_g / n_h over all of g: so that nobody does
        has a probability between ``Π_g (1 - W)^(n_g / n_h)`` and ``exp(-Σ_g W n_g / n_h)``. What one person draws
        changes the number by one at most, and only if they leave: Freedman's inequality for martingales bounds the
        rest.
        """
        of_record: dict[Record, list[tuple[Record, int]]] = defaultdict(list)
        leaving = 0.0
        stays: dict[Record, float] = defaultdict(float)
        chances: dict[tuple[str, str], dict[Record, float]] = defaultdict(lambda: defaultdict(float))
        for (x, y), probability in self.moves.items():
            if x[-1] == y[-1]:
                stays[x] += probability
            else:
                chances[y[-1], x[-1]][x] += probability
        for x, record, count in self._people:
            leaving += count * (1 - stays[x])
            of_record[record].append((x, count))
        sizes = self._sizes
        nobody: dict[str, list[float]] = {name: [0.0, 0.0] for name in sizes}
        for (other, name), of in chances.items():
            if sizes[other] and sizes[name]:
                most, times = max(of.values()), sizes[name] / sizes[other]
                nobody[other][0] += times * (math.log1p(-most) if most < 1 else -math.inf)
                nobody[other][1] -= times * most
        single = [(record, of[0][0]) for record, of in of_record.items() if len(of) == 1 and of[0][1] == 1]
        least, most = (math.fsum((1 - stays[x]) * math.exp(nobody[x[-1]][end]) for _, x in single) for end in (0, 1))
        off = _bernstein(leaving, 2, 1)
        shown = {record for _, record, _ in self.published}
        return sum(record not in shown for record, _ in single), least - off, most + off

    def off(self) -> dict[Cell, float]:
        """By how many records the mean of each cell of secret, column and value is off the true number."""
        true: Counter[Cell] = Counter()
        for (secret, record), count in self.true.items():
            for cell in zip(self.classes.columns, record, strict=True):
                true[secret, *cell] += count
        means, _ = self.expected
        return {cell: abs(mean - true[cell]) for cell, mean in {**dict.fromkeys(true, 0.0), **means}.items()}

    @property
    def moved_by_secret(self) -> float:
        """The largest difference between the probabilities of a class for two secrets of people of one class."""
        chances: dict[tuple[str, str], dict[Record, float]] = defaultdict(lambda: defaultdict(float))
        secrets: dict[str, set[Record]] = defaultdict(set)
        for x, y in self.moves:
            secrets[x[-1]].add(x[:-1])
            chances[x[-1], y[-1]][x[:-1]] += self.moves[x, y]
        differences = [0.0]
        for (name, _), of in chances.items():
            each = [of.get(secret, 0.0) for secret in secrets[name]]
            differences.append(max(each) - min(each))
        return max(differences)

    def observed(self, budget: float) -> dict[Record, tuple[float, float]]:
        """What observers of some columns of a person conclude at most: level, nats, and people beyond; by columns.

        They believe that a person of class c has the secret s with the share that s has in c. A published record that
        agrees in the columns is the person's own, or that of a donor for somebody of another class.
        """
        classes = self.classes
        secrets = tuple(sorted({secret for secret, _ in self.true}))
        # Nobody is published of a class that nobody is of; a part without people is refused.
        names = [name for name in classes.names if classes.has_parts or self._sizes[name]]
        parts = tuple((name,) for name in names)
        counts = [[0] * len(parts) for _ in secrets]
        for (secret, record), count in self.true.items():
            counts[secrets.index(secret)][names.index(classes.of(record))] += count
        read: Sequence[Record] = parts
        if any(len(x) > 1 for x, _ in self.moves):
            read = tuple(secret + part for secret in secrets for part in parts)
        rows = [[int(self.moves.get((x, y), 0.0) * _UNIT) for x in read] for y in read]
        at_once = classes.at_once or 1
        people = people_by_part(self.true, classes.columns, lambda record: (classes.of(record),), at_once)
        return KnownValues(counts, parts, tuple(read), rows, _UNIT, people, classes.has_parts).concluded(budget)

    def off_in_errors(self, own: float) -> dict[tuple[str, str], float]:
        """By how many standard errors published counts of values are off, of records of people who are followed.

        Of the records that keep their class the same share are people's own, whichever it is, such that this is the
        share ``own`` of all; the others are anybody's of their class. Values whose count does not vary are left out.
        """
        counts: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        for x, record, count in self._people:
            for cell in zip(self.classes.columns, record, strict=True):
                counts[x[-1]][cell] += count
        keep = {x[-1]: chance for (x, y), chance in self.moves.items() if x == y}
        stays = sum(self._sizes[name] * chance for name, chance in keep.items())
        share = min(1.0, own * sum(self._sizes.values()) / stays) if stays else 1.0
        shown, true = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for (_, record, _), count in self.published.items():
            for cell in zip(self.classes.columns, record, strict=True):
                shown[cell] += count
        variances: dict[tuple[str, str], float] = defaultdict(float)
        for name, size in self._sizes.items():
            means: dict[tuple[str, str], float] = defaultdict(float)
            for (x, y), chance in self.moves.items():
                for cell, count in counts[y[-1]].items() if x[-1] == name else ():
                    means[cell] += chance * count / self._sizes[y[-1]]
            for cell, mean in means.items():
                variances[cell] += size * mean * (1 - mean)
            for cell, count in counts[name].items():
                true[cell] += count
                variances[cell] -= (keep.get(name, 0.0) * share) ** 2 * count * (1 - count / size)
        return {
            cell: abs(shown[cell] - true[cell]) / math.sqrt(variance)
            for cell, variance in variances.items()
            if variance > _NO_VARIANCE
        }

    @cached_property
    def expected(self) -> tuple[dict[Cell, float], dict[Cell, float]]:
        """Mean and largest variance of the number of published records in every cell."""
        within: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        of_input: dict[Record, Counter[tuple[str, str]]] = defaultdict(Counter)
        people: Counter[Record] = Counter()
        for x, record, count in self._people:
            people[x] += count
            for cell in zip(self.classes.columns, record, strict=True):
                within[x[-1]][cell] += count
                of_input[x][cell] += count
        means: dict[Cell, float] = defaultdict(float)
        variances: dict[Cell, float] = defaultdict(float)
        coming: dict[Record, float] = defaultdict(float)
        for (x, y), probability in self.moves.items():
            if x[-1] != y[-1]:
                coming[y] += people[x] * probability
                continue
            for (column, value), count in of_input[x].items():
                means[y[:-1], column, value] += count * probability
                variances[y[:-1], column, value] += count * probability * (1 - probability)
        for y, records in coming.items():
            for (column, value), count in within[y[-1]].items():
                means[y[:-1], column, value] += records * count / self._sizes[y[-1]]
                variances[y[:-1], column, value] += records * count / self._sizes[y[-1]]
        return means, variances


def _bernstein(variance: float, step: float, events: int) -> float:
    """The t for which ``2 exp(-t² / (2 (variance + step t / 3)))`` is the share of false alarms, for each of events."""
    bound = math.log(2 * events / _FALSE_ALARMS)
    return bound * step / 3 + math.sqrt((bound * step / 3) ** 2 + 2 * bound * variance)


def moves_of(protocol: ReleasedProtocol, known: int) -> dict[tuple[Record, Record], float]:
    """Probability of every output given every input, over classes, after secrets that are published.

    known : how many known columns the protocol has before the class, which follow from it.
    """

    def alone(symbol: Record) -> Record:
        return (*symbol[: len(symbol) - known - 1], symbol[-1])

    return {
        (alone(x), alone(y)): weight / protocol.denominator
        for y, row in zip(protocol.outputs, protocol.weights, strict=True)
        for x, weight in zip(protocol.inputs, row, strict=True)
        if weight
    }


def published_by_class(rows: Mapping[Record, int], width: int) -> dict[tuple[Record, Record, str], int]:
    """Published rows as secrets, in ``width`` columns before all others, records, and classes."""
    return {(row[:width], row[width:-1], row[-1]): count for row, count in rows.items()}
