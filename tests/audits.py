"""Audits as the command makes them: with what renders the report."""

from __future__ import annotations

from dataclasses import replace

from funnel.audit import recheck as module
from funnel.audit.check import Result
from funnel.audit.recheck import Told
from funnel.release.layout import ReleaseFolder
from funnel.rendering import figures_again, page_renderer


def recheck(folder: ReleaseFolder, told: Told | None = None) -> list[Result]:
    """`funnel.audit.recheck.recheck`, with the page made again."""
    return module.recheck(folder, replace(told or Told(), render=page_renderer(), figures=figures_again()))
