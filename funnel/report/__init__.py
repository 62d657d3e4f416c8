"""The reports of a release: a public one of rounded figures with its annex, and an internal one of all evidence."""

from __future__ import annotations

from funnel.report.content import PlanLine, ReportContent

__all__ = ["PlanLine", "ReportContent"]
