"""The reports of a release: a public one of rounded figures with its annex, and an internal one of all evidence."""

from __future__ import annotations

from funnel.report.annex import render_annex
from funnel.report.content import MechanismNote, PlanLine, ReportContent, SourceNote
from funnel.report.internal import internal_report, render_internal
from funnel.report.public import public_report, render_public

__all__ = [
    "MechanismNote",
    "PlanLine",
    "ReportContent",
    "SourceNote",
    "internal_report",
    "public_report",
    "render_annex",
    "render_internal",
    "render_public",
]
