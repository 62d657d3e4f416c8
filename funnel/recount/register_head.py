"""Register head: which entries the head of a register names, and whether these are the ones that are there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from funnel.recount.register_files import Entry, whole_number
from funnel.recount.register_tables import damaged, file_content, file_digest

HEAD = "head.json"


@dataclass(frozen=True)
class Named:
    """An entry as the head of a register names it.

    Attributes
    ----------
    folder : str
    entry, people : str
        SHA-256 of ``entry.json`` and of the table of its people.
    missing : int
        People who are counted in the entry and not in that table, as they are forgotten.
    rows : str or None
        SHA-256 of the table of their rows, where people have several.
    """

    folder: str
    entry: str
    people: str
    missing: int
    rows: str | None


@dataclass(frozen=True)
class Head:
    """The head of a register.

    Attributes
    ----------
    named : tuple of Named
    forgotten : str or None
        SHA-256 of the table of those who are forgotten.
    digests : tuple of str
        SHA-256 of the heads before it, and of itself.
    """

    named: tuple[Named, ...]
    forgotten: str | None
    digests: tuple[str, ...]


def read_head(folder: Path) -> Head:
    """The head that a folder holds.

    Raises
    ------
    DataError
        If there is none, or it cannot be read.
    """
    path = folder / HEAD
    try:
        content = file_content(path)
        said = json.loads(content)
        named = [
            Named(
                str(one["folder"]), str(one["entry"]), str(one["people"]), whole_number(one["missing"]), one.get("rows")
            )
            for one in said["entries"]
        ]
        digests = (*map(str, said["earlier"]), hashlib.sha256(content).hexdigest())
        return Head(tuple(named), said["forgotten"], digests)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise damaged(path, "is no head of a register") from None


def head_complaints(head: Head, entries: Sequence[Entry]) -> Iterator[str]:
    """What the head of a register says otherwise than the entries that are there.

    Raises
    ------
    DataError
        If the people of an entry cannot be read.
    """
    if len(head.named) != len(entries):
        yield "the head of the register names other entries than there are"
        return
    for one, found in zip(head.named, entries, strict=True):
        # An entry that is prepared has a name that begins otherwise.
        if not found.folder.name.endswith(one.folder):
            yield "the head of the register names other entries than there are"
        if one.entry != found.digest:
            yield f"the entry {one.folder} is not the one that the head of the register names"
        if one.people != file_digest(found.people):
            yield f"the people of {one.folder} are not those that the head of the register names"
        if one.rows != (None if found.chapter.units is None else file_digest(found.rows)):
            yield f"the rows of {one.folder} are not those that the head of the register names"


def chain_complaints(entries: Sequence[Entry]) -> Iterator[str]:
    """Entries that do not name the one before them."""
    previous = None
    for entry in entries:
        if entry.previous != previous:
            yield f"the entry {entry.folder.name} does not follow the one before it"
        previous = entry.digest
