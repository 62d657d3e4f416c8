"""The approve flow: publication of the version that is held, as a run of the orchestrator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow

from funnel.pipeline.flows.artifacts import describe_run
from funnel.pipeline.flows.pipeline import run_approved
from funnel.pipeline.flows.telling import ended, explained
from funnel.pipeline.tasks.step import plain_errors
from funnel.release.approval import Approval, version_to_approve
from funnel.release.layout import Version
from funnel.spec import ReleaseSpec


@flow(name="approve", log_prints=False, persist_result=False, validate_parameters=True)
def approve(spec: str, by: str, note: str | None = None, version: str | None = None, text: str | None = None) -> Any:
    """Publish the version of a spec that is held, with the approval of somebody.

    Parameters
    ----------
    spec : str
        Path of the spec file.
    by : str
        Who approves: name and office. A claim of whoever runs this, not an authentication.
    note : str, optional
        What else is to be kept; internal.
    version : str, optional
        Of which they approve; by default of the one that is held.
    text : str, optional
        The content of the spec file, where it was read already.

    Returns
    -------
    dict
        As of the release flow, with ``approved_by`` and ``approved_at``.

    Raises
    ------
    FunnelError
        With one clear sentence; the version is then still held.
    """
    known = {"name": "approve", "title": f"approval of {Path(spec).name}"}
    with explained(known):
        described, approval, asked = _read(spec, by, note, version, text)
        known.update(name=described.name, title=described.title)
        told, done = run_approved(described, approval, asked)
    if done is not None:
        describe_run(described, done.published, done.channel, done.public)
    return ended(told)


@plain_errors
def _read(
    path: str, by: str, note: str | None, version: str | None, text: str | None
) -> tuple[ReleaseSpec, Approval, Version | None]:
    described = ReleaseSpec.load(path) if text is None else ReleaseSpec.parse(text, path)
    return described, Approval.given(by, note), version_to_approve(version)
