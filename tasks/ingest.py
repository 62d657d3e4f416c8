"""Ingest: from a source to an immutable snapshot of the columns a release needs; and secrets from the orchestrator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from funnel.errors import SpecError
from funnel.pipeline.tasks.step import step, tell
from funnel.readers.formats import Source
from funnel.release.learned import learned_codings
from funnel.release.secret import ReleaseSecret, read_secret
from funnel.release.snapshot import Snapshot, take_snapshot
from funnel.source.coding import Codings
from funnel.spec import ReleaseSpec


@step
def ingest(spec: ReleaseSpec, workspace: Path, secret: ReleaseSecret | None = None) -> Snapshot:
    """Take a snapshot of the source of a spec, or find the one already taken of the same content.

    Parameters
    ----------
    spec : ReleaseSpec
    workspace : Path
        Private folder of the series.
    secret : ReleaseSecret, optional
        Needed if the spec has a record key.
    """
    key = None if secret is None or spec.record_key is None else secret.record_key(spec.record_key, read_secret_block)

    def codings(source: Source, digest: str) -> Codings:
        return learned_codings(spec, source, digest, workspace, tell, key)

    return take_snapshot(spec, workspace, key, tell, codings)


def read_secret_block(place: str) -> str:
    """The text of a secret in a file, in the environment, or in a Secret block of the orchestrator.

    Raises
    ------
    SpecError
        If it cannot be read.
    """
    kind, _, name = place.partition(":")
    return _read_block(name) if kind == "prefect" else read_secret(place)


def _read_block(name: str) -> str:
    from prefect.blocks.system import Secret

    try:
        # Typed as a coroutine for asynchronous callers too; this one is not.
        block: Any = Secret.load(name)
        value = block.get()
    except ValueError:
        value = None
    if not isinstance(value, str):
        raise SpecError(
            f"there is no Secret block {name!r} with a text on the orchestrator's server; make it, or change "
            "record_secret"
        )
    return value
