"""Finished version: what a run says a coming version is made from, whatever its form; and how its files are read."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from funnel.errors import DataError
from funnel.pipeline.expectations.said import Said
from funnel.recount.classes import PlainClasses
from funnel.recount.source import source_columns
from funnel.release.layout import ReleaseFolder
from funnel.release.snapshot import Snapshot
from funnel.sampling import RecordKey
from funnel.spec import ReleaseSpec


@dataclass(frozen=True, eq=False)
class FinishedVersion:
    """A finished folder, the spec, and what the run says it made the release from.

    Parameters
    ----------
    spec : ReleaseSpec
        Its text is what is judged by; the rest of it only says where the source is and how to recode it.
    folder : ReleaseFolder
        With all public files, and the internal evidence of the counts and of the drawing.
    version : str
        That is about to be published.
    snapshot : Snapshot
        What it says of itself is judged, and its records are in the order of the source.
    taken_over : bool
        Whether the rows were drawn for an earlier version.
    earlier : tuple of ReleaseFolder
        Earlier versions, whose random words must not come again.
    key : RecordKey, optional
        With the release secret, where the spec has a record key.
    previous : str, optional
        The newest version that readers find.
    """

    spec: ReleaseSpec
    folder: ReleaseFolder
    version: str
    snapshot: Snapshot
    taken_over: bool = False
    earlier: tuple[ReleaseFolder, ...] = ()
    key: RecordKey | None = None
    previous: str | None = None

    @cached_property
    def said(self) -> Said:
        """What the text of the spec says; of "auto" the columns are those of the source, read again."""
        said = Said.of(self.spec.text)
        said = said.publishing(source_columns(self.spec)) if said.publishes_all else said
        return said if self.classes is None else replace(said, class_column=self.classes.column)

    @cached_property
    def classes(self) -> PlainClasses | None:
        """The questions that classes of records follow from, where there are any."""
        return PlainClasses.parse(self.folder.classes.read_bytes()) if self.folder.classes.is_file() else None

    @cached_property
    def given_classes(self) -> PlainClasses | None:
        """The questions in the file that the text of the spec names, as it is now; None where it names none.

        Raises
        ------
        DataError
            If it cannot be read.
        """
        named = self.said.section("groups").get("classes")
        if named is None:
            return None
        try:
            return PlainClasses.parse(self.spec.resolve(str(named)).read_bytes())
        except OSError as error:
            raise DataError(f"the file of classes {named} cannot be read any more") from error

    @cached_property
    def settled(self) -> ReleaseSpec:
        """The spec with the recoding that the snapshot says: whether that is what it may be is judged."""
        return self.snapshot.read_codings().settled(self.spec)

    @property
    def handed_on(self) -> object:
        """The guarantee that the run was for."""
        from funnel.guarantees import parse_guarantee

        return parse_guarantee(self.spec.guarantee.canonical)


def digest_and_size(path: Path) -> tuple[str, int]:
    """SHA-256 (hex) and bytes of a file."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest(), path.stat().st_size


def json_in(path: Path) -> Any:
    """What a JSON file says; see `json_of`."""
    return json_of(path.read_bytes(), path)


def json_of(text: bytes, path: Path) -> Any:
    """What a text says that was read of a JSON file.

    Raises
    ------
    DataError
        If it is no JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    raise DataError(f"{path.name} is not JSON")


def spread(content: Any) -> bytes:
    """JSON as documents for people are written: keys in order, a line for what has no list or object in it."""
    return (_laid_out(content, 0) + "\n").encode()


def _laid_out(value: Any, depth: int) -> str:
    named = isinstance(value, dict)
    parts = sorted(value.items()) if named else list(enumerate(value)) if isinstance(value, list) else []
    if all(not isinstance(part, dict | list) for _, part in parts):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    margin = "\n" + " " * depth
    lines = [
        f"{margin} {json.dumps(key, ensure_ascii=False) + ': ' if named else ''}{_laid_out(part, depth + 1)}"
        for key, part in parts
    ]
    begin, end = "{}" if named else "[]"
    return begin + ",".join(lines) + margin + end
