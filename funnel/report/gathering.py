"""Gathering what the report of a release shows from the results of the steps."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version as installed_version

from funnel.audit import Findings
from funnel.guarantees import Guarantee
from funnel.joint import Joint
from funnel.protocol import Protocol
from funnel.release.approval import Approval
from funnel.release.comparison import ComparisonDocument
from funnel.release.public import count_of_records
from funnel.release.snapshot import Snapshot
from funnel.report.content import (
    ApprovalNote,
    Contact,
    Licence,
    MechanismNote,
    PlanLine,
    Reference,
    ReportContent,
    SourceNote,
    VerdictLine,
)
from funnel.source import Codings
from funnel.spec import ReleaseSpec
from funnel.storage import base_name

RANDOM_SOURCE = "AES-256 in counter mode, keyed by the operating system for this run alone"
KEYED_SOURCE = (
    "a pseudo-random function of the record key under a release secret (AES-256), so that a record keeps its answer "
    "from version to version while its values and the protocol stay the same"
)


def report_content(
    spec: ReleaseSpec,
    snapshot: Snapshot,
    joint: Joint,
    protocol: Protocol,
    guarantee: Guarantee,
    findings: Findings,
    comparison: ComparisonDocument,
    checks: Sequence[tuple[str, str]],
    *,
    version: str,
    created: str,
    earlier_releases: int,
    approval: Approval | None = None,
) -> ReportContent:
    """What the report of a release shows.

    ``checks`` are the names and descriptions of what the finished release will be judged by: the page is published only
    if all of them are met. ``earlier_releases`` counts fresh draws about the same people before it.
    """
    metadata = spec.metadata
    return ReportContent(
        name=spec.name,
        title=spec.title,
        description=spec.description,
        version=version,
        created=created,
        contact=Contact(metadata.contact_name, metadata.contact_email),
        licence=Licence(metadata.licence, metadata.licence_url),
        source=SourceNote(
            title=base_name(spec.source_address),
            rows_dropped=snapshot.dropped,
            references=tuple(Reference(source.title, source.path, source.version) for source in metadata.sources),
        ),
        mechanism=MechanismNote.of(protocol.mechanism),
        joint=joint,
        protocol=protocol,
        guarantee=guarantee,
        findings=findings,
        random_source=RANDOM_SOURCE if spec.record_key is None else KEYED_SOURCE,
        software=f"funnel {installed_version('funnel')}",
        verdict=tuple(VerdictLine(name, description, True, "") for name, description in checks),
        plan=tuple(
            PlanLine(row.mechanism, row.utility, row.share, row.level, row.seconds, row.reason)
            for row in comparison.rows
        ),
        recodings=_recodings(spec, snapshot.read_codings()),
        shuffled=spec.output.shuffle,
        earlier_releases=earlier_releases,
        approval=None if approval is None else ApprovalNote(approval.by, approval.at),
    )


def _recodings(spec: ReleaseSpec, codings: Codings) -> tuple[str, ...]:
    """One sentence for everything that was done to a column before it was counted."""
    said = []
    for column in spec.columns:
        coding, recode = codings[column], spec.recode.get(column)
        if recode is not None and recode.bins is not None:
            said.append(f"{column}: numbers were put into {len(recode.bin_labels)} classes.")
        if recode is not None and recode.minimum_count is not None and coding.n_grouped:
            said.append(
                f"{column}: {coding.n_grouped_values:,} values, the rarest, became {coding.other_label!r}, so that no "
                f"category has fewer than {recode.minimum_count:,} records."
            )
        # Those of the category of rarer values are too few to be told apart.
        if coding.n_missing and coding.missing_label not in (None, coding.other_label):
            said.append(
                f"{column}: {count_of_records(coding.n_missing)} missing values became the category "
                f"{coding.missing_label!r}."
            )
    if codings.n_dropped:
        said.append(f"{count_of_records(codings.n_dropped)} records with a missing value were left out.".capitalize())
    return tuple(said)
