"""Hold: keep a judged release back, whole and private, until somebody approves of it."""

from __future__ import annotations

from funnel.pipeline.tasks.publish import complete, require_own_audit
from funnel.pipeline.tasks.run import Draft, Run
from funnel.pipeline.tasks.step import step, tell
from funnel.release.verdict import Verdict


@step
def hold(run: Run, draft: Draft, verdict: Verdict) -> None:
    """Write the record and put the folder aside in the series, all or nothing; no reader sees any of it.

    It is not in the register of its people, which holds what is published. Nothing is signed or uploaded: whoever
    approves has the documents written and judged again, with the approval.

    Raises
    ------
    ReleaseRefused
        If the verdict is negative, or no longer about the files that are there; or an audit does not pass.
    """
    record = complete(run, draft, verdict, verdict.files, draft.followed.drawn.record)
    require_own_audit(run, draft, record, held=True)
    tell("holding for approval")
    run.series.held.hold(draft.folder, draft.decision.version, verdict)
