"""Answers: what a run says of the version that it made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from funnel.findings import Audited, Findings
from funnel.pipeline.tasks.run import Draft, Run
from funnel.release.comparison import ComparedMechanism
from funnel.report.content import ReportContent
from funnel.wording import listed

# A warning about a release from whose records no share can be estimated.
_SILENT = (
    "the bound leaves so little of the records that no share can be estimated from them: publish fewer columns, with "
    "fewer categories, or take more records"
)


def silent(tables: Sequence[Mapping[str, Any]]) -> list[str]:
    """A warning where the report has errors of single columns, and of some of them no share can be estimated."""
    alone = [table for table in tables if len(table["columns"]) == 1]
    untold = [table["columns"][0] for table in alone if table["typical"] is None]
    if len(untold) < len(alone):
        return [f"no share of any value of {listed(untold)} can be estimated from the records"] if untold else []
    return [_SILENT] if alone else []


def answer_of(run: Run, draft: Draft, content: ReportContent) -> dict[str, Any]:
    """What a run says of the version that it made."""
    audited, folder, protection = draft.audited, draft.folder, draft.protected.protection
    distribution, mechanism = audited.distribution, draft.optimised.protocol.mechanism
    # As the report says it.
    tables = json.loads(folder.numbers.read_text(encoding="utf-8"))["estimated"]
    return {
        "guarantee": distribution.guarantee,
        "level": distribution.level,
        "utility": distribution.utility,
        "share": distribution.share,
        **({} if distribution.explained is None else {"explained": distribution.explained.share}),
        **({} if content.unchanged is None else {"unchanged": content.unchanged.model_dump()}),
        "mechanism": mechanism,
        "bytes": {"records": folder.data.stat().st_size, "protocol": folder.protocol.stat().st_size},
        "probabilities": len(draft.followed.drawn.channel.sparse.values),
        "certificate": _certificate_of(content.certified, mechanism, audited),
        "rows": audited.rows,
        # How many were left out for a missing value is counted exactly, and so not told where counts have noise.
        "dropped": None if run.spec.source.selects_present else protection.kind.exact(run.snapshot.dropped),
        "outside": audited.outside,
        "warnings": silent(tables),
        "frequencies": protection.model_dump(),
        "history": _history_summary(draft.findings),
    }


def _certificate_of(plan: Sequence[ComparedMechanism], mechanism: str, audited: Audited) -> str | None:
    """How much more than the release any protocol could keep."""
    line = next((line for line in plan if line.mechanism == mechanism), None)
    share = (
        audited.distribution.share if audited.distribution.explained is None else audited.distribution.explained.share
    )
    return None if line is None else line.optimum(share)


def _history_summary(findings: Findings) -> dict[str, Any] | None:
    """What is told of all versions together; None where this one stands alone."""
    found = findings.history
    if found is None:
        return None
    shown: dict[str, Any] = {
        "register": found.register,
        "versions": found.versions,
        "histories": found.histories,
        "people_known": found.known,
        "units": found.units,
        "level": found.level,
        "moved": found.moved,
        "outside": found.outside,
        "share": found.share,
        "share_alone": found.share_alone,
        "own": found.own,
        "drift": findings.drift,
    }
    if (expected := found.expected) is not None:
        # Who really has which history is told by nothing that others may read.
        moved, outside = (round(share * findings.rows) for share in (expected.moved, expected.outside))
        of_expected = {"histories": expected.histories, "level": expected.level, "moved": moved, "outside": outside}
        shown |= {"people_known": None, "units": None, **of_expected}
    return shown
