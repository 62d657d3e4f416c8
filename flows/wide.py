"""The way of a grouped release: from counted records to a published version, one held for approval, or a refusal.

It begins where that of the others has counted the records (`funnel.pipeline.flows.way`), and keeps its order: nothing
is drawn that need not be, all documents are written before anything is judged, and what was judged is published.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from funnel.groups import GroupedProtocol
from funnel.joint import Joint
from funnel.pipeline.ledger.account import Account
from funnel.pipeline.tasks.disclose import disclose_groups
from funnel.pipeline.tasks.estimate import Estimated
from funnel.pipeline.tasks.grouped import (
    OptimisedGroups,
    audit_groups,
    describe_groups,
    optimise_groups,
    sanitise_groups,
)
from funnel.pipeline.tasks.grouped_reports import explain_groups, report_groups
from funnel.pipeline.tasks.hold import hold
from funnel.pipeline.tasks.protect import protect
from funnel.pipeline.tasks.publish import Published, publish, require_passed
from funnel.pipeline.tasks.validate import validate_groups
from funnel.release.approval import Approval
from funnel.release.decision import Draw, TakeOver
from funnel.release.grouped_public import GroupedPublic
from funnel.release.grouping import known_groups
from funnel.release.protected import Protected
from funnel.release.record import History
from funnel.release.secret import ReleaseSecret
from funnel.release.series import Series
from funnel.release.snapshot import Snapshot
from funnel.spec import ReleaseSpec


@dataclass(frozen=True, eq=False)
class DoneGroups:
    """A version that was published in groups, and what it came out of; as `funnel.pipeline.flows.way.Done`."""

    decision: Draw | TakeOver
    published: Published
    snapshot: Snapshot
    protected: Protected
    optimised: OptimisedGroups
    channel: GroupedProtocol
    public: GroupedPublic
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class PreparedGroups:
    """What of a grouped release is there before it is decided what to do.

    Attributes
    ----------
    protected : Protected
        Exact counts, since groups have no others.
    optimised : OptimisedGroups
    """

    protected: Protected
    optimised: OptimisedGroups


def prepare_groups(
    spec: ReleaseSpec, series: Series, snapshot: Snapshot, estimated: Estimated, workspace: Path
) -> PreparedGroups:
    """Hold the counted groups against [disclosure], and make the protocol."""
    joint = estimated.joint
    waiting = series.held.waiting
    protected = protect(spec, estimated, series.earlier, workspace, None if waiting is None else waiting.held, None)
    # Where groups are chosen, columns alone are known already: refused before the optimisation, which may take long.
    known = known_groups(spec)
    disclose_groups(spec, joint, known, workspace)
    optimised = optimise_groups(spec, joint, snapshot, workspace)
    if optimised.groups != known:
        disclose_groups(spec, joint, optimised.groups, workspace)
    return PreparedGroups(protected, optimised)


def release_groups(
    spec: ReleaseSpec,
    series: Series,
    account: Account,
    snapshot: Snapshot,
    joint: Joint,
    prepared: PreparedGroups,
    decision: Draw | TakeOver,
    approval: Approval | None,
    secret: ReleaseSecret | None,
    workspace: Path,
) -> tuple[dict[str, Any], DoneGroups | None, str | None]:
    """Draw or take over rows, describe, judge, and publish or hold them.

    Returns
    -------
    tuple
        What is told of the version, but for its place; what was published, if anything was; and what the ledger says
        that could not be noted.
    """
    optimised, protection = prepared.optimised, prepared.protected.protection
    record = prepared.protected.record
    protocol = optimised.protocol
    history = None if spec.history is None else History(people=spec.history.people)
    holding = spec.approval.required and approval is None
    published = late = None
    with series.incoming() as folder:
        rows = sanitise_groups(spec, decision, snapshot, joint, protocol, folder, workspace, secret)
        findings, shown = audit_groups(spec, snapshot, joint, optimised, rows, folder)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        public = describe_groups(spec, decision, snapshot, joint, optimised, protection, findings, shown, rows, folder)
        content = report_groups(
            spec,
            decision,
            snapshot,
            joint,
            protocol,
            findings,
            shown,
            public,
            protection,
            rows,
            series,
            folder,
            created,
            approval,
        )
        # From here on no public file is touched: what is judged is what is published.
        verdict = validate_groups(spec, decision, snapshot, folder, series.earlier, secret)
        require_passed(verdict)
        explain_groups(content, verdict, folder)
        if holding:
            hold(decision, snapshot, verdict, series, folder, created, history, record)
        else:
            published = publish(
                spec,
                decision,
                snapshot,
                verdict,
                series,
                folder,
                created,
                account,
                approval,
                history,
                frequencies=record,
            )
            late = account.published()
    told = {
        "guarantee": public.guarantee,
        "level": findings.level,
        "utility": findings.utility,
        "share": findings.share,
        "mechanism": "groups",
        "rows": findings.rows,
        "dropped": snapshot.dropped,
        "outside": 0,
        "frequencies": protection.model_dump(),
        "history": None,
        "groups": [list(group) for group in findings.groups],
        "reason": findings.reason,
        "columns": [one.model_dump() for one in findings.columns],
    }
    if published is None:
        return told, None, late
    done = DoneGroups(decision, published, snapshot, prepared.protected, optimised, protocol, public, ())
    return told, done, late
