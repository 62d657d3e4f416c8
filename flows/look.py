"""Look: whether a release is already published, told without the orchestrator and without making it again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from funnel.errors import ReleaseRefused, SpecError
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.pipeline.tasks.vault import read_from_vault
from funnel.recount import source_digest
from funnel.release.accounted import require_same_spec
from funnel.release.decision import FIRST_DERIVATION, derivation_of, secret_before
from funnel.release.layout import Version
from funnel.release.secret import ReleaseSecret, find_secret
from funnel.release.series import Series, open_series
from funnel.release.settled import settled_version
from funnel.spec import ReleaseSpec


@plain_errors
def look(spec: ReleaseSpec) -> dict[str, Any] | None:
    """What the release flow would return if nothing has changed since its last run on this spec; None if it has to run.

    Reads the source to compare its digest; neither estimates nor optimises.

    Raises
    ------
    FunnelError
        As the release flow.
    """
    with open_series(spec) as series:
        secret = release_secret(spec, series, rotate=False)
        fingerprint = None if secret is None else secret.fingerprint
        version = settled_version(spec, spec.workspace_folder / spec.name, series, fingerprint)
        return None if version is None else unchanged(spec, series, version, ["estimate", "optimise"])


def unchanged(spec: ReleaseSpec, series: Series, version: Version, cached: list[str]) -> dict[str, Any]:
    """The answer of a run that found its release already published.

    Raises
    ------
    ReleaseRefused
        If the source, digested again by other code, is not the one that the version was made from: a snapshot that is
        no longer of the source is never called unchanged.
    LedgerError
        If the version is of another bound, other columns or another spec.
    """
    if source_digest(spec.source_address) != series.record(version).origin.source:
        raise ReleaseRefused(
            f"version {version} was made from another source than the one that is there, although the snapshot of it "
            "was taken for the same; remove the folder snapshots in the workspace, then run the release again"
        )
    require_same_spec(spec, series.record(version))
    tell(f"unchanged: version {version} already is this release")
    folder, report = series.shown(version)
    return {"status": "unchanged", "version": str(version), "folder": folder, "report": report, "cached": cached}


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
    workspace = spec.workspace_folder / spec.name
    earlier = series.earlier
    found = find_secret(spec.record_secret, workspace, secret_before(earlier), rotate, read_from_vault)
    # Versions that were drawn before the name of the series entered keep their answers.
    named = derivation_of(earlier, found.fingerprint) != FIRST_DERIVATION
    return replace(found, series=spec.name if named else None)
