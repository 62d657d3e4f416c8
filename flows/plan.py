"""The plan flow: every mechanism compared for one spec, as an artifact."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.artifacts import create_table_artifact

from funnel.guarantees import parse_guarantee
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.planning import plan as compare
from funnel.release.public import compared, share_step
from funnel.sample_size import warnings
from funnel.source import count_joint
from funnel.spec import ReleaseSpec


@flow(name="plan", persist_result=False)
def plan(spec: str) -> list[dict[str, Any]]:
    """Compare every mechanism under the bound of a spec; nothing is drawn or released.

    What a run leaves in the orchestrator is read by others than the steward, so the figures are rounded as for a
    release. ``funnel plan`` has the exact ones.

    Raises
    ------
    FunnelError
        With one clear sentence.
    """
    rows = _plan(spec)
    create_table_artifact(rows, key="funnel-plan", description="Utility of every mechanism, in nats")
    return rows


@plain_errors
def _plan(spec_path: str) -> list[dict[str, Any]]:
    spec = ReleaseSpec.load(spec_path)
    joint = count_joint(spec, progress=tell)
    guarantee = parse_guarantee(spec.guarantee.canonical)
    mechanism = spec.mechanism
    rows = compare(
        joint, guarantee, reads_secret=mechanism.reads_secret, time_limit=mechanism.time_limit, progress=tell
    )
    for warning in warnings(joint, guarantee, rows):
        tell(f"warning: {warning}")
    step = share_step(joint.n)
    return [compared(row.to_dict(), step, guarantee) for row in rows]
