"""A version among the others of its series: its name, the link to the newest, and the records kept of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from funnel.audit.check import Found, Result, Unchecked, check, judged, unchecked
from funnel.audit.files import read_document
from funnel.audit.package import Facts
from funnel.release.layout import INDEX, LATEST, Version, versions
from funnel.release.record import Record

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext


@check("versions", "record")
def check_versions(known: AuditContext) -> Found:
    """The version is said alike everywhere, and is the newest one.

    A copy that was fetched has no place of its own. A version that is coming is to be the newest one, and in nobody's
    place. Where the series index is at hand, another check tells whether the version is the newest.
    """
    coming, said = known.coming, str(known.package.get("version"))
    place = known.folder.root if coming is None else coming.place
    number = None if known.told.fetched else Version.parse(place.name)
    if number is not None:
        if place.name != said:
            yield f"the folder is named {place.name}, and datapackage.json says another version"
        latest, there = place.parent / LATEST, versions(place.parent)
        # The link of a version that is coming is switched once it is there.
        if coming is not None and number in there:
            yield f"version {number} is there already"
        if latest.exists() and not latest.is_symlink():
            yield f"{LATEST} is no link"
        elif coming is None and latest.is_symlink() and str(latest.readlink()) != str(there[-1]):
            yield f"{LATEST} does not name the newest version, {there[-1]}"
    if known.index is not None or coming is not None:
        return f"version {said}"
    return (
        f"version {said}; whether it is the newest could not be checked without the publisher's {INDEX} (give it with "
        "--index)"
    )


@check("record", "internal record")
def check_record(known: AuditContext) -> Found:
    """The record of the version is of the files that are there, and of this spec."""
    record, evidence, package, facts = known.record, known.evidence, known.package, known.facts
    document, judged_files, spec = known.document, known.verdict.files, evidence.spec
    if (record.version, record.created) != (package.get("version"), package.get("created")):
        yield "its version or time is not that of datapackage.json"
    yield from file_complaints(record.files, facts, "recorded")
    yield from file_complaints(judged_files, {k: v for k, v in facts.items() if k in judged_files}, "judged")
    origin = record.origin
    # Rows of people with histories are drawn by another channel than the one that is told of.
    aimed_at = None if record.history is None else record.history.target
    if origin.protocol != (aimed_at or document.digest):
        yield "it is of another protocol"
    if (origin.fields, origin.guarantee) != (known.columns.names, document.guarantee.declared):
        yield "it is of other columns or another guarantee"
    if origin.spec != spec.digest:
        yield "it is of another spec than the one in its internal evidence"
    order = "random" if origin.shuffle else "as in the source"
    privacy = package.get("funnel:privacy")
    if not isinstance(privacy, dict) or privacy.get("rowOrder") != order:
        yield "datapackage.json says another order of rows"
    if record.rows != evidence.joint.n:
        yield "its number of records is not that of the counted ones"
    if package.get("name") != spec.name:
        yield "the release has another name than its spec"
    return f"{len(record.files)} files as they were published"


@check("evidence", "asked")
def check_evidence(known: AuditContext) -> Result:
    """The internal evidence is whole, and only its owner may read it."""
    if known.is_there:
        return known.read_evidence[0]
    if known.is_of_workspace:
        said = "its internal evidence is gone from the workspace; restore it from a backup"
        return judged("evidence", [said], "")
    why = (
        "its internal evidence is not here: the publisher keeps it, so whether the bound holds for the counts of the "
        "source, and how the records were drawn, cannot be told; --public leaves this out"
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


@check("kept record", "asked folder record", contained=True)
def check_kept(known: AuditContext) -> Found:
    """The workspace keeps the same record."""
    workspace, coming, version = known.workspace, known.coming, known.version
    if workspace is None:
        return Unchecked("the workspace .funnel is not near this folder, so its records are not known")
    found = sorted((workspace / known.name / "records").glob(f"*/{version}.json"))
    if not found and coming is None:
        yield f"the workspace knows of no version {version}"
        return ""
    kept = [Record.from_json(read_document(path), str(path)) for path in found]
    record = known.record if "internal" in known.has else None
    if not (record in kept if coming is None else record == coming.record):
        yield "the record in its internal evidence is not the one that the workspace keeps of this version"
    return "the workspace keeps the same record"
