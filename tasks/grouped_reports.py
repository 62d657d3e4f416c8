"""Reports of a grouped release: the public one before it is judged, the internal one after."""

from __future__ import annotations

from funnel.estimation.grouped_errors import grouped_errors
from funnel.groups import GroupedProtocol, Shown
from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.pipeline.tasks.step import step, tell
from funnel.release.approval import Approval
from funnel.release.channel_rows import read_channel_rows
from funnel.release.decision import Draw, TakeOver, newest_found
from funnel.release.effective_channels import told_channels
from funnel.release.grouped_findings import GroupedFindings
from funnel.release.grouped_public import GroupedPublic
from funnel.release.grouped_publication import write_grouped_handouts, write_grouped_package
from funnel.release.grouped_rows import GroupedRows
from funnel.release.layout import ReleaseFolder
from funnel.release.protection import Protection
from funnel.release.series import Series
from funnel.release.snapshot import Snapshot
from funnel.release.verdict import Verdict
from funnel.report.grouped import (
    GroupedContent,
    grouped_content,
    write_grouped_internal_report,
    write_grouped_report,
)
from funnel.spec import ReleaseSpec


@step
def report_groups(
    spec: ReleaseSpec,
    decision: Draw | TakeOver,
    snapshot: Snapshot,
    joint: Joint,
    protocol: GroupedProtocol,
    findings: GroupedFindings,
    shown: Shown,
    public: GroupedPublic,
    protection: Protection,
    rows: GroupedRows,
    series: Series,
    folder: ReleaseFolder,
    created: str,
    approval: Approval | None = None,
) -> GroupedContent:
    """Write the public report, the package over all public files and the handouts; what reports show is returned."""
    tell("writing the report")
    from funnel.pipeline.expectations.groups_suite import announced_groups

    guarantee = parse_guarantee(spec.guarantee.canonical)
    content = grouped_content(
        spec=spec,
        snapshot=snapshot,
        joint=joint,
        shown=shown,
        protocol=protocol,
        findings=findings,
        public=public,
        errors=grouped_errors(told_channels(protocol, read_channel_rows(folder.channels), public.rows)),
        protection=protection,
        judged=announced_groups(
            spec.output.csv,
            spec.record_key is not None,
            spec.output.shuffle,
            guarantee,
            bool(spec.drawn_columns),
        ),
        version=str(decision.version),
        created=created,
        earlier=series.earlier,
        decision=decision,
        rows_sha256=rows.data.sha256,
        approval=approval,
    )
    write_grouped_report(content, folder)
    settled = snapshot.read_codings().settled(spec)
    write_grouped_package(settled, protocol, public, protection, decision.version, created, folder)
    write_grouped_handouts(folder, newest_found(series.earlier))
    return content


@step
def explain_groups(content: GroupedContent, verdict: Verdict, folder: ReleaseFolder) -> None:
    """Write the internal report of a judged version."""
    tell("writing the internal report")
    write_grouped_internal_report(content, verdict, folder)
