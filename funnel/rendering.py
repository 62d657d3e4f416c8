"""Rendering: pages, where templates can be rendered at all: the public one made again from its figures, and plans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from funnel.preview.counted import Preview
from funnel.preview.spec_plan import SpecPlan
from funnel.progress import Progress
from funnel.release.frequencies_document import FrequenciesDocument
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public_report import PublicReport

PlanWriter = Callable[[SpecPlan, Preview, Path | None, Progress], Path]


def page_renderer() -> Callable[[bytes, bytes], dict[str, str]] | None:
    """What makes the pages of ``report.json`` and ``protocol.json`` by their names.

    None in a library that was installed without the extra ``pipeline``.
    """
    try:
        from funnel.report.annex import render_annex
        from funnel.report.public import render_public
    except ImportError:
        return None

    def render(numbers: bytes, protocol: bytes) -> dict[str, str]:
        told = PublicReport.from_json(numbers, "report.json")
        channel = ProtocolDocument.from_json(protocol, "protocol.json")
        return {"report.html": render_public(told), "annex.html": render_annex(told, channel)}

    return render


def figures_again() -> Callable[[bytes, bytes, bytes | None], list[str]] | None:
    """What finds the parts of ``report.json`` that do not follow from ``protocol.json`` and ``frequencies.json``.

    There are no frequencies without noise. None in such a library.
    """
    try:
        from funnel.report.public.again import other_figures
    except ImportError:
        return None

    def compare(numbers: bytes, protocol: bytes, frequencies: bytes | None) -> list[str]:
        told, channel = (
            PublicReport.from_json(numbers, "report.json"),
            ProtocolDocument.from_json(protocol, "protocol.json"),
        )
        noisy = (
            None if frequencies is None else FrequenciesDocument.from_json(frequencies, "frequencies.json").frequencies
        )
        return other_figures(told, channel, noisy)

    return compare


def plan_writer() -> PlanWriter | None:
    """What writes the page of a plan; None in such a library."""
    try:
        from funnel.report.plan.writing import write_plan
    except ImportError:
        return None
    return write_plan
