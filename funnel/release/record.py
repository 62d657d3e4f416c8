"""Record: what a version was made from, and what its files were; kept in the workspace after it was withdrawn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from funnel.errors import DataError, LedgerError
from funnel.release.approval import Approval
from funnel.release.document import Document, Part, Sha256, VersionText
from funnel.release.files import private_folder, sync_folder, write_whole
from funnel.release.layout import Version
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


_COMING = re.compile(r"\.coming-([0-9a-f]+)-([0-9.]+)\.json")


@dataclass(frozen=True)
class Announced:
    """A record that was written just before its version was put in its place; whether it got there is not yet known.

    Attributes
    ----------
    path : Path
    token : str
        Of the folder that the version was put together in.
    version : Version
    """

    path: Path
    token: str
    version: Version


@dataclass(frozen=True)
class Records:
    """The records of all versions that were ever published of one series.

    A version is announced, then renamed into its place, then its record is settled. A run that is killed in between
    leaves an announced record, and the folder that it names tells whether the rename was done.

    Attributes
    ----------
    folder : Path
        ``<workspace>/<name>/records/<place>``: a series is known by where it is, seen from the workspace.
    """

    folder: Path

    @property
    def known(self) -> dict[Version, Record]:
        """The record of every version that was ever published, oldest first.

        Raises
        ------
        LedgerError
            If one is damaged.
        """
        found = {}
        for path in self.folder.glob("*.json") if self.folder.is_dir() else ():
            version = Version.parse(path.stem)
            if version is not None:
                found[version] = self._read(path, version)
        return dict(sorted(found.items()))

    @property
    def announced(self) -> Iterator[Announced]:
        """What killed runs left announced."""
        for path in sorted(self.folder.glob(".coming-*")) if self.folder.is_dir() else ():
            match = _COMING.fullmatch(path.name)
            version = None if match is None else Version.parse(match[2])
            if match is not None and version is not None:
                yield Announced(path, match[1], version)

    def announce(self, token: str, version: Version, content: bytes) -> Announced:
        """Note that a version is about to be put in its place; on disk when this returns."""
        path = private_folder(self.folder) / f".coming-{token}-{version}.json"
        write_whole(path, content)
        sync_folder(self.folder)
        return Announced(path, token, version)

    def complete(self, announced: Announced) -> None:
        """Note that it got there: from now on it counts, whatever becomes of its folder."""
        announced.path.replace(self._place(announced.version))
        sync_folder(self.folder)

    def forget(self, token: str) -> None:
        """Note that what was announced did not get there."""
        for one in self.announced:
            if one.token == token:
                one.path.unlink()
                sync_folder(self.folder)

    def learn(self, record: Record) -> None:
        """Keep the record of a version that is in its place and is not known here."""
        private_folder(self.folder)
        write_whole(self._place(Version.of(record.version)), record.to_bytes())
        sync_folder(self.folder)

    def _place(self, version: Version) -> Path:
        return self.folder / f"{version}.json"

    def _read(self, path: Path, version: Version) -> Record:
        try:
            record = Record.from_json(path.read_bytes(), f"{version}, {path},")
        except (OSError, DataError) as error:
            found = str(error) if isinstance(error, DataError) else f"the record {path} cannot be read"
            raise LedgerError(
                f"{found}; restore it from a backup, or remove it if the folder of version {version} is still there: "
                "it is then learnt again"
            ) from error
        if record.version != str(version):
            raise LedgerError(
                f"the record {path} is that of version {record.version}; restore the one of version {version} from a "
                "backup"
            )
        return record
