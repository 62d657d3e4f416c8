"""Gathering what the report of a release shows from the results of the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from funnel.disclosure import Disclosure
from funnel.disclosure.rule_texts import disclosure_content, public_sentence
from funnel.donors.composition import Composition
from funnel.findings import Audited, Findings
from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.mechanisms import mechanism
from funnel.protocol import Protocol
from funnel.release.comparison import ComparisonDocument
from funnel.release.counted_as_usual import CountsOff, WholeStays
from funnel.release.decision import VersionContext
from funnel.release.earlier import Earlier, fresh_draws
from funnel.release.protection import Protection
from funnel.release.provenance import software_name
from funnel.release.public.rounding import count_of_records
from funnel.release.public_report import Approval as Approved
from funnel.release.public_report import (
    Change,
    Contact,
    Judged,
    KeptByVersion,
    Licence,
    Mechanism,
    PublicReport,
    Reference,
)
from funnel.release.public_weighted import ClassWeights
from funnel.release.snapshot import Snapshot
from funnel.report.content import ReportContent, SourceNote
from funnel.report.number_texts import things
from funnel.source.coding import Codings
from funnel.spec import ReleaseSpec

RANDOM_SOURCE = "AES-256 in counter mode, keyed by the operating system for this run alone"
HISTORY_SOURCE = (
    "a pseudo-random function of the record key, and of what was decided about records with the same history, under a "
    "release secret (AES-256), so that no answer is drawn twice"
)
KEYED_SOURCE = (
    "a pseudo-random function of the record key under a release secret (AES-256), so that a record keeps its answer "
    "from version to version while its values and the protocol stay the same"
)


@dataclass(frozen=True, eq=False)
class Results:
    """What the steps made of a version.

    Attributes
    ----------
    joint : Joint
        The exact counts, for the internal report alone.
    protocol : Protocol
        The published channel.
    findings : Findings
        Under the exact counts, for the internal report alone.
    audited : Audited
        Under the public frequencies, for the public report.
    protection : Protection
        Of these frequencies.
    comparison : ComparisonDocument
        Of all mechanisms.
    """

    joint: Joint
    protocol: Protocol
    findings: Findings
    audited: Audited
    protection: Protection
    comparison: ComparisonDocument


def report_content(
    spec: ReleaseSpec,
    snapshot: Snapshot,
    results: Results,
    context: VersionContext,
    judged: Sequence[tuple[str, str]],
    composition: Composition | None = None,
    whole: WholeStays | None = None,
    followed: CountsOff | None = None,
) -> ReportContent:
    """What the reports of a release show.

    Parameters
    ----------
    judged : sequence of (name, description)
        What is judged before it is published.
    composition : Composition, optional
        Of the classes of whole records; nothing of it is public where there is noise.
    whole : WholeStays, optional
        What stays of the whole records that are published.
    followed : CountsOff, optional
        How far counts of these are off, where they are of the same people.
    """
    metadata = spec.metadata
    protection, comparison, earlier = results.protection, results.comparison, context.earlier
    kind = protection.kind
    disclosure = Disclosure(results.audited.frequencies.joint.by_class, spec.rules)
    return ReportContent(
        name=spec.name,
        title=spec.title,
        description=spec.description,
        version=str(context.decision.version),
        created=context.created,
        contact=Contact(name=metadata.contact_name, email=metadata.contact_email),
        licence=Licence(name=metadata.licence, url=metadata.licence_url),
        source=SourceNote(
            title=spec.source_title,
            # Who was left out by a condition of the spec was not counted.
            rows_dropped=None if spec.source.selects_present else kind.exact(snapshot.dropped),
            references=tuple(
                Reference(title=source.title, url=source.path, version=source.version) for source in metadata.sources
            ),
        ),
        mechanism=Mechanism.like(mechanism(results.protocol.mechanism)),
        joint=results.joint,
        protocol=results.protocol,
        guarantee=parse_guarantee(spec.guarantee.canonical),
        findings=results.findings,
        audited=results.audited,
        protection=protection,
        random_source=random_source_of(spec),
        software=software_name(),
        judged=tuple(Judged(name=name, description=description) for name, description in judged),
        utility=comparison.utility,
        plan=comparison.rows,
        recodings=(
            *(_declared(spec) if kind.is_noisy else recodings_of(spec, snapshot.read_codings())),
            public_sentence(disclosure, protection.protection),
        ),
        disclosure=disclosure_content(disclosure, protection.protection),
        weights=None if spec.weight is None else ClassWeights.of(snapshot.read_codings().settled(spec)),
        shuffled=spec.output.shuffle,
        earlier_releases=fresh_draws(earlier, context.rows_sha256),
        people=None if spec.history is None else spec.history.people,
        unit=(spec.unit or ()) if spec.follows_units else (),
        covers_versions=spec.is_robust_over_versions,
        kept_before=() if results.findings.history is None else _kept_before(earlier),
        change=change_of(context),
        approval=None if context.approval is None else Approved(by=context.approval.by, at=context.approval.at),
        released=spec.released if spec.is_by_class else (),
        grouping_kept=None if (left := snapshot.read_codings().grouping_kept) == 1 else left,
        # Exact counts, which noise would not protect.
        composition=kind.exact(composition),
        whole=whole,
        followed=followed,
    )


def recodings_of(spec: ReleaseSpec, codings: Codings) -> tuple[str, ...]:
    """One sentence for everything that was done to a column before it was counted."""
    said = []
    settled = codings.settled(spec)
    for column in spec.whole.columns:
        coding, recode = codings[column], settled.recode.get(column)
        if column in spec.automatic and recode is not None:
            said.append(
                f"{column}: numbers were put into {len(recode.bin_labels)} classes, whose limits were chosen for what "
                "can be told of them under the bound."
            )
        elif column in codings.recode:
            said.append(
                f"{column}: values were grouped; {things(len(coding.labels), 'value')} "
                f"{'is' if len(coding.labels) == 1 else 'are'} left, so that no combination of secret and "
                f"published values has fewer than {spec.frequencies.threshold:,} records."
            )
            continue
        if recode is not None and recode.bins is not None and column not in spec.automatic:
            said.append(f"{column}: numbers were put into {len(recode.bin_labels)} classes.")
        if recode is not None and recode.groups is not None:
            said.append(f"{column}: values that the spec lists were put into {len(recode.groups):,} groups.")
        if coding.n_grouped and recode is not None and recode.minimum_count is not None:
            said.append(
                f"{column}: {coding.n_grouped_values:,} values, the rarest, became {coding.other_label!r}, so that no "
                f"category has fewer than {recode.minimum_count:,} records."
            )
        elif coding.n_grouped:
            said.append(
                f"{column}: {things(coding.n_grouped_values, 'value')} that the publisher did not list became "
                f"{coding.other_label!r}; {count_of_records(coding.n_grouped)} records have "
                f"{'it' if coding.n_grouped_values == 1 else 'them'}."
            )
        # Those of the category of rarer values are too few to be told apart.
        if coding.n_missing and coding.missing_label not in (None, coding.other_label):
            said.append(
                f"{column}: {count_of_records(coding.n_missing)} missing values became the category "
                f"{coding.missing_label!r}."
            )
    said += _impossible(spec)
    if codings.n_dropped:
        said.append(f"{count_of_records(codings.n_dropped)} records with a missing value were left out.".capitalize())
    return tuple(said)


def _declared(spec: ReleaseSpec) -> tuple[str, ...]:
    """The same as the spec alone tells it: which values were rare or missing is told by noisy counts and no others."""
    said = []
    for column in spec.whole.columns:
        recode = spec.recode.get(column)
        if recode is not None and recode.bins is not None:
            said.append(f"{column}: numbers were put into {len(recode.bin_labels)} classes.")
        elif column in spec.categories:
            rest = "no record has another" if column in spec.complete else "all others are one category"
            groups = {} if recode is None else recode.groups or {}
            declared = f"the {things(len(spec.categories[column]), 'value')} that the publisher declared"
            kept = "keep their names" if not groups else f"keep their names, but for those in {_named_groups(groups)}"
            said.append(f"{column}: {declared} {kept}; {rest}.")
        else:
            rest = "all others are one category"
            if column in spec.secret:
                rest = "records with others are one category, or left out if they seem too few for one"
            said.append(f"{column}: values whose noisy count exceeds a threshold keep their names; {rest}.")
    said += _impossible(spec)
    if all(column in spec.complete for column in spec.whole.columns):
        said.append("No value is missing.")
    elif spec.source.on_missing == "category":
        said.append(f"A missing value is the category {spec.source.missing_label!r}.")
    else:
        said.append("Records with a missing value were left out.")
    return tuple(said)


def _impossible(spec: ReleaseSpec) -> list[str]:
    """Of which columns values were declared not to go together."""
    return [
        f"{' and '.join(listed)}: the publisher declared which values cannot go together, and nothing is made of these."
        for listed in spec.impossible
    ]


def _named_groups(groups: Mapping[str, Sequence[str]]) -> str:
    listed = ", ".join(f"{name!r}" for name in groups)
    return f"the {'group' if len(groups) == 1 else 'groups'} {listed}"


def random_source_of(spec: ReleaseSpec) -> str:
    if spec.register is not None:
        return HISTORY_SOURCE
    return RANDOM_SOURCE if spec.record_key is None else KEYED_SOURCE


def _kept_before(earlier: Sequence[Earlier]) -> tuple[KeptByVersion, ...]:
    """What the public reports of earlier versions about the same people tell, oldest first; of those still there."""
    found = []
    for one in sorted((one for one in earlier if one.published), key=lambda one: one.version):
        if one.folder is None or not one.folder.numbers.exists():
            continue
        told = PublicReport.read(one.folder.numbers)
        if told.figures.history is not None:
            share, alone = told.figures.share, told.figures.history.share_alone
            found.append(KeptByVersion(version=told.version, share=share, share_alone=alone))
    return tuple(found)


def change_of(context: VersionContext) -> Change | None:
    """What is public of the version before, and what differs from it; None for a first one."""
    published = sorted((one for one in context.earlier if one.published), key=lambda one: one.version)
    if not published:
        return None
    before = published[-1]
    return Change(
        version=before.record.version,
        created=before.record.created,
        guarantee=before.record.origin.guarantee,
        columns=before.record.origin.fields,
        records=before.record.rows,
        rows=_rows(before, context),
        # What the number of the version says as well.
        new_data=before.record.origin.snapshot != context.decision.origin.snapshot,
        withdrawn=tuple(str(one.version) for one in published if one.withdrawn),
    )


def _rows(before: Earlier, context: VersionContext) -> Literal["the same rows", "the same answers", "a fresh draw"]:
    if before.rows_sha256 == context.rows_sha256:
        return "the same rows"
    return "a fresh draw" if context.decision.fresh else "the same answers"
