"""Publish: describe the release and put it in place, all or nothing."""

from __future__ import annotations

from dataclasses import dataclass

from funnel.audit import Findings
from funnel.errors import ReleaseRefused
from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.pipeline.tasks.step import step, tell
from funnel.protocol import Protocol
from funnel.release.comparison import ComparisonDocument
from funnel.release.decision import Draw, TakeOver, fresh_draws
from funnel.release.layout import ReleaseFolder
from funnel.release.provenance import software
from funnel.release.public import PublicFindings, PublicLaws
from funnel.release.publication import write_documents, write_package
from funnel.release.record import Record
from funnel.release.rows import Rows
from funnel.release.series import Series
from funnel.release.signature import sign_release, signer_of
from funnel.release.snapshot import Snapshot
from funnel.release.verdict import Verdict
from funnel.report import render_report
from funnel.report.gathering import report_content
from funnel.spec import ReleaseSpec


@dataclass(frozen=True)
class Published:
    """A release in place.

    Attributes
    ----------
    version : str
    folder, report : str
        Absolute paths, or URLs.
    key : str or None
        The public key (hex) that it was signed with.
    """

    version: str
    folder: str
    report: str
    key: str | None


@step
def publish(
    spec: ReleaseSpec,
    decision: Draw | TakeOver,
    snapshot: Snapshot,
    joint: Joint,
    protocol: Protocol,
    comparison: ComparisonDocument,
    rows: Rows,
    findings: Findings,
    verdict: Verdict,
    series: Series,
    folder: ReleaseFolder,
    created: str,
) -> Published:
    """Write the public documents, force everything to disk, rename the folder into place, switch ``latest`` last.

    Until the rename nothing is visible; after it everything is. Where releases appear at a URL, the public files are
    put there after the rename, and are a version from the moment its ``datapackage.json`` is there, the last of them.

    Raises
    ------
    ReleaseRefused
        If the verdict is negative, or no longer about the files that are there.
    """
    if not verdict.passed:
        raise ReleaseRefused(f"nothing was published: {verdict.sentence()}")
    tell("writing the report")
    guarantee = parse_guarantee(spec.guarantee.canonical)
    write_documents(spec, joint, protocol, guarantee, rows, folder)
    public = PublicFindings.of(findings, guarantee, PublicLaws.of(joint, protocol))
    content = report_content(
        spec,
        snapshot,
        joint,
        protocol,
        guarantee,
        findings,
        comparison,
        verdict,
        version=str(decision.version),
        created=created,
        earlier_releases=fresh_draws(series.earlier, rows.data.sha256),
    )
    folder.report.write_text(render_report(content), encoding="utf-8")
    files = write_package(spec, protocol, public, decision.version, created, folder)
    files = sign_release(spec, folder, str(decision.version), created, files)
    record = Record(
        version=str(decision.version),
        created=created,
        origin=decision.origin,
        rows=snapshot.rows,
        fresh=decision.fresh,
        rotated=decision.rotated,
        files=files,
        software=software(),
    )
    folder.record.write_bytes(record.to_bytes())
    tell("publishing")
    series.publish(folder, decision.version, tell)
    version = decision.version
    return Published(str(version), *series.shown(version), signer_of(series.folder(version)))
