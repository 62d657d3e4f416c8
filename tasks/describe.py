"""Describe: every public document of a version, written beside its rows before anything is judged."""

from __future__ import annotations

from pathlib import Path

from funnel.donors.composition import Composition
from funnel.findings import Audited, Findings
from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.pipeline.tasks.step import step, tell
from funnel.release.approval import Approval
from funnel.release.comparison import ComparisonDocument
from funnel.release.counted_as_usual import whole_stays
from funnel.release.decision import Draw, TakeOver, newest_found
from funnel.release.drawn_from import DrawnFrom
from funnel.release.evidence import write_evidence
from funnel.release.layout import ReleaseFolder
from funnel.release.protection import Protection
from funnel.release.public import PublicRelease
from funnel.release.publication import write_documents, write_handouts, write_package
from funnel.release.rows import Rows
from funnel.release.series import Series
from funnel.release.snapshot import Snapshot
from funnel.report import ReportContent
from funnel.report.gathering import report_content
from funnel.report.writing import write_report
from funnel.spec import ReleaseSpec


@step
def describe(
    spec: ReleaseSpec,
    decision: Draw | TakeOver,
    snapshot: Snapshot,
    counted: Joint,
    protection: Protection,
    drawn: DrawnFrom,
    comparison: ComparisonDocument,
    rows: Rows,
    findings: Findings,
    audited: Audited,
    series: Series,
    folder: ReleaseFolder,
    created: str,
    approval: Approval | None = None,
    first: Joint | None = None,
    composition: Composition | None = None,
) -> ReportContent:
    """Write the frequencies, the protocol, the csv, the public report and the package; what reports show is returned.

    Of the exact counts nothing enters but into the folder of internal evidence.

    Exact counts of the first rows of units, ``first``, are there where public counts are of these.

    Of the classes of records, where there are some, the questions that they follow from and their records.

    They tell of the published channel alone: what people with a history drew from is internal.
    """
    tell("writing the report")
    from funnel.pipeline.expectations import Evidence, announced
    from funnel.pipeline.expectations.drawing import Drawing

    guarantee, protocol = parse_guarantee(spec.guarantee.canonical), drawn.channel
    classes = None if composition is None else composition.classes
    write_evidence(spec, counted, folder, first)
    public = PublicRelease.of(audited, protocol, guarantee, comparison.content()["rows"])
    codings = snapshot.read_codings()
    settled = codings.settled(spec)
    frequencies = audited.frequencies
    write_documents(
        settled, protocol, guarantee, public, frequencies, protection, rows.data, folder, drawn.rounded, classes
    )
    drawing = Drawing(rows.counts, rows.secret, rows.probe, None, Path(drawn.snapshot.data.path), spec.output.shuffle)
    evidence = Evidence(
        folder.data,
        protocol,
        counted,
        guarantee,
        snapshot.rows,
        spec.secret,
        spec.publish,
        rows.pairs,
        drawing=drawing,
        drawn_with=None if drawn.counts is None else drawn.drawing,
        drawn_from=drawn.counts,
        categories={} if classes is None else {column: codings[column].labels for column in classes.columns},
    )
    content = report_content(
        spec,
        snapshot,
        counted,
        protocol,
        guarantee,
        findings,
        audited,
        protection,
        comparison,
        announced(
            evidence,
            spec.output.csv,
            spec.record_key is not None,
            drawn.is_followed,
            protection.protection == "noise",
            bool(spec.drawn_columns),
        ),
        version=str(decision.version),
        created=created,
        earlier=series.earlier,
        decision=decision,
        rows_sha256=rows.data.sha256,
        approval=approval,
        composition=composition,
        whole=None if classes is None else whole_stays(folder),
    )
    write_report(content, folder)
    categories = None if classes is None else {column: codings[column].labels for column in spec.released}
    write_package(settled, protocol, public.findings, protection, decision.version, created, folder, categories)
    write_handouts(folder, newest_found(series.earlier))
    return content
