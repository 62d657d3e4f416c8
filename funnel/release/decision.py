"""Decision: whether a release is already published, takes over rows that were drawn before, or is drawn; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from funnel.protocol import Protocol
from funnel.release.layout import Version, next_version
from funnel.release.record import Origin, Record
from funnel.release.snapshot import Snapshot
from funnel.spec import ReleaseSpec


@dataclass(frozen=True)
class Earlier:
    """A version before this one, whose rows were published or may have been seen.

    Attributes
    ----------
    record : Record
    folder : Path
    published : bool
        False for a version that did not get to its place in full.
    rows_sha256 : str
        Digest of its rows.
    """

    record: Record
    folder: Path
    published: bool
    rows_sha256: str

    @property
    def version(self) -> Version:
        """Its number."""
        found = Version.parse(self.record.version)
        if found is None:
            raise ValueError("a record holds a version")
        return found


@dataclass(frozen=True)
class Unchanged:
    """This very release is already published.

    Attributes
    ----------
    version : Version
    """

    version: Version


@dataclass(frozen=True)
class TakeOver:
    """Rows of an earlier version are published again, byte for byte; nothing is drawn.

    Attributes
    ----------
    version : Version
        Of the new release.
    origin : Origin
    rows_of : Earlier
        Whose rows.
    fresh : bool
        Whether these rows are published for the first time.
    rotated : str or None
        As in `Draw`: set where rows drawn with the new secret were not published in full at the first try.
    """

    version: Version
    origin: Origin
    rows_of: Earlier
    fresh: bool
    rotated: str | None = None


@dataclass(frozen=True)
class Draw:
    """Every record is drawn.

    Attributes
    ----------
    version : Version
    origin : Origin
    fresh : bool
        Whether records get new answers; with record keys they keep those of earlier versions of the same columns.
    rotated : str or None
        Fingerprint of the release secret before, if another one is taken knowingly.
    """

    version: Version
    origin: Origin
    fresh: bool
    rotated: str | None = None


Decision = Unchanged | TakeOver | Draw


def decide(
    spec: ReleaseSpec,
    snapshot: Snapshot,
    protocol: Protocol,
    earlier: Sequence[Earlier],
    *,
    secret: str | None = None,
    again: bool = False,
    rotate: bool = False,
) -> Decision:
    """What a run does, given all that was published before.

    Fresh draws about the same people add up, so nothing is drawn that need not be (decision 0003): nothing happens if
    the newest version is of the same origin; rows drawn from the same records with the same protocol, order and secret
    are taken over; else every record is drawn.

    Parameters
    ----------
    spec : ReleaseSpec
    snapshot : Snapshot
    protocol : Protocol
    earlier : sequence of Earlier
        All versions, oldest first; versions that were not published in full may stand anywhere.
    secret : str, optional
        Fingerprint of the release secret, where the spec has a record key.
    again : bool
        Draw although nothing may have changed.
    rotate : bool
        Whether ``secret`` was taken knowingly in place of the one before.

    Raises
    ------
    ValueError
        If there is a record key without a secret, or the reverse.
    """
    if (spec.record_key is None) != (secret is None):
        raise ValueError("a release secret goes with a record key")
    origin = Origin(
        spec=spec.digest,
        source=snapshot.source_sha256,
        snapshot=snapshot.content_sha256,
        protocol=protocol.digest,
        fields=protocol.outputs.columns,
        guarantee=spec.guarantee.canonical,
        shuffle=spec.output.shuffle,
        record_key=spec.record_key,
        secret=secret,
    )
    published = sorted((one for one in earlier if one.published), key=lambda one: one.version)
    newest = published[-1] if published else None
    if newest is not None and newest.record.origin == origin and not again:
        return Unchanged(newest.version)
    # Records from before the digest of the records themselves was noted hold that of the file they were in.
    snapshots = (snapshot.content_sha256, snapshot.data.sha256)
    version = _next(newest, origin, snapshots)
    rotated = secret_before(published) if rotate else None
    if not again:
        # Published rows first: those of an unfinished version may not have been seen.
        for one in (*reversed(published), *(one for one in reversed(earlier) if not one.published)):
            if _same_rows(one.record.origin, origin, snapshots):
                return TakeOver(version, origin, one, not one.published and not _answered(origin, published), rotated)
    return Draw(version, origin, not _answered(origin, published), rotated)


def secret_before(earlier: Sequence[Earlier]) -> str | None:
    """Fingerprint of the release secret of the newest version that was drawn with one; None if none was."""
    published = sorted((one for one in earlier if one.published), key=lambda one: one.version)
    found = (one.record.origin.secret for one in reversed(published))
    return next((fingerprint for fingerprint in found if fingerprint is not None), None)


def fresh_draws(earlier: Sequence[Earlier], rows_sha256: str) -> int:
    """How many draws about the same people, other than these rows, were published or may have been seen.

    Parameters
    ----------
    earlier : sequence of Earlier
    rows_sha256 : str
        Digest of the rows that are about to be published.
    """
    return sum(one.record.fresh for one in earlier if one.published or one.rows_sha256 != rows_sha256)


def _next(newest: Earlier | None, origin: Origin, snapshots: tuple[str, ...]) -> Version:
    if newest is None:
        return next_version(None, False, False)
    before = newest.record.origin
    return next_version(newest.version, before.fields != origin.fields, before.snapshot not in snapshots)


def _same_rows(before: Origin, origin: Origin, snapshots: tuple[str, ...]) -> bool:
    """Whether rows of one origin are rows of the other: the same records, protocol, order and secret."""
    return before.snapshot in snapshots and (before.protocol, before.shuffle, before.secret) == (
        origin.protocol,
        origin.shuffle,
        origin.secret,
    )


def _answered(origin: Origin, published: Sequence[Earlier]) -> bool:
    """Whether records keep their answers: a version of the same columns was drawn with the same secret and key."""
    if origin.secret is None:
        return False
    before = (one.record.origin for one in published)
    return any(
        (one.fields, one.secret, one.record_key) == (origin.fields, origin.secret, origin.record_key) for one in before
    )
