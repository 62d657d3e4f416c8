"""The classes of records that a release was drawn by, as a document; public."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from funnel.donors.record_classes import RecordClasses
from funnel.release.channel import built
from funnel.release.document import Document, Part
from funnel.sampling.published import CLASS_COLUMN


class AskedQuestion(Part):
    """Whether a record's value in a column is one of ``values``; what follows is a later question, or a class."""

    column: str
    values: tuple[str, ...] = Field(min_length=1)
    then: int | str
    otherwise: int | str


class ClassesDocument(Document):
    """Which class a published record is of: the first of ``questions`` is asked of it, then what follows from it.

    Questions are numbered from 0 on. ``protocol.json`` is about the classes, which are ``names``; the column ``column``
    of the published records says which class each is of.
    """

    described: ClassVar[str] = "the classes of records"
    schema_: Literal["funnel/classes/1"] = Field(default="funnel/classes/1", alias="schema")
    column: str
    columns: tuple[str, ...] = Field(min_length=1)
    questions: tuple[AskedQuestion, ...]
    names: tuple[str, ...] = Field(min_length=1)

    @cached_property
    def classes(self) -> RecordClasses:
        """The questions, checked to be a tree."""
        return RecordClasses.of(self.content())

    @model_validator(mode="after")
    def _is_a_tree(self) -> Self:
        built(lambda: self.classes)
        return self


def classes_document(classes: RecordClasses) -> ClassesDocument:
    """The document of some classes."""
    return ClassesDocument(
        column=CLASS_COLUMN,
        columns=classes.columns,
        questions=tuple(
            AskedQuestion(column=one.column, values=one.values, then=one.then, otherwise=one.otherwise)
            for one in classes.questions
        ),
        names=classes.names,
    )
