"""Explain: the internal report of a judged version, with all attacks, for whoever answers for it."""

from __future__ import annotations

from funnel.history import Step
from funnel.pipeline.tasks.step import step, tell
from funnel.register.following import People
from funnel.register.register import Register
from funnel.register.units import Units
from funnel.release.comparison import ComparisonDocument
from funnel.release.decision import Draw, TakeOver
from funnel.release.layout import ReleaseFolder
from funnel.release.record import History
from funnel.release.records import Records
from funnel.release.rows import Rows
from funnel.release.series import Series
from funnel.release.snapshot import Snapshot
from funnel.release.verdict import Verdict
from funnel.report import ReportContent
from funnel.report.internal.history import Together
from funnel.report.writing import write_internal_report
from funnel.spec import ReleaseSpec


@step
def explain(
    spec: ReleaseSpec,
    decision: Draw | TakeOver,
    snapshot: Snapshot,
    comparison: ComparisonDocument,
    content: ReportContent,
    rows: Rows,
    verdict: Verdict,
    series: Series,
    folder: ReleaseFolder,
    register: Register | None = None,
    decided: Step | None = None,
    people: People | Units | None = None,
) -> None:
    """Compute what attackers learn, and write it with all exact figures and the verdict into ``audit/``.

    Parameters
    ----------
    register : Register, optional
        Of the people of this version, where it is about the same ones as others.
    decided : Step, optional
        What was decided for every history; None where rows are taken over.
    people : People or Units, optional
        Who has which history, exactly.

    Raises
    ------
    DataError
        If the source is no longer the one that was counted.
    """
    tell("computing attacks")
    together = (
        None
        if register is None
        else Together(
            register, decided, _noted(spec, register), people.observed if isinstance(people, People) else None
        )
    )
    write_internal_report(
        content, verdict, spec, snapshot, comparison, decision, series.earlier, rows.data.sha256, folder, together
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
