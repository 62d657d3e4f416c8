"""Account: one run's part in the ledger, from its beginning, where it agrees with the folders, to its end."""

from __future__ import annotations

import getpass
import json
import socket
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from funnel.errors import DataError, FunnelError, LedgerError, OutputError, PipelineError
from funnel.pipeline.ledger.entry import Digests, Event, Judged, in_utc
from funnel.pipeline.ledger.holding import PATIENT, Patience
from funnel.pipeline.ledger.ledger import Ledger, now
from funnel.pipeline.ledger.reconcile import Found, missing_entries, newest_of_each
from funnel.progress import Progress, quiet
from funnel.readers.source_files import file_digest
from funnel.register.register import Register
from funnel.release.findings import FindingsDocument
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.provenance import software
from funnel.release.record import History, Record
from funnel.release.series import Series
from funnel.release.signature import public_key_of, signer_of
from funnel.release.verdict import Verdict
from funnel.spec import ReleaseSpec

# What says nothing of the release: a full disk, a lost connection, another run that is at work.
_OPERATIONAL = (LedgerError, OutputError, PipelineError)


def ledger_of(spec: ReleaseSpec, *, read_only: bool = False, clock: Callable[[], datetime] = now) -> Ledger:
    """Open the ledger of a spec.

    Raises
    ------
    LedgerError
        As `Ledger.open`.
    """
    return Ledger.open(spec.ledger.url, spec.workspace_folder, read_only=read_only, clock=clock)


@contextmanager
def accounting(
    spec: ReleaseSpec,
    series: Series,
    *,
    progress: Progress = quiet,
    patience: Patience = PATIENT,
    clock: Callable[[], datetime] = now,
    releases: bool = True,
) -> Iterator[Account]:
    """Hold the register of a series and account for a run of it, from before anything is read to its end.

    At the beginning the chain of the ledger is walked, and the ledger is told what a run that was killed could not. A
    run that ends with a `FunnelError` about the release is entered as refused.

    Parameters
    ----------
    spec : ReleaseSpec
    series : Series
        That this run holds (`funnel.release.series.open_series`).
    progress : callable
    patience : Patience
        How long to wait for another run about the same people.
    clock : callable
    releases : bool
        Whether this run is to release something, so that its failure is a refusal.

    Raises
    ------
    LedgerError
        If the ledger cannot be read or written, was changed, or is an old copy; or the workspace is.
    PipelineError
        If another run holds the register for too long.
    """
    with ledger_of(spec, clock=clock) as ledger:
        register = spec.register or spec.name
        with ledger.holding(register, patience, progress):
            ledger.verify()
            account = Account(ledger, spec, series, in_utc(clock()), started_by())
            account.reconcile()
            try:
                yield account
            except BaseException as error:
                if releases:
                    account.ended(error)
                raise


def is_remembered(ledger: Ledger, series: Series) -> bool:
    """Whether a ledger has an entry that puts every version of a series that is there in its place.

    Parameters
    ----------
    ledger : Ledger
        Which may be one that is only looked at.
    series : Series
    """
    name = series.root.name
    newest = newest_of_each((entry.event for entry in ledger.entries(series=name)), name, series.place)
    return all(
        (found := newest.get(str(version))) is not None and found.kind in ("published", "restored")
        for version in series.published
    )


def untrue(event: Event, folder: ReleaseFolder) -> str | None:
    """What an entry about a version says otherwise than its record, read as plain JSON; None where nothing."""
    record = json.loads(folder.record.read_bytes())
    origin, history = record["origin"], record["history"] or {}
    told = event.model_dump(mode="json", by_alias=True)
    known = {
        **{name: record[name] for name in ("version", "rows", "software")},
        "guarantee": origin["guarantee"],
        "key": origin["secret"],
        "joint_level": history.get("level"),
        **{name: history.get(name) for name in ("register", "histories", "moved", "outside")},
    }
    digests = {
        **{name: origin[name] for name in ("source", "snapshot", "protocol")},
        **{name: history.get(name) for name in ("target", "drawing")},
        "register_head": history.get("head"),
        "record": file_digest(folder.record),
    }
    for said, right in ((told, known), (told["digests"], digests)):
        for name, value in right.items():
            if said[name] != value:
                return f"the entry about version {record['version']} in the ledger has another {name} than its record"
    return None


class Account:
    """What a run tells the ledger; see `accounting`.

    Parameters
    ----------
    ledger : Ledger
        Whose lock on the register this run holds.
    spec : ReleaseSpec
    series : Series
    started, started_by : str
        When the run began and who began it, as entries note it.

    Attributes
    ----------
    announced : Event or None
        The version that is about to be put in its place.
    """

    def __init__(self, ledger: Ledger, spec: ReleaseSpec, series: Series, started: str, started_by: str) -> None:
        self.ledger = ledger
        self.spec = spec
        self.series = series
        self.started = started
        self.started_by = started_by
        self.announced: Event | None = None

    def require_register(self, register: Register) -> None:
        """Make sure that a register is not older than what the ledger knows of it.

        Parameters
        ----------
        register : Register
            After what a killed run left in it was finished.

        Raises
        ------
        LedgerError
            If the ledger names a head that the register does not know: it is an old backup.
        """
        named = None
        for entry in self.ledger.entries(register=register.name):
            if entry.event.kind in ("published", "restored", "forgotten"):
                named = entry.event.digests.register_head or named
        if named is not None:
            register.require_head(named)

    def publishing(self, folder: ReleaseFolder) -> None:
        """Announce a version that is complete; nothing may be put in its place before this returned.

        Parameters
        ----------
        folder : ReleaseFolder
            Where it was put together, with its verdict and its record.

        Raises
        ------
        LedgerError
            If it cannot be entered, or the lock on the register was lost; nothing was published then.
        """
        verdict = Verdict.read(folder.verdict)
        event = self._of_folder(folder, Judged(passed=verdict.passed, sentence=verdict.sentence()))
        if (said := untrue(event, folder)) is not None:
            raise LedgerError(f"nothing was published: {said}")
        try:
            self.ledger.append(event)
        except LedgerError as error:
            raise LedgerError(f"nothing was published: {error}") from error
        self.announced = event

    def published(self) -> str | None:
        """Enter that the announced version is in its place.

        Returns
        -------
        str or None
            One sentence where it could not be entered: the version is published all the same, and the next run enters
            it.
        """
        if self.announced is None:
            raise ValueError("a version is announced before it is published")
        event, self.announced = self.announced, None
        try:
            self.ledger.append(event.model_copy(update={"kind": "published"}))
        except LedgerError as error:
            return f"version {event.version} is published, and the next run enters that, since now {error}"
        return None

    def refused(self, sentence: str, version: Version | None = None) -> None:
        """Enter that a run, or somebody, refused a version.

        Raises
        ------
        LedgerError
            If it cannot be entered.
        """
        self.ledger.append(
            self._event(
                kind="refused",
                version=None if version is None else str(version),
                guarantee=self.spec.guarantee.canonical,
                verdict=Judged(passed=False, sentence=sentence),
            )
        )

    def forgotten(self, people: int, register_head: str) -> None:
        """Enter that people were erased from the register.

        Parameters
        ----------
        people : int
        register_head : str
            Digest of its head after that.

        Raises
        ------
        LedgerError
            If it cannot be entered.
        """
        sentence = f"{people} {'person was' if people == 1 else 'people were'} erased from the register on request"
        digests = Digests(register_head=register_head)
        event = self._event(kind="forgotten", digests=digests, verdict=Judged(passed=True, sentence=sentence))
        try:
            self.ledger.append(event)
        except LedgerError as error:
            raise LedgerError(f"{sentence}, but that could not be entered: {error}") from error

    def ended(self, error: BaseException) -> None:
        """Enter what a run that failed came to, as far as that is possible: what it failed with matters more."""
        try:
            if self.announced is not None:
                # In its place or not: as the next run would find out.
                self.announced = None
                self.reconcile()
            if isinstance(error, FunnelError) and not isinstance(error, _OPERATIONAL):
                self.refused(str(error))
        except (FunnelError, OSError):
            pass

    def reconcile(self) -> tuple[Found, ...]:
        """Tell the ledger what is missing in it about this series; returns what that was.

        Raises
        ------
        LedgerError
            If ledger and workspace contradict each other, a record is damaged, or the ledger cannot be written.
        """
        name, place = self.series.root.name, self.series.place
        # Says what is wrong with records that are missing or another one than was published.
        records = {str(one.version): one.record for one in self.series.earlier}
        newest = newest_of_each((entry.event for entry in self.ledger.entries(series=name)), name, place)
        there = {str(version): file_digest(self.series.folder(version).record) for version in self.series.published}
        known = {str(version) for version in self.series.records.known}
        found = missing_entries(newest, there, known, self._own(there.keys() - newest.keys()))
        self.ledger.append_all([self._of_found(one, records) for one in found])
        return found

    def _own(self, versions: Collection[str]) -> set[str]:
        """Those of these versions that were signed with the key of this workspace."""
        key = public_key_of(self.spec.workspace_folder) if versions else None
        folders = {
            text: self.series.folder(version) for text in versions if (version := Version.parse(text)) is not None
        }
        return {text for text, folder in folders.items() if key is not None and signer_of(folder) == key}

    def _of_found(self, found: Found, records: dict[str, Record]) -> Event:
        if found.before is not None:
            return found.before.followed_by(found.kind, found.verdict, self.started_by)
        version = Version.parse(found.version)
        if version is not None and version in self.series.published:
            return self._of_folder(self.series.folder(version), found.verdict).model_copy(update={"kind": found.kind})
        return self._of_record(records[found.version], found.verdict).model_copy(update={"kind": found.kind})

    def _of_folder(self, folder: ReleaseFolder, verdict: Judged) -> Event:
        """A version as its folder tells it."""
        event = self._of_record(Record.read(folder.record), verdict)
        try:
            level = FindingsDocument.read(folder.findings).level
        except DataError:
            # Of a version that was published before this ledger was begun.
            level = None
        digests = event.digests.model_copy(
            update={
                "joint": file_digest(folder.joint) if folder.joint.is_file() else None,
                "record": file_digest(folder.record),
            }
        )
        return event.model_copy(update={"level": level, "digests": digests})

    def _of_record(self, record: Record, verdict: Judged) -> Event:
        """A version as its record tells it, as one that is about to be published."""
        # Of people who are others in every version nothing is known.
        origin, history = record.origin, record.history or History(people="different")
        return self._event(
            kind="publishing",
            register=history.register_name,
            version=record.version,
            guarantee=origin.guarantee,
            joint_level=history.level,
            histories=history.histories,
            moved=history.moved,
            outside=history.outside,
            rows=record.rows,
            digests=Digests.like(origin, target=history.target, drawing=history.drawing, register_head=history.head),
            key=origin.secret,
            verdict=verdict,
            software=dict(record.software),
        )

    def _event(self, **told: Any) -> Event:
        """Something that this run did, or found out."""
        of_run = {
            "series": self.series.root.name,
            "place": self.series.place,
            "register": self.spec.register,
            "started": self.started,
            "started_by": self.started_by,
            "software": software(),
        }
        return Event(**{**of_run, **told})


def started_by() -> str:
    """``user@host``, or inside a flow ``prefect run NAME``; no secret is in either."""
    if "prefect" in sys.modules:
        from prefect.context import FlowRunContext

        context = FlowRunContext.get()
        if context is not None and context.flow_run is not None:
            return f"prefect run {context.flow_run.name}"
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        # A container whose user has no name.
        user = "unknown"
    return f"{user}@{socket.gethostname() or 'unknown'}"
