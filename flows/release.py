"""The release flow: the whole way of the data, from a source to a published release or a refusal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from prefect import flow

from funnel.guarantees import parse_guarantee
from funnel.pipeline.flows.artifacts import describe_run
from funnel.pipeline.flows.look import release_secret, unchanged
from funnel.pipeline.tasks.audit import audit
from funnel.pipeline.tasks.estimate import estimate
from funnel.pipeline.tasks.ingest import ingest
from funnel.pipeline.tasks.optimise import optimise
from funnel.pipeline.tasks.publish import publish
from funnel.pipeline.tasks.sanitise import sanitise
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.pipeline.tasks.validate import validate
from funnel.release.decision import Draw, Unchanged, decide
from funnel.release.rows import forget_rows
from funnel.release.secret import ReleaseSecret, settle_secret
from funnel.release.series import Series, open_series
from funnel.release.settled import settle
from funnel.release.snapshot import forget_other_snapshots
from funnel.sample_size import doubts
from funnel.spec import ReleaseSpec


@flow(name="release", log_prints=False, persist_result=False, validate_parameters=True)
def release(spec: str, again: bool = False, rotate_secret: bool = False, text: str | None = None) -> dict[str, Any]:
    """Release the data of a spec, unless this very release is already published.

    Parameters
    ----------
    spec : str
        Path of the spec file.
    again : bool
        Draw and publish again even though nothing has changed. Every fresh draw about the same people adds to what
        all versions together reveal, so this is never done unasked.
    rotate_secret : bool
        Take another release secret: every record gets a fresh answer, which reveals more. Stored with the version.
    text : str, optional
        The content of the spec file, where it was read already: what was read once is what is released.

    Returns
    -------
    dict
        ``status`` is ``"published"`` or ``"unchanged"``; with both: version, folder, report, cached steps. Published:
        guarantee, level, utility, share, mechanism, rows, dropped, outside, warnings; whether rows were drawn or taken
        over, and whether that is a fresh draw about these people.

    Raises
    ------
    FunnelError
        With one clear sentence; nothing is then published and what was published before is untouched.
    """
    return _release(spec, again, rotate_secret, text)


@plain_errors
def _release(spec_path: str, again: bool, rotate: bool, text: str | None) -> dict[str, Any]:
    spec = ReleaseSpec.load(spec_path) if text is None else ReleaseSpec.parse(text, spec_path)
    with open_series(spec) as series:
        return _run(spec, series, release_secret(spec, series, rotate), again, rotate)


def _run(spec: ReleaseSpec, series: Series, secret: ReleaseSecret | None, again: bool, rotate: bool) -> dict[str, Any]:
    workspace = spec.workspace_folder / spec.name
    fingerprint = None if secret is None else secret.fingerprint
    snapshot = ingest(spec, workspace, secret)
    estimated = estimate(spec, snapshot, workspace)
    joint = estimated.joint
    optimised = optimise(spec, joint, workspace)
    protocol = optimised.protocol
    cached = [name for name, hit in (("estimate", estimated.cached), ("optimise", optimised.cached)) if hit]
    decision = decide(spec, snapshot, protocol, series.earlier, secret=fingerprint, again=again, rotate=rotate)
    if isinstance(decision, Unchanged):
        series.check_whole(decision.version)
        settle(spec, workspace, series, snapshot.source_sha256, fingerprint)
        return unchanged(series, decision.version, cached)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    with series.incoming() as folder:
        rows = sanitise(spec, decision, snapshot, protocol, folder, workspace, secret)
        findings = audit(spec, joint, protocol, rows, folder)
        warnings = doubts(joint, parse_guarantee(spec.guarantee.canonical))
        for warning in warnings:
            tell(f"warning: {warning}")
        verdict = validate(spec, snapshot, joint, protocol, rows, folder)
        published = publish(
            spec,
            decision,
            snapshot,
            joint,
            protocol,
            optimised.comparison,
            rows,
            findings,
            verdict,
            series,
            folder,
            created,
        )
    if secret is not None:
        settle_secret(secret)
    settle(spec, workspace, series, snapshot.source_sha256, fingerprint)
    forget_rows(workspace)
    forget_other_snapshots(snapshot)
    describe_run(spec, published, protocol, findings, optimised.comparison, joint)
    return {
        "status": "published",
        "version": published.version,
        "folder": published.folder,
        "report": published.report,
        "guarantee": findings.guarantee,
        "level": findings.level,
        "utility": findings.utility,
        "share": findings.share,
        "mechanism": protocol.mechanism,
        "rows": findings.rows,
        "dropped": snapshot.dropped,
        "outside": findings.outside,
        "fresh": decision.fresh,
        "drawn": isinstance(decision, Draw),
        "cached": cached,
        "warnings": list(warnings),
    }
