"""The annex of the public report for data-protection officers: its figures, its questions and its page."""

from __future__ import annotations

from funnel.guarantees import parse_guarantee
from funnel.guarantees.by_event import SideChannels
from funnel.guarantees.published import meaning_for
from funnel.guarantees.several import parts_of
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public_report import PublicReport
from funnel.report.annex.annex_figures import compute_figures, is_by_class
from funnel.report.page import render

__all__ = ["render_annex"]


def render_annex(report: PublicReport, protocol: ProtocolDocument) -> str:
    """The page, in UTF-8 text: a function of two public documents alone, the same to the byte.

    Parameters
    ----------
    report : PublicReport
        What ``report.json`` holds.
    protocol : ProtocolDocument
        What ``protocol.json`` holds.

    Raises
    ------
    SpecError
        If the document names a bound that this funnel does not know.
    """
    guarantee = parse_guarantee(report.guarantee)
    return render(
        "annex.html.jinja",
        {
            "report": report,
            "guarantee": guarantee,
            "meaning": meaning_for(
                guarantee, protocol.inputs.columns, report.secret.columns, report.at_once, report.people == "same"
            ),
            "extent": "; ".join(f"{part} is {part.extent}" for part in parts_of(guarantee)),
            "compared": "odds of two values" if guarantee.lift_limits is None and guarantee.ratio_limit else "a belief",
            "covers_columns": any(isinstance(part, SideChannels) for part in parts_of(guarantee)),
            "figures": compute_figures(report, protocol),
            "by_class": is_by_class(report, protocol),
        },
    )
