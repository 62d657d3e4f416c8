"""The head beside the ledger: which entry was the last one, so that an old copy of the ledger is noticed."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from funnel.errors import DataError, LedgerError
from funnel.pipeline.ledger.chain import Row
from funnel.release.document import Document, Sha256
from funnel.release.files import private_folder, sync_folder, write_whole

FILE = "ledger-head"


class Head(Document):
    """The last entry that this workspace entered.

    Attributes
    ----------
    serial : int
    digest : str
    said : str
        The entry for people, such as ``"published adult/1.2.0"``.
    """

    described: ClassVar[str] = "the head of the ledger"
    schema_: Literal["funnel/head/1"] = Field(default="funnel/head/1", alias="schema")
    serial: int = Field(ge=1)
    digest: Sha256
    said: str

    @classmethod
    def of(cls, row: Row) -> Head:
        """The head of a ledger whose last entry this is."""
        return cls(serial=row.serial, digest=row.digest, said=described(row))


def described(row: Row) -> str:
    """An entry for people, such as ``"published adult/1.2.0"``."""
    return f"{row.kind} {row.series}" + (f"/{row.version}" if row.version else "")


def write_head(path: Path, row: Row) -> None:
    """Note the last entry; on disk when this returns.

    Raises
    ------
    LedgerError
        If it cannot be written.
    """
    try:
        private_folder(path.parent)
        write_whole(path, Head.of(row).to_bytes())
        sync_folder(path.parent)
    except OSError as error:
        raise LedgerError(
            f"{path} cannot be written: {error.strerror or type(error).__name__}; give permission or make room"
        ) from error


def read_head(path: Path) -> Head | None:
    """The head that was noted; None if none was.

    Raises
    ------
    LedgerError
        If it is damaged.
    """
    try:
        return Head.read(path) if path.exists() else None
    except DataError as error:
        raise LedgerError(
            f"{error}; restore it from a backup, or remove it if `funnel ledger verify` finds the newest release"
        ) from error
