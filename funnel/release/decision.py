"""Decision: whether a release is published or held already, takes over rows drawn before, or is drawn; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from funnel.errors import SpecError
from funnel.protocol import Protocol
from funnel.release.approval import Approval
from funnel.release.earlier import Earlier, Submitted, secret_before
from funnel.release.layout import Version, next_version
from funnel.release.protection import ProtectedCounts
from funnel.release.record import Origin, Record
from funnel.spec import ReleaseSpec

if TYPE_CHECKING:
    from funnel.release.snapshot import Snapshot


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
        Whether records get new answers; with record keys they keep those of earlier versions of the same protocol.
    rotated : str or None
        Fingerprint of the release secret before, if another one is taken knowingly.
    """

    version: Version
    origin: Origin
    fresh: bool
    rotated: str | None = None


@dataclass(frozen=True)
class Waiting:
    """This very release is already held for approval.

    Attributes
    ----------
    release : TakeOver
        What its publication is, once somebody has approved.
    """

    release: TakeOver


@dataclass(frozen=True)
class Rejected:
    """This very release was held and rejected, and nothing has changed since.

    Attributes
    ----------
    version : Version
    """

    version: Version


Decision = Unchanged | Waiting | Rejected | TakeOver | Draw


@dataclass(frozen=True)
class VersionContext:
    """Where a version stands among those of its series.

    Attributes
    ----------
    decision : Draw or TakeOver
        How its rows came about.
    created : str
        Time, ISO 8601.
    earlier : tuple of Earlier
        All versions before it.
    rows_sha256 : str
        Digest of its rows.
    approval : Approval or None
        Who approved; the note stays internal.
    """

    decision: Draw | TakeOver
    created: str
    earlier: tuple[Earlier, ...]
    rows_sha256: str
    approval: Approval | None = None


def origin_of(spec: ReleaseSpec, snapshot: Snapshot, protocol: Protocol, secret: str | None) -> Origin:
    """What a version of a spec is made of.

    Parameters
    ----------
    secret : str or None
        Fingerprint of the release secret, where the spec has a record key.

    Raises
    ------
    ValueError
        If there is a record key without a secret, or the reverse.
    """
    if (spec.record_key is None) != (secret is None):
        raise ValueError("a release secret goes with a record key")
    return Origin(
        spec=spec.digest,
        source=snapshot.source_sha256,
        snapshot=snapshot.content_sha256,
        protocol=protocol.digest,
        fields=spec.released if isinstance(protocol, Protocol) else protocol.columns,
        guarantee=spec.guarantee.canonical,
        shuffle=spec.output.shuffle,
        record_key=spec.record_key,
        secret=secret,
        key_kinds=snapshot.key_kinds,
    )


def decide(
    spec: ReleaseSpec,
    origin: Origin,
    earlier: Sequence[Earlier],
    *,
    protection: ProtectedCounts,
    again: bool = False,
    rotate: bool = False,
    submitted: Sequence[Submitted] = (),
    head: str | None = None,
) -> Decision:
    """What a run does, given all that was published before.

    Fresh draws about the same people add up, so nothing is drawn that need not be (decision 0003): nothing happens if
    the newest version that is there is of the same origin, or one that waits for approval, or one that was rejected;
    rows drawn from the same records with the same protocol, order and secret are taken over, if they are still there;
    else every record is drawn. Versions that were withdrawn count as all others, and no number is used twice. A version
    that was only ever held was never public: its number is used, its draw does not count (decision 0033).

    Parameters
    ----------
    spec : ReleaseSpec
    origin : Origin
        What this run is made of.
    earlier : sequence of Earlier
        All versions, oldest first; versions that were not published in full may stand anywhere.
    protection : ProtectedCounts
        Of the frequencies that the protocol was made for.
    again : bool
        Draw although nothing may have changed.
    rotate : bool
        Whether the release secret was taken knowingly in place of the one before.
    submitted : sequence of Submitted
        All versions that were ever held for approval, oldest first; at most one of them waits.
    head : str, optional
        SHA-256 (hex) of the head of the register that the people are in, where it has versions.

    Raises
    ------
    SpecError
        If a further draw is asked for and the spec does not say who its people are, or what it says cannot be.
    """
    published = sorted((one for one in earlier if one.published), key=lambda one: one.version)
    there = [one for one in published if not one.withdrawn]
    asked = again or rotate
    waiting = next((one.held for one in submitted if one.waiting), None)
    if waiting is not None and _given(waiting.record) != head:
        # Something was published about the same people since: these rows were drawn without knowing it.
        waiting = None

    def is_this(record: Record) -> bool:
        # The noise is no part of an origin: other noise is another release.
        return _noisy(record.frequencies) == _noisy(protection) and record.origin == origin

    if waiting is not None and not asked and is_this(waiting.record):
        record = waiting.record
        return Waiting(TakeOver(waiting.version, origin, waiting, record.fresh, record.rotated))
    if there and is_this(there[-1].record) and not again:
        return Unchanged(there[-1].version)
    last = _last(earlier, submitted)
    rejected = submitted[-1].held if submitted and submitted[-1].rejected else None
    # Drawing until somebody likes the draw would choose among draws, which no bound is about.
    asking = spec.approval.required and not asked
    if asking and rejected and rejected is last and is_this(rejected.record):
        return Rejected(rejected.version)
    version = _next(last, origin)
    rotated = secret_before(published) if rotate else None
    # What is in a register is drawn given what was published before: another answer, whatever the protocol is.
    answered = spec.register is None and _answered([one.record.origin for one in published], origin)
    if not again:
        # Published rows first: those of an unfinished version may not have been seen.
        unseen = () if waiting is None else (waiting,)
        for one in (*reversed(published), *(one for one in reversed(earlier) if not one.published), *unseen):
            if one.folder is not None and _same_rows(one.record, origin, spec.register):
                return TakeOver(version, origin, one, not one.published and not answered, rotated)
    require_people(spec, earlier, rotate)
    return Draw(version, origin, not answered, rotated)


def version_after(origin: Origin, earlier: Sequence[Earlier], submitted: Sequence[Submitted] = ()) -> Version:
    """The number of the next version of an origin, if there is to be one; parameters as of `decide`."""
    return _next(_last(earlier, submitted), origin)


def require_people(spec: ReleaseSpec, earlier: Sequence[Earlier], rotate: bool) -> None:
    """Make sure that it is known what a further draw adds to what was published about the same people.

    Parameters
    ----------
    spec : ReleaseSpec
    earlier : sequence of Earlier
        All versions whose rows were published or may have been seen.
    rotate : bool
        Whether another release secret is taken.

    Raises
    ------
    SpecError
        If the spec does not say who the people are, or says that they are the same and they cannot be known again.
    """
    if not earlier:
        return
    newest = max(earlier, key=lambda one: (one.published, one.version)).version
    if spec.history is None:
        raise SpecError(
            f"version {newest} of this series was drawn before, and what two versions tell about a person together is "
            "more than the bound of each, so nothing was drawn: say in the spec who the people are, with [history] "
            'people = "same" (and a record_key: one bound then holds for everything published about a person) or, if '
            'nobody of an earlier version is among them, people = "different"'
        )
    if spec.register is None:
        return
    if rotate:
        raise SpecError(
            'the release secret cannot be rotated where [history] people = "same": the register knows people by it, '
            "and everything published about them would be forgotten; restore the secret, or start a new series about "
            "other people"
        )
    unknown = [one for one in earlier if _register_of(one.record) != spec.register]
    if unknown:
        raise SpecError(
            f"version {unknown[-1].version} of this series was drawn without the register {spec.register!r}, "
            "which therefore does not know what it told about whom, and no bound can hold over it: set people = "
            '"different" if nobody of it is among the people of this version, or start a series under another name, '
            "whose bound then leaves that version out"
        )


def _noisy(protection: ProtectedCounts) -> tuple[str, str | None]:
    """Which public frequencies these are: how they are protected, and by which noise."""
    return protection.protection, protection.noisy


def _given(record: Record) -> str | None:
    return None if record.history is None else record.history.given


def _register_of(record: Record) -> str | None:
    return None if record.history is None else record.history.register_name


def _last(earlier: Sequence[Earlier], submitted: Sequence[Submitted]) -> Earlier | None:
    """The version of the largest number that is used.

    Numbers of versions that were held are used: whoever approves of 1.1.0 means the one that was looked at. So are
    those in the register of versions that may have been seen before they were in their place in full.
    """
    used = [one for one in earlier if one.published or _register_of(one.record)]
    return max((*used, *(one.held for one in submitted)), key=lambda one: one.version, default=None)


def _next(newest: Earlier | None, origin: Origin) -> Version:
    if newest is None:
        return next_version(None, False, False)
    before = newest.record.origin
    return next_version(newest.version, before.fields != origin.fields, before.snapshot != origin.snapshot)


def _same_rows(record: Record, origin: Origin, register: str | None) -> bool:
    """Whether rows of a version are rows of an origin: the same records, protocol, order, secret and register.

    What is in a register was drawn under a guarantee for everything in it: another one needs other rows.
    """
    before = record.origin
    if before.snapshot != origin.snapshot or _register_of(record) != register:
        return False
    if register is not None and before.guarantee != origin.guarantee:
        return False
    return (before.protocol, before.shuffle, before.secret) == (origin.protocol, origin.shuffle, origin.secret)


def _answered(published: Sequence[Origin], origin: Origin) -> bool:
    """Whether records keep their answers: a version was drawn with the same protocol, secret and keys.

    Keys are the same if their columns and the kinds of these are; a decision is that a protocol is drawn from.
    """
    return origin.secret is not None and any(
        (one.fields, one.protocol, one.secret, one.record_key, one.key_kinds)
        == (origin.fields, origin.protocol, origin.secret, origin.record_key, origin.key_kinds)
        for one in published
    )
