"""ReportContent: everything the report of one release shows, and nothing it has to look up elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

from funnel.donors.composition import Composition
from funnel.errors import DataError
from funnel.findings import Audited, Findings
from funnel.findings.absent import absent_records
from funnel.guarantees import Guarantee
from funnel.joint import FloatArray, Joint
from funnel.protocol import Protocol
from funnel.release.comparison import CertificatePart, ComparedMechanism
from funnel.release.counted_as_usual import CountsOff, WholeStays
from funnel.release.protection import Protection
from funnel.release.public.findings import PublicFindings
from funnel.release.public.public_distributions import PublicDistributions, PublicRarity
from funnel.release.public.rounding import public_level, public_text, rounded_up
from funnel.release.public_accuracy import PublicAccuracy
from funnel.release.public_report import (
    Approval,
    Change,
    Compared,
    Contact,
    Judged,
    KeptByVersion,
    Licence,
    Mechanism,
    ProtectedFrequencies,
    Reference,
)
from funnel.release.public_unchanged import public_unchanged
from funnel.release.public_weighted import ClassWeights, public_weighted
from funnel.release.published_values import published_values
from funnel.release.report_parts import Unchanged, Weighted


@dataclass(frozen=True)
class SourceNote:
    """The file that the release was made from.

    Attributes
    ----------
    title : str
        What to call it; a file name will do.
    rows_dropped : int or None
        Records left out because a value was missing; None where that is not told, since it is counted exactly.
    references : tuple of Reference
        Where the data come from.
    """

    title: str
    rows_dropped: int | None = 0
    references: tuple[Reference, ...] = ()


# To which the optimum of records unchanged is searched for: a smaller gap is chance.
_FINEST_GAP = 1e-4


def public_line(row: ComparedMechanism, distributions: PublicDistributions, guarantee: Guarantee) -> Compared:
    """One mechanism in the comparison as it is published, under the declared guarantee."""
    return Compared.like(
        row,
        utility=None if row.utility is None else distributions.nats(row.utility),
        share=None if row.share is None else distributions.nats(row.share),
        level=None if row.level is None else public_level(row.level, guarantee, row.reason is None),
        reason=None if row.reason is None else public_text(row.reason, distributions.step, guarantee),
        certificate=_public_certificate(row, distributions),
    )


def _public_certificate(row: ComparedMechanism, distributions: PublicDistributions) -> CertificatePart | None:
    """Of what is kept the limit is rounded up as shares are; of records unchanged the gap, to one digit."""
    if row.certificate is None or row.share is None:
        return None
    gap = row.certificate.gap
    if row.certificate.of != "kept":
        told = min(1.0, max(_FINEST_GAP, rounded_up(gap, 1)))
    else:
        told = max(0.0, round(distributions.share_above(row.share + gap) - distributions.nats(row.share), 12))
    return row.certificate.model_copy(update={"gap": told})


@dataclass(frozen=True, eq=False, kw_only=True)
class Described:
    """What a report says of a release beside the figures about people.

    Attributes
    ----------
    name, title, description, version : str
    created : str
        Time of the release, ISO 8601.
    contact : Contact
    licence : Licence
    source : SourceNote
    recodings : tuple of str
        What was done to the columns before anything else, one sentence each.
    mechanism : Mechanism
    protocol : Protocol
        What was drawn from, shape (b, a').
    guarantee : Guarantee
        The declared bound.
    utility : "information", "variance" or "estimation"
        What mechanisms were compared by.
    judged : tuple of Judged
        What is judged before the release is published.
    protection : Protection
        Of the frequencies that everything public is made from.
    shuffled : bool
        Whether the released rows are in random order.
    earlier_releases : int
        Releases of the same people before this one, each drawn afresh.
    random_source : str
        Where the random numbers come from, in words.
    software : str
        Name and version of the software, such as ``"funnel 0.1.0"``.
    people : "same" or "different", or None
        Who the people of successive versions are, as the spec says.
    covers_versions : bool
        Whether the bound on all of them holds under every set of tables that noise leaves open.
    unit : tuple of str
        Columns that say whose a record is, where people may have several; empty otherwise.
    kept_before : tuple of KeptByVersion
        What earlier versions about the same people keep, as their own public reports tell it, oldest first.
    change : Change or None
        What differs from the version before; None for a first one.
    approval : Approval or None
        Who approved it; None where nobody was asked.
    released : tuple of str
        The columns of whole records, where the protocol is about classes of these; empty elsewhere.
    grouping_kept : float or None
        Of the information in the published columns as the spec asks for them, what grouping for a threshold left.
    """

    name: str
    title: str
    description: str
    version: str
    created: str
    contact: Contact
    licence: Licence
    source: SourceNote
    mechanism: Mechanism
    protocol: Protocol
    guarantee: Guarantee
    random_source: str
    software: str
    judged: tuple[Judged, ...]
    protection: Protection
    utility: Literal["information", "variance", "estimation"] = "information"
    recodings: tuple[str, ...] = field(default=())
    shuffled: bool = True
    earlier_releases: int = 0
    people: Literal["same", "different"] | None = None
    covers_versions: bool = False
    unit: tuple[str, ...] = ()
    kept_before: tuple[KeptByVersion, ...] = ()
    change: Change | None = None
    approval: Approval | None = None
    released: tuple[str, ...] = ()
    grouping_kept: float | None = None


def protected_frequencies(described: Described) -> ProtectedFrequencies:
    """What a report says of the protection of the frequencies, and of whether the guarantee covers the noise."""
    kind = described.protection.kind
    return ProtectedFrequencies(
        **described.protection.model_dump(),
        covers_noise=kind.of_noise(described.guarantee.covers_noise),
        covers_versions=kind.of_noise(described.covers_versions),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicContent(Described):
    """What the public report shows: no figure in it is about people but those that were rounded to be published.

    Attributes
    ----------
    distributions : PublicDistributions
    findings : PublicFindings
    rarity : PublicRarity
    accuracy : PublicAccuracy or None
        None where there are too many values.
    weighted : Weighted or None
        None without survey weights.
    unchanged : Unchanged or None
        None where outputs stand for sets of values.
    alone : int or None
        Published records like no other one; None where whole records are published.
    absent : int or None
        Published records with a combination that no record has by the public counts; None there, and of sets of values.
    plan : tuple of Compared
        The mechanisms that were compared, best first; may be empty.
    """

    distributions: PublicDistributions
    findings: PublicFindings
    rarity: PublicRarity
    accuracy: PublicAccuracy | None
    weighted: Weighted | None
    unchanged: Unchanged | None
    alone: int | None
    absent: int | None
    plan: tuple[Compared, ...] = ()

    @property
    def secret(self) -> tuple[str, ...]:
        """Columns whose values must not become known."""
        return self.distributions.secret.columns

    @property
    def published(self) -> tuple[str, ...]:
        """Columns that were released."""
        return self.released or self.distributions.inputs.columns

    @property
    def belief_limits(self) -> tuple[FloatArray, FloatArray] | None:
        """Limits that the guarantee sets to beliefs, for every prior that is rounded to the published one."""
        return self.distributions.belief_limits(self.guarantee)


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportContent(Described):
    """What is known of a release when its report is made.

    Attributes
    ----------
    joint : Joint
        Counted (S, X), shape (c, a); internal.
    findings : Findings
        The audit of exactly this joint distribution, protocol and bound; internal.
    audited : Audited
        What was found under the public frequencies: of this the public report is made.
    plan : tuple of ComparedMechanism
        The mechanisms that were compared, best first; may be empty.
    disclosure : mapping or None
        What breaks the rules of disclosure control, as `funnel.disclosure.rule_texts.disclosure_content`; internal.
    weights : ClassWeights or None
        What the classes of survey weights stand for, where there are some.
    composition : Composition or None
        Of the classes of whole records; None where noise protects exact counts.
    whole : WholeStays or None
        What stays of the whole records that are published.
    followed : CountsOff or None
        How far counts of these are off, where they are of the same people.

    Raises
    ------
    DataError
        If the findings are not about this joint distribution, protocol and bound.
    """

    joint: Joint
    findings: Findings
    audited: Audited
    plan: tuple[ComparedMechanism, ...] = ()
    disclosure: Mapping[str, Any] | None = None
    weights: ClassWeights | None = None
    composition: Composition | None = None
    whole: WholeStays | None = None
    followed: CountsOff | None = None

    def __post_init__(self) -> None:
        if self.findings.guarantee != str(self.guarantee):
            raise DataError(
                f"the findings are about {self.findings.guarantee}, but the report is about {self.guarantee}; "
                "audit the release again under its own bound"
            )
        shape = (len(self.joint.secret), len(self.protocol.outputs))
        if self.findings.lift.shape != shape:
            raise DataError(
                f"the findings are about {self.findings.lift.shape} secrets and outputs, but the release has {shape}; "
                "audit the release again"
            )

    @cached_property
    def unchanged(self) -> Unchanged | None:
        """What stays as it is, under the public frequencies; None where outputs stand for sets of values."""
        distributions = PublicDistributions.of(self.audited.frequencies, self.protocol)
        return public_unchanged(
            self.audited, self.protocol, self.guarantee, distributions, self.composition, self.whole, self.followed
        )

    @property
    def certified(self) -> tuple[ComparedMechanism, ...]:
        """The plan; people with a history keep less than was fitted, so that nothing is certified of what they keep."""
        alone = self.audited.history is None
        return tuple(line if alone else line.model_copy(update={"certificate": None}) for line in self.plan)

    def public(self) -> PublicContent:
        """The part of it that is published, rounded."""
        distributions = PublicDistributions.of(self.audited.frequencies, self.protocol)
        frequencies, drawn = self.audited.frequencies, self.audited.drawn
        described = {part.name: getattr(self, part.name) for part in fields(Described)}
        return PublicContent(
            **described,
            plan=tuple(public_line(line, distributions, self.guarantee) for line in self.certified),
            distributions=distributions,
            findings=PublicFindings.of(self.audited, self.guarantee, distributions),
            rarity=PublicRarity.of(frequencies, distributions),
            accuracy=PublicAccuracy.of(
                distributions,
                self.audited.rows,
                not published_values(self.protocol.mechanism).estimator,
                frequencies.departures,
            ),
            weighted=public_weighted(frequencies.joint.over_published(distributions.inputs.columns), self.weights),
            unchanged=self.unchanged,
            alone=None if self.released else int((drawn == 1).sum()),
            absent=None if self.released else absent_records(frequencies.joint, self.protocol, drawn),
        )
