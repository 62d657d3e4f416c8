"""Audit: what a release reveals, to the public and to an observer who knows the counts, and whether it was drawn so."""

from __future__ import annotations

from pathlib import Path

from funnel.donors.composition import Composition
from funnel.findings import Audited, DrawnRelease, Findings, audit_release
from funnel.findings.absent import absent_records, absent_whole_records
from funnel.frequencies.public_counts import Frequencies
from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.numbers import utility_for
from funnel.pipeline.tasks.run import Followed
from funnel.pipeline.tasks.step import step, tell
from funnel.release.files import write_whole
from funnel.release.findings import findings_document
from funnel.release.layout import ReleaseFolder
from funnel.release.rows import Rows
from funnel.release.snapshot import Snapshot
from funnel.spec import ReleaseSpec


@step
def audit(
    spec: ReleaseSpec,
    counted: Joint,
    frequencies: Frequencies,
    followed: Followed,
    rows: Rows,
    folder: ReleaseFolder,
    snapshot: Snapshot,
    composition: Composition | None,
) -> tuple[Findings, Audited]:
    """Compute level, witness, utility and lifts twice: for an observer of the counts, and under public frequencies.

    The first, with the consistency of the draws, is stored as internal evidence. All that is public is made of the
    second.

    Where people have histories, these are the figures of the effective channel, which is what the version alone tells;
    what all versions together tell stands beside them.
    """
    tell("computing exact leakage")
    drawn = followed.drawn
    release = DrawnRelease(
        drawn.channel,
        parse_guarantee(spec.guarantee.canonical),
        rows.pairs,
        spec.confidence.alpha,
        drawn.drawing,
        drawn.history,
    )
    audited = Audited.of(frequencies, release, utility_for(spec, frequencies.joint.over_published(spec.publish)))
    utility = utility_for(spec, counted.over_published(spec.publish))
    if composition is None:
        absent = absent_records(counted, drawn.channel, audited.drawn)
    else:
        absent = absent_whole_records(Path(rows.data.path), Path(snapshot.data.path), spec.released)
    findings = audit_release(counted, release, utility, drift=followed.drift, audited=audited, absent=absent)
    write_whole(folder.findings, findings_document(findings).to_bytes())
    return findings, audited
