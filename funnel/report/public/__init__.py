"""The public report: its document, and the page that is made of that document alone."""

from __future__ import annotations

from funnel.guarantees import parse_guarantee
from funnel.release.public_report import PublicReport
from funnel.report.figures import SpreadChart, spread_chart, version_chart
from funnel.report.page import bound, render
from funnel.report.public.public_figures import public_report
from funnel.report.public.report_tables import Promise, promised_by

__all__ = ["public_report", "render_public"]

_NAMES_OF_SECRETS, _NAMES_OF_OUTPUTS = "values of the secret", "published values"


def render_public(numbers: PublicReport) -> str:
    """The page of the public report, in UTF-8 text: a function of its document alone, the same to the byte.

    Parameters
    ----------
    numbers : PublicReport
        What ``report.json`` holds.

    Raises
    ------
    SpecError
        If the document names a bound that this funnel does not know.
    """
    guarantee = parse_guarantee(numbers.guarantee)
    read = numbers.published.columns if numbers.unchanged is None else [one.column for one in numbers.unchanged.columns]
    promised = promised_by(guarantee, read, numbers.secret.columns, numbers.at_once, numbers.people == "same")
    return render(
        "public.html.jinja",
        {
            "report": numbers,
            "figures": numbers.figures,
            "guarantee": guarantee,
            "promised": promised,
            "bound": bound(guarantee),
            "chart": _chart(numbers, promised),
            "kept": version_chart([(one.version, one.share, one.share_alone) for one in numbers.kept]),
        },
    )


def _chart(numbers: PublicReport, promised: Promise) -> SpreadChart:
    if promised.ratio_limit is not None:
        return spread_chart(numbers.lifts.spreads, (0.0, promised.ratio_limit), False, _NAMES_OF_OUTPUTS)
    return spread_chart(numbers.lifts.spreads, promised.lift_limits, True, _NAMES_OF_SECRETS)
