"""Writing the page of a plan: everything is looked at on all cores, remembered, and written as one file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from funnel.console import frequencies_line
from funnel.guarantees import Guarantee, parse_guarantee
from funnel.joint import Joint
from funnel.measures.utilities import INFORMATION, Utility
from funnel.numbers import utility_for
from funnel.preview.counted import Preview
from funnel.preview.spec_plan import SpecPlan
from funnel.progress import Progress
from funnel.protocol import INVARIANT
from funnel.release.cache import Cache
from funnel.release.files import private_folder, write_whole
from funnel.release.provenance import software_name
from funnel.report.plan import PlannedBound, render_plan
from funnel.sampling.engine import OneWorker, Processes, Workers
from funnel.spec import ReleaseSpec
from funnel.tradeoff.alternatives import alternatives
from funnel.tradeoff.sweep import Sweep, sweep
from funnel.tradeoff.unchanged_by_budget import UnchangedCurve, unchanged_curve

PAGE = "plan.html"
_ALONE = "This page is about a version that stands alone; what is kept given earlier versions is in the plan itself."

T = TypeVar("T")


def page_of(spec: ReleaseSpec) -> Path:
    """Where the page of a spec is written unless somebody says otherwise: in its private workspace."""
    return spec.workspace_folder / spec.name / PAGE


def write_plan(plan: SpecPlan, found: Preview, path: Path | None, progress: Progress) -> Path:
    """Look at every mechanism at several budgets and at what else could be published, and write the page.

    What was looked at before, for the same counts and by the same code, is taken from the workspace: a run that was
    stopped goes on where it was.

    Parameters
    ----------
    plan : SpecPlan
    found : Preview
        What was planned for.
    path : Path or None
        By default `page_of` the spec.
    progress : callable

    Raises
    ------
    OutputError
        If it cannot be written.
    PipelineError
        If worker processes keep dying.
    """
    spec = plan.spec
    alone = [_ALONE] if spec.history is not None and spec.history.people == "same" else []
    counted, noise = found.protected.frequencies.joint, found.protected.frequencies.noise
    joint, settled = counted.over_published(spec.publish), found.settled or spec
    useful = utility_for(settled, joint)

    def looked_at(workers: Workers, cache: Cache) -> list[PlannedBound]:
        made = []
        for planned in plan.bounds:
            bound, sure = parse_guarantee(planned.guarantee), planned.certainty
            notes = (*([] if sure is None else [sure.sentence]), *planned.warnings, *alone)
            unchanged = stays = None
            if spec.mechanism.name == INVARIANT:
                row = next((row for row in planned.rows if row.mechanism == INVARIANT and row.reason is None), None)
                weights, stays = spec.mechanism.weights, None if row is None else row.unchanged
                unchanged = unchanged_curve(joint, bound, weights, workers, cache, fitted=row, progress=progress)
            swept = _swept(joint, bound, spec, unchanged, useful, workers, cache, progress)
            others = alternatives(
                settled, counted, bound, noise, workers, cache, progress=progress, utility=useful, stays=stays
            )
            made.append(PlannedBound(swept, others, notes, planned.errors, unchanged))
        return made

    frequencies = frequencies_line(plan.protection)
    return write_page(
        spec, path, looked_at, lambda planned: render_plan(spec, joint, planned, frequencies, software_name())
    )


def _swept(
    joint: Joint,
    bound: Guarantee,
    spec: ReleaseSpec,
    unchanged: UnchangedCurve | None,
    useful: Utility,
    workers: Workers,
    cache: Cache,
    progress: Progress,
) -> Sweep:
    """Every mechanism at several budgets; where values as they are were asked for, the one that publishes them."""
    if unchanged is not None and (spec.publishes_secret or useful == INFORMATION):
        return unchanged.as_sweep()
    reads = spec.mechanism.reads_secret
    return sweep(joint, bound, workers, cache, reads_secret=reads, progress=progress, utility=useful)


def write_page(
    spec: ReleaseSpec, path: Path | None, look: Callable[[Workers, Cache], T], rendered: Callable[[T], str]
) -> Path:
    """Look at everything with as many processes as there are cores, and with what was looked at before; write the page.

    Parameters
    ----------
    spec : ReleaseSpec
    path : Path or None
        By default `page_of` the spec.
    look, rendered : callable
        What is looked at, and the page of it.
    """
    cache = Cache(private_folder(spec.workspace_folder / spec.name) / "tradeoff")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores == 1:
        found = look(OneWorker(), cache)
    else:
        with Processes(cores) as processes:
            found = look(processes, cache)
    path = page_of(spec) if path is None else path
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, rendered(found).encode())
    return path
