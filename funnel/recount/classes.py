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
from funnel.recount.part_beliefs import PART, people_by_part
from funnel.recount.source import Recount

Record = tuple[str, ...]
_KEYS = (
    *(
        "schema",
        "column",
        "columns",
        "scales",
        "questions",
        "names",
        "known",
        "known_values",
        "at_once",
        "people",
        "source",
    ),
)


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
    def has_parts(self) -> bool:
        """Whether classes are cut into parts, between which donors are drawn evenly."""
        return any(PART in name for name in self.names)

    @property
    def at_once(self) -> int:
        """How many columns observers may know at once, whichever they are; 0 where these are named."""
        return int(self.content["at_once"])

    @property
    def are_given(self) -> bool:
        """Whether questions are said to be chosen by the counts of other people than those whose records are drawn."""
        return bool(self.content["people"] == "different")

    def is_of(self, file: PlainClasses) -> bool:
        """Whether questions and classes are those of a file that was made for releases of other people."""
        alike = ("schema", "column", "scales", "questions", "names", "known", "known_values", "at_once")
        return all(self.content[key] == file.content[key] for key in alike) and {*self.columns} == {*file.columns}

    @cached_property
    def _tables(self) -> list[list[tuple[Callable[[Record], Any], dict[Any, int]]]]:
        """Of every scale, for some places in a record, the points of the values there."""
        found: list[list[tuple[Callable[[Record], Any], dict[Any, int]]]] = []
        for scale in self.content["scales"]:
            tables: dict[Record, dict[Any, int]] = defaultdict(dict)
            for term in scale["terms"]:
                names, values = tuple(term["columns"]), tuple(term["values"])
                tables[names][values[0] if len(names) == len(values) == 1 else values] = int(term["points"])
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
        asked = self.content["questions"]
        place: int | str = 0 if asked else self.names[0]
        for _ in asked:
            if isinstance(place, str):
                break
            one = asked[place]
            place = one["then"] if self.points(record, one["scale"]) >= one["at_least"] else one["otherwise"]
        if isinstance(place, int) or place not in self.names:
            raise DataError("the questions of classes.json lead to no class")
        if tuple(record[self.columns.index(name)] for name in self.known) != self.known_values[place]:
            raise DataError("classes.json leads a record to a class of other known values than its own")
        return place

    @property
    def known(self) -> tuple[str, ...]:
        """Columns that observers may know: all records of a class have the same values there."""
        return tuple(self.content["known"])

    @cached_property
    def known_values(self) -> dict[str, Record]:
        """Of every class the values of its records in the known columns."""
        return dict(zip(self.names, map(tuple, self.content["known_values"] or [()] * len(self.names)), strict=True))

    @property
    def symbols(self) -> dict[str, Record]:
        """Of every class what it is among the inputs of a protocol: known values, then its name."""
        return {name: (*values, name) for name, values in self.known_values.items()}

    def counted(self, whole: Recount) -> Recount:
        """Counts of the secret and of classes, from counts of the secret and of whole records."""
        symbols = self.symbols
        of_record = {record: symbols[self.of(record)] for record in whole.inputs}
        counts: Counter[tuple[Record, Record]] = Counter()
        for (s, record), count in whole.counts.items():
            counts[s, of_record[record]] += count
        inputs = tuple(symbol for symbol in symbols.values() if symbol in {*of_record.values()})
        having = people_by_part(whole.counts, self.columns, of_record.__getitem__, self.at_once)
        columns = (*self.known, self.column)
        return replace(whole, published_columns=columns, inputs=inputs, counts=dict(counts), having=having)


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
