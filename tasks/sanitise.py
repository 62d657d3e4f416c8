"""Sanitise: the rows of a version, drawn from the snapshot or taken over, as was decided."""

from __future__ import annotations

from pathlib import Path

from funnel.joint import Joint
from funnel.pipeline.tasks.step import step, tell
from funnel.pipeline.tasks.vault import read_from_vault
from funnel.release.decision import Draw, TakeOver
from funnel.release.drawn_from import DrawnFrom
from funnel.release.layout import ReleaseFolder
from funnel.release.rows import Rows, draw_rows, take_over
from funnel.release.secret import ReleaseSecret
from funnel.sampling.donors import Donors
from funnel.spec import ReleaseSpec


@step
def sanitise(
    spec: ReleaseSpec,
    decision: Draw | TakeOver,
    joint: Joint,
    drawn: DrawnFrom,
    folder: ReleaseFolder,
    workspace: Path,
    secret: ReleaseSecret | None = None,
    donors: Donors | None = None,
) -> Rows:
    """Put the rows of the coming version into its folder, with the evidence of its drawing.

    With ``donors`` whole records are published for the classes that are drawn.

    Raises
    ------
    EntropyError
        If the random source fails; nothing is written from it.
    """
    if isinstance(decision, TakeOver):
        earlier = decision.rows_of
        if earlier.folder is None:
            raise ValueError("rows that are gone are not taken over")
        return take_over(ReleaseFolder(earlier.folder), earlier.rows_sha256, drawn.drawing, folder)
    key = None if secret is None or spec.record_key is None else secret.record_key(spec.record_key, read_from_vault)
    return draw_rows(
        drawn.snapshot,
        drawn.drawing,
        folder,
        workspace,
        shuffle=spec.output.shuffle,
        record_key=key,
        secret=joint.secret,
        engine=spec.engine,
        progress=tell,
        decided=drawn.counts is not None,
        counts=drawn.counts,
        target=drawn.target,
        donors=donors,
    )
