"""The release flow: the way of the data as a run of the orchestrator, with what it leaves in its interface."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from funnel.pipeline.flows.artifacts import describe_held, describe_run
from funnel.pipeline.flows.way import go
from funnel.pipeline.tasks.step import plain_errors
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
        version, by, at, reason. A run that holds a version ends in a state named WaitingForApproval.

    Raises
    ------
    FunnelError
        With one clear sentence; nothing is then published and what was published before is untouched.
    """
    described = _load(spec, text)
    told, done = go(described, again, rotate_secret)
    if done is not None:
        describe_run(described, done.published, done.optimised.protocol, done.public)
    return _waiting(described, told) if told["status"] == "held" else told


def _waiting(spec: ReleaseSpec, told: dict[str, Any]) -> State[dict[str, Any]]:
    """The state of a run whose version is held: it ended well, and somebody has something to do."""
    describe_held(spec, told)
    message = f"version {told['version']} waits for approval: funnel approve SPEC --by NAME"
    return Completed(name="WaitingForApproval", message=message, data=told)


@plain_errors
def _load(path: str, text: str | None) -> ReleaseSpec:
    return ReleaseSpec.load(path) if text is None else ReleaseSpec.parse(text, path)
