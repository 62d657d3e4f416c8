"""Everything published about the people of a release, in all versions of their register, computed again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from funnel.audit.check import Found, Unchecked, check
from funnel.audit.evidence import Evidence
from funnel.audit.files import read_json
from funnel.errors import PipelineError
from funnel.recount.found_histories import RegisterHistories, VersionHistories, entry_complaints, stated_complaints
from funnel.recount.histories import recount_histories
from funnel.recount.promise import read_promise
from funnel.recount.rounded import channel_complaints
from funnel.recount.spent import spent_complaints
from funnel.release.record import History, Record

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext, Told


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
    Nothing of it is shared with what decided and drew: people are counted by DuckDB, and laws are computed and decided
    on by `funnel.recount`.
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
