"""Record classes: which class a record is of, by points that anybody can count from its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from funnel.alphabet import CLASS_COLUMN, Alphabet
from funnel.class_parts import PART
from funnel.errors import DataError
from funnel.joint import IntArray, Joint


@dataclass(frozen=True)
class Term:
    """Points of every record that has these values.

    Attributes
    ----------
    columns : tuple of str
        One column, or two.
    values : tuple of str
        Of each.
    points : int
        Hundredths of a nat.
    """

    columns: tuple[str, ...]
    values: tuple[str, ...]
    points: int


@dataclass(frozen=True)
class Scale:
    """How much the columns of a record speak for a value of the secret: the points of all terms that it meets.

    Attributes
    ----------
    secret : tuple of str
        The value of the secret; empty if points number the values of known columns.
    terms : tuple of Term
    """

    secret: tuple[str, ...]
    terms: tuple[Term, ...]

    def of_records(self, records: Alphabet) -> IntArray:
        """The points of every record, shape (a,)."""
        tables: dict[tuple[str, ...], dict[tuple[str, ...], int]] = {}
        for term in self.terms:
            tables.setdefault(term.columns, {})[term.values] = term.points
        found = np.zeros(len(records), dtype=np.int64)
        numbers = [{text: number for number, text in enumerate(texts)} for texts in records.texts]
        for columns, points in tables.items():
            places = [records.columns.index(column) for column in columns]
            of_cell = np.zeros([len(numbers[j]) for j in places], dtype=np.int64)
            for values, amount in points.items():
                cell = [numbers[j].get(text, -1) for j, text in zip(places, values, strict=True)]
                if min(cell) >= 0:
                    of_cell[tuple(cell)] = amount
            found += of_cell[tuple(records.codes[:, places].T)]
        return found


@dataclass(frozen=True)
class Question:
    """Whether a record has so many points on a scale, and what follows.

    Attributes
    ----------
    scale : int
        The number of the scale.
    at_least : int
        Points.
    then, otherwise : int or str
        The number of a later question, or the name of a class.
    """

    scale: int
    at_least: int
    then: int | str
    otherwise: int | str


@dataclass(frozen=True)
class RecordClasses:
    """Classes by points: every record, whether it occurs or not, is of one class.

    Attributes
    ----------
    columns : tuple of str
        The columns of a record.
    scales : tuple of Scale
        One for each value of the secret, or for one of two.
    questions : tuple of Question
        The first is asked of every record; later ones follow from earlier ones.
    names : tuple of str
        Of the classes. Where classes are cut for observers of any columns, "3.2" is the second part of class "3": what
        observers know of the secret is by class, and donors are of a part.
    known : tuple of str
        Columns that observers may know: in each class all records have the same values there.
    known_values : tuple of tuple of str
        These values, of every class; empty without known columns.
    at_once : int
        For observers of how many columns, whichever they are, classes are cut into parts; 0 where they are not.
    """

    columns: tuple[str, ...]
    scales: tuple[Scale, ...]
    questions: tuple[Question, ...]
    names: tuple[str, ...]
    known: tuple[str, ...] = ()
    known_values: tuple[tuple[str, ...], ...] = ()
    at_once: int = 0

    def __post_init__(self) -> None:
        """Refuse questions that lead back, nowhere, or to one from two others, points for other columns, and odd parts.

        Raises
        ------
        DataError
            If they do.
        """
        reached = [end for one in self.questions for end in (one.then, one.otherwise)]
        later = [end for end in reached if isinstance(end, int)]
        named = [end for end in reached if isinstance(end, str)]
        rising = all(
            end > number
            for number, one in enumerate(self.questions)
            for end in (one.then, one.otherwise)
            if isinstance(end, int)
        )
        whole = sorted(later) == list(range(1, len(self.questions))) and {*named} == {*self.names}
        if not self.questions:
            whole = len(self.names) == 1
        scaled = all(0 <= one.scale < len(self.scales) for one in self.questions)
        terms = [term for scale in self.scales for term in scale.terms]
        counted = all({*term.columns} <= {*self.columns} and len(term.values) == len(term.columns) for term in terms)
        counted = (
            counted
            and {*self.known} <= {*self.columns}
            and len(self.known_values) == (len(self.names) if self.known else 0)
        )
        counted = counted and all(len(values) == len(self.known) for values in self.known_values)
        parted = all((PART in name) == (self.at_once > 0) for name in self.names)
        if not (rising and whole and scaled and counted and parted):
            raise DataError("the questions that classes of records follow from are no tree; take them from a release")

    @property
    def alphabet(self) -> Alphabet:
        """The classes as symbols of a column, after those of the known ones."""
        symbols = zip(self.known_values or [()] * len(self.names), self.names, strict=True)
        return Alphabet((*self.known, CLASS_COLUMN), tuple((*values, name) for values, name in symbols))

    @property
    def whole(self) -> tuple[tuple[str, ...], IntArray]:
        """The classes that these are parts of, and the number of that of each, (k,): "3.2" is a part of "3"."""
        of = [name.partition(PART)[0] for name in self.names]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(of))}
        return tuple(numbers), np.array([numbers[name] for name in of])

    @property
    def draws_evenly(self) -> bool:
        """Whether donors have nothing to do with the record that they stand for: between parts of classes."""
        return self.at_once > 0

    def of_records(self, records: Alphabet) -> IntArray:
        """The number of the class of every record, shape (a,).

        Parameters
        ----------
        records : Alphabet
            Over the columns of a record.

        Raises
        ------
        DataError
            If it is over other columns, or a record comes to a class of other values of the known columns.
        """
        if records.columns != self.columns:
            raise DataError(f"records have the columns {list(self.columns)}, not {list(records.columns)}")
        found = np.zeros(len(records), dtype=np.int64)
        numbers = {name: number for number, name in enumerate(self.names)}
        points = [scale.of_records(records) for scale in self.scales]
        asked: dict[int, IntArray] = {0: np.arange(len(records))}
        for number, one in enumerate(self.questions):
            some = asked.pop(number)
            enough = points[one.scale][some] >= one.at_least
            for end, members in ((one.then, some[enough]), (one.otherwise, some[~enough])):
                if isinstance(end, int):
                    asked[end] = members
                else:
                    found[members] = numbers[end]
        for place, column in enumerate(self.known):
            j = records.columns.index(column)
            own = np.array(records.texts[j])[records.codes[:, j]]
            if (own != np.array([values[place] for values in self.known_values])[found]).any():
                raise DataError(
                    f"records have values of {column!r}, alone or with other known columns, for which there is no "
                    "class; make the classes from records that have them, or recode the column"
                )
        return found

    def counted(self, joint: Joint) -> Joint:
        """Counts (c, classes) of secrets and classes, from counts (c, a) of secrets and records."""
        return grouped(joint, self.of_records(joint.inputs), self.alphabet)

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        """From plain values, as ``classes.json`` has them.

        Raises
        ------
        DataError
            If they are no tree.
        """
        scales = tuple(
            Scale(tuple(one["secret"]), tuple(_term(term) for term in one["terms"])) for one in content["scales"]
        )
        asked: Sequence[Mapping[str, Any]] = content["questions"]
        questions = tuple(Question(one["scale"], one["at_least"], one["then"], one["otherwise"]) for one in asked)
        values = tuple(tuple(one) for one in content["known_values"])
        columns, names, known = (tuple(content[key]) for key in ("columns", "names", "known"))
        return cls(columns, scales, questions, names, known, values, content["at_once"])


def _term(content: Mapping[str, Any]) -> Term:
    return Term(tuple(content["columns"]), tuple(content["values"]), content["points"])


def grouped(joint: Joint, of_record: IntArray, classes: Alphabet) -> Joint:
    """Counts of secrets and classes, each record being of the class with the number that stands for it."""
    counts = np.zeros((len(joint.secret), len(classes)), dtype=np.int64)
    for of_class, row in zip(counts, joint.counts, strict=True):
        np.add.at(of_class, of_record, row)
    return Joint(counts, joint.secret, classes)
