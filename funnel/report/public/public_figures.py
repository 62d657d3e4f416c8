"""The document of the public report, made of what is published of a release and of nothing else."""

from __future__ import annotations

from functools import partial

from funnel.release.document import dump
from funnel.release.public.rounding import count_of_records, in_digits, rounded_up
from funnel.release.public_accuracy import DIGITS, estimated
from funnel.release.public_report import (
    Channel,
    Columns,
    KeptByVersion,
    PublicReport,
    Source,
)
from funnel.report.content import PublicContent, ReportContent, protected_frequencies
from funnel.report.public import report_tables
from funnel.report.public.report_tables import promised_by


def public_report(content: ReportContent) -> PublicReport:
    """Every figure of the public report of a release, rounded; O(a b c + a b min(a, b))."""
    return report_of(content.public())


def report_of(content: PublicContent) -> PublicReport:
    """The same of what is public of a release."""
    numbers = _document(content).content()
    declared = content.guarantee.budget, numbers["estimation"]["alpha"]
    return PublicReport.from_json(dump({**in_digits(numbers, declared), "frequencies": numbers["frequencies"]}))


def _document(content: PublicContent) -> PublicReport:
    promised = promised_by(content.guarantee, content.protocol.inputs.columns, content.secret)
    distributions, protocol, found = content.distributions, content.protocol, content.findings
    return PublicReport.like(
        content,
        source=Source(
            title=content.source.title,
            # Counts have noise, and the table shows this number anyway.
            records=found.figures.rows if content.protection.kind.is_noisy else distributions.n,
            dropped=None if content.source.rows_dropped is None else count_of_records(content.source.rows_dropped),
            references=content.source.references,
        ),
        secret=Columns(columns=distributions.secret.columns, values=len(distributions.secret)),
        published=Columns(columns=content.published, values=len(distributions.inputs)),
        guarantee=str(content.guarantee),
        channel=Channel(
            digest=protocol.digest,
            reads=protocol.inputs.columns,
            inputs=len(protocol.inputs),
            outputs=len(protocol.outputs),
        ),
        figures=found.figures,
        beliefs=report_tables.beliefs(content),
        example=report_tables.example(content),
        strongest=report_tables.strongest_case(content),
        outputs=report_tables.outputs(content),
        heat=report_tables.heat(content),
        lifts=report_tables.lifts(content, promised),
        compared=tuple(
            # The level is that of the release: of a protocol that tells nothing it is 0, whatever the bound is.
            line.model_copy(update={"level": found.figures.level})
            # What the others keep is not computed a second time, and so it is not published.
            for line in content.plan
            if line.mechanism == content.mechanism.name
        ),
        estimation=found.estimation,
        accuracy=report_tables.accuracy(content),
        estimated=()
        if content.accuracy is None
        else estimated(content.accuracy.tables, partial(rounded_up, digits=DIGITS)),
        kept=_kept(content),
        frequencies=protected_frequencies(content),
        grouping_kept=None if content.grouping_kept is None else distributions.share(content.grouping_kept),
    )


def _kept(content: PublicContent) -> tuple[KeptByVersion, ...]:
    found = content.findings.figures
    if found.history is None:
        return ()
    this = KeptByVersion(version=content.version, share=found.share, share_alone=found.history.share_alone)
    return (*content.kept_before, this)
