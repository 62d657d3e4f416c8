"""The document of the public report, made of what is published of a release and of nothing else."""

from __future__ import annotations

from functools import partial

from funnel.release.comparison import CertificatePart
from funnel.release.document import dump
from funnel.release.public import PublicHistory, count_of_records, in_digits, rounded_up
from funnel.release.public_accuracy import DIGITS
from funnel.release.public_report import (
    Channel,
    Columns,
    Compared,
    Consistency,
    Estimation,
    Figures,
    History,
    HistoryObserver,
    KeptByVersion,
    Mechanism,
    PublicReport,
    Rarity,
    Source,
)
from funnel.report.content import PublicContent, ReportContent, protected_frequencies
from funnel.report.estimated import estimated
from funnel.report.public import report_tables
from funnel.report.public.report_tables import level, promised_by


def public_report(content: ReportContent) -> PublicReport:
    """Every figure of the public report of a release, rounded; O(a b c + a b min(a, b))."""
    return report_of(content.public())


def report_of(content: PublicContent) -> PublicReport:
    """The same of what is public of a release."""
    numbers = _document(content).content()
    # What the spec declares is told as it is: no data are in it.
    return PublicReport.from_json(dump({**in_digits(numbers), "frequencies": numbers["frequencies"]}))


def _document(content: PublicContent) -> PublicReport:
    promised = promised_by(content.guarantee, content.protocol.inputs.columns, content.secret)
    laws, protocol, mechanism = content.laws, content.protocol, content.mechanism
    return PublicReport(
        name=content.name,
        title=content.title,
        description=content.description,
        version=content.version,
        created=content.created,
        software=content.software,
        contact=content.contact,
        licence=content.licence,
        source=Source(
            title=content.source.title,
            # Counts have noise, and the table shows this number anyway.
            records=content.findings.rows if content.protection.protection == "noise" else laws.n,
            dropped=None if content.source.rows_dropped is None else count_of_records(content.source.rows_dropped),
            references=content.source.references,
        ),
        recodings=content.recodings,
        random_source=content.random_source,
        shuffled=content.shuffled,
        secret=Columns(columns=laws.secret.columns, values=len(laws.secret)),
        published=Columns(columns=content.published, values=len(laws.inputs)),
        guarantee=str(content.guarantee),
        mechanism=Mechanism(name=mechanism.name, summary=mechanism.summary, reads_secret=mechanism.reads_secret),
        utility=content.utility,
        channel=Channel(
            digest=protocol.digest,
            reads=protocol.inputs.columns,
            inputs=len(protocol.inputs),
            outputs=len(protocol.outputs),
        ),
        figures=_figures(content),
        beliefs=report_tables.beliefs(content),
        example=report_tables.example(content),
        strongest=report_tables.strongest_case(content),
        outputs=report_tables.outputs(content),
        heat=report_tables.heat(content),
        lifts=report_tables.lifts(content, promised),
        compared=tuple(
            Compared(
                mechanism=line.mechanism,
                utility=line.utility,
                share=line.share,
                # That of the release: of a protocol that tells nothing it is 0, whatever the bound is.
                level=level(content.findings.level),
                reason=line.reason,
                certificate=None if line.certificate is None else CertificatePart(**vars(line.certificate)),
                finished=line.finished,
            )
            # What the others keep is not computed a second time, and so it is not published.
            for line in content.plan
            if line.mechanism == mechanism.name
        ),
        estimation=_estimation(content),
        accuracy=report_tables.accuracy(content),
        estimated=()
        if content.accuracy is None
        else estimated(content.accuracy.tables, partial(rounded_up, digits=DIGITS)),
        rarity=Rarity(
            records=content.rarity.records,
            inputs=content.rarity.inputs,
            secrets=content.rarity.secrets,
            combinations=content.rarity.combinations,
        ),
        earlier_releases=content.earlier_releases,
        people=content.people,
        unit=content.unit,
        kept=_kept(content),
        change=content.change,
        judged=content.judged,
        frequencies=protected_frequencies(content),
        approval=content.approval,
        weighted=content.weighted,
        unchanged=content.unchanged,
    )


def _kept(content: PublicContent) -> tuple[KeptByVersion, ...]:
    found = content.findings
    if found.history is None:
        return ()
    this = KeptByVersion(version=content.version, share=found.share, share_alone=found.history.share_alone)
    return (*content.kept_before, this)


def _figures(content: PublicContent) -> Figures:
    found = content.findings
    return Figures(
        holds=found.holds,
        level=level(found.level),
        level_factor=found.level_factor,
        rules_out=found.rules_out,
        worst_of_many_laws=found.worst_of_many_laws,
        utility=found.utility,
        entropy=found.entropy,
        share=found.share,
        secret_information=found.secret_information,
        guess_accuracy=found.guess_accuracy,
        prior_guess_accuracy=found.prior_guess_accuracy,
        rows=found.rows,
        outside=found.outside,
        consistency=None if found.consistency is None else Consistency(**vars(found.consistency)),
        history=None if found.history is None else _history(found.history),
        explained=None if found.explained is None else found.explained.share,
    )


def _history(found: PublicHistory) -> History:
    return History(
        versions=found.versions,
        share_alone=found.share_alone,
        outside_at_most=found.outside_at_most,
        observers=tuple(
            HistoryObserver(
                observer=one.observer,
                secret_of=one.secret_of,
                bounded=one.bounded,
                level=level(one.level),
                level_of_all=level(one.level_of_all),
                outside_at_most=one.outside_at_most,
            )
            for one in found.observers
        ),
    )


def _estimation(content: PublicContent) -> Estimation:
    found = content.findings
    return Estimation(
        alpha=found.confidence.alpha,
        radius=found.confidence.radius,
        cells=found.confidence.cells,
        records=found.confidence.n,
        doubtful=found.confidence.doubtful,
        plain_level=level(found.plain_level),
        robust_level=None if found.robust_level is None else level(found.robust_level),
        robust_lift_level=None if found.robust_lift_level is None else level(found.robust_lift_level),
    )
