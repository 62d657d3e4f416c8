"""Sanitise: the rows of a version, drawn from the snapshot or taken over, as was decided."""

from __future__ import annotations

from dataclasses import replace

from funnel.pipeline.tasks.run import Run
from funnel.pipeline.tasks.step import step, tell
from funnel.release.decision import Draw, TakeOver
from funnel.release.drawn_from import DrawnFrom
from funnel.release.layout import ReleaseFolder
from funnel.release.rows import Rows, draw_rows, take_over


@step
def sanitise(run: Run, decision: Draw | TakeOver, drawn: DrawnFrom, folder: ReleaseFolder) -> Rows:
    """Put the rows of the coming version into its folder, with the evidence of its drawing.

    In a wide table whole records are published for the classes that are drawn.

    Raises
    ------
    EntropyError
        If the random source fails; nothing is written from it.
    """
    if isinstance(decision, TakeOver):
        earlier = decision.rows_of
        return take_over(earlier.place, earlier.rows_sha256, drawn.drawing, folder)
    donors = run.estimated.donors
    if donors is not None and drawn.is_followed:
        donors = replace(donors, followed=True)
    return draw_rows(
        run.spec,
        drawn,
        folder,
        run.workspace,
        record_key=run.record_key,
        secret=run.estimated.joint.secret,
        progress=tell,
        donors=donors,
    )
