"""Audit: what the drawn release reveals, exactly, and whether it was drawn as declared."""

from __future__ import annotations

from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from funnel.audit import Findings, audit_release
from funnel.guarantees import parse_guarantee
from funnel.pipeline.tasks.estimate import Estimate
from funnel.pipeline.tasks.files import write_whole
from funnel.pipeline.tasks.optimise import Optimised
from funnel.pipeline.tasks.sanitise import Drawn
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.release.documents import read_draws
from funnel.release.findings import findings_document
from funnel.release.layout import ReleaseFolder


@task(name="audit", cache_policy=NO_CACHE, persist_result=False)
@plain_errors
def audit(estimate: Estimate, optimised: Optimised, drawn: Drawn, guarantee: str, alpha: float) -> Findings:
    """Compute exact level, witness, utility, lifts and the consistency of the draws; store them beside the release."""
    tell("computing exact leakage")
    protocol = optimised.read_protocol()
    pairs = read_draws(drawn.draws.checked().read_text(encoding="utf-8"), protocol)
    findings = audit_release(estimate.read_joint(), protocol, parse_guarantee(guarantee), pairs, alpha)
    write_whole(ReleaseFolder(Path(drawn.folder)).findings, findings_document(findings).to_bytes())
    return findings
