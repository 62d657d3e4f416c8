"""Audit context: all that is known of a release which is audited, each part read or computed once."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from funnel.audit.check import Found, Result, check
from funnel.audit.documentation import HANDOUTS
from funnel.audit.drawn_numbers import check_drawn_numbers
from funnel.audit.encoding import Table, check_table
from funnel.audit.evidence import Evidence, counted_of, read_evidence
from funnel.audit.files import Listing, canonical_difference, file_facts, list_folder, read_document, read_json
from funnel.audit.history import find_register
from funnel.audit.package import TABLES, Facts
from funnel.audit.page import Compare, Render
from funnel.audit.protected import read_frequencies
from funnel.audit.released_columns import ReleasedColumns
from funnel.audit.signing import read_index
from funnel.errors import DataError, SpecError
from funnel.recount.balance import is_invariant
from funnel.recount.count_box import CountBox
from funnel.recount.drawn_numbers import sources_of
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.levels import PlainLevel
from funnel.recount.released import ReleasedProtocol
from funnel.recount.source import Recount
from funnel.release.layout import SIGNATURE_FILE, ReleaseFolder, find_workspace, place_of
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public_report import PublicReport
from funnel.release.record import Record
from funnel.release.signature import public_key_of
from funnel.release.verdict import Verdict

T = TypeVar("T")

_PAGES = ("report.html", "annex.html")
_NEEDED = ("datapackage.json", "protocol.json", *_PAGES, "report.json", "data/records.parquet", *HANDOUTS)


def declared_files(traits: Container[str]) -> frozenset[str]:
    """Paths of the public files, but for the signature, that a version of such traits consists of: words of its needs.

    Public counts are one where noise protects the others, and the questions that classes of records follow from. So is
    a table of numbers where some are drawn within intervals. Where csv is asked for there is one of the protocol, and
    one of weights where these estimate shares: the records of an invariant protocol are counted as usual.
    """
    csv, numbers, (table, table_csv) = "csv" in traits, "numbers" in traits, TABLES
    asked = {
        "data/records.csv": csv,
        "protocol.csv": csv,
        "estimator.csv": csv and "invariant" not in traits,
        table: numbers,
        table_csv: numbers and csv,
        "frequencies.json": "noise" in traits,
        "classes.json": "classes" in traits,
    }
    return frozenset((*_NEEDED, *(path for path, is_declared in asked.items() if is_declared)))


@dataclass(frozen=True)
class Coming:
    """What is known of a version that is not in its place yet, so that it is audited as the one that it will be.

    Attributes
    ----------
    place : Path
        The folder that it will be.
    workspace : Path
    record : Record or None
        That the workspace is going to keep of it; None as long as the version is not judged, so that there is none.
    entry : Path or None
        Its entry in the register of its people, prepared and not settled; None where it makes none.
    taken_over : bool
        Whether its rows are those of an earlier version, to the byte.
    held : bool
        Whether it is held for approval: it is signed, and enters the register, once it is approved.
    """

    place: Path
    workspace: Path
    record: Record | None
    entry: Path | None = None
    taken_over: bool = False
    held: bool = False

    @property
    def is_signed(self) -> bool:
        """Whether it has its signature by now."""
        return self.record is not None and not self.held


@dataclass(frozen=True)
class Told:
    """What is known beside the folder.

    Attributes
    ----------
    key : str or None
        The publisher's public key (hex), from elsewhere than the release.
    public : bool
        Whether only what the public files tell is asked for.
    fetched : bool
        Whether the folder is a copy of public files from a URL.
    unlisted : tuple of str
        Files at that URL that no document of the release lists.
    render : callable or None
        Makes the report again from its numbers.
    figures : callable or None
        Makes the figures of the report again from public counts and protocol.
    register : Path or None
        The folder of the register of the people, where it is not in a workspace near the release.
    coming : Coming or None
        Where the version is about to be published.
    asked : str or None
        The last part of the address that the release was asked for by; None where that is its folder.
    by_latest : bool
        Whether the link or the object ``latest`` of a series led to it.
    index : bytes or None
        The series index, where it is not beside the folder.
    """

    key: str | None = None
    public: bool = False
    fetched: bool = False
    unlisted: tuple[str, ...] = ()
    render: Render | None = None
    figures: Compare | None = None
    register: Path | None = None
    coming: Coming | None = None
    asked: str | None = None
    by_latest: bool = False
    index: bytes | None = None


class Missing(DataError):
    """What a check asked for is not known: the table of checks says that it is not needed, and it is."""


@dataclass(frozen=True, eq=False)
class AuditContext:
    """What is known of a release.

    Parameters
    ----------
    folder : ReleaseFolder
    told : Told
        What is known beside its files.

    Raises
    ------
    DataError
        By what is read of it, if a public document cannot be read at all.
    """

    folder: ReleaseFolder
    told: Told

    @property
    def coming(self) -> Coming | None:
        """Where the version is about to be published."""
        return self.told.coming

    @cached_property
    def package(self) -> dict[str, Any]:
        """What ``datapackage.json`` says."""
        content = read_json(self.folder.package)
        if not isinstance(content, dict):
            raise DataError(f"{self.folder.package} is not a Data Package; the release is damaged")
        return content

    @property
    def privacy(self) -> dict[str, Any]:
        """Its block on privacy; empty where there is none."""
        found = self.package.get("funnel:privacy")
        return found if isinstance(found, dict) else {}

    @property
    def name(self) -> str:
        """Of the series."""
        return str(self.package.get("name"))

    @property
    def version(self) -> str:
        """As the data package has it."""
        return str(self.package.get("version"))

    @cached_property
    def workspace(self) -> Path | None:
        """The workspace that the release was made in, where it is known or near."""
        if self.coming is not None:
            return self.coming.workspace
        near = (self.folder.root, *([] if self.folder.evidence is None else [self.folder.evidence]))
        found = (find_workspace(folder, self.name) for folder in near)
        return None if self.told.fetched else next((place for place in found if place is not None), None)

    @property
    def own_key(self) -> str | None:
        """The public key of the workspace."""
        try:
            return None if self.workspace is None else public_key_of(self.workspace)
        except SpecError:
            return None

    @cached_property
    def index(self) -> bytes | None:
        """The series index; None where there is none, or the version is not in its place yet."""
        return None if self.coming is not None else read_index(self.folder, self.told)

    @cached_property
    def document(self) -> ProtocolDocument:
        """The protocol."""
        return ProtocolDocument.from_json(read_document(self.folder.protocol), str(self.folder.protocol))

    @cached_property
    def released(self) -> ReleasedProtocol:
        """The protocol as the second computation reads it."""
        return ReleasedProtocol.parse(self.document.to_bytes())

    @cached_property
    def report(self) -> PublicReport:
        """The figures of the report; DataError if they cannot be read."""
        return PublicReport.from_json(read_document(self.folder.numbers), str(self.folder.numbers))

    @cached_property
    def listing(self) -> Listing:
        """All files that are there."""
        return list_folder(self.folder.root)

    @cached_property
    def facts(self) -> Facts:
        """Digest and size of every public file."""
        return {path: file_facts(self.folder.root / path) for path in self.listing.files}

    @property
    def declared(self) -> frozenset[str]:
        """Public files that such a release has; one that is not judged yet, or held, is not signed."""
        return declared_files(self.has) | {SIGNATURE_FILE}

    @cached_property
    def columns(self) -> ReleasedColumns:
        """The columns of the released table."""
        return ReleasedColumns.of(self.folder, self.document, self.package)

    @cached_property
    def read_table(self) -> tuple[Result, Result, Table | None]:
        """The released table, with what its reading found."""
        return check_table(self.folder.data, self.columns)

    @property
    def table(self) -> Table:
        """The released table, where it could be read."""
        return _known(self.read_table[2])

    @property
    def rows(self) -> int | None:
        """Records of the table; None where they could not be told."""
        table = self.read_table[2]
        return None if table is None else table.rows

    @cached_property
    def drawn_numbers(self) -> list[Result]:
        """What is found of numbers drawn within intervals, and of how their table is written."""
        behind = {column: sources_of(self.released, column) for column in self.released.output_columns}
        return check_drawn_numbers(self.folder, behind, self.package)

    @cached_property
    def public(self) -> PublicFrequencies | None:
        """The noisy counts, where noise protects the exact ones."""
        return read_frequencies(self.folder, self.document)

    @property
    def noisy(self) -> PublicFrequencies:
        """The noisy counts of a release that has some."""
        return _known(self.public)

    @property
    def public_rows(self) -> int:
        """Records that public figures are of: with noise, not of as many as the table has; 0 where that is not told."""
        return (self.rows or 0) if self.public is None else sum(map(sum, self.public.counts))

    @property
    def is_there(self) -> bool:
        """Whether its internal evidence is."""
        return self.folder.internal.is_dir()

    @property
    def is_of_workspace(self) -> bool:
        """Whether the workspace keeps a record of this version at this place, so that it is no copy."""
        if self.workspace is None:
            return False
        place = place_of(self.folder.root.parent, self.workspace)
        return (self.workspace / self.name / "records" / place / f"{self.folder.root.name}.json").is_file()

    @cached_property
    def read_evidence(self) -> tuple[Result, Evidence | None]:
        """Its internal evidence, with what its reading found."""
        return read_evidence(self.folder, self.document, self.coming is None or self.coming.record is not None)

    @property
    def evidence(self) -> Evidence:
        """Its internal evidence, where that could be read."""
        return _known(self.read_evidence[1])

    @property
    def record(self) -> Record:
        """Of the version, as its internal evidence has it."""
        return _known(self.evidence.record)

    @property
    def verdict(self) -> Verdict:
        """On the version."""
        return _known(self.evidence.verdict)

    @cached_property
    def counts(self) -> Recount:
        """The counts that the release was made from: public ones where there is noise, else those of the evidence."""
        return counted_of(self.evidence.joint) if self.public is None else self.public.as_counts()

    @cached_property
    def level(self) -> PlainLevel:
        """The level that is promised: over all tables that noise leaves possible where there is noise."""
        return self._level(self.counts, None if self.public is None else self.public.possible)

    @property
    def counted_level(self) -> PlainLevel:
        """The level for an observer who knows the exact counts."""
        return self.level if self.public is None else self._level(counted_of(self.evidence.joint))

    def _level(self, counted: Recount, box: CountBox | None = None) -> PlainLevel:
        return self.released.level(self.document.guarantee.declared, counted, box)

    @cached_property
    def register(self) -> Path | None:
        """The folder of the register of the people."""
        return find_register(self.record, self.workspace, self.told)

    @cached_property
    def has(self) -> frozenset[str]:
        """The words of `funnel.audit.check.Check.needs` that are true of it."""
        coming, told = self.coming, self.told
        evidence = self.read_evidence[1] if self.is_there and not told.public else None
        table, invariant = self.read_table[2], is_invariant(self.document.content())
        followed = evidence is not None and evidence.is_followed
        words = {
            "public": True,
            "signature": coming is None or coming.is_signed,
            "published": coming is None,
            "table": table is not None,
            "counted": bool(self.public_rows),
            "csv": "data/records.csv" in self.facts,
            "numbers": bool(set(TABLES) & set(self.facts)),
            "figures": self.folder.numbers.name in self.facts,
            "classes": self.columns.classes is not None,
            "invariant": invariant,
            "noise": self.public is not None,
            "exact": self.public is None,
            "shuffled": self.privacy.get("rowOrder") == "random",
            "asked": not told.public,
            "folder": self.is_there,
            "internal": evidence is not None,
            "record": coming is None or coming.record is not None,
            "drawing": evidence is not None and (evidence.drawing is not None or followed),
            "register": followed and not (coming is not None and coming.held),
        }
        return frozenset(word for word, known in words.items() if known)


def _known(part: T | None) -> T:
    if part is None:
        raise Missing("a part of the release that a check needs is not there")
    return part


@check("files", "public")
def check_listing(known: AuditContext) -> Found:
    """All files of a release are there, and no others."""
    listing, told = known.listing, known.told
    public, unsigned = set(listing.files), set() if "signature" in known.has else {SIGNATURE_FILE}
    yield from (f"{path} is missing" for path in sorted(known.declared - public - unsigned))
    yield from (f"{path} is a link, a pipe, a device or a folder of no release" for path in listing.strange)
    yield from (
        f"{path} is no file of a release" for path in (*sorted(public - known.declared), *sorted(told.unlisted))
    )
    return f"{len(public)} public files, and nothing else"


@check("documents", "public")
def check_documents(known: AuditContext) -> Found:
    """Every JSON document is byte for byte as funnel writes it, without further content."""
    for name in known.listing.files:
        if name in known.declared and name.endswith(".json"):
            path = known.folder.root / name
            if (difference := canonical_difference(read_document(path), path)) is not None:
                yield difference
    return "to the byte what funnel writes"
