"""A version among the others of its series: its name, the link to the newest, and the records kept of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from funnel.audit.check import Result, judged, unchecked
from funnel.audit.evidence import Evidence
from funnel.audit.files import read_document
from funnel.audit.package import Facts
from funnel.audit.told import Coming
from funnel.errors import FunnelError
from funnel.release.documents import ProtocolDocument
from funnel.release.layout import INDEX, LATEST, ReleaseFolder, Version, versions
from funnel.release.record import Record
from funnel.release.verdict import Verdict
from funnel.spec import ReleaseSpec

_UPWARDS = 4
_SERIES = re.compile(r"[a-z0-9-]{1,100}")


def check_versions(
    folder: ReleaseFolder, package: dict[str, Any], in_place: bool, coming: Coming | None, listed: bool = True
) -> Result:
    """Whether the version says the same everywhere, and ``latest`` names the newest one.

    Parameters
    ----------
    folder : ReleaseFolder
    package : JSON object
    in_place : bool
        Whether the folder is where the release was published, and not a copy that was fetched.
    coming : Coming or None
        Where the version is about to be published: then it is to be the newest one, and in nobody's place.
    listed : bool
        Whether the series index is at hand, by which another check tells whether the version is the newest.
    """
    said, place = str(package.get("version")), folder.root if coming is None else coming.place

    def complaints() -> Iterator[str]:
        if not in_place or (number := Version.parse(place.name)) is None:
            return
        if place.name != said:
            yield f"the folder is named {place.name}, and datapackage.json says another version"
        latest = place.parent / LATEST
        there = versions(place.parent)
        if coming is not None:
            # Its link is switched once it is there.
            if number in there:
                yield f"version {number} is there already"
            if latest.exists() and not latest.is_symlink():
                yield f"{LATEST} is no link"
        elif latest.is_symlink():
            if str(latest.readlink()) != str(there[-1]):
                yield f"{LATEST} does not name the newest version, {there[-1]}"
        elif latest.exists():
            yield f"{LATEST} is no link"

    open_ = (
        ""
        if listed or coming is not None
        else (f"; whether it is the newest could not be checked without the publisher's {INDEX} (give it with --index)")
    )
    return judged("versions", complaints(), f"version {said}{open_}")


def check_record(
    evidence: Evidence,
    record: Record,
    verdict: Verdict,
    document: ProtocolDocument,
    fields: tuple[str, ...],
    package: dict[str, Any],
    facts: Facts,
) -> Result:
    """The record in ``audit/`` against the files that are there and what they say."""
    # Rows of people with histories are drawn by another channel than the one that is told of.
    aimed_at = None if record.history is None else record.history.target
    made = Made(
        aimed_at or document.digest,
        fields,
        document.guarantee.declared,
        evidence.spec,
        evidence.joint.n,
    )
    return compared_record(record, verdict.files, made, package, facts)


@dataclass(frozen=True)
class Made:
    """What the record of a version has to say of its origin.

    Attributes
    ----------
    protocol : str
        Digest of it.
    fields : tuple of str
        Published columns.
    guarantee : str
        As declared.
    spec : ReleaseSpec
        That in ``audit/``.
    records : int
        That were counted.
    """

    protocol: str
    fields: tuple[str, ...]
    guarantee: str
    spec: ReleaseSpec
    records: int


def compared_record(
    record: Record, judged_files: Mapping[str, str], made: Made, package: dict[str, Any], facts: Facts
) -> Result:
    """A record against the files that are there, what they say, and what the version was made from."""

    def complaints() -> Iterator[str]:
        if (record.version, record.created) != (package.get("version"), package.get("created")):
            yield "its version or time is not that of datapackage.json"
        yield from file_complaints(record.files, facts, "recorded")
        yield from file_complaints(judged_files, {k: v for k, v in facts.items() if k in judged_files}, "judged")
        origin = record.origin
        if origin.protocol != made.protocol:
            yield "it is of another protocol"
        if origin.fields != made.fields or origin.guarantee != made.guarantee:
            yield "it is of other columns or another guarantee"
        if origin.spec != made.spec.digest:
            yield "it is of another spec than the one in audit/"
        order = "random" if origin.shuffle else "as in the source"
        privacy = package.get("funnel:privacy")
        if not isinstance(privacy, dict) or privacy.get("rowOrder") != order:
            yield "datapackage.json says another order of rows"
        if record.rows != made.records:
            yield "its number of records is not that of the counted ones"
        if package.get("name") != made.spec.name:
            yield "the release has another name than its spec"

    return judged("record", complaints(), f"{len(record.files)} files as they were published")


def check_absent(folder: ReleaseFolder, workspace: Path | None) -> Result | None:
    """What can be told where ``audit/`` is not there; None where it is."""
    if folder.audit.is_dir():
        return None
    if workspace is not None:
        return judged("evidence", ["audit/ is gone, though the workspace is here; restore it from a backup"], "")
    why = (
        "audit/ is not here: the publisher keeps it, so whether the bound holds for the counts of the source, and "
        "how the records were drawn, cannot be told; --public leaves this out"
    )
    return unchecked("evidence", why)


def file_complaints(said: Any, facts: Facts, how: str) -> Iterator[str]:
    """Files that are not those whose digests were noted."""
    for path in sorted(set(said) | set(facts)):
        if path not in facts:
            yield f"{path} is missing"
        elif path not in said:
            yield f"{path} was not {how}"
        elif facts[path][0] != said[path]:
            yield f"{path} is not the one that was {how}"


def find_workspace(folder: ReleaseFolder, name: str) -> Path | None:
    """The workspace that keeps the records of a series; None if there is none near the release.

    A name that no series has leads nowhere: it is what a data package says, and may be a path.
    """
    if not _SERIES.fullmatch(name):
        return None
    place = folder.root
    for _ in range(_UPWARDS):
        place = place.parent
        for workspace in (place / ".funnel", place):
            if (workspace / name / "records").is_dir():
                return workspace
    return None


def check_kept(workspace: Path | None, name: str, version: str, record: Record | None, coming: Coming | None) -> Result:
    """The record in ``audit/`` against the one that is kept in the workspace, which nobody exchanges with a folder."""
    if workspace is None:
        return unchecked("kept record", "the workspace .funnel is not near this folder, so its records are not known")
    found = sorted((workspace / name / "records").glob(f"*/{version}.json"))
    if not found and coming is None:
        return judged("kept record", [f"the workspace knows of no version {version}"], "")
    try:
        kept = [Record.from_json(read_document(path), str(path)) for path in found]
    except FunnelError as error:
        return judged("kept record", [str(error)], "")
    same = record in kept if coming is None else record == coming.record
    said = "the record in audit/ is not the one that the workspace keeps of this version"
    return judged("kept record", [] if same else [said], "the workspace keeps the same record")
