"""Held versions: judged and whole, private until somebody approves of them; none of them was ever public."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from funnel.errors import DataError, FunnelError, LedgerError, ReleaseRefused
from funnel.release.approval import Approval, Outcome, now
from funnel.release.earlier import Earlier, Submitted
from funnel.release.files import move_version, remove_version, sync_folder, sync_tree, write_whole
from funnel.release.layout import INCOMING, ReleaseFolder, Version
from funnel.release.record import Record, Records
from funnel.release.validated import require_validated
from funnel.release.verdict import Verdict

HELD = ".held-"


@dataclass(frozen=True)
class HeldVersions:
    """The versions of a series that were ever held for approval.

    A version is held in a private folder of the series, beside the published ones, and its evidence and record are kept
    in the workspace; so is its outcome, which is noted before the folder is removed.

    Attributes
    ----------
    root : Path
        Folder of the series.
    internal : Path
        Folder of its internal evidence.
    records : Records
        Of all versions that were ever held, as they were when they were.
    """

    root: Path
    internal: Path
    records: Records

    def folder(self, version: Version) -> ReleaseFolder:
        """Where a version is while it is held."""
        name = f"{HELD}{version}"
        return ReleaseFolder(self.root / name, self.internal / name)

    @property
    def all(self) -> tuple[Submitted, ...]:
        """All of them, oldest first.

        Raises
        ------
        LedgerError
            If a record or an outcome is damaged, or another workspace holds one here.
        """
        known = self.records.known
        for path in self.root.glob(f"{HELD}*"):
            if Version.parse(path.name.removeprefix(HELD)) not in known:
                raise LedgerError(
                    f"{path} was held from another workspace; approve of it or reject it there, or remove it if nobody "
                    "is to approve of it"
                )
        submitted = []
        for version, record in known.items():
            outcome = self.outcome(version)
            folder = self.folder(version)
            waits = outcome is None and folder.root.is_dir()
            held = Earlier.of(record, folder if waits else None, published=False)
            submitted.append(Submitted(held, outcome is not None and outcome.outcome == "rejected"))
        return tuple(submitted)

    @property
    def waiting(self) -> Submitted | None:
        """The one that waits for approval; None if none does."""
        return next((one for one in reversed(self.all) if one.waiting), None)

    def require_waiting(self, version: Version | None = None) -> Version:
        """The version that waits for approval.

        Parameters
        ----------
        version : Version, optional
            The one that is meant.

        Raises
        ------
        LedgerError
            If none waits, or another one.
        """
        waiting = self.waiting
        if waiting is not None and version in (None, waiting.version):
            return waiting.version
        outcomes = [self.outcome(one) for one in self.records.known if version in (None, one)]
        told = "" if not outcomes or outcomes[-1] is None else f"; {outcomes[-1].sentence()}"
        if waiting is not None:
            raise LedgerError(f"version {version} does not wait for approval, but version {waiting.version} does{told}")
        hint = "; funnel release SPEC holds one where the spec says required = true in [approval]"
        raise LedgerError(f"no version waits for approval{told or hint}")

    def outcome(self, version: Version) -> Outcome | None:
        """What became of a version; None while it is held.

        Raises
        ------
        LedgerError
            If that is damaged.
        """
        path = self._outcome(version)
        try:
            return Outcome.read(path) if path.exists() else None
        except DataError as error:
            raise LedgerError(f"{error}; restore it from a backup") from error

    def hold(self, incoming: ReleaseFolder, version: Version, verdict: Verdict) -> None:
        """Keep a version that is complete for approval; one that was held before it is superseded.

        Raises
        ------
        ReleaseRefused
            If the verdict is negative, or its public files are not, byte for byte, those that were judged.
        """
        sync_tree(incoming.root)
        sync_tree(incoming.internal)
        announced = self.records.announce(
            incoming.root.name.removeprefix(INCOMING), version, incoming.record.read_bytes()
        )
        require_validated(incoming, verdict)
        move_version(incoming, self.folder(version))
        self.records.complete(announced)
        self.put_right({})

    def check(self, version: Version) -> None:
        """Make sure that a version that is held is what was judged, byte for byte.

        Raises
        ------
        LedgerError
            If its record, its verdict or a public file is gone or was changed.
        """
        folder, record = self.folder(version), self.records.known[version]
        try:
            verdict = Verdict.read(folder.verdict)
            if Record.read(folder.record) != record or dict(verdict.files) != dict(record.files):
                raise ReleaseRefused("its record or its verdict is another one")
            require_validated(folder, verdict)
        except (FunnelError, OSError) as error:
            said = str(error).removeprefix("nothing was published: ").removesuffix("; run it again")
            reason = error.strerror if isinstance(error, OSError) else said
            raise LedgerError(
                f"version {version}, held in {folder.root}, is not what was judged: {reason}; reject it with funnel "
                "approve SPEC --approver NAME --reject REASON, then release again"
            ) from error

    def close(self, outcome: Outcome) -> None:
        """Note what became of a version that was held, and remove it."""
        version = Version.of(outcome.version)
        write_whole(self._outcome(version), outcome.to_bytes())
        sync_folder(self.records.folder)
        remove_version(self.folder(version))

    def supersede(self, version: Version, reason: str) -> None:
        """Note that a version that was held is so no longer, since there is something newer."""
        self.close(Outcome(version=str(version), outcome="superseded", at=now(), reason=reason))

    def put_right(self, published: dict[Version, Record]) -> None:
        """Close every version but the one that waits, and finish what a killed run left.

        Parameters
        ----------
        published : dict of Version to Record
            All that was ever published.
        """
        for announced in self.records.announced:
            # Its folder is gone, so it was renamed into its place, whatever became of it since.
            self.records.complete(announced)
        there = [one.version for one in self.all if one.waiting]
        for version in self.records.known:
            if self.outcome(version) is not None:
                # What a run that was killed while it closed this version had still to do.
                remove_version(self.folder(version))
            elif version in published:
                self.close(_published(version, published[version].approval))
            elif (newer := _newer(version, published)) is not None:
                self.supersede(version, f"version {newer} was published")
            elif version not in there:
                self.close(Outcome(version=str(version), outcome="gone", at=now(), reason="its folder was removed"))
            elif version != there[-1]:
                self.supersede(version, f"version {there[-1]} is held in its place")

    def _outcome(self, version: Version) -> Path:
        return self.records.folder / f"{version}-outcome.json"


def _published(version: Version, approval: Approval | None) -> Outcome:
    if approval is None:
        return Outcome(version=str(version), outcome="published", at=now(), reason="the spec asked for no approval")
    return Outcome(version=str(version), outcome="published", at=approval.at, by=approval.by, reason=approval.note)


def _newer(version: Version, published: Collection[Version]) -> Version | None:
    return max((one for one in published if one > version), default=None)
