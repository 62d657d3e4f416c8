"""Record: what a version was made from, how its rows came about, and what its files were; kept for all after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from funnel.release.approval import Approval
from funnel.release.document import Document, Part, Sha256, VersionText
from funnel.release.protection import ProtectedCounts

_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$"


class Origin(Part):
    """What a version is made from: two versions of one origin would say the same of the same people.

    Attributes
    ----------
    spec, source, snapshot, protocol : str
        SHA-256 (hex) of all that the spec says, of the source, of the recoded records, and of the channel.
    fields : tuple of str
        Published columns, in order.
    guarantee : str
        The declared bound, such as ``"lip:1.0"``.
    shuffle : bool
        Whether rows come in random order.
    record_key : tuple of str or None
        Columns of the record key; None where there is none.
    secret : str or None
        Fingerprint of the release secret that the answers were derived with; None if none was.
    key_kinds : tuple of "text" or "number", or None
        Of each column of the record key; None where there is none.
    """

    spec: Sha256
    source: Sha256
    snapshot: Sha256
    protocol: Sha256
    fields: tuple[str, ...] = Field(min_length=1)
    guarantee: str = Field(min_length=1)
    shuffle: bool
    record_key: tuple[str, ...] | None = None
    secret: str | None = Field(default=None, min_length=1)
    key_kinds: tuple[Literal["text", "number"], ...] | None = None

    @field_validator("fields")
    @classmethod
    def _distinct(cls, fields: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(fields)) < len(fields):
            raise ValueError("names a column twice")
        return fields

    @model_validator(mode="after")
    def _keyed_with_a_secret(self) -> Origin:
        if self.record_key is not None and self.secret is None:
            raise ValueError("names a record key and no release secret")
        if len(self.key_kinds or ()) != len(self.record_key or ()):
            raise ValueError("names another number of key kinds than of key columns")
        return self

    def is_of_people(self, source: str | None, snapshot: str | None) -> bool:
        """Whether it is of the people of a source, or of recoded records, with these digests."""
        return source == self.source or snapshot == self.snapshot


class History(Part):
    """Who the people of a version are, and what everybody who keeps all versions can conclude; internal.

    All but ``people`` is None where every version is about other people.

    Attributes
    ----------
    people : "same" or "different"
        As the spec said.
    register : str or None
        Name of the register that the answers are kept in.
    ordinal : int or None
        Number of the version in the register, from 0; None while it is held.
    name : str or None
        Name of the entry, ``"<series>/<version>"``: of the version that its rows were drawn for.
    entry : str or None
        SHA-256 (hex) of the ``entry.json`` of that one; None while it is held.
    head : str or None
        SHA-256 (hex) of the head of the register with that entry; None while it is held.
    given : str or None
        SHA-256 (hex) of the head of the register that its rows were drawn given; None of a first one.
    target, drawing : str or None
        Digests of the protocol of the version alone, and of what its rows were drawn with, given each history.
    histories : int or None
        Different histories that its people had.
    level : float or None
        Largest level, in nats, over all histories that are not outside the bound by themselves.
    moved, outside : int or None
        People whose history alone is outside the bound under the frequencies of this version, and people who may be
        outside after it.
    reserve : float or None
    """

    people: Literal["same", "different"]
    register_name: str | None = Field(default=None, min_length=1, alias="register")
    ordinal: int | None = Field(default=None, ge=0)
    name: str | None = Field(default=None, min_length=1)
    entry: Sha256 | None = None
    head: Sha256 | None = None
    given: Sha256 | None = None
    target: Sha256 | None = None
    drawing: Sha256 | None = None
    histories: int | None = Field(default=None, ge=1)
    level: float | None = Field(default=None, ge=0)
    moved: int | None = Field(default=None, ge=0)
    outside: int | None = Field(default=None, ge=0)
    reserve: float | None = Field(default=None, gt=0, le=1)

    @model_validator(mode="after")
    def _of_one_kind(self) -> History:
        told = (self.register_name, self.name, self.target, self.drawing, self.histories, self.level, self.moved)
        if {one is None for one in (*told, self.outside, self.reserve)} != {self.people == "different"}:
            raise ValueError("tells of a register where there is none, or not all of one")
        there = {one is None for one in (self.ordinal, self.entry, self.head)}
        if len(there) > 1 or (self.people == "different" and there != {True}):
            raise ValueError("names an entry of the register only in part")
        return self


class Record(Document):
    """What a version was made from, and what was published; internal.

    Attributes
    ----------
    version : str
    created : str
        Time of publication, ISO 8601 with time zone.
    origin : Origin
    rows : int
        Records released.
    fresh : bool
        Whether its rows are a draw about these people that no version before it showed.
    rotated : str or None
        Fingerprint of the release secret before it, if a new one was taken for this version.
    files : mapping of str to str
        SHA-256 (hex) of every public file, by its path in the folder of the version.
    software : mapping of str to str
        Versions of funnel and of the libraries that compute, by name.
    approval : Approval or None
        Who approved of the publication; None where nobody was asked, and while nobody has.
    history : History or None
        None where the spec does not say who the people are, as it need not for a first version.
    frequencies : ProtectedCounts
        What protected the frequencies that everything public was made from.
    """

    described: ClassVar[str] = "the record of version"
    schema_: Literal["funnel/record/1"] = Field(default="funnel/record/1", alias="schema")
    version: VersionText
    created: Annotated[str, Field(pattern=_TIME)]
    origin: Origin
    rows: int = Field(ge=1)
    fresh: bool
    rotated: str | None = Field(default=None, min_length=1)
    files: Mapping[str, Sha256]
    software: Mapping[str, str] = Field(default_factory=dict)
    approval: Approval | None = None
    history: History | None = None
    frequencies: ProtectedCounts

    @model_validator(mode="after")
    def _rotated_to_another(self) -> Record:
        if self.rotated is not None and self.rotated == self.origin.secret:
            raise ValueError("says that its secret was rotated to itself")
        return self
