"""Rendering: pages, where templates can be rendered at all: the public one made again from its figures, and plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from funnel.estimation import ExpectedErrors
from funnel.guarantees import Guarantee
from funnel.preview.counted import Preview
from funnel.progress import Progress
from funnel.release.public_report import PublicReport
from funnel.spec import ReleaseSpec

PlannedFor = tuple[Guarantee, Sequence[str], ExpectedErrors | None]
PlanWriter = Callable[[ReleaseSpec, Preview, Sequence[PlannedFor], str, Path | None, Progress], Path]


def page_renderer() -> Callable[[bytes], str] | None:
    """What makes the page of ``report.json``; None in a library that was installed without the extra ``pipeline``."""
    try:
        from funnel.report.public import render_public
    except ImportError:
        return None

    def render(numbers: bytes) -> str:
        return render_public(PublicReport.from_json(numbers, "report.json"))

    return render


def plan_writer() -> PlanWriter | None:
    """What writes the page of a plan; None in such a library."""
    try:
        from funnel.report.plan.writing import write_plan
    except ImportError:
        return None
    return write_plan
