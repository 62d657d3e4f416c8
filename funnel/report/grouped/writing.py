"""Writing the reports of a grouped release: the public one before the judgement, the internal one after it."""

from __future__ import annotations

import numpy as np

from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.recount.grouped import follow
from funnel.release.files import write_whole
from funnel.release.grouped_report import GroupedInternalReport, GroupedReport
from funnel.release.layout import ReleaseFolder
from funnel.release.verdict import Verdict
from funnel.report.grouped.content import GroupedContent
from funnel.report.grouped.document import grouped_internal_report, grouped_report
from funnel.report.internal import observed
from funnel.report.page import bound, render
from funnel.report.promise import promised_by


def write_grouped_report(content: GroupedContent, folder: ReleaseFolder) -> GroupedReport:
    """Write the public report: its figures, and the page that is made of them alone.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    numbers = grouped_report(content)
    write_whole(folder.numbers, numbers.to_bytes())
    write_whole(folder.report, render_grouped(numbers).encode())
    return numbers


def write_grouped_internal_report(content: GroupedContent, verdict: Verdict, folder: ReleaseFolder) -> None:
    """Write the internal report: exact figures, the people behind channels, and the verdict.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    followed = follow(folder.protocol.read_bytes(), content.findings.guarantee, _counted(content.joint))
    numbers = grouped_internal_report(content, followed, verdict)
    write_whole(folder.internal_numbers, numbers.to_bytes())
    write_whole(folder.internal_report, render_grouped_internal(numbers).encode())


def render_grouped(numbers: GroupedReport) -> str:
    """The page of the public report: a function of its document alone, the same to the byte.

    Raises
    ------
    SpecError
        If the document names a bound that this funnel does not know.
    """
    guarantee = parse_guarantee(numbers.guarantee)
    return render(
        "grouped.html.jinja",
        {
            "report": numbers,
            "figures": numbers.figures,
            "guarantee": guarantee,
            "promised": promised_by(guarantee),
            "bound": bound(guarantee),
        },
    )


def render_grouped_internal(numbers: GroupedInternalReport) -> str:
    """The page of the internal report: a function of its document alone."""
    guarantee = parse_guarantee(numbers.guarantee)
    return render(
        "grouped_internal.html.jinja",
        {"report": numbers, "guarantee": guarantee, "bound": bound(guarantee), "observed": observed},
    )


def _counted(joint: Joint) -> dict[tuple[tuple[str, ...], tuple[str, ...]], int]:
    return {
        (joint.secret.symbols[s], joint.inputs.symbols[r]): int(joint.counts[s, r])
        for s, r in zip(*(place.tolist() for place in np.nonzero(joint.counts)), strict=True)
    }
