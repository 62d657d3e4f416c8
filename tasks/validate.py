"""Validate: Great Expectations judges the finished folder, from the source and the spec alone."""

from __future__ import annotations

from collections.abc import Sequence

from funnel.pipeline.tasks.run import Draft, Run
from funnel.pipeline.tasks.step import step, tell
from funnel.readers.source_files import file_digest
from funnel.register.journal import Prepared as Entry
from funnel.release.decision import TakeOver
from funnel.release.earlier import Earlier
from funnel.release.known_keys import kept_keys
from funnel.release.layout import Version
from funnel.release.validated import public_digests
from funnel.release.verdict import Verdict


@step
def validate(run: Run, draft: Draft, entry: Entry | None = None) -> Verdict:
    """Judge every public file of a coming version, and note the digests of what was judged.

    Nothing that the steps before computed is taken over: counts are counted again from the source, the bound is read
    again from the text of the spec, and everything else from the files in the folder. Of the snapshot only what it says
    of itself is judged, and the order of its records is what that of the released rows must not follow. The verdict may
    be negative: refusing to publish is the caller's part.

    Parameters
    ----------
    run : Run
    draft : Draft
    entry : Prepared, optional
        That is prepared for the version in the register of these people.

    Raises
    ------
    ReleaseRefused
        If the folder holds something that is neither a file nor a folder.
    """
    tell("loading the validator")
    # Takes seconds to import: only runs that validate pay for it.
    from funnel.pipeline.expectations import Finished, judge
    from funnel.pipeline.expectations.finished_folder import Prepared

    tell("judging the release")
    # Before anything is read: what changes from here on is not what was judged.
    files = public_digests(draft.folder.root)
    earlier, taken_over = run.earlier, isinstance(draft.decision, TakeOver)
    # Rows that are taken over have the words of the version that they are of.
    there = tuple(one.folder for one in earlier if one.folder is not None)
    before = () if taken_over else there
    previous = _newest(earlier)
    finished = Finished(
        spec=run.spec,
        folder=draft.folder,
        version=str(draft.decision.version),
        snapshot=run.snapshot,
        taken_over=taken_over,
        earlier=before,
        key=run.record_key,
        followed=None if draft.followed.step is None else draft.followed.drawn.snapshot,
        prepared=None if run.register is None or entry is None else Prepared(run.register.root, entry.folder),
        before=there,
        previous=None if previous is None else str(previous),
        kept_keys=kept_keys(run.series.records.folder, draft.decision.version, run.spec),
        draws_before=_draws_before(earlier, file_digest(draft.folder.data)),
        progress=tell,
    )
    return Verdict.of(judge(finished).results, files)


def _draws_before(earlier: Sequence[Earlier], rows: str) -> int:
    """Draws that were published, or may have been seen, but for that of these rows; counted again by itself."""
    return len([one for one in earlier if one.record.fresh and (one.published or one.rows_sha256 != rows)])


def _newest(earlier: Sequence[Earlier]) -> Version | None:
    """The newest version that readers find; told again by itself."""
    return max((one.version for one in earlier if one.published and not one.withdrawn), default=None)
