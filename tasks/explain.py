"""Explain: the internal report of a judged version, with all attacks, for whoever answers for it."""

from __future__ import annotations

from funnel.pipeline.tasks.step import step, tell
from funnel.release.comparison import ComparisonDocument
from funnel.release.decision import Draw, TakeOver
from funnel.release.layout import ReleaseFolder
from funnel.release.rows import Rows
from funnel.release.series import Series
from funnel.release.snapshot import Snapshot
from funnel.release.verdict import Verdict
from funnel.report import ReportContent
from funnel.report.writing import write_internal_report
from funnel.spec import ReleaseSpec


@step
def explain(
    spec: ReleaseSpec,
    decision: Draw | TakeOver,
    snapshot: Snapshot,
    comparison: ComparisonDocument,
    content: ReportContent,
    rows: Rows,
    verdict: Verdict,
    series: Series,
    folder: ReleaseFolder,
) -> None:
    """Compute what attackers learn, and write it with all exact figures and the verdict into ``audit/``.

    Raises
    ------
    DataError
        If the source is no longer the one that was counted.
    """
    tell("computing attacks")
    write_internal_report(
        content, verdict, spec, snapshot, comparison, decision, series.earlier, rows.data.sha256, folder
    )
