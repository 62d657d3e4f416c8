"""Rendering: the public page made again from the bytes of its figures, where templates can be rendered at all."""

from __future__ import annotations

from collections.abc import Callable

from funnel.release.public_report import PublicReport


def page_renderer() -> Callable[[bytes], str] | None:
    """What makes the page of ``report.json``; None in a library that was installed without the extra ``pipeline``."""
    try:
        from funnel.report.public import render_public
    except ImportError:
        return None

    def render(numbers: bytes) -> str:
        return render_public(PublicReport.from_json(numbers, "report.json"))

    return render
