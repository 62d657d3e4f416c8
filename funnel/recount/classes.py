"""Classes of records a second time: which class a record is of, and whether those published are of their class."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from funnel.errors import DataError
from funnel.recount.released import ReleasedProtocol
from funnel.recount.source import Recount

Record = tuple[str, ...]
# A value of the secret, where that is published, a column, and a value of it.
Cell = tuple[Record, str, str]
_KEYS = ("schema", "column", "columns", "scales", "questions", "names", "people", "source")
# A true release is refused by chance with at most this probability, over all values of all columns together.
_FALSE_ALARMS = 1e-10
# So little of a record that it is nothing.
_HARDLY = 1e-9


@dataclass(frozen=True, eq=False)
class PlainClasses:
    """The questions of ``classes.json``, asked of one record after the other.

    Parameters
    ----------
    content : JSON object
        Of the file.
    """

    content: Mapping[str, Any]

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Read the file.

        Raises
        ------
        DataError
            If it is no JSON, or not about classes.
        """
        try:
            content = json.loads(text)
            found = cls({key: content[key] for key in _KEYS})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError("classes.json does not say which class a record is of") from error
        if content.keys() != found.content.keys() or content["schema"] != "funnel/classes/1":
            raise DataError("classes.json says more than which class a record is of")
        return found

    @property
    def column(self) -> str:
        """The column of the published records that has the class of each."""
        return str(self.content["column"])

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that points are for."""
        return tuple(self.content["columns"])

    @property
    def names(self) -> tuple[str, ...]:
        """Of the classes."""
        return tuple(self.content["names"])

    @property
    def are_given(self) -> bool:
        """Whether questions are said to be chosen by the counts of other people than those whose records are drawn."""
        return bool(self.content["people"] == "different")

    def is_of(self, file: PlainClasses) -> bool:
        """Whether questions and classes are those of a file that was made for releases of other people."""
        alike = ("schema", "column", "scales", "questions", "names")
        return all(self.content[key] == file.content[key] for key in alike) and {*self.columns} == {*file.columns}

    @cached_property
    def _tables(self) -> list[list[tuple[list[int], dict[Record, int]]]]:
        """Of every scale, for some places in a record, the points of the values there."""
        found = []
        for scale in self.content["scales"]:
            tables: dict[Record, dict[Record, int]] = defaultdict(dict)
            for term in scale["terms"]:
                tables[tuple(term["columns"])][tuple(term["values"])] = int(term["points"])
            found.append([([self.columns.index(name) for name in names], of) for names, of in tables.items()])
        return found

    def points(self, record: Record) -> list[int]:
        """Of a record, on every scale."""
        return [sum(of.get(tuple([record[j] for j in places]), 0) for places, of in scale) for scale in self._tables]

    @cached_property
    def _known(self) -> dict[Record, str]:
        return {}

    def of(self, record: Record) -> str:
        """The class of a record.

        Raises
        ------
        DataError
            If questions lead nowhere, or to a class that has no name.
        """
        if record not in self._known:
            self._known[record] = self._asked(record)
        return self._known[record]

    def _asked(self, record: Record) -> str:
        asked, points = self.content["questions"], self.points(record)
        place: int | str = 0 if asked else self.names[0]
        for _ in asked:
            if isinstance(place, str):
                break
            one = asked[place]
            place = one["then"] if points[one["scale"]] >= one["at_least"] else one["otherwise"]
        if isinstance(place, int) or place not in self.names:
            raise DataError("the questions of classes.json lead to no class")
        return place

    def counted(self, whole: Recount) -> Recount:
        """Counts of the secret and of classes, from counts of the secret and of whole records."""
        of_record = {record: (self.of(record),) for record in whole.inputs}
        counts: Counter[tuple[Record, Record]] = Counter()
        for (s, record), count in whole.counts.items():
            counts[s, of_record[record]] += count
        inputs = tuple((name,) for name in self.names if any(one == (name,) for one in of_record.values()))
        return replace(whole, published_columns=(self.column,), inputs=inputs, counts=dict(counts))


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
        bound = math.log(2 * len(means) / _FALSE_ALARMS)
        for cell, mean in means.items():
            # The t for which the inequality gives the bound.
            most = bound / 3 + math.sqrt(bound * bound / 9 + 2 * bound * variances[cell])
            if abs(shown[cell] - mean) > most:
                yield cell

    def off(self) -> tuple[Cell, float]:
        """The cell of secret, column and value whose mean is farthest from the true number, and by how many records."""
        true: Counter[Cell] = Counter()
        for (secret, record), count in self.true.items():
            for cell in zip(self.classes.columns, record, strict=True):
                true[secret, *cell] += count
        means, _ = self.expected
        return max(((cell, abs(means.get(cell, 0.0) - count)) for cell, count in true.items()), key=lambda one: one[1])

    def observed(self, budget: float) -> dict[str, tuple[float, float]]:
        """Of every column what observers conclude who know it of a person: level, nats, and share of people beyond.

        They believe that a person of class c has the secret s with the share that s has in c. Each person is followed
        to every output, by what they have in the column and by whether the published record agrees with that.
        """
        secrets: dict[str, Counter[Record]] = defaultdict(Counter)
        values: dict[str, dict[str, Counter[str]]] = {column: defaultdict(Counter) for column in self.classes.columns}
        for (secret, record), count in self.true.items():
            name = self.classes.of(record)
            secrets[name][secret] += count
            for column, value in zip(self.classes.columns, record, strict=True):
                values[column][name][value] += count
        sizes = {name: of.total() for name, of in secrets.items()}
        return {column: self._observed(of_class, secrets, sizes, budget) for column, of_class in values.items()}

    def _observed(
        self,
        of_class: Mapping[str, Counter[str]],
        secrets: Mapping[str, Counter[Record]],
        sizes: Mapping[str, int],
        budget: float,
    ) -> tuple[float, float]:
        reads_secret = any(len(x) > 1 for x, _ in self.moves)
        prior: dict[str, Counter[Record]] = defaultdict(Counter)
        for name, values in of_class.items():
            for value, count in values.items():
                for secret, number in secrets[name].items():
                    prior[value][secret] += count * number / sizes[name]  # type: ignore[assignment]
        seen: dict[tuple[str, Record, bool], Counter[Record]] = defaultdict(Counter)
        for (x, y), probability in self.moves.items():
            for secret in [x[:-1]] if reads_secret else list(secrets[x[-1]]):
                share = probability * secrets[x[-1]][secret] / sizes[x[-1]]
                for value, count in of_class[x[-1]].items():
                    agree = 1.0 if x[-1] == y[-1] else of_class[y[-1]][value] / sizes[y[-1]]
                    seen[value, y, True][secret] += count * share * agree  # type: ignore[assignment]
                    seen[value, y, False][secret] += count * share * (1 - agree)  # type: ignore[assignment]
        level = outside = 0.0
        for (value, _, _), masses in seen.items():
            total, known = sum(masses.values()), sum(prior[value].values())
            if total <= _HARDLY:
                continue
            most = 0.0
            for secret, before in prior[value].items():
                if before:
                    after = masses[secret] / total
                    most = max(most, abs(math.log(after * known / before)) if after > 0 else math.inf)
            level = max(level, most)
            outside += total if most > budget * (1 + 1e-9) + 1e-9 else 0.0
        return level, outside / sum(sizes.values())

    @cached_property
    def expected(self) -> tuple[dict[Cell, float], dict[Cell, float]]:
        """Mean and largest variance of the number of published records in every cell."""
        sizes: Counter[str] = Counter()
        within: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        of_input: dict[Record, Counter[tuple[str, str]]] = defaultdict(Counter)
        people: Counter[Record] = Counter()
        reads_secret = any(len(x) > 1 for x, _ in self.moves)
        for (secret, record), count in self.true.items():
            name = self.classes.of(record)
            x = (*secret, name) if reads_secret else (name,)
            sizes[name] += count
            people[x] += count
            for cell in zip(self.classes.columns, record, strict=True):
                within[name][cell] += count
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
                means[y[:-1], column, value] += records * count / sizes[y[-1]]
                variances[y[:-1], column, value] += records * count / sizes[y[-1]]
        return means, variances


def moves_of(protocol: ReleasedProtocol) -> dict[tuple[Record, Record], float]:
    """Probability of every output given every input, of a protocol over classes."""
    return {
        (x, y): weight / protocol.denominator
        for y, row in zip(protocol.outputs, protocol.weights, strict=True)
        for x, weight in zip(protocol.inputs, row, strict=True)
        if weight
    }


def published_by_class(rows: Mapping[Record, int], width: int) -> dict[tuple[Record, Record, str], int]:
    """Published rows as secrets, in ``width`` columns before all others, records, and classes."""
    return {(row[:width], row[width:-1], row[-1]): count for row, count in rows.items()}


def values_of(
    whole: Recount, columns: Collection[str], public: Mapping[str, Collection[str]] | None = None
) -> dict[str, list[str]]:
    """The values of every column of whole records: all that are public, or those that occur."""
    if public is not None:
        return {column: list(public[column]) for column in whole.published_columns if column in columns}
    return {
        column: sorted({record[j] for record in whole.inputs})
        for j, column in enumerate(whole.published_columns)
        if column in columns
    }
