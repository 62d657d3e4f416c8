"""Classes of records a second time: which class a record is of, by the questions that are published."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, Self

from funnel.errors import DataError
from funnel.recount.part_beliefs import PART, class_of, people_by_part
from funnel.recount.reading import read
from funnel.recount.source import Recount

Record = tuple[str, ...]


@dataclass(frozen=True)
class Term:
    """The points of every record with some values in some columns."""

    columns: Record
    values: Record
    points: int


@dataclass(frozen=True)
class Scale:
    """Terms whose points are added up."""

    secret: Record
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Question:
    """Whether a record has so many points on a scale; what follows is a later question, or a class."""

    scale: int
    at_least: int
    then: int | str
    otherwise: int | str


@dataclass(frozen=True)
class Source:
    """What a file was made from."""

    sha256: str
    records: int


@dataclass(frozen=True, eq=False)
class PlainClasses:
    """The questions of ``classes.json``, asked of one record after the other.

    Attributes
    ----------
    column : str
        The column of the published records that has the class of each.
    columns : tuple of str
        That points are for.
    names : tuple of str
        Of the classes.
    known : tuple of str
        Columns that observers may know: all records of a class have the same values there, of ``known_values``.
    at_once : int
        How many columns observers may know at once, whichever they are; 0 where these are named.
    """

    schema: str
    column: str
    columns: Record
    scales: tuple[Scale, ...]
    questions: tuple[Question, ...]
    names: Record
    known: Record
    known_values: tuple[Record, ...]
    at_once: int
    people: str
    source: Source | None

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Read the file.

        Raises
        ------
        DataError
            If it is no JSON, not about classes, or says more.
        """
        try:
            found: Self = read(cls, json.loads(text))
            if found.schema != "funnel/classes/1":
                raise ValueError
        except (ValueError, RecursionError) as error:
            raise DataError("classes.json does not say which class a record is of, and no more") from error
        return found

    @property
    def has_parts(self) -> bool:
        """Whether classes are cut into parts, between which donors are drawn evenly."""
        return any(PART in name for name in self.names)

    @property
    def are_given(self) -> bool:
        """Whether questions are said to be chosen by the counts of other people than those whose records are drawn."""
        return self.people == "different"

    @property
    def has_held_out(self) -> bool:
        """Whether questions are said to be chosen by a part of the people whose records are drawn."""
        return self.people == "part"

    def is_of(self, file: PlainClasses) -> bool:
        """Whether questions and classes are those of a file that was made for releases of other people."""
        alike = ("schema", "column", "scales", "questions", "names", "known", "known_values", "at_once")
        return all(getattr(self, key) == getattr(file, key) for key in alike) and {*self.columns} == {*file.columns}

    @cached_property
    def _tables(self) -> list[list[tuple[Callable[[Record], Any], dict[Any, int]]]]:
        """Of every scale, for some places in a record, the points of the values there."""
        found: list[list[tuple[Callable[[Record], Any], dict[Any, int]]]] = []
        for scale in self.scales:
            tables: dict[Record, dict[Any, int]] = defaultdict(dict)
            for term in scale.terms:
                key = term.values[0] if len(term.columns) == len(term.values) == 1 else term.values
                tables[term.columns][key] = term.points
            found.append([(itemgetter(*map(self.columns.index, names)), of) for names, of in tables.items()])
        return found

    def points(self, record: Record, scale: int) -> int:
        """Of a record, on one scale."""
        return sum([of.get(there(record), 0) for there, of in self._tables[scale]])

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
            self._known[record] = self._class_of(record)
        return self._known[record]

    def _class_of(self, record: Record) -> str:
        place: int | str = 0 if self.questions else self.names[0]
        for _ in self.questions:
            if isinstance(place, str):
                break
            one = self.questions[place]
            place = one.then if self.points(record, one.scale) >= one.at_least else one.otherwise
        if isinstance(place, int) or place not in self.names:
            raise DataError("the questions of classes.json lead to no class")
        if tuple(record[self.columns.index(name)] for name in self.known) != self.values_of_known[place]:
            raise DataError("classes.json leads a record to a class of other known values than its own")
        return place

    @cached_property
    def values_of_known(self) -> dict[str, Record]:
        """Of every class the values of its records in the known columns."""
        return dict(zip(self.names, self.known_values or [()] * len(self.names), strict=True))

    @property
    def symbols(self) -> dict[str, Record]:
        """Of every class what it is among the inputs of a protocol: known values, then its name."""
        return {name: (*values, name) for name, values in self.values_of_known.items()}

    def counted(self, whole: Recount, held_out: Mapping[tuple[Record, Record], int] | None = None) -> Recount:
        """Counts of the secret and of classes, from counts of the secret and of whole records.

        ``held_out``: the same of those records that did not choose the classes.
        """
        symbols = self.symbols
        of_record = {record: symbols[self.of(record)] for record in whole.inputs}
        counts: Counter[tuple[Record, Record]] = Counter()
        for (s, record), count in whole.counts.items():
            counts[s, of_record[record]] += count
        having = people_by_part(whole.counts, self.columns, of_record.__getitem__, self.at_once)
        found = replace(
            whole,
            published_columns=(*self.known, self.column),
            inputs=tuple(symbols.values()),
            counts=counts,
            having=having,
        )
        return found if held_out is None else replace(found, held_out=self._by_class(whole, held_out))

    def _by_class(
        self, whole: Recount, counts: Mapping[tuple[Record, Record], int]
    ) -> Mapping[Record, Mapping[str, int]]:
        """Counts of every secret in every class, whatever the part."""
        found = {s: {class_of((name,)): 0 for name in self.names} for s in whole.secret}
        for (s, record), count in counts.items():
            found[s][class_of((self.of(record),))] += count
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
