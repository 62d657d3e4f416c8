"""The way of the data: every step in order, from a spec to a published version or a refusal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from funnel.audit import Findings
from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.pipeline.flows.look import release_secret, unchanged
from funnel.pipeline.tasks.audit import audit
from funnel.pipeline.tasks.describe import describe
from funnel.pipeline.tasks.estimate import estimate
from funnel.pipeline.tasks.ingest import ingest
from funnel.pipeline.tasks.optimise import Optimised, optimise
from funnel.pipeline.tasks.publish import Published, publish
from funnel.pipeline.tasks.sanitise import sanitise
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.pipeline.tasks.validate import validate
from funnel.release.decision import Draw, TakeOver, Unchanged, decide, told_of_withdrawn
from funnel.release.rows import forget_rows
from funnel.release.secret import ReleaseSecret, settle_secret
from funnel.release.series import Series, open_series
from funnel.release.settled import settle
from funnel.release.snapshot import Snapshot, forget_other_snapshots
from funnel.sample_size import doubts
from funnel.spec import ReleaseSpec


@dataclass(frozen=True, eq=False)
class Done:
    """A version that was published, and what it came out of.

    Attributes
    ----------
    decision : Draw or TakeOver
    published : Published
    snapshot : Snapshot
    joint : Joint
    optimised : Optimised
    findings : Findings
    warnings : tuple of str
        What is doubtful about the estimate, and which versions were withdrawn.
    """

    decision: Draw | TakeOver
    published: Published
    snapshot: Snapshot
    joint: Joint
    optimised: Optimised
    findings: Findings
    warnings: tuple[str, ...]


@plain_errors
def go(spec: ReleaseSpec, again: bool, rotate: bool) -> tuple[dict[str, Any], Done | None]:
    """Release the data of a spec, unless this very release is already published.

    Parameters
    ----------
    spec : ReleaseSpec
        Read once, by whoever calls.
    again, rotate : bool
        As in the release flow.

    Returns
    -------
    tuple of dict and Done or None
        What is told of the run, as `funnel.pipeline.flows.release.release` describes it; and what was published, if
        anything was.

    Raises
    ------
    FunnelError
        With one clear sentence; nothing is then published and what was published before is untouched.
    """
    with open_series(spec) as series:
        return _go(spec, series, release_secret(spec, series, rotate), again, rotate)


def _go(
    spec: ReleaseSpec, series: Series, secret: ReleaseSecret | None, again: bool, rotate: bool
) -> tuple[dict[str, Any], Done | None]:
    workspace = spec.workspace_folder / spec.name
    fingerprint = None if secret is None else secret.fingerprint
    snapshot = ingest(spec, workspace, secret)
    estimated = estimate(spec, snapshot, workspace)
    joint = estimated.joint
    optimised = optimise(spec, joint, workspace)
    protocol = optimised.protocol
    cached = [name for name, hit in (("estimate", estimated.cached), ("optimise", optimised.cached)) if hit]
    earlier = series.earlier
    decision = decide(spec, snapshot, protocol, earlier, secret=fingerprint, again=again, rotate=rotate)
    if isinstance(decision, Unchanged):
        series.check_whole(decision.version)
        settle(spec, workspace, series, snapshot.source_sha256, fingerprint)
        return unchanged(series, decision.version, cached), None
    warnings = list(doubts(joint, parse_guarantee(spec.guarantee.canonical)))
    if (withdrawn := told_of_withdrawn(earlier)) is not None:
        warnings.append(withdrawn)
    for warning in warnings:
        tell(f"warning: {warning}")
    with series.incoming() as folder:
        rows = sanitise(spec, decision, snapshot, protocol, folder, workspace, secret)
        findings = audit(spec, joint, protocol, rows, folder)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        describe(
            spec, decision, snapshot, joint, protocol, optimised.comparison, rows, findings, series, folder, created
        )
        # From here on no public file is touched: what is judged is what is published.
        verdict = validate(spec, snapshot, joint, protocol, rows, folder)
        published = publish(decision, snapshot, verdict, series, folder, created)
    _tidy(workspace, snapshot, secret)
    settle(spec, workspace, series, snapshot.source_sha256, fingerprint)
    done = Done(decision, published, snapshot, joint, optimised, findings, tuple(warnings))
    return _told(done, cached), done


def _tidy(workspace: Path, snapshot: Snapshot, secret: ReleaseSecret | None) -> None:
    """Keep what the next version needs, and nothing of earlier sources."""
    if secret is not None:
        settle_secret(secret)
    forget_rows(workspace)
    forget_other_snapshots(snapshot)


def _told(done: Done, cached: list[str]) -> dict[str, Any]:
    findings = done.findings
    return {
        "status": "published",
        "version": done.published.version,
        "folder": done.published.folder,
        "report": done.published.report,
        "guarantee": findings.guarantee,
        "level": findings.level,
        "utility": findings.utility,
        "share": findings.share,
        "mechanism": done.optimised.protocol.mechanism,
        "rows": findings.rows,
        "dropped": done.snapshot.dropped,
        "outside": findings.outside,
        "fresh": done.decision.fresh,
        "drawn": isinstance(done.decision, Draw),
        "cached": cached,
        "warnings": list(done.warnings),
    }
