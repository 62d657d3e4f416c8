"""The audit flow: a published release checked again, as an artifact."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.artifacts import create_table_artifact

from funnel.audit.recheck import recheck
from funnel.errors import LeakageExceeded
from funnel.pipeline.tasks.step import plain_errors
from funnel.release.layout import find_release
from funnel.release.public import public_text


@flow(name="audit", persist_result=False)
def audit(release: str) -> list[dict[str, Any]]:
    """Check a release, or the latest of a series, from its files alone.

    Raises
    ------
    LeakageExceeded
        If any check fails.
    DataError
        If there is no readable release.
    """
    checks = _audit(release)
    # Others than the steward read the orchestrator's database: figures in it are rounded as in public files.
    told = [{**check, "detail": public_text(check["detail"])} for check in checks]
    create_table_artifact(told, key="funnel-audit", description=f"Checks of {Path(release).name}")
    if failed := [check for check in checks if not check["passed"]]:
        raise LeakageExceeded("; ".join(f"{check['name']}: {check['detail']}" for check in failed))
    return checks


@plain_errors
def _audit(release: str) -> list[dict[str, Any]]:
    return [asdict(check) for check in recheck(find_release(Path(release)))]
