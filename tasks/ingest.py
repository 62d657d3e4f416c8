"""Ingest: from a source to an immutable snapshot of the columns a release needs."""

from __future__ import annotations

from pathlib import Path

from funnel.pipeline.tasks.secret_blocks import record_key_of
from funnel.pipeline.tasks.step import step, tell
from funnel.readers.formats import Source
from funnel.release.learned import learned_codings
from funnel.release.secret import ReleaseSecret
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
    key = record_key_of(spec, secret)

    def codings(source: Source, digest: str) -> Codings:
        return learned_codings(spec, source, digest, workspace, tell, key)

    return take_snapshot(spec, workspace, key, tell, codings)
