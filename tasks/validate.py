"""Validate: Great Expectations judges the files that are about to be published."""

from __future__ import annotations

from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.pipeline.tasks.step import step, tell
from funnel.protocol import Protocol
from funnel.release.judged import public_digests
from funnel.release.layout import ReleaseFolder
from funnel.release.rows import Rows
from funnel.release.snapshot import Snapshot
from funnel.release.verdict import Verdict
from funnel.spec import ReleaseSpec


@step
def validate(
    spec: ReleaseSpec, snapshot: Snapshot, joint: Joint, protocol: Protocol, rows: Rows, folder: ReleaseFolder
) -> Verdict:
    """Judge the drawn files against what the spec declares, and store the verdict beside them.

    The verdict may be negative: refusing to publish is the caller's part.
    """
    tell("loading the validator")
    # Takes seconds to import: only runs that validate pay for it.
    from funnel.pipeline.expectations import Evidence, judge

    tell("judging the release")
    files = public_digests(folder.root)
    verdict = judge(
        Evidence(
            released=rows.data.checked(),
            protocol=protocol,
            joint=joint,
            guarantee=parse_guarantee(spec.guarantee.canonical),
            snapshot_rows=snapshot.rows,
            secret=spec.secret,
            published=spec.publish,
            pair_counts=rows.pairs,
        )
    )
    return Verdict.of(verdict.results, files)
