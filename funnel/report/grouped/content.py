"""What the reports of a grouped release show, gathered from the results of the steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from funnel.estimation import TableErrors
from funnel.groups import GroupedProtocol, Shown
from funnel.guarantees import Guarantee, parse_guarantee
from funnel.joint import Joint
from funnel.release.approval import Approval
from funnel.release.decision import Draw, Earlier, TakeOver, fresh_draws
from funnel.release.grouped_findings import GroupedFindings
from funnel.release.grouped_public import GroupedPublic
from funnel.release.protection import Protection
from funnel.release.provenance import software_name
from funnel.release.public_report import Approval as Approved
from funnel.release.public_report import Change, Judged
from funnel.release.public_weighted import ClassWeights
from funnel.release.snapshot import Snapshot
from funnel.report.gathering import change_of, random_source_of, recodings_of
from funnel.spec import ReleaseSpec


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupedContent:
    """What is known of a grouped release when its reports are made.

    Attributes
    ----------
    spec : ReleaseSpec
    protocol : GroupedProtocol
    guarantee : Guarantee
    joint : Joint
        Counts (c, r) of secret and records; internal, but for rounded shares of the secret.
    shown : Shown
        How likely every record is to be published as what; internal, but for rounded shares.
    findings : GroupedFindings
        Exact; for the internal report alone.
    public : GroupedPublic
    errors : tuple of TableErrors
        Of estimates of every column and pair, by what is told of channels.
    protection : Protection
    version, created, software, random_source : str
    dropped : int
    recodings : tuple of str
    judged : tuple of Judged
    earlier_releases : int
    change : Change or None
    approval : Approval or None
    weights : ClassWeights or None
        What the classes of survey weights stand for, where there are some.
    """

    spec: ReleaseSpec
    protocol: GroupedProtocol
    guarantee: Guarantee
    joint: Joint
    shown: Shown
    findings: GroupedFindings
    public: GroupedPublic
    errors: tuple[TableErrors, ...]
    protection: Protection
    version: str
    created: str
    software: str
    random_source: str
    dropped: int
    recodings: tuple[str, ...]
    judged: tuple[Judged, ...]
    earlier_releases: int
    change: Change | None
    approval: Approved | None
    weights: ClassWeights | None = None


def grouped_content(
    *,
    spec: ReleaseSpec,
    snapshot: Snapshot,
    joint: Joint,
    shown: Shown,
    protocol: GroupedProtocol,
    findings: GroupedFindings,
    public: GroupedPublic,
    errors: tuple[TableErrors, ...],
    protection: Protection,
    judged: Sequence[tuple[str, str]],
    version: str,
    created: str,
    earlier: Sequence[Earlier],
    decision: Draw | TakeOver,
    rows_sha256: str,
    approval: Approval | None = None,
) -> GroupedContent:
    """What the reports of a grouped release show.

    Parameters
    ----------
    joint : Joint
        Exact counts.
    shown : Shown
    findings : GroupedFindings
        Exact, for the internal report.
    public : GroupedPublic
        Rounded, for the public one.
    errors : tuple of TableErrors
        Of estimates by what is told of channels.
    judged : sequence of (name, description)
        What is judged before it is published.
    earlier : sequence of Earlier
        All versions before it.
    decision : Draw or TakeOver
    rows_sha256 : str
        Digest of its rows.
    approval : Approval, optional
    """
    return GroupedContent(
        spec=spec,
        protocol=protocol,
        guarantee=parse_guarantee(spec.guarantee.canonical),
        joint=joint,
        shown=shown,
        findings=findings,
        public=public,
        errors=errors,
        protection=protection,
        version=version,
        created=created,
        software=software_name(),
        random_source=random_source_of(spec),
        dropped=snapshot.dropped,
        recodings=recodings_of(spec, snapshot.read_codings()),
        judged=tuple(Judged(name=name, description=description) for name, description in judged),
        earlier_releases=fresh_draws(earlier, rows_sha256),
        change=change_of(earlier, decision, rows_sha256),
        approval=None if approval is None else Approved(by=approval.by, at=approval.at),
        weights=None if spec.weight is None else ClassWeights.of(snapshot.read_codings().settled(spec)),
    )
