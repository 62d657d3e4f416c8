"""Reconcile: what the ledger must still be told, by what it says and which folders are there; a pure function."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from funnel.errors import LedgerError
from funnel.pipeline.ledger.entry import Event, Judged, Kind
from funnel.release.layout import Version

# What an entry says of where its version is. The other kinds are about runs or about people.
_PLACES = frozenset({"publishing", "published", "unfinished", "withdrawn", "restored"})


@dataclass(frozen=True)
class Found:
    """What was found out about a version.

    Attributes
    ----------
    kind : str
        Of the entry that is missing.
    version : str
    verdict : Judged
        What that entry says.
    before : Event or None
        The entry that it follows, of the same record; None where it is to be entered from the record itself.
    """

    kind: Kind
    version: str
    verdict: Judged
    before: Event | None


def newest_of_each(events: Iterable[Event], series: str, place: str) -> dict[str, Event]:
    """The last event about the place of every version of a series, by version."""
    return {
        event.version: event
        for event in events
        if event.version is not None and event.kind in _PLACES and (event.series, event.place) == (series, place)
    }


def missing_entries(
    newest: Mapping[str, Event], there: Mapping[str, str], known: Collection[str], own: Collection[str]
) -> tuple[Found, ...]:
    """What is to be entered at the start of a run so that ledger and folders agree, whatever a run was killed in.

    A version is announced as "publishing" before it is put in its place, and entered as "published" after. So every
    version that is there was announced by whoever published it. Of one that was not, the ledger learns by its record:
    it is from before the ledger was begun, or another workspace published it. If this one did, after the ledger had
    entries about the series, the ledger is an old copy.

    Parameters
    ----------
    newest : mapping of str to Event
        By version, from `newest_of_each`.
    there : mapping of str to str
        Versions in their place, and the SHA-256 of the bytes of their records.
    known : collection of str
        Versions whose records this workspace keeps: all that were ever published from it, withdrawn ones too.
    own : collection of str
        Versions in their place that this workspace published, by their signature.

    Returns
    -------
    tuple of Found
        To be entered in this order, all of them or none. After that there are none.

    Raises
    ------
    LedgerError
        If the ledger does not know what was published, or this workspace does not: one of them is an old copy.
    """
    found: list[Found] = []
    for version in sorted({*newest, *there, *known}, key=_order):
        before, record = newest.get(version), there.get(version)
        if before is None:
            if newest and version in own:
                raise LedgerError(_ledger_forgets(version))
            found.append(_unheard_of(version, record))
        else:
            found += _since(before, version, record, version in known)
    return tuple(found)


def _unheard_of(version: str, record: str | None) -> Found:
    if record is not None:
        sentence = "it was published before this ledger was begun, or from elsewhere; entered from its record"
        return Found("restored", version, Judged(passed=True, sentence=sentence), None)
    sentence = "it was published and withdrawn without an entry in this ledger; entered from its record"
    return Found("withdrawn", version, Judged(passed=True, sentence=sentence), None)


def _since(before: Event, version: str, record: str | None, known: bool) -> list[Found]:
    if record is not None and before.digests.record not in (None, record):
        raise LedgerError(
            f"the record of version {version} that is in its folder is not the one that the ledger names; restore that "
            "folder from a backup, or the ledger if it is older, so that what was published stays known"
        )
    if before.kind in ("publishing", "unfinished"):
        got_there = Found(
            "published",
            version,
            Judged(passed=True, sentence="the run ended before it could enter this; the version is in its place"),
            before,
        )
        if record is not None:
            return [got_there]
        if known:
            return [got_there, _withdrawn(before, version)]
        if before.kind == "unfinished":
            return []
        sentence = "the run ended before the version was in its place; nothing of it was published"
        return [Found("unfinished", version, Judged(passed=False, sentence=sentence), before)]
    if before.kind == "withdrawn":
        sentence = "it was withdrawn, and its folder is back in its place"
        return [] if record is None else [Found("restored", version, Judged(passed=True, sentence=sentence), None)]
    if record is not None:
        return []
    if not known:
        raise LedgerError(
            f"the ledger says that version {version} of {before.series} was published, and neither its folder nor its "
            "record is here; restore the workspace from a newer backup, or publish from the one that made it"
        )
    return [_withdrawn(before, version)]


def _withdrawn(before: Event, version: str) -> Found:
    return Found("withdrawn", version, Judged(passed=True, sentence="its folder is no longer in its place"), before)


def _ledger_forgets(version: str) -> str:
    return (
        f"the ledger does not know version {version}, which was published, but it knows others of this series; it is "
        "an old backup and would forget what was published: restore a newer one, or see docs/ledger.md if there is none"
    )


def _order(version: str) -> Version:
    found = Version.parse(version)
    if found is None:
        raise ValueError("a version that was published has a number")
    return found
