"""Finished version: what a run says a coming version is made from, whatever its form; and how its files are read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from funnel.audit.files import parse_json, read_document
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
    draws_before : int, optional
        Earlier draws about the same people, other than of these rows; None where nobody counted them.
    """

    spec: ReleaseSpec
    folder: ReleaseFolder
    version: str
    snapshot: Snapshot
    taken_over: bool = False
    earlier: tuple[ReleaseFolder, ...] = ()
    key: RecordKey | None = None
    previous: str | None = None
    draws_before: int | None = None

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


def json_in(path: Path) -> Any:
    """What a JSON file says.

    Raises
    ------
    DataError
        If it is no JSON.
    """
    return parse_json(read_document(path), path)
