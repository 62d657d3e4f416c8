"""Validate: Great Expectations judges the finished folder, from the source and the spec alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from funnel.pipeline.tasks.step import step, tell
from funnel.pipeline.tasks.vault import read_from_vault
from funnel.release.decision import Draw, Earlier, TakeOver
from funnel.release.judged import public_digests
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.secret import ReleaseSecret
from funnel.release.snapshot import Snapshot
from funnel.release.verdict import Verdict
from funnel.spec import ReleaseSpec


@step
def validate(
    spec: ReleaseSpec,
    decision: Draw | TakeOver,
    snapshot: Snapshot,
    folder: ReleaseFolder,
    earlier: Sequence[Earlier],
    secret: ReleaseSecret | None = None,
    followed: Snapshot | None = None,
    register: Path | None = None,
    coming: Path | None = None,
) -> Verdict:
    """Judge every public file of a coming version, and note the digests of what was judged.

    Nothing that the steps before computed is taken over: counts are counted again from the source, the bound is read
    again from the text of the spec, and everything else from the files in the folder. Of the snapshot only what it says
    of itself is judged, and the order of its records is what that of the released rows must not follow. The verdict may
    be negative: refusing to publish is the caller's part.

    Parameters
    ----------
    followed : Snapshot, optional
        The same records with the channel of each history and keys of decisions, where rows are drawn from these.
    register, coming : Path, optional
        Folders of the register of these people, and of the entry that is prepared for the version.

    Raises
    ------
    ReleaseRefused
        If the folder holds something that is neither a file nor a folder.
    """
    tell("loading the validator")
    # Takes seconds to import: only runs that validate pay for it.
    from funnel.pipeline.expectations import Finished, judge
    from funnel.pipeline.expectations.history_claims import Prepared

    tell("judging the release")
    # Before anything is read: what changes from here on is not what was judged.
    files = public_digests(folder.root)
    key = None if secret is None or spec.record_key is None else secret.record_key(spec.record_key, read_from_vault)
    taken_over = isinstance(decision, TakeOver)
    # Rows that are taken over have the words of the version that they are of.
    there = tuple(ReleaseFolder(one.folder) for one in earlier if one.folder is not None)
    before = () if taken_over else there
    prepared = None if register is None or coming is None else Prepared(register, coming)
    previous = _newest(earlier)
    finished = Finished(
        spec=spec,
        folder=folder,
        version=str(decision.version),
        snapshot=snapshot,
        taken_over=taken_over,
        earlier=before,
        key=key,
        followed=followed,
        prepared=prepared,
        before=there,
        previous=None if previous is None else str(previous),
    )
    return Verdict.of(judge(finished).results, files)


def _newest(earlier: Sequence[Earlier]) -> Version | None:
    """The newest version that readers find; told again by itself."""
    return max((one.version for one in earlier if one.published and not one.withdrawn), default=None)
