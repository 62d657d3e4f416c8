"""The chain of entries: each is known by a digest over its content and the digest of the one before; pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from funnel.pipeline.ledger.entry import Entry

# What the first entry has before it.
BEGINNING = "0" * 64


@dataclass(frozen=True)
class Row:
    """An entry as the database has it.

    Attributes
    ----------
    serial : int
    previous, digest : str
        Hexadecimal SHA-256: of the entry before, and of this one.
    content : str
        The entry as canonical JSON: what the digest is of.
    kind, series, register_name, version : str or None
        What entries are looked up by, repeated from the content.
    """

    serial: int
    previous: str
    digest: str
    content: str
    kind: str
    series: str
    register_name: str | None
    version: str | None

    @classmethod
    def of(cls, entry: Entry, previous: str) -> Row:
        """An entry after the one with this digest."""
        text, event = canonical(entry.content()), entry.event
        digest = digest_of(text, previous)
        return cls(entry.serial, previous, digest, text, event.kind, event.series, event.register_name, event.version)

    @property
    def entry(self) -> Entry:
        """The entry.

        Raises
        ------
        DataError
            If its content is none, or one of a newer funnel.
        """
        return Entry.from_json(self.content, str(self.serial))


def canonical(content: Any) -> str:
    """JSON as one text for equal content, in ASCII: no database and no encoding changes it."""
    return json.dumps(content, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of(content: str, previous: str) -> str:
    """SHA-256 (hex) of the digest of the entry before, a line end, and the content."""
    return hashlib.sha256(f"{previous}\n{content}".encode()).hexdigest()


def misfit(row: Row, before: Row | None) -> str | None:
    """Why an entry does not fit the one before it; None if it does.

    Parameters
    ----------
    row : Row
    before : Row or None
        None for the first entry.
    """
    serial, previous = (1, BEGINNING) if before is None else (before.serial + 1, before.digest)
    if row.serial != serial:
        return f"it should be entry {serial}: entries are missing or out of order"
    if row.previous != previous:
        return "it does not follow the entry that is before it"
    if digest_of(row.content, row.previous) != row.digest:
        return "its content is not what its SHA-256 was taken of"
    try:
        said = json.loads(row.content)
        event = said["event"]
        repeated = (said["serial"], event["kind"], event["series"], event["register"], event["version"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return "its content is no entry"
    if repeated != (row.serial, row.kind, row.series, row.register_name, row.version):
        return "what it is looked up by is not what its content says"
    return None


def first_misfit(rows: Iterable[Row]) -> tuple[Row, str] | None:
    """The first entry that does not fit, and why; None if all do. Reads one at a time."""
    before = None
    for row in rows:
        if (why := misfit(row, before)) is not None:
            return row, why
        before = row
    return None
