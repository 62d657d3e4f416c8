"""The classes of records that a release was drawn by, as a document; public."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from funnel.alphabet import CLASS_COLUMN
from funnel.donors.record_classes import RecordClasses
from funnel.release.document import Count, Document, Part, Sha256, built
from funnel.settings.groups import GroupSettings

ChosenBy = Literal["same", "part", "different"]


class CountedTerm(Part):
    """``points`` of every record that has ``values`` in ``columns``."""

    columns: tuple[str, ...] = Field(min_length=1, max_length=2)
    values: tuple[str, ...] = Field(min_length=1, max_length=2)
    points: int


class CountedScale(Part):
    """How much the columns of a record speak for a value of the secret: the sum of the points of its terms.

    A point is a hundredth of a nat of log odds. Values that no term has count nothing. A scale without a secret numbers
    the values of known columns.
    """

    secret: tuple[str, ...]
    terms: tuple[CountedTerm, ...]


class AskedQuestion(Part):
    """Whether a record has ``at_least`` so many points on a scale; what follows is a later question, or a class."""

    scale: int = Field(ge=0)
    at_least: int
    then: int | str
    otherwise: int | str


class GrownFrom(Part):
    """What a file of questions for other releases was made from: the digest of that source, and its records."""

    sha256: Sha256
    records: Count


class ClassesDocument(Document):
    """Which class a published record is of: the first of ``questions`` is asked of it, then what follows from it.

    Scales and questions are numbered from 0 on. ``protocol.json`` is about the classes, which are ``names``; the column
    ``column`` of the published records says which class each is of. ``people`` is whose counts the questions were
    chosen by: those of the "same" people whose records are published, of a "part" of them, the others being held out,
    or of "different" ones. ``source`` is null in a release. ``known`` are columns that observers may know, and
    ``known_values`` the values of all records of each class there, if there are any. For observers of ``at_once``
    columns, whichever they are, classes are cut into parts.
    """

    described: ClassVar[str] = "the classes of records"
    schema_: Literal["funnel/classes/1"] = Field(default="funnel/classes/1", alias="schema")
    column: str
    columns: tuple[str, ...] = Field(min_length=1)
    scales: tuple[CountedScale, ...]
    questions: tuple[AskedQuestion, ...]
    names: tuple[str, ...] = Field(min_length=1)
    known: tuple[str, ...]
    known_values: tuple[tuple[str, ...], ...]
    at_once: int = Field(ge=0, le=2)
    people: ChosenBy
    source: GrownFrom | None

    @cached_property
    def classes(self) -> RecordClasses:
        """The questions, checked to be a tree."""
        return RecordClasses.of(self.content())

    @model_validator(mode="after")
    def _is_a_tree(self) -> Self:
        built(lambda: self.classes)
        return self


def classes_document(
    classes: RecordClasses, source: GrownFrom | None = None, people: ChosenBy = "same"
) -> ClassesDocument:
    """The document of some classes.

    Parameters
    ----------
    classes : RecordClasses
    source : GrownFrom, optional
        Of a file for other releases, what it was made from.
    people : "same", "part" or "different"
        Whose counts chose the questions.
    """
    return ClassesDocument.like(classes, column=CLASS_COLUMN, people=people, source=source)


def chosen_by(groups: GroupSettings) -> ChosenBy:
    """Whose counts choose the questions of a release."""
    return "different" if groups.classes is not None else "part" if groups.held_out else "same"
