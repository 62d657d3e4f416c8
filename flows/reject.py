"""Reject: the version that is held for approval is removed, and why is kept."""

from __future__ import annotations

from typing import Any

from funnel.pipeline.flows.look import rejected
from funnel.pipeline.ledger.account import accounting
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.release.approval import Approval, Outcome
from funnel.release.layout import Version
from funnel.release.series import open_series
from funnel.spec import ReleaseSpec


@plain_errors
def reject(spec: ReleaseSpec, said: Approval, version: Version | None = None) -> dict[str, Any]:
    """Remove the version that is held, and note who rejected it and why; nothing is published.

    Parameters
    ----------
    spec : ReleaseSpec
    said : Approval
        Who rejects, when, and as its note why.
    version : Version, optional
        The one that is meant; by default the one that is held.

    Raises
    ------
    FunnelError
        If none is held, or another one.
    """
    with open_series(spec) as series, accounting(spec, series, progress=tell) as account:
        found = series.held.require_waiting(version)
        series.held.close(Outcome(version=str(found), outcome="rejected", at=said.at, by=said.by, reason=said.note))
        told = rejected(series, found, [])
        account.refused(f"version {found} was held, and rejected by {said.by}: {said.note}", found)
        return told
