"""A release made by the steps themselves, without the orchestrator, for tests of what is done with releases."""

from __future__ import annotations

from pathlib import Path

from funnel.pipeline.tasks.audit import audit
from funnel.pipeline.tasks.estimate import estimate
from funnel.pipeline.tasks.ingest import ingest
from funnel.pipeline.tasks.optimise import optimise
from funnel.pipeline.tasks.publish import publish
from funnel.pipeline.tasks.sanitise import sanitise
from funnel.pipeline.tasks.validate import validate
from funnel.release.decision import Draw, decide
from funnel.release.layout import ReleaseFolder
from funnel.release.series import open_series
from funnel.spec import ReleaseSpec


def make_release(spec_path: Path) -> ReleaseFolder:
    """Run every step once, in order; returns the folder of version 1.0.0."""
    spec = ReleaseSpec.load(spec_path)
    workspace = spec.workspace_folder / spec.name
    with open_series(spec) as series:
        snapshot = ingest.fn(spec, workspace)
        joint = estimate.fn(spec, snapshot, workspace).joint
        optimised = optimise.fn(spec, joint, workspace)
        protocol = optimised.protocol
        decision = decide(spec, snapshot, protocol, series.earlier)
        assert isinstance(decision, Draw)
        with series.incoming() as folder:
            rows = sanitise.fn(spec, decision, snapshot, protocol, folder, workspace)
            findings = audit.fn(spec, joint, protocol, rows, folder)
            verdict = validate.fn(spec, snapshot, joint, protocol, rows, folder)
            published = publish.fn(
                spec,
                decision,
                snapshot,
                joint,
                protocol,
                optimised.comparison,
                rows,
                findings,
                verdict,
                series,
                folder,
                "2026-01-01T00:00:00+00:00",
            )
    return ReleaseFolder(Path(published.folder))
