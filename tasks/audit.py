"""Audit: what the drawn release reveals, exactly, and whether it was drawn as declared."""

from __future__ import annotations

from funnel.audit import Findings, audit_release
from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.pipeline.tasks.step import step, tell
from funnel.protocol import Protocol
from funnel.release.files import write_whole
from funnel.release.findings import findings_document
from funnel.release.layout import ReleaseFolder
from funnel.release.rows import Rows
from funnel.spec import ReleaseSpec


@step
def audit(spec: ReleaseSpec, joint: Joint, protocol: Protocol, rows: Rows, folder: ReleaseFolder) -> Findings:
    """Compute exact level, witness, utility, lifts and the consistency of the draws; store them beside the release."""
    tell("computing exact leakage")
    guarantee = parse_guarantee(spec.guarantee.canonical)
    findings = audit_release(joint, protocol, guarantee, rows.pairs, spec.confidence.alpha)
    write_whole(folder.findings, findings_document(findings).to_bytes())
    return findings
