"""Told: what an audit knows beside the folder, and what it asks of every JSON document in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from funnel.audit.check import Found, check
from funnel.audit.files import canonical_difference, read_document
from funnel.audit.page import Compare, Render
from funnel.release.record import Record

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext


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


@check("files", "public")
def check_listing(known: AuditContext) -> Found:
    """All files of a release are there, and no others."""
    listing, told = known.listing, known.told
    public = set(listing.files)
    yield from (f"{path} is missing" for path in known.needed if path not in public)
    yield from (f"{path} is a link, a pipe, a device or a folder of no release" for path in listing.strange)
    yield from (
        f"{path} is no file of a release" for path in (*sorted(public - known.possible), *sorted(told.unlisted))
    )
    return f"{len(public)} public files, and nothing else"


@check("documents", "public")
def check_documents(known: AuditContext) -> Found:
    """Every JSON document is byte for byte as funnel writes it, without further content."""
    for name in known.listing.files:
        if name in known.possible and name.endswith(".json"):
            path = known.folder.root / name
            if (difference := canonical_difference(read_document(path), path)) is not None:
                yield difference
    return "to the byte what funnel writes"
