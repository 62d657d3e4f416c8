"""Described: what a published version leaves in the orchestrator's interface, whichever way it was made."""

from __future__ import annotations

from funnel.pipeline.flows.artifacts import describe_grouped_run, describe_run
from funnel.pipeline.flows.way import Done
from funnel.pipeline.flows.wide import DoneGroups
from funnel.spec import ReleaseSpec


def describe_done(spec: ReleaseSpec, done: Done | DoneGroups) -> None:
    """Create the artifacts of a published version."""
    if isinstance(done, DoneGroups):
        describe_grouped_run(spec, done.published, done.public)
    else:
        describe_run(spec, done.published, done.channel, done.public)
