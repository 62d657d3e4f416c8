"""Explain: the internal report of a judged version, with all attacks, for the officer who answers for it."""

from __future__ import annotations

from funnel.pipeline.tasks.run import Draft, Run, version_context
from funnel.pipeline.tasks.step import step, tell
from funnel.register.look_up import People
from funnel.register.register import Register
from funnel.release.record import History, Records
from funnel.release.verdict import Verdict
from funnel.report.content import ReportContent
from funnel.report.internal.history import Together
from funnel.report.writing import write_internal_report
from funnel.spec import ReleaseSpec


@step
def explain(run: Run, draft: Draft, content: ReportContent, verdict: Verdict) -> None:
    """Compute what attackers learn, and write it with all exact figures and the verdict as internal evidence.

    Raises
    ------
    DataError
        If the source is no longer the one that was counted.
    """
    tell("computing attacks")
    together = None
    if run.register is not None:
        observed = draft.people.observed if isinstance(draft.people, People) else None
        together = Together(run.register, draft.followed.step, _noted(run.spec, run.register), observed)
    comparison = draft.optimised.comparison
    write_internal_report(
        content, verdict, run.spec, run.snapshot, comparison, version_context(run, draft), draft.folder, together
    )


def _noted(spec: ReleaseSpec, register: Register) -> dict[str, History]:
    """What the records in the workspace say of the versions in a register, by their name there."""
    found = {}
    for series in {entry.series for entry in register.entries}:
        for place in sorted((spec.workspace_folder / series / "records").glob("*")):
            for record in Records(place).known.values():
                if record.history is not None and record.history.name is not None:
                    found[record.history.name] = record.history
    return found
