"""Look: whether a release is published or held already, without making it again; and the rejection of a held one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from funnel.errors import ReleaseRefused, SpecError
from funnel.pipeline.flows.register_of_run import people_known
from funnel.pipeline.tasks.committed import committed_version
from funnel.pipeline.tasks.secret_blocks import read_secret_block
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.recount.source import source_digest
from funnel.register import register_of
from funnel.release.approval import Approval, Outcome
from funnel.release.decision import Rejected, Unchanged, Waiting
from funnel.release.earlier import secret_before
from funnel.release.layout import Version
from funnel.release.secret import ReleaseSecret, find_register_secret, find_secret
from funnel.release.series import Series, open_series
from funnel.release.signature import signer_of
from funnel.release.validated import require_same_spec
from funnel.source.columns import resolved_columns
from funnel.spec import ReleaseSpec

if TYPE_CHECKING:
    from funnel.register.register import Register


@plain_errors
def look(spec: ReleaseSpec) -> dict[str, Any] | None:
    """What the release flow would return if nothing has changed since its last run on this spec; None if it has to run.

    Reads the source to compare its digest; neither estimates nor optimises.

    Raises
    ------
    FunnelError
        As the release flow.
    """
    spec = resolved_columns(spec)
    with open_series(spec) as series:
        secret = release_secret(spec, series, rotate=False)
        fingerprint = None if secret is None else secret.fingerprint
        version = committed_version(spec, spec.workspace_folder / spec.name, series, fingerprint)
        cached = ["estimate", "optimise"]
        if version is None or not people_known(spec, series):
            return None
        if series.held.waiting is None:
            return unchanged(spec, series, version, cached)
        if _moved_on(spec, series):
            return None
        # Where nobody is asked any more, what is held is to be published.
        return waits(series, version, cached) if spec.approval.required else None


def _moved_on(spec: ReleaseSpec, series: Series) -> bool:
    """Whether something was published about the people of the version that is held since it was drawn."""
    waiting, register = series.held.waiting, register_of(spec)
    if waiting is None or register is None:
        return False
    history = waiting.held.record.history
    return (None if history is None else history.given) != register.head_sha256


def unchanged(spec: ReleaseSpec, series: Series, version: Version, cached: list[str]) -> dict[str, Any]:
    """The answer of a run that found its release already published.

    Raises
    ------
    ReleaseRefused
        If the source, digested again by other code, is not the one that the version was made from: a snapshot that is
        no longer of the source is never called unchanged.
    LedgerError
        If the version is of another bound, other columns or another spec, or the register of its people is not the one
        that it was published with, or one after it.
    """
    if source_digest(spec) != series.record(version).origin.source:
        raise ReleaseRefused(
            f"version {version} was made from another source than the one that is there, although the snapshot of it "
            "was taken for the same; remove the folder snapshots in the workspace, then run the release again"
        )
    require_same_spec(spec, series.record(version))
    history, register = series.record(version).history, register_of(spec)
    if register is not None and history is not None and history.head is not None:
        register.require_head(history.head)
        # Rows that were taken over are in the register as those of the version that they were drawn for.
        _, _, drawn_for = str(history.name).rpartition("/")
        register.require_published(spec.name, {drawn_for: str(history.entry)})
    tell(f"unchanged: version {version} already is this release")
    folder, (shown, report) = series.folder(version), series.shown(version)
    told = {"status": "unchanged", "version": str(version), "folder": shown, "report": report}
    return {**told, "internal": str(folder.internal), "key": signer_of(folder), "cached": cached}


def waits(series: Series, version: Version, cached: list[str]) -> dict[str, Any]:
    """The answer of a run that found its release already held for approval."""
    series.held.check(version)
    tell(f"held: version {version} waits for approval")
    record = series.held.records.known[version]
    return {**held(series, version), "since": record.created, "rows": record.rows, "drawn": False, "cached": cached}


def rejected(series: Series, version: Version, cached: list[str]) -> dict[str, Any]:
    """The answer of a run that found its release rejected by somebody."""
    outcome = series.held.outcome(version)
    if outcome is None:
        raise ValueError("a version that was rejected has an outcome")
    tell(f"rejected: {outcome.sentence()}")
    said = outcome.model_dump(include={"version", "at", "by", "reason"})
    return {"status": "rejected", **said, "cached": cached}


def superseded(version: Version) -> str:
    """A sentence about a version that was held and is so no longer."""
    return (
        f"version {version}, which was held for approval, is superseded and was removed; it was never published, and "
        "its number is not used again"
    )


def held(series: Series, version: Version) -> dict[str, Any]:
    """What is told of any version that is held: that it is, and where it can be looked at."""
    folder = series.held.folder(version)
    return {
        "status": "held",
        "version": str(version),
        "folder": str(folder.root),
        "report": str(folder.internal_report),
        "internal": str(folder.internal),
    }


def release_secret(spec: ReleaseSpec, series: Series, rotate: bool) -> ReleaseSecret | None:
    """The release secret, where the spec has a record key.

    Raises
    ------
    SpecError
        If there is none to rotate, or it cannot be read.
    LedgerError
        If it is not the one of the newest version, or is gone.
    """
    if spec.record_key is None:
        if rotate:
            raise SpecError("there is no release secret to rotate: the spec names no record_key")
        return None
    register = register_of(spec)
    if register is not None:
        return _register_secret(register, spec, rotate)
    workspace = spec.workspace_folder / spec.name
    earlier = series.earlier
    waiting = series.held.waiting
    drawn = None if waiting is None else waiting.held.record.origin.secret
    found = find_secret(spec.record_secret, workspace, secret_before(earlier), rotate, read_secret_block, drawn)
    return replace(found, series=spec.name)


def _register_secret(register: Register, spec: ReleaseSpec, rotate: bool) -> ReleaseSecret:
    """The secret that the people of a register are known by, whichever series is released."""
    if rotate:
        raise SpecError(
            f"the release secret of the register {register.name} cannot be rotated: its people are known by it, and "
            "everything published about them would be forgotten"
        )
    return find_register_secret(
        spec.record_secret, register.root, register.name, register.fingerprint, read_secret_block
    )


@plain_errors
def reject(spec: ReleaseSpec, said: Approval, version: Version | None = None) -> dict[str, Any]:
    """Remove the version that is held, and note who rejected it and why; nothing is published.

    Parameters
    ----------
    spec : ReleaseSpec
    said : Approval
        Who rejects, when, and as its note why.
    version : Version, optional
        The one that is meant; by default the one that is held.

    Raises
    ------
    FunnelError
        If none is held, or another one.
    """
    # Only here: whether a release is there already is told without the ledger, which is slow to import.
    from funnel.pipeline.ledger.account import accounting

    with open_series(spec) as series, accounting(spec, series, progress=tell) as account:
        found = series.held.require_waiting(version)
        series.held.close(Outcome(version=str(found), outcome="rejected", at=said.at, by=said.by, reason=said.note))
        told = rejected(series, found, [])
        account.refused(f"version {found} was held, and rejected by {said.by}: {said.note}", found)
        return told


def nothing_to_do(
    spec: ReleaseSpec, series: Series, decision: Unchanged | Waiting | Rejected, cached: list[str]
) -> dict[str, Any]:
    """The answer of a run that finds its release published, held or rejected already."""
    if isinstance(decision, Waiting):
        return waits(series, decision.release.version, cached)
    if isinstance(decision, Rejected):
        return rejected(series, decision.version, cached)
    series.check_whole(decision.version)
    told = unchanged(spec, series, decision.version, cached)
    if (waiting := series.held.waiting) is not None:
        # What it was made from is no longer there: it could not be judged again.
        series.held.supersede(waiting.version, f"the release is version {decision.version} again")
        told["warnings"] = [superseded(waiting.version)]
    return told
