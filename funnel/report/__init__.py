"""The report: one self-contained page that says what a release reveals, in plain words and in exact numbers."""

from __future__ import annotations

from funnel.report.content import (
    Contact,
    Licence,
    MechanismNote,
    PlanLine,
    Reference,
    ReportContent,
    SourceNote,
    VerdictLine,
)
from funnel.report.html import render_report

__all__ = [
    "Contact",
    "Licence",
    "MechanismNote",
    "PlanLine",
    "Reference",
    "ReportContent",
    "SourceNote",
    "VerdictLine",
    "render_report",
]
