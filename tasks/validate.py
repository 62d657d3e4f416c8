"""Validate: Great Expectations judges the files that are about to be published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.pipeline.tasks.step import step, tell
from funnel.protocol import Protocol
from funnel.release.decision import Draw, Earlier, TakeOver
from funnel.release.files import write_whole
from funnel.release.layout import ReleaseFolder
from funnel.release.rows import Rows
from funnel.release.snapshot import Snapshot
from funnel.release.verdict import Verdict
from funnel.release.words import WordsDocument
from funnel.spec import ReleaseSpec

if TYPE_CHECKING:
    from funnel.pipeline.expectations.drawing import Drawing


@step
def validate(
    spec: ReleaseSpec,
    decision: Draw | TakeOver,
    snapshot: Snapshot,
    joint: Joint,
    protocol: Protocol,
    rows: Rows,
    folder: ReleaseFolder,
    earlier: Sequence[Earlier],
) -> Verdict:
    """Judge the drawn files against what the spec declares, and store the verdict beside them.

    The verdict may be negative: refusing to publish is the caller's part.
    """
    tell("loading the validator")
    # Takes seconds to import: only runs that validate pay for it.
    from funnel.pipeline.expectations import Evidence, judge

    tell("judging the release")
    verdict = judge(
        Evidence(
            released=rows.data.checked(),
            protocol=protocol,
            joint=joint,
            guarantee=parse_guarantee(spec.guarantee.canonical),
            snapshot_rows=snapshot.rows,
            secret=spec.secret,
            published=spec.publish,
            pair_counts=rows.pairs,
            drawing=_drawing(spec, decision, snapshot, rows, earlier),
        )
    )
    write_whole(folder.verdict, verdict.to_bytes())
    return verdict


def _drawing(
    spec: ReleaseSpec, decision: Draw | TakeOver, snapshot: Snapshot, rows: Rows, earlier: Sequence[Earlier]
) -> Drawing:
    from funnel.pipeline.expectations.drawing import Drawing

    taken_over = isinstance(decision, TakeOver)
    folders = [] if taken_over else [ReleaseFolder(one.folder) for one in earlier if one.folder is not None]
    return Drawing(
        counts=rows.counts,
        secret=rows.secret,
        probe=rows.probe,
        words=None if rows.words is None else rows.words.statistics,
        snapshot=Path(snapshot.data.path),
        shuffled=spec.output.shuffle,
        taken_over=taken_over,
        # Versions of a funnel that kept no words have nothing to compare with.
        earlier=tuple(WordsDocument.read(one.words).statistics for one in folders if one.words.exists()),
    )
