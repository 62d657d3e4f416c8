"""Publish: put a judged release in place, all or nothing, exactly as it was judged."""

from __future__ import annotations

from dataclasses import dataclass

from funnel.errors import ReleaseRefused
from funnel.pipeline.tasks.step import step, tell
from funnel.release.accounted import require_accounted
from funnel.release.decision import Draw, TakeOver
from funnel.release.files import write_whole
from funnel.release.layout import ReleaseFolder
from funnel.release.provenance import software
from funnel.release.record import Record
from funnel.release.series import Series
from funnel.release.snapshot import Snapshot
from funnel.release.verdict import Verdict


@dataclass(frozen=True)
class Published:
    """A release in place.

    Attributes
    ----------
    version : str
    folder, report : str
        Absolute paths, or URLs.
    """

    version: str
    folder: str
    report: str


@step
def publish(
    decision: Draw | TakeOver,
    snapshot: Snapshot,
    verdict: Verdict,
    series: Series,
    folder: ReleaseFolder,
    created: str,
) -> Published:
    """Write the record, force everything to disk, rename the folder into place, switch ``latest`` last.

    No public file is written here: what was judged is what is published, which the series makes sure of right before
    the rename. Until the rename nothing is visible; after it everything is. Where releases appear at a URL, the public
    files are put there after the rename, and are a version from the moment its ``datapackage.json`` is there, the last
    of them.

    Raises
    ------
    ReleaseRefused
        If the verdict is negative, or no longer about the files that are there.
    """
    if not verdict.passed:
        raise ReleaseRefused(f"nothing was published: {verdict.sentence()}")
    write_whole(folder.verdict, verdict.to_bytes())
    record = Record(
        version=str(decision.version),
        created=created,
        origin=decision.origin,
        rows=snapshot.rows,
        fresh=decision.fresh,
        rotated=decision.rotated,
        files=dict(verdict.files),
        software=software(),
    )
    require_accounted(record, folder, series.earlier)
    folder.record.write_bytes(record.to_bytes())
    tell("publishing")
    series.publish(folder, decision.version, verdict, tell)
    return Published(str(decision.version), *series.shown(decision.version))
