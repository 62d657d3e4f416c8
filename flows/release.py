"""The release flow: the whole way of the data, from a source to a published release or a refusal."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect import flow

from funnel.errors import SpecError
from funnel.guarantees import parse_guarantee
from funnel.pipeline.flows.artifacts import describe_run
from funnel.pipeline.tasks.audit import audit
from funnel.pipeline.tasks.estimate import estimate
from funnel.pipeline.tasks.files import remove_tree
from funnel.pipeline.tasks.ingest import forget_other_snapshots, ingest
from funnel.pipeline.tasks.optimise import optimise
from funnel.pipeline.tasks.publish import publish
from funnel.pipeline.tasks.sanitise import Keys, forget_rows, sanitise
from funnel.pipeline.tasks.secret import find_secret, settle_secret
from funnel.pipeline.tasks.series import Series, open_series
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.pipeline.tasks.validate import validate
from funnel.release.layout import next_version
from funnel.sample_size import doubts
from funnel.spec import ReleaseSpec

if TYPE_CHECKING:
    from prefect import Task


@flow(name="release", log_prints=False, persist_result=False, validate_parameters=True)
def release(spec: str, again: bool = False, rotate_secret: bool = False) -> dict[str, Any]:
    """Release the data of a spec, unless this very release is already published.

    Parameters
    ----------
    spec : str
        Path of the spec file.
    again : bool
        Draw and publish again even though nothing has changed. Every fresh draw about the same people adds to what
        all versions together reveal, so this is never done unasked.
    rotate_secret : bool
        Take another release secret: every record gets a fresh answer, which reveals more. Stored with the version.

    Returns
    -------
    dict
        ``status`` is ``"published"`` or ``"unchanged"``; with both: version, folder, report, cached steps. Published:
        guarantee, level, utility, share, mechanism, rows, dropped, outside, warnings; whether rows were drawn or taken
        over, and whether that is a fresh draw about these people.

    Raises
    ------
    FunnelError
        With one clear sentence; nothing is then published and what was published before is untouched.
    """
    return _release(spec, again, rotate_secret)


@plain_errors
def _release(spec_path: str, again: bool, rotate_secret: bool) -> dict[str, Any]:
    spec = ReleaseSpec.load(spec_path)
    if rotate_secret and spec.record_key is None:
        raise SpecError("there is no release secret to rotate: the spec names no record_key")
    with open_series(spec.output_folder, spec.workspace_folder, spec.name, Series.of(spec).remote) as series:
        return _run(spec, str(Path(spec_path).absolute()), series, again, rotate_secret)


def _keys(spec: ReleaseSpec, workspace: str, series: Series, rotate: bool) -> Keys | None:
    """The record key of a spec with its secret, if it has one."""
    if spec.record_key is None:
        return None
    secret = find_secret(spec.record_secret, Path(workspace), series.secret_fingerprint, rotate)
    return Keys(spec.record_key, secret, workspace)


def _run(spec: ReleaseSpec, spec_path: str, series: Series, again: bool, rotate_secret: bool) -> dict[str, Any]:
    workspace = str(spec.workspace_folder / spec.name)
    guarantee = spec.guarantee.canonical
    keys = _keys(spec, workspace, series, rotate_secret)
    snapshot = ingest(spec_path, workspace, None if keys is None else keys.secret)
    estimated, estimate_cached = _cached(
        estimate,
        snapshot,
        spec.secret,
        spec.publish,
        spec.confidence.alpha,
        spec.limits.max_inputs,
        workspace,
        spec.engine,
    )
    mechanism = spec.mechanism
    optimised, optimise_cached = _cached(
        optimise, estimated, guarantee, mechanism.name, mechanism.reads_secret, mechanism.time_limit, workspace
    )
    protocol = optimised.read_protocol()
    record = {
        "spec": spec.digest,
        "source": snapshot.source_sha256,
        "snapshot": snapshot.data.sha256,
        "protocol": protocol.digest,
        "fields": list(protocol.outputs.columns),
        "guarantee": guarantee,
        "shuffle": spec.output.shuffle,
        **({} if keys is None else {"secret": keys.secret.fingerprint}),
    }
    newest = series.newest
    before = series.record(newest) if newest is not None else {}
    cached = [name for name, hit in (("estimate", estimate_cached), ("optimise", optimise_cached)) if hit]
    if newest is not None and not again and all(before.get(key) == value for key, value in record.items()):
        tell(f"unchanged: version {newest} already is this release")
        folder, report = series.shown(newest)
        return {
            "status": "unchanged",
            "version": str(newest),
            "folder": folder,
            "report": report,
            "cached": cached,
        }
    version = next_version(
        newest, before.get("fields") != record["fields"], before.get("snapshot") != record["snapshot"]
    )
    earlier = None if again else series.drawn_before(record)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    incoming = series.incoming()
    try:
        drawn = sanitise(
            snapshot,
            optimised,
            str(incoming),
            shuffle=spec.output.shuffle,
            earlier=earlier,
            engine=spec.engine,
            keys=keys,
        )
        # Rows taken over from a version that never got to its URL in full are published for the first time.
        first = drawn.drawn or (earlier is not None and Path(earlier) in series.unfinished)
        record["fresh"] = first and not (keys is not None and series.answered_before(record))
        if rotate_secret:
            record["rotated"] = series.secret_fingerprint
        findings = audit(estimated, optimised, drawn, guarantee, spec.confidence.alpha)
        warnings = doubts(estimated.read_joint(), parse_guarantee(guarantee))
        for warning in warnings:
            tell(f"warning: {warning}")
        verdict = validate(snapshot, estimated, optimised, drawn, guarantee, spec.secret, spec.publish)
        published = publish(
            spec_path,
            snapshot,
            estimated,
            optimised,
            drawn,
            findings,
            verdict,
            str(series.root),
            version,
            created,
            {**record, "version": str(version), "created": created, "rows": snapshot.rows},
        )
    finally:
        # After publication the folder has its final name, and there is nothing left to remove.
        remove_tree(incoming)
    if keys is not None:
        settle_secret(keys.secret)
    forget_rows(workspace)
    forget_other_snapshots(snapshot)
    describe_run(spec, published, protocol, findings, optimised.read_comparison(), estimated.read_joint())
    return {
        "status": "published",
        "version": published.version,
        "folder": published.folder,
        "report": published.report,
        "guarantee": guarantee,
        "level": findings.level,
        "utility": findings.utility,
        "share": findings.share,
        "mechanism": protocol.mechanism,
        "rows": findings.rows,
        "dropped": snapshot.dropped,
        "outside": findings.outside,
        "fresh": record["fresh"],
        "drawn": drawn.drawn,
        "cached": cached,
        "warnings": list(warnings),
    }


def _cached(step: Task[Any, Any], *arguments: Any) -> tuple[Any, bool]:
    """Result of a cached step, and whether it came from the cache; made anew if its files are gone or damaged."""
    # Typed as a coroutine for asynchronous steps too; this one is not.
    state: Any = step(*arguments, return_state=True)
    result = state.result()
    hit = state.name == "Cached"
    if hit and not all(reference.intact() for reference in vars(result).values()):
        result, hit = step.with_options(refresh_cache=True)(*arguments), False
    tell("taken from the cache" if hit else "done")
    return result, hit
