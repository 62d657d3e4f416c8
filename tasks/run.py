"""Run, Followed and Draft: what the steps of a release share, from the spec to a version that is not published yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from funnel.findings import Audited, Findings
from funnel.history.expected import Attending, Expected, expected_after
from funnel.history.step import Step
from funnel.history.waves import Waves
from funnel.joint import FloatArray, IntArray
from funnel.pipeline.ledger.account import Account
from funnel.pipeline.tasks.estimate import Estimated
from funnel.pipeline.tasks.optimise import Optimised
from funnel.pipeline.tasks.secret_blocks import record_key_of
from funnel.register.donor_rows import DonorRows
from funnel.register.look_up import People
from funnel.register.register import Register
from funnel.register.units import Units
from funnel.release.approval import Approval
from funnel.release.decision import Draw, TakeOver, VersionContext
from funnel.release.drawn_from import DrawnFrom
from funnel.release.earlier import Earlier
from funnel.release.layout import ReleaseFolder
from funnel.release.protected import Protected, ProtectionContext
from funnel.release.rows import Rows
from funnel.release.secret import ReleaseSecret
from funnel.release.series import Series
from funnel.release.snapshot import Snapshot
from funnel.sampling.keyed import RecordKey
from funnel.spec import ReleaseSpec


@dataclass(frozen=True, eq=False)
class Run:
    """A run of the pipeline on one source.

    Attributes
    ----------
    spec : ReleaseSpec
    series : Series
        Held by this run, with all earlier versions.
    account : Account
        This run's part in the ledger.
    snapshot : Snapshot
        Of the source.
    estimated : Estimated
        Exact counts of it.
    secret : ReleaseSecret or None
        Where records have keys.
    register : Register or None
        That the people are known by, held by this run.
    approval : Approval or None
        Where a version that was held is published.
    """

    spec: ReleaseSpec
    series: Series
    account: Account
    snapshot: Snapshot
    estimated: Estimated
    secret: ReleaseSecret | None = None
    register: Register | None = None
    approval: Approval | None = None

    @property
    def workspace(self) -> Path:
        """The private folder of the series."""
        return self.spec.workspace_folder / self.spec.name

    @property
    def earlier(self) -> tuple[Earlier, ...]:
        """All versions before this one."""
        return self.series.earlier

    @property
    def protecting(self) -> ProtectionContext:
        """What counts of this version are protected by."""
        waiting = self.series.held.waiting
        held = None if waiting is None else waiting.held
        snapshot, learned = self.snapshot, self.estimated.learned
        source, content = snapshot.source_sha256, snapshot.content_sha256
        return ProtectionContext(self.spec, self.earlier, held, learned, source, content)

    @property
    def record_key(self) -> RecordKey | None:
        """What random bits of records are made with, read anew, where records have keys."""
        return record_key_of(self.spec, self.secret)


@dataclass(frozen=True, eq=False)
class Followed:
    """What a version is drawn from, and what the register needs to know of it.

    Attributes
    ----------
    drawn : DrawnFrom
    drift : mapping or None
        How frequencies differ from the version before, where the spec says who its people are.
    step : Step or None
        What was decided for every history; None where nothing is added to a register.
    people : People or None
        Who has which history.
    units : tuple of Units and Waves, or None
        Where people have several rows: whose they are, and what was decided and drawn row by row.
    forecast : Forecast or None
        With noise: who was expected, which everything public was decided by.
    protected : Protected or None
        The public frequencies with the means of the version, where these were protected on the way.
    donors : DonorRows or None
        Where whole records are published: whose each is.
    """

    drawn: DrawnFrom
    drift: Mapping[str, Any] | None = None
    step: Step | None = None
    people: People | None = None
    units: tuple[Units, Waves] | None = None
    forecast: Forecast | None = None
    protected: Protected | None = None
    donors: DonorRows | None = None


@dataclass(frozen=True, eq=False)
class Forecast:
    """Who is expected in a version, and with which history after it.

    Attributes
    ----------
    who : Attending
    nodes, outputs : ndarray of int64, each (k,)
        Predicted histories after the version: the one before it, and the output.
    people : ndarray of float64, shape (k,)
        Expected to have each.
    others : float
        Expected to have another one.
    """

    who: Attending
    nodes: IntArray
    outputs: IntArray
    people: FloatArray
    others: float

    def after(self, first: int) -> Expected:
        """Who is expected to have which history then; the first of the new ones has this number."""
        return expected_after(self.who, first, self.people, self.others)


@dataclass(frozen=True, eq=False)
class Draft:
    """A version that is drawn and not published yet.

    Attributes
    ----------
    decision : Draw or TakeOver
    created : str
        Time, ISO 8601.
    folder : ReleaseFolder
        Where it is put together.
    protected : Protected
        The counts that everything public is made from.
    optimised : Optimised
        The protocol of this version alone, and the comparison it was chosen from.
    people : People, Units or None
        Who has which history.
    followed : Followed
        What rows are drawn from.
    rows : Rows
    findings : Findings
        For an observer who knows the exact counts: internal.
    audited : Audited
        Under the public frequencies.
    """

    decision: Draw | TakeOver
    created: str
    folder: ReleaseFolder
    protected: Protected
    optimised: Optimised
    people: People | Units | None
    followed: Followed
    rows: Rows
    findings: Findings
    audited: Audited


def version_context(run: Run, draft: Draft) -> VersionContext:
    """Where a draft stands among the versions of its series."""
    return VersionContext(draft.decision, draft.created, run.earlier, draft.rows.data.sha256, run.approval)
