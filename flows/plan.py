"""The plan flow: what mechanisms would give for a spec, what would refuse it and what noise costs, as artifacts."""

from __future__ import annotations

from typing import Any

from prefect import flow

from funnel.pipeline.flows.artifacts import describe_plan
from funnel.pipeline.flows.planned import plan_answer
from funnel.pipeline.tasks.secret_blocks import read_secret_block
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.preview.spec_plan import Planner, SpecPlan
from funnel.progress import WARNING
from funnel.spec import ReleaseSpec


@flow(name="plan", persist_result=False)
def plan(spec: str, suggest: bool = False, frequencies: bool = False) -> list[dict[str, Any]]:
    """Compare every mechanism under the bound of a spec; nothing is drawn or released.

    What a run leaves in the orchestrator is read by others than the steward, so the figures are rounded as for a
    release, and where the spec asks for noise they are those of noisy counts.

    Parameters
    ----------
    spec : str
        Path of the spec.
    suggest : bool
        Also propose the grouping that [disclosure] needs; its values are named only where noise protects the counts.
    frequencies : bool
        Also tell what noise on the frequencies costs, by its epsilon and for several numbers of records.

    Raises
    ------
    FunnelError
        With one clear sentence.
    """
    return describe_plan(plan_answer(_plan(spec, suggest, frequencies)))


@plain_errors
def _plan(spec_path: str, suggest: bool, frequencies: bool) -> SpecPlan:
    planner = Planner(ReleaseSpec.load(spec_path), (), tell, read_secret_block)
    planner.compare()
    planned = planner.planned(suggest, frequencies, in_full=False)
    for warning in planned.bounds[0].warnings:
        tell(f"{WARNING}{warning}")
    return planned
