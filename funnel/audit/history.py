"""A version among others: its name, the link to the newest, records kept of it, and the register of its people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funnel.audit.check import Found, Result, Unchecked, check, judged, unchecked
from funnel.audit.evidence import Evidence
from funnel.audit.files import file_facts, read_document, read_json
from funnel.audit.package import Facts
from funnel.errors import PipelineError
from funnel.recount.found_histories import RegisterHistories, VersionHistories, entry_complaints, stated_complaints
from funnel.recount.frequencies import spent_complaints
from funnel.recount.histories import recount_histories
from funnel.recount.promise import read_promise
from funnel.recount.rounded import channel_complaints
from funnel.release.layout import INDEX, LATEST, ReleaseFolder, Version, versions
from funnel.release.public_report import Change, PublicReport
from funnel.release.record import History, Record

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext, Told


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
    if known.privacy.get("rowOrder") != order:
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


@check("version before", "figures", contained=True)
def check_version_before(known: AuditContext) -> Found:
    """What is said of the version before follows from its number and, where that is beside it, from its report."""
    told = known.report
    if (change := told.change) is None:
        return "there is none"
    yield from _number_complaints(told, change)
    place = known.folder.root if known.coming is None else known.coming.place
    before = ReleaseFolder(place.parent / change.version)
    if known.told.fetched or not before.numbers.is_file() or not before.data.is_file():
        return f"of version {change.version}, which is not beside this one, only what its number tells was checked"
    earlier = PublicReport.from_json(read_document(before.numbers), str(before.numbers))
    alike = file_facts(before.data) == file_facts(known.folder.data)
    yield from _report_complaints(told, change, earlier, alike)
    # Whom donors are found for is decided once, by the first version.
    history, both = told.figures.history, before.classes.is_file() and known.folder.classes.is_file()
    later = both and history is not None and history.versions > 1
    if later and file_facts(before.classes) != file_facts(known.folder.classes):
        yield "classes.json is not that of that version"
    return f"version {change.version} says the same of itself"


def _number_complaints(told: PublicReport, change: Change) -> Iterator[str]:
    """New columns raise the first number of a version, new data the second, anything else the third."""
    own, before = Version.parse(told.version), Version.parse(change.version)
    if own is None or before is None or before >= own:
        yield "change.version is no version before this one"
    elif own.major == before.major and set(change.columns) != set(told.published.columns):
        yield "change.columns are others, and the first number of the version is the same"
    elif (own.major, own.minor) == (before.major, before.minor) and change.new_data:
        yield "change.new_data is said, and only the last number of the version is another"


def _report_complaints(told: PublicReport, change: Change, before: PublicReport, alike: bool) -> Iterator[str]:
    pairs = {
        "version": (change.version, before.version),
        "created": (change.created, before.created),
        "guarantee": (change.guarantee, before.guarantee),
        "columns": (change.columns, before.published.columns),
        "records": (change.records, before.figures.rows),
        "rows": (change.rows == "the same rows", alike),
        "name": (told.name, before.name),
    }
    yield from (f"change.{key} is not what that version says" for key, (one, other) in pairs.items() if one != other)
    history, earlier = told.figures.history, before.figures.history
    if history is None or earlier is None:
        return
    alone = (before.figures.share, earlier.share_alone)
    if any((one.share, one.share_alone) != alone for one in told.kept if one.version == before.version):
        yield "kept tells other shares than that version"
    # Rows that are taken over may be those of any version before.
    if change.rows != "a fresh draw":
        return
    if history.versions <= earlier.versions:
        yield "figures.history.versions are not more than those of that version"
    if told.earlier_releases < before.earlier_releases:
        yield "earlier_releases are fewer than before that version"
    if told.frequencies.protection != "noise" and {one.observer for one in earlier.observers} - {
        one.observer for one in history.observers
    }:
        yield "figures.history.observers lack one of that version"
    spent, spent_before = told.frequencies.spent, before.frequencies.spent
    if spent is None or spent_before is None:
        return
    # Of other data the noise is another, which is paid for; of those of a version before the last it may be the same.
    own = told.frequencies.epsilon if change.new_data and history.versions == 2 else None
    if spent < (spent_before + (own or 0.0)) * (1 - 1e-12):
        yield "frequencies.spent is less than that version says, with what this one costs"


def find_register(record: Record, workspace: Path | None, told: Told) -> Path | None:
    """The folder of the register of the people, as it is known or in the workspace; None where it is not near."""
    if told.register is not None:
        return told.register
    if workspace is None or record.history is None:
        return None
    place = workspace / "registers" / str(record.history.register_name)
    return place if place.is_dir() else None


@check("histories", "internal record register", contained=True)
def check_histories(known: AuditContext) -> Found:
    """All versions about the same people keep the bound together.

    Of a version that is not in its place yet this one alone is judged: those before it were, by this check.

    Notes
    -----
    Nothing of it is shared with what decided and drew: people are counted by DuckDB, and distributions are computed and
    decided on by `funnel.recount`.
    """
    history, register, coming = known.record.history, known.register, known.coming
    if history is None or register is None:
        return Unchecked(
            f"the register {history and history.register_name} is not near this folder, so what all versions about the "
            "same people tell together cannot be computed; name its folder with --register"
        )
    try:
        found = recount_histories(register, None if coming is None else coming.entry)
    except PipelineError as error:
        return Unchecked(error)
    yield from _complaints(found, history, known)
    return _holds(found, history)


@check("spent", "internal record register noise")
def check_spent(known: AuditContext) -> Found:
    """No series of the register has spent anything that the version leaves out."""
    register, workspace = known.register, known.workspace
    if register is None:
        return None
    if workspace is None:
        return Unchecked("the workspace with the records of all series of the register is not near this folder")
    content = read_json(known.folder.frequencies)
    until = known.record.created if known.coming is None else None
    try:
        yield from spent_complaints(content, known.record.content(), register, workspace, until)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError):
        yield "the records of the series of the register cannot be read"
    return f"{content['spent']!r} nats on these people, by the records of all their series"


def _complaints(found: RegisterHistories, history: History, known: AuditContext) -> Iterator[str]:
    evidence, document, public = known.evidence, known.document, known.public
    for version in found.versions:
        yield from (f"{version.name}: {said}" for said in version.broken)
    yield from found.complaints
    for version in found.versions:
        yield from (f"{version.name}: {said}" for said in version.complaints)
    if history.head not in found.heads:
        yield "the register is older than this version, as an old backup is"
    this, entry = found.version(str(history.name)), found.entry(str(history.name))
    if this is None or entry is None:
        yield f"the register knows of no version {history.name}"
        return
    if entry.digest != history.entry:
        yield "its entry in the register is not the one that it was published with"
    for said in channel_complaints(document.content(), known.released, entry, public):
        yield f"the published channel {said}"
    for said in this.few_complaints(entry, document.content()):
        yield f"the published channel {said}"
    settings, promise = evidence.spec.history, read_promise(document.guarantee.declared)
    asked = (None, None) if settings is None else (settings.observers, settings.secrets)
    entries = found.entries[: found.entries.index(entry) + 1]
    for said in entry_complaints(entries, promise, public, *asked, evidence.spec.is_robust_over_versions):
        yield f"its entry in the register {said}"
    if evidence.record is None or this.people + this.missing != evidence.record.rows:
        yield "the register has another number of people for it"
    yield from _figures(this, history, evidence)


def _figures(this: VersionHistories, history: History, evidence: Evidence) -> Iterator[str]:
    stated = evidence.findings.history
    since = this.missing - (0 if stated is None else stated.forgotten)
    yield from stated_complaints(history.model_dump(), this, since)
    if stated is None:
        yield "what was found then says nothing of all versions together"
    else:
        yield from stated_complaints(asdict(stated), this, since)


def _holds(found: RegisterHistories, history: History) -> str:
    this = found.version(str(history.name))
    if this is None:
        return ""
    entry = found.entry(this.name)
    of_all = entry is not None and entry.secrets == "all"
    whose = "the secret of every version" if of_all else "the secret of each version as it is published"
    moved = "" if this.moved_level is None else f" (level {this.moved_level:.12g} nats)"
    return (
        f"level {this.level:.12g} nats over {this.histories:,} histories of {len(found.versions)} versions, declared "
        f"{this.promise.kind} for {' and '.join(dict.fromkeys(one.observer for one in this.bounded_for))}, of {whose}, "
        f"and {this.moved:,} people moved before it{moved}"
    )
