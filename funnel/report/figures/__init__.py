"""The charts of the reports: places in per cent, which templates draw as elements that scale with the page."""

from __future__ import annotations

from funnel.report.figures.errors import ErrorMap, error_map
from funnel.report.figures.spreads import Line, SpreadChart, spread_chart
from funnel.report.figures.versions import VersionChart, VersionLine, version_chart

__all__ = [
    "ErrorMap",
    "Line",
    "SpreadChart",
    "VersionChart",
    "VersionLine",
    "error_map",
    "spread_chart",
    "version_chart",
]
