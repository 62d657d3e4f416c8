"""Approval: who says that a judged version may be published, and what became of each version that was held for that."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from funnel.errors import SpecError
from funnel.release.document import Document, Part, VersionText
from funnel.release.layout import Version
from funnel.settings.fields import Label, Line
from funnel.wording import printable

MAX_NOTE = 1000


def _encodable(text: str) -> str:
    # Half a character, as a command line in another encoding gives it, can be written to no file.
    if any(unicodedata.category(character) == "Cs" for character in text):
        raise ValueError("must be text in UTF-8")
    return text


def _brief(text: str) -> str:
    if len(text) > MAX_NOTE:
        raise ValueError(f"must have at most {MAX_NOTE:,} characters")
    return text


Name = Annotated[Label, AfterValidator(_encodable)]
Note = Annotated[Line, AfterValidator(_brief), AfterValidator(_encodable)]
# In UTC, to the second.
Moment = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+00:00$")]


class Approval(Part):
    """Who answers for a version that was published. A claim of whoever ran the command, not an authentication.

    Attributes
    ----------
    by : str
        Name and office, as they were given.
    at : str
        When, ISO 8601 in UTC.
    note : str or None
        What else was said; internal.
    """

    by: Name
    at: Moment
    note: Note | None = None

    @classmethod
    def given(cls, by: str, note: str | None = None) -> Self:
        """What somebody says now.

        Raises
        ------
        SpecError
            If a text is empty, too long, or not one line.
        """
        try:
            return cls(by=by.strip(), at=now(), note=None if note is None else note.strip())
        except ValidationError as error:
            raise _why_not(error) from None


class Outcome(Document):
    """What became of a version that was held for approval; internal.

    Attributes
    ----------
    version : str
    outcome : "published", "rejected", "superseded" or "gone"
    at : str
        When, ISO 8601 in UTC.
    by : str or None
        Who approved or rejected; None where nobody did.
    reason : str or None
        Why it was rejected, what was said on approval, or what took its place.
    """

    described: ClassVar[str] = "the outcome of version"
    schema_: Literal["funnel/outcome/1"] = Field(default="funnel/outcome/1", alias="schema")
    version: VersionText
    outcome: Literal["published", "rejected", "superseded", "gone"]
    at: Moment
    by: Name | None = None
    reason: Note | None = None

    @model_validator(mode="after")
    def _rejected_by_somebody(self) -> Self:
        if self.outcome == "rejected" and (self.by is None or self.reason is None):
            raise ValueError("is a rejection without a name or a reason")
        return self

    def sentence(self) -> str:
        """What became of it, as a part of a sentence that any terminal shows as it is."""
        said = "found to be gone" if self.outcome == "gone" else self.outcome
        how = " with the approval of " if self.outcome == "published" else " by "
        by = "" if self.by is None else how + self.by
        reason = "" if self.reason is None else f": {self.reason}"
        return printable(f"version {self.version} was {said} on {self.at}{by}{reason}")


def version_to_approve(text: str | None) -> Version | None:
    """A version that somebody named, if they did.

    Raises
    ------
    SpecError
        If it is none.
    """
    version = None if text is None else Version.parse(text)
    if text is not None and version is None:
        raise SpecError("the version must be three numbers with dots, such as 1.1.0")
    return version


def now() -> str:
    """The time, ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _why_not(error: ValidationError) -> SpecError:
    """One sentence about the first text that is wrong, which is not quoted."""
    first = error.errors(include_url=False, include_input=False)[0]
    what = "the name of who approves or rejects" if first["loc"][0] == "by" else "the note or reason"
    return SpecError(f"{what} {first['msg'].removeprefix('Value error, ')}")
