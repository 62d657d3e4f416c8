"""The report: one self-contained page that says what a release reveals, in plain words and in exact numbers."""

from __future__ import annotations

from funnel.report.content import (
    Check,
    Contact,
    Licence,
    MechanismNote,
    PlanLine,
    Reference,
    ReportContent,
    SourceNote,
)
from funnel.report.html import render_report

__all__ = [
    "Check",
    "Contact",
    "Licence",
    "MechanismNote",
    "PlanLine",
    "Reference",
    "ReportContent",
    "SourceNote",
    "render_report",
]
