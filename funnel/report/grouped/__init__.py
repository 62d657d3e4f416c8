"""The reports of a release whose columns are published in groups: their documents, and pages made of these alone."""

from funnel.report.grouped.content import GroupedContent, grouped_content
from funnel.report.grouped.writing import (
    render_grouped,
    render_grouped_internal,
    write_grouped_internal_report,
    write_grouped_report,
)

__all__ = [
    "GroupedContent",
    "grouped_content",
    "render_grouped",
    "render_grouped_internal",
    "write_grouped_internal_report",
    "write_grouped_report",
]
