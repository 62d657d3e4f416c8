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
from funnel.release.layout import INCOMING, LATEST, ReleaseFolder, Version, versions
from tasks.files import private_folder, remove_tree, sync_folder


@dataclass(frozen=True)
class Series:
    """The versions of one release.

    Attributes
    ----------
    root : Path
        ``<output folder>/<name>``.
    """

    root: Path

    @property
    def published(self) -> list[Version]:
        """Versions that are there, oldest first."""
        return versions(self.root)

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
        path = self.folder(version).record
        try:
            content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise LedgerError(
                f"the record {path} of version {version} is missing or damaged, so it is unknown what was published "
                "about the same people; restore it from a backup"
            ) from error
        return content

    def drawn_before(self, record: dict[str, Any]) -> str | None:
        """Folder of the newest version whose rows were drawn from the same snapshot with the same protocol, if any.

        Its rows can be taken over: drawing them afresh would reveal more, and tell a data user nothing new.
        """
        for version in reversed(self.published):
            before = self.record(version)
            if all(before.get(key) == record.get(key) for key in ("snapshot", "protocol", "shuffle", "secret")):
                return str(self.folder(version).root)
        return None

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


@contextmanager
def open_series(output: Path, workspace: Path, name: str) -> Iterator[Series]:
    """Hold a series for one run, after putting right what a killed run left behind.

    A killed run can leave a folder of unpublished files, which is removed, and a version that ``latest`` does not
    name yet, which is whole, since it was renamed into place after everything in it was on disk.

    Raises
    ------
    PipelineError
        If another run holds it.
    OutputError
        If the output folder cannot be written.
    """
    series = Series(output / name)
    try:
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
            for leftover in [*series.root.glob(f"{INCOMING}*"), *series.root.glob(f".{LATEST}-*")]:
                leftover.unlink() if leftover.is_symlink() else remove_tree(leftover)
            series.point_latest()
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
