"""Writing the reports of a version into its folder: the public one before the judgement, the internal one after it."""

from __future__ import annotations

from funnel.joint import Joint
from funnel.protocol import Protocol
from funnel.release.classes_document import ClassesDocument
from funnel.release.comparison import ComparisonDocument
from funnel.release.decision import VersionContext
from funnel.release.files import write_whole
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.provenance import software
from funnel.release.public_report import PublicReport
from funnel.release.snapshot import Snapshot
from funnel.release.verdict import Verdict
from funnel.report.annex import render_annex
from funnel.report.content import ReportContent
from funnel.report.internal import attacks, internal_report, render_internal
from funnel.report.internal.history import Together, drift_figures, guesses_of_all, history_figures
from funnel.report.public import public_report, render_public
from funnel.source.fitting import set_aside
from funnel.source.side_columns import read_side_columns
from funnel.spec import ReleaseSpec


def write_report(content: ReportContent, folder: ReleaseFolder) -> PublicReport:
    """Write the public report: its figures, and the two pages that are made of these and of the protocol alone.

    It needs no verdict; ``protocol.json`` is in the folder by then.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    numbers = public_report(content)
    write_whole(folder.numbers, numbers.to_bytes())
    write_whole(folder.report, render_public(numbers).encode())
    write_whole(folder.annex, render_annex(numbers, ProtocolDocument.read(folder.protocol)).encode())
    return numbers


def write_internal_report(
    content: ReportContent,
    verdict: Verdict,
    spec: ReleaseSpec,
    snapshot: Snapshot,
    comparison: ComparisonDocument,
    context: VersionContext,
    folder: ReleaseFolder,
    together: Together | None = None,
) -> None:
    """Write the internal report with all attacks as internal evidence; the source is read once more, in bounded memory.

    Parameters
    ----------
    content : ReportContent
        As for the public report.
    verdict : Verdict
    spec : ReleaseSpec
    snapshot : Snapshot
        Of the source as it was counted.
    comparison : ComparisonDocument
    context : VersionContext
    folder : ReleaseFolder
    together : Together, optional
        Everything published about these people, where the versions of a register are about the same ones.

    Raises
    ------
    DataError
        If the source is no longer the one that was counted.
    OutputError
        If it cannot be written.
    """
    joint: Joint = content.joint
    protocol: Protocol = content.protocol
    classes = ClassesDocument.read(folder.classes).classes if folder.classes.is_file() else None
    known = read_side_columns(spec, joint, snapshot.read_codings(), classes)
    if together is None:
        linked = attacks.versions(joint, protocol, context.earlier, context.decision.origin, context.rows_sha256)
    else:
        linked = () if together.step is None else guesses_of_all(together.step)
    numbers = internal_report(
        content,
        verdict,
        comparison.rows,
        attacks.Attacks(
            attacks.alone(joint, protocol),
            attacks.with_side_columns(joint, protocol, known),
            linked,
            attacks.learned(known, joint, protocol),
        ),
        software=software(),
        history=history_figures(content.findings, together, context.earlier, f"{spec.name}/{context.decision.version}"),
        drift=drift_figures(content.findings),
        set_aside=tuple(one.sentence for one in set_aside(spec.whole, snapshot.read_codings())),
    )
    write_whole(folder.internal_numbers, numbers.to_bytes())
    write_whole(folder.internal_report, render_internal(numbers).encode())
