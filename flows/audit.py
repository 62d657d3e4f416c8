"""The audit flow: a published release checked again, as an artifact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow
from prefect.artifacts import create_table_artifact

from funnel.audit.check import Result, error_of
from funnel.audit.recheck import Told, recheck
from funnel.pipeline.tasks.step import plain_errors
from funnel.release.layout import find_release
from funnel.release.public.rounding import public_text
from funnel.rendering import figures_again, page_renderer


@flow(name="audit", persist_result=False)
def audit(release: str, public: bool = False, register_folder: str | None = None) -> list[dict[str, Any]]:
    """Check a release, or the latest of a series, from its files alone.

    Parameters
    ----------
    release : str
        Path of its folder.
    public : bool
        Whether only what the public files tell is asked for.
    register_folder : str, optional
        Path of the register of the people, where it is not in a workspace near the release.

    Raises
    ------
    LeakageExceeded
        If any check fails.
    NotChecked
        If none failed and some could not be made.
    DataError
        If there is no readable release.
    """
    checks = _audit(release, public, register_folder)
    # Others than the steward read the orchestrator's database: figures in it are rounded as in public files.
    shown = [{"name": check.name, "state": str(check.state), "detail": public_text(check.detail)} for check in checks]
    create_table_artifact(shown, key="funnel-audit", description=f"Checks of {Path(release).name}")
    if (complaint := error_of(Path(release).name, checks)) is not None:
        raise complaint
    return [{"name": check.name, "state": str(check.state), "detail": check.detail} for check in checks]


@plain_errors
def _audit(release: str, public: bool, register_folder: str | None) -> list[Result]:
    place = None if register_folder is None else Path(register_folder)
    return recheck(
        find_release(Path(release)),
        Told(public=public, render=page_renderer(), figures=figures_again(), register=place),
    )
