"""The plan flow: every mechanism compared for one spec, as an artifact."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.artifacts import create_table_artifact

from funnel.guarantees import parse_guarantee
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.pipeline.tasks.vault import read_from_vault
from funnel.planning import plan as compare
from funnel.register.planning import plan_version
from funnel.release.preview import preview
from funnel.release.public import compared, share_step, weighed
from funnel.sample_size import warnings
from funnel.spec import ReleaseSpec


@flow(name="plan", persist_result=False)
def plan(spec: str) -> list[dict[str, Any]]:
    """Compare every mechanism under the bound of a spec; nothing is drawn or released.

    What a run leaves in the orchestrator is read by others than the steward, so the figures are rounded as for a
    release, and where the spec asks for noise they are those of noisy counts.

    Raises
    ------
    FunnelError
        With one clear sentence.
    """
    rows, reserves = _plan(spec)
    create_table_artifact(rows, key="funnel-plan", description="Utility of every mechanism, in nats")
    if reserves:
        create_table_artifact(
            reserves, key="funnel-plan-history", description="Shares kept given everything published before, by reserve"
        )
    return rows


@plain_errors
def _plan(spec_path: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    spec = ReleaseSpec.load(spec_path)
    found = preview(spec, tell, read_from_vault)
    joint = found.protected.frequencies.joint
    guarantee = parse_guarantee(spec.guarantee.canonical)
    mechanism = spec.mechanism
    rows = compare(
        joint, guarantee, reads_secret=mechanism.reads_secret, time_limit=mechanism.time_limit, progress=tell
    )
    for warning in warnings(joint, guarantee, rows):
        tell(f"warning: {warning}")
    step = share_step(joint.n)
    (outlook,) = plan_version(spec, found, ((str(guarantee), rows),), tell, read_from_vault)
    told = [compared(row.to_dict(), step, guarantee) for row in rows]
    return told, [] if outlook is None else weighed(outlook.to_dict(), step)
