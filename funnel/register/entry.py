"""Documents of a register: the entry of every published draw, and the head that says which entries there are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from funnel.errors import SpecError
from funnel.frequencies.limits import bounds_of, moves_limit
from funnel.frequencies.noise import Noise
from funnel.history.changes import MoveLimits
from funnel.joint import Joint
from funnel.release.classes_document import ClassesDocument
from funnel.release.document import (
    Count,
    CountRow,
    CountTable,
    Document,
    OfArray,
    Part,
    Sha256,
    Symbols,
    VersionText,
    built,
)
from funnel.release.frequencies_document import ChangesPart, DeparturesPart, MeansPart, NoisyTable, RowsPart

ENTRY, HEAD, PEOPLE, FORGOTTEN = "entry.json", "head.json", "people.parquet", "forgotten.parquet"
NODES, CHANGES, CHANNELS, FOLLOWED, EFFECTIVE = (
    "nodes.parquet",
    "changes.parquet",
    "channels.parquet",
    "followed.parquet",
    "effective.parquet",
)
ROWS, EXPECTED, DONORS, ROW_DONORS = "rows.parquet", "expected.parquet", "donors.parquet", "row_donors.parquet"
TABLES = (NODES, CHANGES, CHANNELS, FOLLOWED, EFFECTIVE)

_FOLDER = re.compile(r"(?P<ordinal>\d{4,})-(?P<series>[a-z0-9]+(?:-[a-z0-9]+)*)-(?P<version>\d+\.\d+\.\d+)")

Observer = Annotated[str, Field(pattern=r"^(transitions|mover-stayer)$")]
Name = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=80)]


def folder_name(ordinal: int, series: str, version: str) -> str:
    """Name of the folder of an entry, such as ``0003-household-panel-1.2.0``."""
    return f"{ordinal:04d}-{series}-{version}"


def ordinal_of(folder: str) -> int | None:
    """The ordinal in the name of an entry's folder; None if it is no such name."""
    match = _FOLDER.fullmatch(folder)
    return None if match is None else int(match["ordinal"])


class OpenPart(Part):
    """What noise leaves open of the counts of a version: they are within limits of ``noisy`` ones but for ``beta``.

    ``noisy`` are the counts with noise, by secret and input, not clipped at 0. Those of changes are open by as much.
    """

    beta: float = Field(gt=0, lt=1)
    noisy: NoisyTable


class RegisterEntry(Document):
    """What one published draw said about the people of a register; internal.

    Attributes
    ----------
    ordinal : int
        Position in the order of publication in this register, from 0.
    series, version, name : str
        ``name`` is ``"<series>/<version>"``, as histories name it.
    secret, inputs, outputs : Symbols
        What can be secret, what its channels read and what they publish; a cell is ``s * len(inputs) + x``.
    guarantee : str
        The declared bound on everything published, such as ``"lip:1.0"``.
    observers : tuple of str
        For whom it holds (`funnel.history.observers`).
    secrets : "all" or "current"
        Of which secrets: those of all versions up to this one, or the one of this version alone.
    reserve : float
        Share of the budget that was used where the history allowed it.
    mechanism : str
        That the effective channel names.
    channel : str
        SHA-256 (hex) of the effective channel, as of a protocol.
    key_columns, key_kinds : tuple of str
        Of the record key.
    fingerprint : str
        Of the release secret that people are known by.
    counts : tuple of tuples of int
        Records by secret (rows) and input, of everybody in the version, as they are published: what later versions take
        for the distribution of this one.
    noise : float or None
        Epsilon (nats) of the noise that is in these counts; None where they are exact.
    changes : ChangesPart or None
        With noise: the noisy tables that the distribution of changes is made of, as in ``frequencies.json``, since all
        versions of the register; None without noise, and of the first version. The table of exact changes then has no
        rows. None with noise in entries of schema 2, whose changes are exact.
    rows : RowsPart or None
        With noise, where people have several rows: the noisy tables about these.
    means : MeansPart or None
        With noise, where values are as they are and there are versions before: what its answers were put right by.
    departures : DeparturesPart or None
        With noise, where records are estimated from: by how much published values are more common than is expected.
    left_open : OpenPart or None
        Where the bound holds under every set of tables that noise leaves open: what these follow from.
    classes : ClassesDocument or None
        Where whole records are published: the classes that ``inputs`` are. Channels then read the class of an own
        record, that of a donor's, or that the donor is gone, and ``outputs`` are each class twice: the same person goes
        on, or another one begins.
    first : int
        Number of the first history (node) that this version added; 0 is the history of new people.
    units : tuple of tuples of int or None
        Where people have several rows: how many units have a secret and input in their first row. ``counts`` are then
        of rows, and histories go on from row to row within the version. Of whole records without units whose number of
        rows is rare, of whom nothing is read.
    second_rows : tuple of (int, int) or None
        Without noise, where the rows of a unit have one secret: by it, how many units have a second row with the
        published input of the first, and how many one with another. A unit counts once, however many rows it has.
    files : mapping of str to str
        SHA-256 (hex) of every table but those of the people, which lose those who are forgotten. With noise one of
        them says how many people are expected to have which history (`funnel.history.expected`).
    previous : str or None
        SHA-256 (hex) of the entry before it; None of the first.
    """

    described: ClassVar[str] = "the register entry"
    schema_: Literal["funnel/register-entry/1"] = Field(default="funnel/register-entry/1", alias="schema")
    ordinal: Count
    series: Name
    version: VersionText
    name: str
    secret: Symbols
    inputs: Symbols
    outputs: Symbols
    guarantee: str = Field(min_length=1)
    observers: tuple[Observer, ...] = Field(min_length=1)
    secrets: Literal["all", "current"]
    reserve: float = Field(gt=0, le=1)
    mechanism: str
    channel: Sha256
    key_columns: tuple[str, ...] = Field(min_length=1)
    key_kinds: tuple[Literal["text", "number"], ...]
    fingerprint: str = Field(pattern=r"^[0-9a-f]{32}$")
    counts: CountTable
    units: Annotated[tuple[CountRow, ...], OfArray] | None = None
    second_rows: Annotated[tuple[CountRow, ...], OfArray] | None = None
    noise: float | None = Field(gt=0)
    changes: ChangesPart | None = None
    rows: RowsPart | None = None
    means: MeansPart | None = None
    departures: DeparturesPart | None = None
    left_open: OpenPart | None = None
    classes: ClassesDocument | None = None
    first: int = Field(ge=1)
    files: Mapping[str, Sha256]
    previous: Sha256 | None

    @cached_property
    def joint(self) -> Joint:
        """The joint distribution of the version."""
        counts = self._counted(self.counts)
        if self.left_open is None or self.noise is None:
            return counts
        noisy = np.array(self.left_open.noisy, dtype=np.int64)
        if not np.array_equal(np.maximum(noisy, 0), counts.counts):
            raise SpecError("its counts are not the noisy ones without those below 0")
        return replace(counts, bounds=bounds_of(noisy, Noise(self.noise, 0.0, self.left_open.beta)))

    @property
    def inputs_read(self) -> int:
        """How many inputs its channels read."""
        return len(self.inputs.symbols) if self.classes is None else 2 * len(self.inputs.symbols) + 1

    @cached_property
    def limits(self) -> tuple[MoveLimits, ...] | None:
        """What noise leaves open of the changes since all versions before; None where nothing is asked of that."""
        if self.left_open is None:
            return None
        if self.changes is None:
            return ()
        changes = self.changes.tables
        most = moves_limit(changes.counts, changes.scale, self.left_open.beta)
        return tuple(moves.limits(most) for moves in changes.since)

    @cached_property
    def first_rows(self) -> Joint | None:
        """The joint distribution of the first rows of units; None where people have one row each."""
        if self.units is None:
            return None
        # With noise all that is published is about first rows.
        return self.joint if self.noise is not None else self._counted(self.units)

    @cached_property
    def row_limits(self) -> MoveLimits | None:
        """What is known of independent units from their first rows to their second ones; None where nothing is."""
        if self.rows is not None and self.left_open is not None:
            found: MoveLimits = self.rows.tables.limits(self.left_open.beta)
            return found
        if self.second_rows is None:
            return None
        return MoveLimits.of_rows(*(column[:, None] for column in np.array(self.second_rows, dtype=np.int64).T))

    def _counted(self, counts: CountTable) -> Joint:
        return Joint.from_counts(counts, self.secret.alphabet(), self.inputs.alphabet())

    @property
    def folder(self) -> str:
        """Name of its folder."""
        return folder_name(self.ordinal, self.series, self.version)

    @model_validator(mode="after")
    def _in_itself(self) -> Self:
        if self.name != f"{self.series}/{self.version}":
            raise ValueError("has a name that is not its series and version")
        if (self.previous is None) != (self.ordinal == 0):
            raise ValueError("is the first one with another before it, or a later one with none")
        if len(self.key_kinds) != len(self.key_columns):
            raise ValueError("names another number of key kinds than of key columns")
        # Entries of schema 2 have exact changes, and nobody is expected.
        expected = (*TABLES, EXPECTED) if EXPECTED in self.files and self.noise is not None else TABLES
        if sorted(self.files) != sorted(expected):
            raise ValueError("does not have the digests of its tables, or those of others")
        if self.left_open is not None and (self.noise is None or (self.units is not None and self.rows is None)):
            raise ValueError("leaves something open without noise, or without noisy tables of rows")
        if self.second_rows is not None and (
            self.units is None or self.noise is not None or {len(self.counts)} != {len(self.second_rows)}
        ):
            raise ValueError("counts second rows of people who have none, or beside noise")
        if any(len(row) != 2 for row in self.second_rows or ()):
            raise ValueError("counts second rows that are neither like the first one nor unlike it")
        built(lambda: self.joint)
        built(lambda: self.limits)
        built(lambda: self.row_limits)
        built(lambda: self.first_rows)
        built(lambda: self.outputs.alphabet())
        return self


class HeadEntry(Part):
    """An entry as the head knows it: its folder, and the SHA-256 (hex) of entry.json and of people.parquet.

    ``rows`` is the SHA-256 (hex) of rows.parquet, where people have several rows; ``missing`` is then about these.
    ``donors`` is that of donors.parquet, where whole records are published: whose each was; of row_donors.parquet where
    people have several rows.
    ``missing`` people of the version are not in people.parquet, because they are forgotten; its counts have them still.
    """

    folder: str = Field(
        pattern=_FOLDER.pattern.replace("?P<ordinal>", "").replace("?P<series>", "").replace("?P<version>", "")
    )
    entry: Sha256
    people: Sha256
    rows: Sha256 | None = None
    donors: Sha256 | None = None
    missing: Count


class RegisterHead(Document):
    """What a register holds now, and the digests of all heads before: so an old backup is known as one; internal.

    Attributes
    ----------
    register : str
    serial : int
        How many changes there were before the last one: versions published and people forgotten.
    entries : tuple of HeadEntry
        In order of publication.
    forgotten : str or None
        SHA-256 (hex) of the table of those who were forgotten; None while there is nobody in it.
    earlier : tuple of str
        SHA-256 (hex) of the heads before it, oldest first.
    """

    described: ClassVar[str] = "the head of a register"
    schema_: Literal["funnel/register-head/1"] = Field(default="funnel/register-head/1", alias="schema")
    register_: Name = Field(alias="register")
    serial: Count
    entries: tuple[HeadEntry, ...]
    forgotten: Sha256 | None
    earlier: tuple[Sha256, ...]

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if [ordinal_of(entry.folder) for entry in self.entries] != list(range(len(self.entries))):
            raise ValueError("does not name its entries in order, each once")
        if self.serial != len(self.earlier):
            raise ValueError("has another serial number than heads before it")
        return self
