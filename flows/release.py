"""The release flow: the way of the data as a run of the orchestrator, with what it leaves in its interface."""

from __future__ import annotations

from typing import Any

from prefect import flow

from funnel.guarantees import parse_guarantee
from funnel.pipeline.flows.artifacts import describe_run
from funnel.pipeline.flows.way import Done, go
from funnel.pipeline.tasks.step import plain_errors
from funnel.release.public import PublicRelease
from funnel.spec import ReleaseSpec


@flow(name="release", log_prints=False, persist_result=False, validate_parameters=True)
def release(spec: str, again: bool = False, rotate_secret: bool = False, text: str | None = None) -> dict[str, Any]:
    """Release the data of a spec, unless this very release is already published.

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
        ``status`` is ``"published"`` or ``"unchanged"``; with both: version, folder, report, public key, cached steps.
        Published: guarantee, level, utility, share, mechanism, rows, dropped, outside, warnings; whether rows were
        drawn or taken over, and whether that is a fresh draw about these people.

    Raises
    ------
    FunnelError
        With one clear sentence; nothing is then published and what was published before is untouched.
    """
    described = _load(spec, text)
    told, done = go(described, again, rotate_secret)
    if done is not None:
        _describe(described, done)
    return told


@plain_errors
def _describe(spec: ReleaseSpec, done: Done) -> None:
    protocol, guarantee = done.optimised.protocol, parse_guarantee(spec.guarantee.canonical)
    compared = done.optimised.comparison.content()["rows"]
    public = PublicRelease.of(done.joint, protocol, guarantee, done.findings, compared)
    describe_run(spec, done.published, protocol, public)


@plain_errors
def _load(path: str, text: str | None) -> ReleaseSpec:
    return ReleaseSpec.load(path) if text is None else ReleaseSpec.parse(text, path)
