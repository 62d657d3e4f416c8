"""Audits as the command makes them: with what renders the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from funnel.audit import recheck as module
from funnel.audit.check import Result
from funnel.audit.context import AuditContext
from funnel.audit.recheck import Told
from funnel.release.layout import ReleaseFolder
from funnel.rendering import figures_again, page_renderer


def recheck(folder: ReleaseFolder, told: Told | None = None) -> list[Result]:
    """`funnel.audit.recheck.recheck`, with the page made again."""
    return module.recheck(folder, _rendering(told))


def verified(folder: ReleaseFolder, names: Sequence[str], told: Told | None = None) -> Iterator[Result]:
    """What some checks of an audit find, in this order, each made when it is asked for."""
    known = AuditContext(folder, _rendering(told))
    applying = [check for check in module.CHECKS if check.name in names and check.applies(known.has)]
    for check in sorted(applying, key=lambda check: names.index(check.name)):
        if (found := module._verified(check, known)) is not None:
            yield found


def _rendering(told: Told | None) -> Told:
    return replace(told or Told(), render=page_renderer(), figures=figures_again())
