"""The plan flow: what mechanisms would give for a spec, what would refuse it and what noise costs, as artifacts."""

from __future__ import annotations

from typing import Any

from prefect import flow

from funnel.disclosure.rule_forecast import forecast_rules
from funnel.frequencies.noise_forecast import forecast_noise
from funnel.guarantees import parse_guarantee
from funnel.numbers import utility_for
from funnel.pipeline.flows.artifacts import describe_plan
from funnel.pipeline.flows.planned import Planned, plan_answer
from funnel.pipeline.tasks.ingest import read_secret_block
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.planning import plan as compare
from funnel.preview.counted import preview
from funnel.preview.version_plan import plan_version
from funnel.progress import WARNING
from funnel.sample_size import warnings
from funnel.source import resolved_columns
from funnel.spec import ReleaseSpec
from funnel.tradeoff import FittedRows


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
def _plan(spec_path: str, suggest: bool, frequencies: bool) -> Planned:
    spec = resolved_columns(ReleaseSpec.load(spec_path))
    found = preview(spec, tell, read_secret_block)
    for misfit in found.misfits:
        tell(f"{WARNING}{misfit}")
    joint = found.protected.frequencies.joint
    guarantee = parse_guarantee(spec.guarantee.canonical)
    spec = found.spec
    counted, joint = joint, joint.over_published(spec.publish)
    mechanism, useful = spec.mechanism, utility_for(found.settled or spec, joint)
    rows = compare(
        joint,
        guarantee,
        (mechanism.name,) if spec.publishes_secret or spec.is_by_class else None,
        reads_secret=mechanism.reads_secret,
        time_limit=mechanism.time_limit,
        progress=tell,
        utility=useful,
        weights=mechanism.weights,
        named=mechanism.name,
        kept=FittedRows.within(spec.workspace_folder / spec.name),
    )
    for warning in warnings(joint, guarantee, rows, useful):
        tell(f"{WARNING}{warning}")
    (outlook,) = plan_version(spec, found, ((str(guarantee), rows),), tell, read_secret_block)
    settings, part = spec.frequencies, found.protected.frequencies.part
    return Planned(
        spec=spec,
        guarantee=guarantee,
        n=joint.n,
        rows=rows,
        history=outlook,
        disclosure=forecast_rules(found.settled or spec, counted, ((str(guarantee), rows),), suggest, tell),
        costing=frequencies,
        noise=forecast_noise(joint, guarantee, settings.epsilon, settings.beta, part, progress=tell)
        if frequencies
        else None,
    )
