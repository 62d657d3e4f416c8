"""Describe: every public document of a version, written beside its rows before anything is judged."""

from __future__ import annotations

from funnel.donors.composition import Composition
from funnel.guarantees import parse_guarantee
from funnel.pipeline.tasks.run import Draft, Run, version_context
from funnel.pipeline.tasks.step import step, tell
from funnel.protocol import Protocol
from funnel.release.counted_as_usual import CountsOff, counts_off, whole_stays
from funnel.release.earlier import newest_found
from funnel.release.internal_evidence import write_evidence
from funnel.release.public.findings import PublicRelease
from funnel.release.public.public_distributions import PublicDistributions
from funnel.release.publication import require_drawn, require_small, write_documentation, write_documents, write_package
from funnel.report.content import ReportContent
from funnel.report.gathering import Results, report_content
from funnel.report.writing import write_report


@step
def describe(run: Run, draft: Draft) -> ReportContent:
    """Write the frequencies, the protocol, the csv, the public report and the package; what reports show is returned.

    Of the exact counts nothing enters but into the folder of internal evidence.

    They tell of the published channel alone: what people with a history drew from is internal.
    """
    tell("writing the report")
    from funnel.pipeline.expectations import Evidence, announced

    spec, folder, rows, audited = run.spec, draft.folder, draft.rows, draft.audited
    drawn, protection = draft.followed.drawn, draft.protected.protection
    counted, units, composition = run.estimated.joint, run.estimated.units, run.estimated.composition
    guarantee, protocol = parse_guarantee(spec.guarantee.canonical), drawn.channel
    classes = None if composition is None else composition.classes
    # Of donors who are followed it is not the composition of their class that tells what becomes of a record.
    is_even = spec.register is None
    write_evidence(spec, counted, folder, None if units is None else units.first)
    public = PublicRelease.of(audited, protocol, guarantee)
    codings = run.snapshot.read_codings()
    settled = codings.settled(spec)
    frequencies = audited.frequencies
    require_drawn(folder, rows.data)
    write_documents(settled, protocol, public, frequencies, protection, folder, drawn.rounded, classes)
    asked = {
        "csv": spec.output.csv,
        "keyed": spec.record_key is not None,
        "followed": drawn.is_followed,
        "noise": protection.kind.is_noisy,
        "numbers": bool(spec.drawn_columns),
        "classes": classes is not None,
        "shuffled": spec.output.shuffle,
    }
    evidence = Evidence(folder.data, protocol, spec.released, rows.counts.by_output.tolist())
    judged = announced(evidence, {word for word, holds in asked.items() if holds})
    content = report_content(
        spec,
        run.snapshot,
        Results(counted, protocol, draft.findings, audited, protection, draft.optimised.comparison),
        version_context(run, draft),
        judged,
        composition if is_even else None,
        whole_stays(folder) if is_even and classes is not None else None,
        None if is_even or composition is None else _counts_off(draft, protocol, composition),
    )
    report = write_report(content, folder)
    categories = None if classes is None else {column: codings[column].labels for column in spec.released}
    write_package(settled, protocol, report, protection, folder, categories)
    write_documentation(folder, newest_found(run.earlier))
    require_small(folder, spec.limits.max_document)
    return content


def _counts_off(draft: Draft, protocol: Protocol, composition: Composition) -> CountsOff | None:
    """How far counts of records of the same people are off, by the share of own records as it is published."""
    history = draft.audited.history
    if history is None or history.own is None:
        return None
    own = PublicDistributions.of(draft.audited.frequencies, protocol).share(history.own)
    return counts_off(draft.folder.data, composition, protocol, own)
