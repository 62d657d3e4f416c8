"""Estimate: from a snapshot to the exact counts of (secret, input)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from funnel.donors.composition import Composition
from funnel.frequencies.selection import Share
from funnel.frequencies.unit_tables import UnitCounts
from funnel.joint import Joint
from funnel.pipeline.tasks.secret_blocks import record_key_of
from funnel.pipeline.tasks.step import step, tell
from funnel.register.unit_rows import ordered_rows
from funnel.release.cache import Cache
from funnel.release.counted_records import read_records, records_file
from funnel.release.documents import JointDocument
from funnel.release.learned import values_digest
from funnel.release.secret import ReleaseSecret
from funnel.release.snapshot import Snapshot
from funnel.sampling.dask_workers import workers_of
from funnel.sampling.donors import Donors
from funnel.sampling.partitions import partition_groups
from funnel.sampling.parts import count_partition
from funnel.source.counting import is_wide, over_values
from funnel.spec import ReleaseSpec

JOINT, RECORDS = "joint.json", "records.parquet"


@dataclass(frozen=True, eq=False)
class Estimated:
    """The counted joint distribution; nothing public is made of it but by the step that protects it.

    Attributes
    ----------
    joint : Joint
        Exact counts of (secret, input), shape (c, a); where noise is to protect them, over all combinations of values.
    learned : Share
        What it cost to learn these values.
    values : str or None
        Digest of what they were learned from; None where they were not.
    cached : bool
        Whether they were counted by an earlier run.
    units : UnitCounts or None
        Where noise is to protect the counts and units may have several rows: what is counted of first and second rows,
        which is what is protected.
    donors : Donors or None
        Where records are counted by their class: whose records are published for those that change it.
    composition : Composition or None
        The classes, and what records of each are like, in that case.
    wide : bool
        Whether records are to be counted and drawn by their class.
    """

    joint: Joint
    learned: Share
    values: str | None
    cached: bool
    units: UnitCounts | None = None
    donors: Donors | None = None
    composition: Composition | None = None
    wide: bool = False


@step
def estimate(spec: ReleaseSpec, snapshot: Snapshot, workspace: Path, secret: ReleaseSecret | None = None) -> Estimated:
    """Count the joint distribution of the secret and the published columns, partition by partition; cached by content.

    Parameters
    ----------
    spec : ReleaseSpec
    snapshot : Snapshot
    workspace : Path
    secret : ReleaseSecret, optional
        Needed where units may have several rows: the order of these depends on it.

    Raises
    ------
    DataError
        If the published columns have more combinations than the spec allows.
    SpecError
        If the rows of a unit have several secrets, or are too many.
    """
    cache = Cache(workspace / "joints")
    key = cache.key(snapshot.content_sha256, spec.secret, spec.inputs)
    codings = snapshot.read_codings()
    if (found := cache.find(key)) is not None:
        wide = found.get(RECORDS)
        joint = (
            JointDocument.from_json(found[JOINT]).joint
            if wide is None
            else read_records(wide, spec.secret, codings.labels)
        )
    else:
        joint = count_snapshot(spec, snapshot, spec.inputs)
        # Of many columns a table of counts is nearly all zeros.
        wide = records_file(joint) if is_wide(spec, joint, codings) else None
        cache.keep(key, {JOINT: JointDocument.like(joint).to_bytes()} if wide is None else {RECORDS: wide})
        cache.forget_others(key)
    by_class = is_wide(spec, joint, codings)
    joint = over_values(spec, joint, codings)
    of_record = record_key_of(spec, secret)
    units = None
    if spec.follows_units and spec.frequencies.kind.is_noisy:
        if of_record is None:
            raise ValueError("units that are followed have record keys")
        units = ordered_rows(snapshot, joint, of_record, spec.one_secret, tell).counts
    tell("taken from the cache" if found is not None else "done")
    values = values_digest(spec, snapshot.source_sha256, of_record)
    return Estimated(joint, codings.learned, values, found is not None, units, wide=by_class)


def count_snapshot(
    spec: ReleaseSpec, snapshot: Snapshot, columns: tuple[str, ...], more: Mapping[str, Sequence[str]] | None = None
) -> Joint:
    """Count records by secret and these columns; ``more`` has the values of columns that codings know nothing of."""
    order = {column: coding.labels for column, coding in snapshot.read_codings().items()} | dict(more or {})
    tasks = [(snapshot.data.path, groups, spec.secret, columns, order) for groups in partition_groups(snapshot.sizes)]
    parts: dict[int, Joint] = {}
    tell("counting", 0, snapshot.rows)
    with workers_of(spec.engine) as workers:
        for i, part in workers.run(count_partition, tasks):
            parts[i] = part
            tell("counting", sum(one.n for one in parts.values()), snapshot.rows)
    return Joint.from_parts([parts[i] for i in sorted(parts)], order)
