"""Audit: what the drawn release reveals, exactly, and whether it was drawn as declared."""

from __future__ import annotations

from funnel.audit import Findings, audit_release
from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.pipeline.tasks.follow import Followed
from funnel.pipeline.tasks.step import step, tell
from funnel.release.files import write_whole
from funnel.release.findings import findings_document
from funnel.release.layout import ReleaseFolder
from funnel.release.rows import Rows
from funnel.spec import ReleaseSpec


@step
def audit(spec: ReleaseSpec, joint: Joint, followed: Followed, rows: Rows, folder: ReleaseFolder) -> Findings:
    """Compute exact level, witness, utility, lifts and the consistency of the draws; store them beside the release.

    Where people have histories, these are the figures of the effective channel, which is what the version alone tells;
    what all versions together tell stands beside them.
    """
    tell("computing exact leakage")
    guarantee = parse_guarantee(spec.guarantee.canonical)
    drawn = followed.drawn
    findings = audit_release(
        joint,
        drawn.channel,
        guarantee,
        rows.pairs,
        spec.confidence.alpha,
        drawn_with=drawn.drawing,
        history=drawn.history,
        drift=followed.drift,
    )
    write_whole(folder.findings, findings_document(findings).to_bytes())
    return findings
