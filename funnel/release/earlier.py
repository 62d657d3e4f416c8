"""Earlier versions of a series: published, withdrawn or held ones, and what of them a new version has to respect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from funnel.errors import DataError, LedgerError
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.record import Record

_ROWS = ReleaseFolder(Path()).data.as_posix()


@dataclass(frozen=True)
class Earlier:
    """A version before this one, whose rows were published or may have been seen.

    Attributes
    ----------
    record : Record
    folder : ReleaseFolder or None
        Where its rows are; None where they are gone.
    published : bool
        False for a version that did not get to its place in full.
    rows_sha256 : str
        Digest of its rows; empty where they are gone and it was not noted.
    withdrawn : bool
        Whether it was published and is no longer where readers find it. Its number and its draw count all the same.
    """

    record: Record
    folder: ReleaseFolder | None
    published: bool
    rows_sha256: str
    withdrawn: bool = False

    @classmethod
    def of(cls, record: Record, folder: ReleaseFolder | None, published: bool, withdrawn: bool = False) -> Earlier:
        """With the rows that its record names."""
        return cls(record, folder, published, record.files.get(_ROWS, ""), withdrawn)

    @property
    def version(self) -> Version:
        """Its number."""
        return Version.of(self.record.version)

    @property
    def place(self) -> ReleaseFolder:
        """Its folder, of a version whose rows are there."""
        if self.folder is None:
            raise ValueError("the rows of a version are gone")
        return self.folder


@dataclass(frozen=True)
class Submitted:
    """A version that was held for approval. Nobody but its publisher saw it, unless it is among the published ones too.

    Attributes
    ----------
    held : Earlier
        Without a folder once it is no longer held.
    rejected : bool
        Whether somebody refused to approve of it.
    """

    held: Earlier
    rejected: bool = False

    @property
    def version(self) -> Version:
        """Its number; no other version gets it."""
        return self.held.version

    @property
    def waiting(self) -> bool:
        """Whether it still waits for approval."""
        return self.held.folder is not None


def record_in(folder: ReleaseFolder) -> Record:
    """The record in the internal folder of a version.

    Raises
    ------
    LedgerError
        If it is missing or damaged.
    """
    version = folder.root.name
    try:
        return Record.from_json(folder.record.read_bytes(), f"{version}, {folder.record},")
    except OSError as error:
        found = (
            f"the record {folder.record} of version {version} is missing or cannot be read: it was published from "
            "another workspace, or what this one kept of it is lost"
        )
        cause: Exception = error
    except DataError as error:
        found, cause = str(error), error
    raise LedgerError(
        f"{found}; it is then unknown what was published about the same people: restore it from a backup, release from "
        "that workspace, or choose another folder in [output]"
    ) from cause


def secret_before(earlier: Sequence[Earlier]) -> str | None:
    """Fingerprint of the release secret of the newest version that was drawn with one; None if none was."""
    published = sorted((one for one in earlier if one.published), key=lambda one: one.version)
    found = (one.record.origin.secret for one in reversed(published))
    return next((fingerprint for fingerprint in found if fingerprint is not None), None)


def fresh_draws(earlier: Sequence[Earlier], rows_sha256: str) -> int:
    """How many draws about the same people, other than these rows, were published or may have been seen.

    Parameters
    ----------
    earlier : sequence of Earlier
    rows_sha256 : str
        Digest of the rows that are about to be published.
    """
    return sum(one.record.fresh for one in earlier if one.published or one.rows_sha256 != rows_sha256)


def newest_found(earlier: Sequence[Earlier]) -> Version | None:
    """The newest version that readers find; None if there is none."""
    return max((one.version for one in earlier if one.published and not one.withdrawn), default=None)


def warning_of_withdrawn(earlier: Sequence[Earlier]) -> str | None:
    """A sentence about versions that were withdrawn, for whoever releases again; None if there are none."""
    gone = sorted(one.version for one in earlier if one.withdrawn)
    if not gone:
        return None
    if len(gone) == 1:
        return f"version {gone[0]} was withdrawn: its number is not used again, and its draw still counts"
    return (
        f"versions {', '.join(map(str, gone))} were withdrawn: their numbers are not used again, and their draws "
        "still count"
    )
