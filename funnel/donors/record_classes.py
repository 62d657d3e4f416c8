"""Record classes: which class a record is of, by questions about its columns that anybody can ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.joint import IntArray, Joint
from funnel.sampling.published import CLASS_COLUMN


@dataclass(frozen=True)
class Question:
    """Whether a record's value in a column is one of these, and what follows.

    Attributes
    ----------
    column : str
    values : tuple of str
    then, otherwise : int or str
        The number of a later question, or the name of a class.
    """

    column: str
    values: tuple[str, ...]
    then: int | str
    otherwise: int | str


@dataclass(frozen=True)
class RecordClasses:
    """A decision tree over the published columns: every record, whether it occurs or not, is of one class.

    Attributes
    ----------
    columns : tuple of str
        The columns of a record.
    questions : tuple of Question
        The first is asked of every record; later ones follow from earlier ones.
    names : tuple of str
        Of the classes.
    """

    columns: tuple[str, ...]
    questions: tuple[Question, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse questions that lead back, nowhere, or to one question from two.

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
        if not (rising and whole and {one.column for one in self.questions} <= {*self.columns}):
            raise DataError("the questions that classes of records follow from are no tree; take them from a release")

    @property
    def alphabet(self) -> Alphabet:
        """The classes as symbols of a column."""
        return Alphabet((CLASS_COLUMN,), tuple((name,) for name in self.names))

    def of_records(self, records: Alphabet) -> IntArray:
        """The number of the class of every record, shape (a,).

        Parameters
        ----------
        records : Alphabet
            Over the columns of a record.

        Raises
        ------
        DataError
            If it is over other columns.
        """
        if records.columns != self.columns:
            raise DataError(f"records have the columns {list(self.columns)}, not {list(records.columns)}")
        found = np.zeros(len(records), dtype=np.int64)
        numbers = {name: number for number, name in enumerate(self.names)}
        asked: dict[int, IntArray] = {0: np.arange(len(records))}
        texts = [np.array([symbol[j] for symbol in records.symbols], dtype=object) for j in range(len(self.columns))]
        for number, one in enumerate(self.questions):
            some = asked.pop(number)
            values = set(one.values)
            column = texts[self.columns.index(one.column)]
            inside = np.array([text in values for text in column[some]], dtype=bool)
            for end, members in ((one.then, some[inside]), (one.otherwise, some[~inside])):
                if isinstance(end, int):
                    asked[end] = members
                else:
                    found[members] = numbers[end]
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
        asked: Sequence[Mapping[str, Any]] = content["questions"]
        questions = tuple(Question(one["column"], tuple(one["values"]), one["then"], one["otherwise"]) for one in asked)
        return cls(tuple(content["columns"]), questions, tuple(content["names"]))


def grouped(joint: Joint, of_record: IntArray, classes: Alphabet) -> Joint:
    """Counts of secrets and classes, each record being of the class with the number that stands for it."""
    counts = np.zeros((len(joint.secret), len(classes)), dtype=np.int64)
    for of_class, row in zip(counts, joint.counts, strict=True):
        np.add.at(of_class, of_record, row)
    return Joint(counts, joint.secret, classes)
