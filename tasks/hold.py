"""Hold: keep a judged release back, whole and private, until somebody approves of it."""

from __future__ import annotations

from funnel.pipeline.tasks.publish import complete, require_own_audit
from funnel.pipeline.tasks.step import step, tell
from funnel.release.decision import Draw, TakeOver
from funnel.release.layout import ReleaseFolder
from funnel.release.protection import ProtectedCounts
from funnel.release.record import History
from funnel.release.series import Series
from funnel.release.snapshot import Snapshot
from funnel.release.verdict import Verdict
from funnel.spec import ReleaseSpec


@step
def hold(
    spec: ReleaseSpec,
    decision: Draw | TakeOver,
    snapshot: Snapshot,
    verdict: Verdict,
    series: Series,
    folder: ReleaseFolder,
    created: str,
    frequencies: ProtectedCounts,
    history: History | None = None,
) -> None:
    """Write the record and put the folder aside in the series, all or nothing; no reader sees any of it.

    It is not in the register of its people, which holds what is published. Nothing is signed or uploaded: whoever
    approves has the documents written and judged again, with the approval.

    Raises
    ------
    ReleaseRefused
        If the verdict is negative, or no longer about the files that are there; or an audit does not pass.
    """
    record = complete(
        decision, snapshot, verdict, verdict.files, series.earlier, folder, created, None, history, frequencies
    )
    require_own_audit(spec, decision, series, folder, record, held=True)
    tell("holding for approval")
    series.held.hold(folder, decision.version, verdict)
