"""Preview: the exact and the public counts that the next release of a spec would be made from; nothing is released."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from funnel.alphabet import CLASS_COLUMN
from funnel.joint import Joint
from funnel.progress import Progress
from funnel.readers.formats import open_source
from funnel.register import register_of
from funnel.register.unit_rows import ordered_rows
from funnel.release.classified import classify_records
from funnel.release.learned import learned_codings, recall_values, values_digest
from funnel.release.protected import Protected, ProtectionContext
from funnel.release.protected_tables import public_counts
from funnel.release.secret import Reader, find_register_secret
from funnel.release.series import Series
from funnel.release.snapshot import distinct_people, take_snapshot
from funnel.sampling.keyed import RecordKey
from funnel.source.counting import choosing_in_source, count_joint, is_wide
from funnel.source.fitting import misfits
from funnel.spec import ReleaseSpec


@dataclass(frozen=True, eq=False)
class Preview:
    """Counts of the source as it is now.

    Attributes
    ----------
    spec : ReleaseSpec
        What the counts are about: where a record has many columns, by its class.
    counted : Joint
        Exact; only what follows people with histories may see them.
    protected : Protected
    context : ProtectionContext
        What its counts are protected by; without noise nothing of earlier versions.
    settled : ReleaseSpec or None
        The spec with the recoding that the values were made by; None where that is the spec itself.
    misfits : tuple of str
        What of the spec does not fit the values of the source, for whoever has that.
    """

    spec: ReleaseSpec
    counted: Joint
    protected: Protected
    context: ProtectionContext
    settled: ReleaseSpec | None = None
    misfits: tuple[str, ...] = ()


def preview(spec: ReleaseSpec, progress: Progress, read: Reader | None = None) -> Preview:
    """Count a source, and protect its frequencies as the next release would: with the same noise.

    That is drawn if it was not before, and kept in the workspace: a release, or another preview, of the same counts
    uses it, so that looking costs nothing.

    Parameters
    ----------
    spec : ReleaseSpec
    progress : callable
    read : callable, optional
        As in `funnel.release.secret.find_secret`: which row of a unit is its first depends on the secret, which is made
        if there is none yet.

    Raises
    ------
    SpecError, DataError
        If the source does not fit the spec.
    LedgerError
        If it is not known what was published before.
    """
    # As a release opens it: the digest of what is read of a database depends on the columns.
    source = open_source(spec.reading)
    workspace = spec.workspace_folder / spec.name
    context, key, digest = ProtectionContext(spec, source=""), None, ""
    if context.is_noisy:
        series, digest = Series.of(spec), source.files.digest()
        waiting = series.held.waiting
        held = None if waiting is None else waiting.held
        context = replace(context, earlier=series.earlier, held=held, source=digest)
        recall_values(context.versions, workspace)
        key = _unit_key(spec, read) if spec.follows_units else None
    codings = learned_codings(spec, source, digest, workspace, progress, key)
    unfit = tuple(misfits(spec, codings))
    with _distinct_checked(spec) as seen:
        counted = count_joint(spec, progress, source, codings, seen)
    register = register_of(spec)
    moving = register is not None and bool(register.entries)
    classes = None if register is None else register.classes
    if (classes is not None) if moving else is_wide(spec, counted, codings):
        kept = None if classes is None else classes.classes
        choosing = choosing_in_source(spec, source, codings)
        counted = classify_records(spec, counted, codings, None, progress, kept, choosing).joint
        spec = spec.by_class(CLASS_COLUMN)
    values = values_digest(spec, digest, key)
    context, units = replace(context, spec=spec, learned=codings.learned), None
    if key is not None:
        with TemporaryDirectory() as name:
            snapshot = take_snapshot(spec, Path(name), key, progress, lambda _source, _digest: codings)
            units = ordered_rows(snapshot, counted, key, spec.one_secret, progress).counts
    protected = public_counts(context, counted, units, values, moving)
    return Preview(spec, counted, protected, context, codings.settled(spec), unfit)


@contextmanager
def _distinct_checked(spec: ReleaseSpec) -> Iterator[Callable[[pa.RecordBatch], None] | None]:
    """Is told of all rows; at the end refuses units and record keys that a release would refuse, in the same words."""
    # Only whether they are distinct is asked, so any secret will do.
    key = None if spec.record_key is None else RecordKey(spec.record_key, secrets.token_bytes(32))
    with distinct_people(spec, key) as (keys, units):

        def seen(batch: pa.RecordBatch) -> None:
            for one in (units, keys):
                if one is not None:
                    one.column(batch)

        yield None if units is None and keys is None else seen


def _unit_key(spec: ReleaseSpec, read: Reader | None) -> RecordKey:
    """What puts the rows of units in their order, as a release would."""
    register = register_of(spec)
    if register is None or spec.record_key is None:
        raise ValueError("units that are followed have record keys")
    secret = find_register_secret(spec.record_secret, register.root, register.name, register.fingerprint, read)
    return secret.record_key(spec.record_key, read)
