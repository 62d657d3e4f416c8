"""Writing the page of a plan: everything is looked at on all cores, remembered, and written as one file."""

from __future__ import annotations

import os
from pathlib import Path

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
from funnel.sampling.engine import OneWorker, Processes
from funnel.spec import ReleaseSpec
from funnel.tradeoff.alternatives import alternatives
from funnel.tradeoff.sweep import Sweep, sweep
from funnel.tradeoff.trials import Trials
from funnel.tradeoff.unchanged_by_budget import UnchangedCurve, unchanged_curve

PAGE = "plan.html"
_ALONE = "This page is about a version that stands alone; what is kept given earlier versions is in the plan itself."


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

    def looked_at(trials: Trials) -> list[PlannedBound]:
        made = []
        for planned in plan.bounds:
            bound, sure = parse_guarantee(planned.guarantee), planned.certainty
            notes = (*([] if sure is None else [sure.sentence]), *planned.warnings, *alone)
            usable, unchanged = [row for row in planned.rows if row.reason is None and not row.reads_secret], None
            fitted = max((row.utility for row in usable if row.utility is not None), default=None)
            if spec.mechanism.name == INVARIANT:
                row = next((row for row in usable if row.mechanism == INVARIANT), None)
                fitted = None if row is None else row.unchanged
                unchanged = unchanged_curve(joint, bound, spec.mechanism.weights, trials, fitted=row)
            swept = _swept(joint, bound, spec, unchanged, useful, trials)
            others = alternatives(settled, counted, bound, noise, trials, utility=useful, fitted=fitted)
            made.append(PlannedBound(swept, others, notes, planned.errors, unchanged))
        return made

    cache = Cache(private_folder(spec.workspace_folder / spec.name) / "tradeoff")
    # Those that this process may use, where the system says so.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores == 1:
        bounds = looked_at(Trials(OneWorker(), cache, progress))
    else:
        with Processes(cores) as processes:
            bounds = looked_at(Trials(processes, cache, progress))
    path = page_of(spec) if path is None else path
    path.parent.mkdir(parents=True, exist_ok=True)
    page = render_plan(spec, joint, bounds, frequencies_line(plan.protection), software_name())
    write_whole(path, page.encode())
    return path


def _swept(
    joint: Joint,
    bound: Guarantee,
    spec: ReleaseSpec,
    unchanged: UnchangedCurve | None,
    useful: Utility,
    trials: Trials,
) -> Sweep:
    """Every mechanism at several budgets; where values as they are were asked for, the one that publishes them."""
    if unchanged is not None and (spec.publishes_secret or useful == INFORMATION):
        return unchanged.as_sweep()
    return sweep(joint, bound, trials, reads_secret=spec.mechanism.reads_secret, utility=useful)
