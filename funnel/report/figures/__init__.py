"""The figures of the report, as SVG elements that stand inside the page."""

from __future__ import annotations

from funnel.report.figures.heat_map import heat_map, is_labelled
from funnel.report.figures.lift_chart import lift_chart
from funnel.report.figures.ratio_chart import ratio_chart
from funnel.report.figures.utility_chart import utility_chart

__all__ = ["heat_map", "is_labelled", "lift_chart", "ratio_chart", "utility_chart"]
