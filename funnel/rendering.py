"""Rendering: pages, where templates can be rendered at all: the public one made again from its figures, and plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from funnel.estimation import ExpectedErrors
from funnel.guarantees import Guarantee
from funnel.joint import Joint
from funnel.progress import Progress
from funnel.release.grouped_report import GroupedReport
from funnel.release.grouping import PlannedGroups
from funnel.release.preview import Preview
from funnel.release.public_report import PublicReport
from funnel.spec import ReleaseSpec

PlannedFor = tuple[Guarantee, Sequence[str], ExpectedErrors | None]
GroupedPlanWriter = Callable[[ReleaseSpec, Joint, Sequence[PlannedGroups], str, Path | None, Progress], Path]
PlanWriter = Callable[[ReleaseSpec, Preview, Sequence[PlannedFor], str, Path | None, Progress], Path]


def page_renderer() -> Callable[[bytes], str] | None:
    """What makes the page of ``report.json``; None in a library that was installed without the extra ``pipeline``."""
    try:
        from funnel.report.grouped import render_grouped
        from funnel.report.public import render_public
    except ImportError:
        return None

    def render(numbers: bytes) -> str:
        if b'"funnel/grouped-report/' in numbers:
            return render_grouped(GroupedReport.from_json(numbers, "report.json"))
        return render_public(PublicReport.from_json(numbers, "report.json"))

    return render


def plan_writer() -> PlanWriter | None:
    """What writes the page of a plan; None in such a library."""
    try:
        from funnel.report.plan.writing import write_plan
    except ImportError:
        return None
    return write_plan


def grouped_plan_writer() -> GroupedPlanWriter | None:
    """What writes the page of a plan of groups; None in such a library."""
    try:
        from funnel.report.plan.grouped import write_grouped_plan
    except ImportError:
        return None
    return write_grouped_plan
