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
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.series import open_series
from funnel.spec import ReleaseSpec


def make_release(spec_path: Path) -> ReleaseFolder:
    """Run every step once, in order; returns the folder of version 1.0.0."""
    spec = ReleaseSpec.load(spec_path)
    workspace = str(spec.workspace_folder / spec.name)
    guarantee = spec.guarantee.canonical
    with open_series(spec.output_folder, spec.workspace_folder, spec.name) as series:
        snapshot = ingest.fn(str(spec_path), workspace)
        estimated = estimate.fn(
            snapshot, spec.secret, spec.publish, spec.confidence.alpha, spec.limits.max_inputs, workspace
        )
        mechanism = spec.mechanism
        optimised = optimise.fn(
            estimated, guarantee, mechanism.name, mechanism.reads_secret, mechanism.time_limit, workspace
        )
        drawn = sanitise.fn(snapshot, optimised, str(series.incoming()), spec.output.shuffle)
        findings = audit.fn(estimated, optimised, drawn, guarantee, spec.confidence.alpha)
        verdict = validate.fn(snapshot, estimated, optimised, drawn, guarantee, spec.secret, spec.publish)
        published = publish.fn(
            str(spec_path),
            snapshot,
            estimated,
            optimised,
            drawn,
            findings,
            verdict,
            str(series.root),
            Version(1, 0, 0),
            "2026-01-01T00:00:00+00:00",
            {"fresh": True},
        )
    return ReleaseFolder(Path(published.folder))
