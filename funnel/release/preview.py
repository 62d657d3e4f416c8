"""Preview: the exact and the public counts that the next release of a spec would be made from; nothing is released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from funnel.frequencies.selection import NOTHING, Share
from funnel.joint import Joint
from funnel.progress import Progress
from funnel.register.register import Register
from funnel.register.unit_rows import ordered_rows
from funnel.release.decision import Earlier
from funnel.release.learned import learned_codings, recall_values, values_digest
from funnel.release.protected import Protected, public_frequencies
from funnel.release.protected_rows import public_rows
from funnel.release.secret import Reader, find_register_secret
from funnel.release.series import Series
from funnel.release.snapshot import take_snapshot
from funnel.sampling import RecordKey
from funnel.source import count_joint, open_source
from funnel.spec import ReleaseSpec


@dataclass(frozen=True, eq=False)
class Preview:
    """Counts of the source as it is now.

    Attributes
    ----------
    counted : Joint
        Exact; only what follows people with histories may see them.
    protected : Protected
    learned : Share
        What learning its values cost.
    earlier : sequence of Earlier
        All versions of the series; empty without noise.
    held : Earlier or None
        One that waits for approval.
    settled : ReleaseSpec or None
        The spec with the recoding that the values were made by; None where that is the spec itself.
    """

    counted: Joint
    protected: Protected
    learned: Share = NOTHING
    earlier: Sequence[Earlier] = ()
    held: Earlier | None = None
    settled: ReleaseSpec | None = None


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
    source = open_source(spec.reading if spec.follows_units else spec)
    workspace = spec.workspace_folder / spec.name
    noisy = spec.frequencies.protection == "noise"
    series = Series.of(spec) if noisy else None
    earlier = () if series is None else series.earlier
    waiting = None if series is None else series.held.waiting
    held = None if waiting is None else waiting.held
    digest = source.files.digest() if noisy else ""
    if noisy:
        recall_values((*earlier, *([] if held is None else [held])), workspace)
    key = _unit_key(spec, read) if noisy and spec.follows_units else None
    codings = learned_codings(spec, source, digest, workspace, progress, key)
    counted = count_joint(spec, progress, source, codings)
    values = values_digest(spec, digest, key)
    moving = spec.register is not None and bool(Register.of(spec.workspace_folder, spec.register).entries)
    learned = codings.learned
    if key is None:
        protected = public_frequencies(spec, counted, learned, earlier, workspace, values, held, moving)
        return Preview(counted, protected, learned, earlier, held, codings.settled(spec))
    with TemporaryDirectory() as name:
        snapshot = take_snapshot(spec, Path(name), key, progress, lambda _source, _digest: codings)
        units = ordered_rows(snapshot, counted, key, progress).counts
    protected = public_frequencies(spec, units.first, learned, earlier, workspace, values, held, moving, True)
    protected = public_rows(spec, protected, units, learned, earlier, workspace, held, moving)
    return Preview(counted, protected, learned, earlier, held, codings.settled(spec))


def _unit_key(spec: ReleaseSpec, read: Reader | None) -> RecordKey:
    """What puts the rows of units in their order, as a release would."""
    if spec.register is None or spec.record_key is None:
        raise ValueError("units that are followed have record keys")
    register = Register.of(spec.workspace_folder, spec.register)
    secret = find_register_secret(spec.record_secret, register.root, register.name, register.fingerprint, read)
    return secret.record_key(spec.record_key, read)
