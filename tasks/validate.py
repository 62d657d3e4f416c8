"""Validate: Great Expectations judges the files that are about to be published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from prefect import task
from prefect.cache_policies import NO_CACHE

from funnel.guarantees import parse_guarantee
from funnel.pipeline.tasks.estimate import Estimate
from funnel.pipeline.tasks.files import write_whole
from funnel.pipeline.tasks.ingest import Snapshot
from funnel.pipeline.tasks.optimise import Optimised
from funnel.pipeline.tasks.sanitise import Drawn
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.release.documents import read_draws
from funnel.release.layout import ReleaseFolder

if TYPE_CHECKING:
    from funnel.release.verdict import Verdict


@task(name="validate", cache_policy=NO_CACHE, persist_result=False)
@plain_errors
def validate(
    snapshot: Snapshot,
    estimate: Estimate,
    optimised: Optimised,
    drawn: Drawn,
    guarantee: str,
    secret: tuple[str, ...],
    publish: tuple[str, ...],
) -> Verdict:
    """Judge the drawn files against what the spec declares, and store the verdict beside them.

    The verdict may be negative: refusing to publish is the caller's part.
    """
    tell("loading the validator")
    # Takes seconds to import: only runs that validate pay for it.
    from funnel.pipeline.expectations import Evidence, judge

    protocol = optimised.read_protocol()
    tell("judging the release")
    verdict = judge(
        Evidence(
            released=drawn.data.checked(),
            protocol=protocol,
            joint=estimate.read_joint(),
            guarantee=parse_guarantee(guarantee),
            snapshot_rows=snapshot.rows,
            secret=secret,
            published=publish,
            pair_counts=read_draws(drawn.draws.checked().read_text(encoding="utf-8"), protocol),
        )
    )
    write_whole(ReleaseFolder(Path(drawn.folder)).verdict, verdict.to_bytes())
    return verdict
