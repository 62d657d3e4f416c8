"""The flows of a publication, release and approve: runs of the orchestrator, with what they leave in its interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow

from funnel.pipeline.flows.artifacts import describe_held, describe_run
from funnel.pipeline.flows.pipeline import Done, run_approved, run_release
from funnel.pipeline.flows.telling import ended, explained
from funnel.pipeline.tasks.step import plain_errors
from funnel.release.approval import Approval, version_to_approve
from funnel.release.layout import Version
from funnel.spec import ReleaseSpec


@flow(name="release", log_prints=False, persist_result=False, validate_parameters=True)
def release(spec: str, again: bool = False, rotate_secret: bool = False, text: str | None = None) -> Any:
    """Release the data of a spec, unless this very release is already published or held for approval.

    Parameters
    ----------
    spec : str
        Path of the spec file.
    again : bool
        Draw and publish again even though nothing has changed. Every fresh draw about the same people adds to what
        all versions together reveal, so this is never done unasked.
    rotate_secret : bool
        Take another release secret: every record gets a fresh answer, which reveals more. Stored with the version.
    text : str, optional
        The content of the spec file, where it was read already: what was read once is what is released.

    Returns
    -------
    dict
        ``status`` is ``"published"``, ``"unchanged"``, ``"held"`` or ``"rejected"``; with the first three: version,
        folder, report, cached steps; with the first two the public key. Published, and held by this run: guarantee,
        level, utility, share, mechanism, rows, dropped, outside, warnings; whether rows were drawn or taken over, and
        whether that is a fresh draw about these people. Held by an earlier run: since when, and rows. Rejected:
        version, by, at, reason. The state of the run is named Published, Unchanged, WaitingForApproval or Rejected, and
        its message, which is in the log too, says which version and which bound.

    Raises
    ------
    FunnelError
        With one clear sentence; nothing is then published and what was published before is untouched. An artifact
        says what to do.
    """
    with explained(known := {"name": "release", "title": f"release of {Path(spec).name}"}):
        described = _load(spec, text)
        known.update(name=described.name, title=described.title)
        told, done = run_release(described, again, rotate_secret)
    return _ended(described, told, done)


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
    with explained(known := {"name": "approve", "title": f"approval of {Path(spec).name}"}):
        described, approval, asked = _read(spec, by, note, version, text)
        known.update(name=described.name, title=described.title)
        told, done = run_approved(described, approval, asked)
    return _ended(described, told, done)


def _ended(spec: ReleaseSpec, told: dict[str, Any], done: Done | None) -> Any:
    """The state of a run, with what it leaves in the orchestrator's interface."""
    if done is not None:
        describe_run(spec, done.published, done.channel, done.public)
    if told["status"] == "held":
        describe_held(spec, told)
    return ended(told)


@plain_errors
def _read(
    path: str, by: str, note: str | None, version: str | None, text: str | None
) -> tuple[ReleaseSpec, Approval, Version | None]:
    return _load(path, text), Approval.given(by, note), version_to_approve(version)


@plain_errors
def _load(path: str, text: str | None) -> ReleaseSpec:
    return ReleaseSpec.load(path) if text is None else ReleaseSpec.parse(text, path)
