"""The internal report: its document, and the page that is made of that document alone."""

from __future__ import annotations

from typing import Any

from funnel.guarantees import parse_guarantee
from funnel.release.internal_report import InternalReport
from funnel.report.figures import VersionChart, version_chart
from funnel.report.internal.internal_figures import internal_report
from funnel.report.page import bound, render

__all__ = ["internal_report", "render_internal"]


def render_internal(numbers: InternalReport) -> str:
    """The page of the internal report, in UTF-8 text: a function of its document alone.

    Parameters
    ----------
    numbers : InternalReport
        What the internal ``report.json`` holds.
    """
    guarantee = parse_guarantee(numbers.guarantee)
    return render(
        "internal.html.jinja",
        {
            "report": numbers,
            "figures": numbers.figures,
            "guarantee": guarantee,
            "bound": bound(guarantee),
            "observed": observed,
            "kept": _kept(numbers),
        },
    )


def _kept(numbers: InternalReport) -> VersionChart | None:
    if numbers.history is None:
        return None
    return version_chart([(one.version, one.share, one.share_alone) for one in numbers.history.versions])


def observed(value: Any) -> str:
    """What a check observed, in words and digits."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {observed(part)}" for key, part in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return ", ".join(observed(part) for part in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value)
