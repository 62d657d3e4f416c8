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
from funnel.release.decision import Draw, TakeOver
from funnel.release.layout import ReleaseFolder
from funnel.release.provenance import software
from funnel.release.public import PublicFindings, PublicLaws
from funnel.release.publication import write_documents, write_package
from funnel.release.record import Record
from funnel.release.rows import Rows
from funnel.release.series import Series
from funnel.release.snapshot import Snapshot
from funnel.release.verdict import Verdict
from funnel.report.gathering import report_content
from funnel.report.writing import write_internal_report, write_report
from funnel.spec import ReleaseSpec


@dataclass(frozen=True)
class Published:
    """A release in place.

    Attributes
    ----------
    version : str
    folder, report : str
        Absolute paths, or URLs.
    """

    version: str
    folder: str
    report: str


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
    judged = [(result.name, result.description) for result in verdict.results]
    content = report_content(
        spec,
        snapshot,
        joint,
        protocol,
        guarantee,
        findings,
        comparison,
        judged,
        version=str(decision.version),
        created=created,
        earlier=series.earlier,
        decision=decision,
        rows_sha256=rows.data.sha256,
    )
    write_report(content, folder)
    tell("computing attacks")
    write_internal_report(
        content, verdict, spec, snapshot, comparison, decision, series.earlier, rows.data.sha256, folder
    )
    files = write_package(spec, protocol, public, decision.version, created, folder)
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
    return Published(str(decision.version), *series.shown(decision.version))
