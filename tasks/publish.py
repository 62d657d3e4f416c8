"""Publish or hold: put a validated release in its place or aside for approval, all or nothing, as it was validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from funnel.audit.context import Coming, Told
from funnel.audit.recheck import require_audited
from funnel.errors import ReleaseRefused
from funnel.pipeline.tasks.run import Draft, Run
from funnel.pipeline.tasks.step import step, tell
from funnel.progress import WARNING
from funnel.register.journal import Prepared
from funnel.release.decision import TakeOver
from funnel.release.files import write_whole
from funnel.release.provenance import software
from funnel.release.record import History, Record
from funnel.release.signature import sign_release, signer_of
from funnel.release.validated import require_accounted, require_validated
from funnel.release.verdict import Verdict
from funnel.rendering import page_renderer


@dataclass(frozen=True)
class Published:
    """A release in place.

    Attributes
    ----------
    version : str
    folder, report : str
        Absolute paths, or URLs.
    internal : str
        The private folder of its internal evidence.
    key : str or None
        The public key (hex) that it was signed with.
    """

    version: str
    folder: str
    report: str
    internal: str
    key: str | None


@step
def publish(run: Run, draft: Draft, verdict: Verdict, entry: Prepared | None = None) -> Published:
    """Sign, write the record, audit, force everything to disk, rename the folder into place, switch ``latest`` last.

    Every check of ``funnel audit`` is made of the version as it will be, once it is signed and its record is written.
    No public file is written here: what was judged is what is published, which the series makes sure of right before
    the rename. Until the rename nothing is visible; after it everything is. Where releases appear at a URL, the public
    files are put there after the rename, and are a version from the moment its ``datapackage.json`` is there, the last
    of them.

    The ledger is told before the rename that the version is about to be published: without that nothing is. Whoever
    calls tells it afterwards that it is.

    Where people have histories, what was published about each of them was prepared before, is named by the record, and
    settled in the register after it: a run that is killed leaves it to the next one, which finds out by the
    record whether the version got to its place.

    Parameters
    ----------
    run : Run
    draft : Draft
    verdict : Verdict
    entry : Prepared, optional
        Of this version in the register of its people, as it was judged.

    Raises
    ------
    ReleaseRefused
        If the verdict is negative, or no longer about the files that are there; or an audit does not pass.
    LedgerError
        If the ledger cannot be told; nothing is published then.
    """
    # Only what was judged is signed.
    folder, version, series = draft.folder, draft.decision.version, run.series
    require_validated(folder, verdict)
    files = sign_release(run.spec, folder, str(version), draft.created, verdict.files)
    history = draft.followed.drawn.record
    if entry is not None and history is not None:
        history = history.model_copy(
            update={"ordinal": entry.entry.ordinal, "entry": entry.entry_sha256, "head": entry.head_sha256}
        )
    record = complete(run, draft, verdict, files, history)
    require_own_audit(run, draft, record, entry)
    tell("publishing")
    run.account.publishing(folder)
    series.publish(folder, version, verdict, tell, files[folder.signature.name])
    if entry is not None and run.register is not None:
        run.register.commit(entry)
    there = series.folder(version)
    return Published(str(version), *series.shown(version), str(there.internal), signer_of(there))


def require_passed(verdict: Verdict) -> None:
    """Make sure that a version may be published.

    Raises
    ------
    ReleaseRefused
        If the verdict is negative.
    """
    if not verdict.passed:
        raise ReleaseRefused(f"nothing was published: {verdict.sentence()}")


def complete(run: Run, draft: Draft, verdict: Verdict, files: Mapping[str, str], history: History | None) -> Record:
    """Write what a judged version still lacks, all of it internal: the verdict and the record, which is returned.

    Raises
    ------
    ReleaseRefused
        If the verdict is negative.
    LedgerError
        If the record would not be true.
    """
    require_passed(verdict)
    decision, folder = draft.decision, draft.folder
    write_whole(folder.verdict, verdict.to_bytes())
    record = Record(
        version=str(decision.version),
        created=draft.created,
        origin=decision.origin,
        rows=run.snapshot.rows,
        fresh=decision.fresh,
        rotated=decision.rotated,
        files=dict(files),
        software=software(),
        approval=run.approval,
        history=history,
        frequencies=draft.protected.record,
    )
    require_accounted(record, folder, run.earlier)
    write_whole(folder.record, record.to_bytes())
    return record


def require_own_audit(
    run: Run, draft: Draft, record: Record, entry: Prepared | None = None, held: bool = False
) -> None:
    """Make every check of ``funnel audit``, public and internal, of a version as it will be.

    Parameters
    ----------
    record : Record
        As it was written.
    entry : Prepared, optional
        In the register of its people.
    held : bool
        Whether it is held for approval: signature and register are then left to the audit of the approved one.

    Raises
    ------
    ReleaseRefused
        If a check does not pass.
    """
    tell("auditing the release")
    coming = Coming(
        place=run.series.folder(draft.decision.version).root,
        workspace=run.spec.workspace_folder,
        record=record,
        entry=None if entry is None else entry.folder,
        taken_over=isinstance(draft.decision, TakeOver),
        held=held,
    )
    place = None if run.register is None or held else run.register.root
    for unchecked in require_audited(draft.folder, Told(render=page_renderer(), register=place, coming=coming)):
        tell(f"{WARNING}{unchecked}")


@step
def hold(run: Run, draft: Draft, verdict: Verdict) -> None:
    """Write the record and put the folder aside in the series, all or nothing; no reader sees any of it.

    It is not in the register of its people, which holds what is published. Nothing is signed or uploaded: whoever
    approves has the documents written and judged again, with the approval.

    Raises
    ------
    ReleaseRefused
        If the verdict is negative, or no longer about the files that are there; or an audit does not pass.
    """
    record = complete(run, draft, verdict, verdict.files, draft.followed.drawn.record)
    require_own_audit(run, draft, record, held=True)
    tell("holding for approval")
    run.series.held.hold(draft.folder, draft.decision.version, verdict)
