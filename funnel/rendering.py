"""Rendering: pages, where templates can be rendered at all: the public one made again from its figures, and plans."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
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
    return _pages if find_spec("jinja2") else None


def figures_again() -> Callable[[bytes, bytes, bytes | None], list[str]] | None:
    """What finds the parts of ``report.json`` that do not follow from ``protocol.json`` and ``frequencies.json``.

    There are no frequencies without noise. None in such a library.
    """
    return _other_figures if find_spec("jinja2") else None


# A version is audited before it is published and again after, and copies of it without what is internal: of the same
# bytes the same comes.
@lru_cache(maxsize=8)
def _pages(numbers: bytes, protocol: bytes) -> dict[str, str]:
    from funnel.report.annex import render_annex
    from funnel.report.public import render_public

    told = PublicReport.from_json(numbers, "report.json")
    channel = ProtocolDocument.from_json(protocol, "protocol.json")
    return {"report.html": render_public(told), "annex.html": render_annex(told, channel)}


@lru_cache(maxsize=8)
def _other_figures(numbers: bytes, protocol: bytes, frequencies: bytes | None) -> list[str]:
    from funnel.report.public.again import other_figures

    told = PublicReport.from_json(numbers, "report.json")
    channel = ProtocolDocument.from_json(protocol, "protocol.json")
    noisy = None if frequencies is None else FrequenciesDocument.from_json(frequencies, "frequencies.json").frequencies
    return other_figures(told, channel, noisy)


def plan_writer() -> PlanWriter | None:
    """What writes the page of a plan; None in such a library."""
    try:
        from funnel.report.plan.writing import write_plan
    except ImportError:
        return None
    return write_plan
