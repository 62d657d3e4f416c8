"""Reports of a grouped release: the public one before it is judged, the internal one after."""

from __future__ import annotations

from typing import Any

from funnel.groups import GroupedProtocol
from funnel.pipeline.tasks.step import step, tell
from funnel.release.approval import Approval
from funnel.release.decision import Draw, TakeOver
from funnel.release.grouped_findings import GroupedFindings
from funnel.release.grouped_public import GroupedPublic
from funnel.release.grouped_publication import write_grouped_package
from funnel.release.grouped_rows import GroupedRows
from funnel.release.layout import ReleaseFolder
from funnel.release.protection import Protection
from funnel.release.series import Series
from funnel.release.snapshot import Snapshot
from funnel.release.verdict import Verdict
from funnel.spec import ReleaseSpec


@step
def report_groups(
    spec: ReleaseSpec,
    decision: Draw | TakeOver,
    snapshot: Snapshot,
    protocol: GroupedProtocol,
    findings: GroupedFindings,
    public: GroupedPublic,
    protection: Protection,
    rows: GroupedRows,
    series: Series,
    folder: ReleaseFolder,
    created: str,
    approval: Approval | None = None,
) -> Any:
    """Write the public report and then the package over all public files; what the reports show is returned."""
    tell("writing the report")
    content = None
    write_grouped_package(spec, protocol, public, protection, decision.version, created, folder)
    return content


@step
def explain_groups(content: Any, verdict: Verdict, folder: ReleaseFolder) -> None:
    """Write the internal report of a judged version."""
    tell("writing the internal report")
