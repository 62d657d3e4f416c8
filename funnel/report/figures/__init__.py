"""The charts of the reports: places in per cent, which templates draw as elements that scale with the page."""

from __future__ import annotations

from funnel.report.figures.spreads import SpreadChart, spread_chart
from funnel.report.figures.versions import VersionChart, version_chart

__all__ = ["SpreadChart", "VersionChart", "spread_chart", "version_chart"]
