"""Publish: describe the release and put it in place, all or nothing."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pacsv
from prefect import task
from prefect.cache_policies import NO_CACHE

from funnel.audit import Findings
from funnel.errors import ReleaseRefused
from funnel.guarantees import parse_guarantee
from funnel.pipeline.tasks.describe import report_content
from funnel.pipeline.tasks.estimate import Estimate
from funnel.pipeline.tasks.files import sync_folder, sync_tree
from funnel.pipeline.tasks.ingest import Snapshot
from funnel.pipeline.tasks.optimise import Optimised
from funnel.pipeline.tasks.sanitise import Drawn
from funnel.pipeline.tasks.series import Series
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.release.datapackage import data_package
from funnel.release.documents import dump, protocol_document
from funnel.release.layout import ReleaseFolder, Version
from funnel.report import render_report
from funnel.source import file_digest
from funnel.spec import ReleaseSpec
from funnel.tables import open_paged

if TYPE_CHECKING:
    from funnel.release.verdict import Verdict


BATCH_ROWS = 1 << 17


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


@task(name="publish", cache_policy=NO_CACHE, persist_result=False)
@plain_errors
def publish(
    spec_path: str,
    snapshot: Snapshot,
    estimate: Estimate,
    optimised: Optimised,
    drawn: Drawn,
    findings: Findings,
    verdict: Verdict,
    series_root: str,
    version: Version,
    created: str,
    record: dict[str, Any],
) -> Published:
    """Write the public documents, force everything to disk, rename the folder into place, switch ``latest`` last.

    Until the rename nothing is visible; after it everything is. Where releases appear at a URL, the public files are
    put there after the rename, and are a version from the moment its ``datapackage.json`` is there, the last of them.

    Raises
    ------
    ReleaseRefused
        If the verdict is negative, or no longer about the files that are there.
    """
    if not verdict.passed:
        raise ReleaseRefused(f"nothing was published: {verdict.sentence()}")
    tell("writing the report")
    spec = ReleaseSpec.load(spec_path)
    joint, protocol = estimate.read_joint(), optimised.read_protocol()
    folder = ReleaseFolder(Path(drawn.folder))
    if file_digest(folder.data) != drawn.data.sha256:
        raise ReleaseRefused("the drawn rows changed after they were validated; run the release again")
    guarantee = parse_guarantee(findings.guarantee)
    shutil.copyfile(estimate.joint.checked(), folder.joint)
    folder.record.write_bytes(dump(record))
    folder.protocol.write_bytes(protocol_document(joint, protocol, guarantee).to_bytes())
    if spec.output.csv:
        # From the file that was judged, so that both say the same.
        _write_csv(folder)
    series = Series(Path(series_root), Series.of(spec).remote)
    content = report_content(
        spec,
        snapshot,
        joint,
        protocol,
        guarantee,
        findings,
        optimised.read_comparison(),
        verdict,
        version=str(version),
        created=created,
        earlier_releases=series.fresh_draws(drawn.data.sha256),
    )
    folder.report.write_text(render_report(content), encoding="utf-8")
    public = [path for path in (folder.data, folder.csv, folder.protocol, folder.report) if path.is_file()]
    files = {str(path.relative_to(folder.root)): (file_digest(path), path.stat().st_size) for path in public}
    folder.package.write_bytes(dump(data_package(spec, protocol, findings, str(version), created, files)))
    tell("publishing")
    target = series.folder(version)
    # The folder was private while it was put together; what is in audit/ stays so.
    folder.root.chmod(0o755)
    sync_tree(folder.root)
    folder.root.rename(target.root)
    sync_folder(series.root)
    series.publish(version)
    return Published(str(version), *series.shown(version))


def _write_csv(folder: ReleaseFolder) -> None:
    with open_paged(folder.data) as file:
        names = file.schema_arrow.names
        schema = pa.schema([(name, pa.string()) for name in names])
        with pacsv.CSVWriter(folder.csv, schema) as writer:
            for batch in file.iter_batches(BATCH_ROWS):
                writer.write_table(pa.Table.from_batches([batch]).cast(schema))
