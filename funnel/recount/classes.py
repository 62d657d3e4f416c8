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
_KEYS = ("schema", "column", "columns", "questions", "names", "people", "source")
# A true release is refused by chance with at most this probability, over all values of all columns together.
_FALSE_ALARMS = 1e-10


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
        """The columns that questions are about."""
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
        alike = ("schema", "column", "questions", "names")
        return all(self.content[key] == file.content[key] for key in alike) and {*self.columns} == {*file.columns}

    @cached_property
    def _questions(self) -> list[tuple[int, frozenset[str], int | str, int | str]]:
        return [
            (self.columns.index(one["column"]), frozenset(one["values"]), one["then"], one["otherwise"])
            for one in self.content["questions"]
        ]

    def of(self, record: Record) -> str:
        """The class of a record.

        Raises
        ------
        DataError
            If questions lead nowhere, or to a class that has no name.
        """
        place: int | str = 0 if self._questions else self.names[0]
        for _ in range(len(self._questions)):
            if isinstance(place, str):
                break
            column, values, then, otherwise = self._questions[place]
            place = then if record[column] in values else otherwise
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
    true : mapping of record to int
        Records of the source, whatever their secret.
    published : mapping of (record, class) to int
        As they are in the file, with what it says of their class.
    moves : mapping of (class, class) to float
        Probability that a record of the first is published as one of the second.
    """

    classes: PlainClasses
    true: Mapping[Record, int]
    published: Mapping[tuple[Record, str], int]
    moves: Mapping[tuple[str, str], float]

    @property
    def misplaced(self) -> int:
        """Published records that say another class than theirs."""
        return sum(count for (record, name), count in self.published.items() if self.classes.of(record) != name)

    @property
    def unknown(self) -> int:
        """Published records that nobody has."""
        return sum(count for (record, _), count in self.published.items() if record not in self.true)

    def unlikely(self) -> Iterator[tuple[str, str]]:
        """Columns and values of which the file has another number than donors of that class bring.

        Records are drawn one by one, so the number with a value is a sum of independent zeros and ones. By Bernstein's
        inequality it is off its mean μ by t with probability 2 exp(-t² / (2 (V + t / 3))) at most, where the variance V
        is at most that of records which leave the value, or come to it.
        """
        shown: Counter[tuple[int, str]] = Counter()
        for (record, _), count in self.published.items():
            for j, value in enumerate(record):
                shown[j, value] += count
        means, variances = self._expected()
        bound = math.log(2 * len(means) / _FALSE_ALARMS)
        for (j, value), mean in means.items():
            # The t for which the inequality gives the bound.
            most = bound / 3 + math.sqrt(bound * bound / 9 + 2 * bound * variances[j, value])
            if abs(shown[j, value] - mean) > most:
                yield self.classes.columns[j], value

    def _expected(self) -> tuple[dict[tuple[int, str], float], dict[tuple[int, str], float]]:
        """Mean and largest variance of the number of published records with every value of every column."""
        sizes: Counter[str] = Counter()
        within: dict[str, Counter[tuple[int, str]]] = defaultdict(Counter)
        for record, count in self.true.items():
            name = self.classes.of(record)
            sizes[name] += count
            for j, value in enumerate(record):
                within[name][j, value] += count
        coming: dict[str, float] = defaultdict(float)
        for (source, target), probability in self.moves.items():
            if source != target:
                coming[target] += sizes[source] * probability
        means: dict[tuple[int, str], float] = defaultdict(float)
        variances: dict[tuple[int, str], float] = defaultdict(float)
        for name, values in within.items():
            stays = self.moves.get((name, name), 0.0)
            for cell, count in values.items():
                brought = coming[name] * count / sizes[name]
                means[cell] += count * stays + brought
                variances[cell] += count * (1 - stays) + brought
        return means, variances


def moves_of(protocol: ReleasedProtocol) -> dict[tuple[str, str], float]:
    """Probability of every class given every class, of a protocol over classes alone."""
    return {
        (x[-1], y[-1]): weight / protocol.denominator
        for y, row in zip(protocol.outputs, protocol.weights, strict=True)
        for x, weight in zip(protocol.inputs, row, strict=True)
        if weight
    }


def published_by_class(rows: Mapping[Record, int], width: int) -> dict[tuple[Record, str], int]:
    """Published rows, the class last, as records and classes; ``width`` columns of secrets before them are left out."""
    found: Counter[tuple[Record, str]] = Counter()
    for row, count in rows.items():
        found[row[width:-1], row[-1]] += count
    return found


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
