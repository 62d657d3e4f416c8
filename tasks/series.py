"""The folder of a release series: one run at a time, leftovers of a killed run removed, earlier versions known."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from funnel.errors import LedgerError, OutputError, PipelineError
from funnel.pipeline.tasks.files import private_folder, remove_tree, sync_folder
from funnel.pipeline.tasks.remote import RemoteSeries
from funnel.release.layout import INCOMING, LATEST, ReleaseFolder, Version, versions
from funnel.source import file_digest
from funnel.spec import ReleaseSpec
from funnel.storage import joined

# A version that was put together and not published, or not in full; its rows may have been seen.
UNFINISHED = ".unfinished-"


@dataclass(frozen=True)
class Series:
    """The versions of one release.

    Attributes
    ----------
    root : Path
        ``<output folder>/<name>``.
    remote : RemoteSeries or None
        Where the public files appear, if not here: then this folder is private and holds the records.
    """

    root: Path
    remote: RemoteSeries | None = None

    @classmethod
    def of(cls, spec: ReleaseSpec) -> Series:
        """The series of a spec."""
        remote = None if spec.output_url is None else RemoteSeries(joined(spec.output_url, spec.name))
        return cls(spec.output_folder / spec.name, remote)

    @property
    def published(self) -> list[Version]:
        """Versions that are there, oldest first."""
        return versions(self.root) if self.remote is None else self.remote.published

    @property
    def unfinished(self) -> list[Path]:
        """Folders of versions that did not get to their URL in full, oldest first."""
        return sorted(self.root.glob(f"{UNFINISHED}*"))

    def fresh_draws(self, rows: str) -> int:
        """How many draws about the same people, other than these rows, were published or may have been seen.

        Parameters
        ----------
        rows : str
            Digest of the rows that are about to be published.
        """
        seen = [ReleaseFolder(folder) for folder in self.unfinished]
        folders = [
            *(self.folder(version) for version in self.published),
            *(folder for folder in seen if file_digest(folder.data) != rows),
        ]
        return sum(bool(_record(folder)["fresh"]) for folder in folders)

    def shown(self, version: Version) -> tuple[str, str]:
        """Where readers find a version and its report: paths, or URLs."""
        folder = self.folder(version)
        if self.remote is None:
            return str(folder.root), str(folder.report)
        return joined(self.remote.url, str(version)), joined(self.remote.url, str(version), folder.report.name)

    @property
    def newest(self) -> Version | None:
        """The newest version; None before the first release."""
        return self.published[-1] if self.published else None

    def folder(self, version: Version) -> ReleaseFolder:
        """The folder of a version."""
        return ReleaseFolder(self.root / str(version))

    def record(self, version: Version) -> dict[str, Any]:
        """What a version was made from.

        Raises
        ------
        LedgerError
            If its record is missing or damaged: what was already published about these people is then unknown.
        """
        return _record(self.folder(version))

    def drawn_before(self, record: dict[str, Any]) -> str | None:
        """Folder of the newest version whose rows were drawn from the same snapshot with the same protocol, if any.

        Its rows can be taken over: drawing them afresh would reveal more, and tell a data user nothing new.
        """
        folders = [*map(ReleaseFolder, self.unfinished), *(self.folder(version) for version in self.published)]
        for folder in reversed(folders):
            before = _record(folder)
            if all(before.get(key) == record.get(key) for key in ("snapshot", "protocol", "shuffle", "secret")):
                return str(folder.root)
        return None

    def publish(self, version: Version) -> None:
        """Put a version that has its place in this folder where readers look for it, and ``latest`` after it."""
        if self.remote is not None:
            self.remote.upload(version, self.folder(version))
            self.remote.point_latest()
            rows = file_digest(self.folder(version).data)
            for folder in self.unfinished:
                if file_digest(ReleaseFolder(folder).data) == rows:
                    remove_tree(folder)
        self.point_latest()

    def put_right(self) -> None:
        """Remove or finish what a killed run left behind.

        Raises
        ------
        LedgerError
            If versions were published whose records are not here.
        OutputError
            If versions are published at a URL that cannot be written.
        """
        for leftover in [*self.root.glob(f"{INCOMING}*"), *self.root.glob(f".{LATEST}-*")]:
            leftover.unlink() if leftover.is_symlink() else remove_tree(leftover)
        if self.remote is not None:
            self.remote.check_writable()
            published = self.remote.published
            for version in published:
                self.record(version)
                self.remote.check_same(version, self.folder(version))
            # What was uploaded in part may have been seen: its rows are kept, to be taken over rather than redrawn.
            for version in versions(self.root):
                if version not in published:
                    self.folder(version).root.rename(self.root / f"{UNFINISHED}{version}-{secrets.token_hex(4)}")
            self.remote.remove_leftovers()
            self.remote.point_latest()
        self.point_latest()

    def answered_before(self, record: dict[str, Any]) -> bool:
        """Whether a version of the same columns was drawn with the same secret: its records keep their answers."""
        before = (self.record(version) for version in self.published)
        return any(all(one.get(key) == record[key] for key in ("fields", "secret")) for one in before)

    @property
    def secret_fingerprint(self) -> str | None:
        """Of the release secret of the newest version that was drawn with one; None if none was."""
        found = (self.record(version).get("secret") for version in reversed(self.published))
        return next((str(fingerprint) for fingerprint in found if fingerprint is not None), None)

    def incoming(self) -> Path:
        """A new private folder, on the same file system, to put a release together in."""
        return private_folder(self.root / f"{INCOMING}{secrets.token_hex(6)}")

    def point_latest(self) -> None:
        """Let ``latest`` name the newest version, at once."""
        newest = self.newest
        latest = self.root / LATEST
        if newest is None or (latest.is_symlink() and str(latest.readlink()) == str(newest)):
            return
        fresh = self.root / f".{LATEST}-{secrets.token_hex(6)}"
        fresh.symlink_to(str(newest), target_is_directory=True)
        fresh.replace(latest)
        sync_folder(self.root)


def _record(folder: ReleaseFolder) -> dict[str, Any]:
    try:
        content = json.loads(folder.record.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or not isinstance(content.get("fresh"), bool):
            raise ValueError("no record of a release")
    except (OSError, ValueError) as error:
        raise LedgerError(
            f"the record {folder.record} of version {folder.root.name} is missing or damaged, so it is unknown what "
            "was published about the same people; restore it from a backup"
        ) from error
    return content


@contextmanager
def open_series(output: Path, workspace: Path, name: str, remote: RemoteSeries | None = None) -> Iterator[Series]:
    """Hold a series for one run, after putting right what a killed run left behind.

    A killed run can leave a folder of unpublished files, which is removed, and a version that ``latest`` does not
    name yet, which is whole, since it was renamed into place after everything in it was on disk.

    Raises
    ------
    PipelineError
        If another run holds it.
    OutputError
        If the output folder or URL cannot be written.
    LedgerError
        If versions were published at a URL whose records are not in the workspace.
    """
    series = Series(output / name, remote)
    try:
        if remote is not None:
            private_folder(series.root)
        series.root.mkdir(parents=True, exist_ok=True)
        private_folder(workspace)
        lock = FileLock(workspace / f"{name}.lock")
        lock.acquire(blocking=False)
    except Timeout as error:
        raise PipelineError(f"another run is making the release {name}; wait until it has ended") from error
    except OSError as error:
        raise _not_writable(error, output) from error
    try:
        try:
            series.put_right()
        except OSError as error:
            raise _not_writable(error, output) from error
        yield series
    finally:
        lock.release()


def _not_writable(error: OSError, output: Path) -> OutputError:
    place = error.filename or output
    return OutputError(
        f"cannot write to {place}: {error.strerror or type(error).__name__}; choose another folder in [output] or "
        "change its permissions"
    )
