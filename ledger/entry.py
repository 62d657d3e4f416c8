"""Event and entry: what the ledger keeps of one release, one refusal or one thing found out about a release."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from funnel.release.document import Count, Document, Part, Sha256, VersionText

# What a steward reads in `funnel ledger show`:
#   publishing   a version is judged and whole, and is about to be put in its place
#   published    it is in its place
#   refused      a run ended without a version
#   unfinished   a version that was about to be published is not there
#   withdrawn    a published version is no longer there
#   restored     a version is there that this ledger did not see being published, or that was withdrawn
#   forgotten    people were erased from a register
Kind = Literal["publishing", "published", "refused", "unfinished", "withdrawn", "forgotten", "restored"]

Time = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|\+00:00)$")]


class Digests(Part):
    """SHA-256 (hex) of what a version is made of; None where a run did not get that far, or nothing of it is kept.

    Attributes
    ----------
    source, snapshot, joint : str or None
        Of the source, of the recoded records, and of the counts of (secret, input).
    target, drawing, protocol : str or None
        Of the protocol aimed at, of what the rows were drawn with given the history, and of the published channel.
    record : str or None
        Of the bytes of its record, ``release.json``: which of two folders of one number is meant.
    register_head : str or None
        Of the register once this version is in it.
    """

    source: Sha256 | None = None
    snapshot: Sha256 | None = None
    joint: Sha256 | None = None
    target: Sha256 | None = None
    drawing: Sha256 | None = None
    protocol: Sha256 | None = None
    record: Sha256 | None = None
    register_head: Sha256 | None = None


class Judged(Part):
    """What became of a run, or of what was found out about a version.

    Attributes
    ----------
    passed : bool
    sentence : str
        One sentence for people, without any row of the source.
    """

    passed: bool
    sentence: str


class Event(Part):
    """What happened to a version, or to a run that made none.

    Attributes
    ----------
    kind : str
        What happened.
    series : str
    place : str or None
        Where the versions of the series are as seen from the workspace, as a short digest: one name may stand for
        several folders.
    register : str or None
        The people: series of one register are about the same ones.
    version : str or None
        None where a run was refused before its version was known.
    guarantee : str or None
        The declared bound, such as ``"lip:1.0"``.
    level, joint_level : float or None
        Of the version alone, and over all histories (nats); None where it is not known or not finite.
    histories, moved, outside : int or None
        Different histories; people whom earlier versions took outside the bound; people outside it after this.
    rows : int or None
    digests : Digests
    key : str or None
        Fingerprint of the release secret.
    verdict : Judged
    started : str or None
        When the run began, in UTC.
    started_by : str
        ``user@host``, or the name of the run in the orchestrator.
    software : mapping of str to str
    """

    kind: Kind
    series: str = Field(min_length=1)
    place: str | None = None
    register_name: str | None = Field(default=None, alias="register")
    version: VersionText | None = None
    guarantee: str | None = None
    level: float | None = None
    joint_level: float | None = None
    histories: Count | None = None
    moved: Count | None = None
    outside: Count | None = None
    rows: Count | None = None
    digests: Digests = Digests()
    key: str | None = None
    verdict: Judged
    started: Time | None = None
    started_by: str = Field(min_length=1)
    software: Mapping[str, str] = Field(default_factory=dict)

    def followed_by(self, kind: Kind, verdict: Judged, started_by: str) -> Event:
        """What became of it: the same version, with everything that is known of it."""
        return self.model_copy(update={"kind": kind, "verdict": verdict, "started_by": started_by})


class Entry(Document):
    """An event with its place in the ledger.

    Attributes
    ----------
    serial : int
        1, 2, …: the order of entries, whatever the clock says.
    at : str
        When it was entered, in UTC, by the clock of whoever did.
    note : str or None
        What is odd about it: that the clock went back.
    event : Event
    """

    described: ClassVar[str] = "the ledger's entry"
    schema_: Literal["funnel/ledger/1"] = Field(default="funnel/ledger/1", alias="schema")
    serial: int = Field(ge=1)
    at: Time
    note: str | None = None
    event: Event


def in_utc(time: datetime) -> str:
    """A time as entries note it.

    Raises
    ------
    ValueError
        If it names no time zone.
    """
    if time.tzinfo is None:
        raise ValueError("a time of the ledger has a time zone")
    return time.astimezone(UTC).isoformat(timespec="seconds")
