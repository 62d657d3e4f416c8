"""Records kept in the private workspace: what was published stays known after a version was withdrawn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from funnel.errors import DataError, LedgerError
from funnel.release.files import private_folder, sync_folder, write_whole
from funnel.release.layout import Version
from funnel.release.record import Record

_COMING = re.compile(r"\.coming-([0-9a-f]+)-([0-9.]+)\.json")


@dataclass(frozen=True)
class Announced:
    """A record that was written just before its version was put in its place; whether it got there is not yet known.

    Attributes
    ----------
    path : Path
    token : str
        Of the folder that the version was put together in.
    version : Version
    """

    path: Path
    token: str
    version: Version


@dataclass(frozen=True)
class Records:
    """The records of all versions that were ever published of one series.

    A version is announced, then renamed into its place, then its record is settled. A run that is killed in between
    leaves an announced record, and the folder that it names tells whether the rename was done.

    Attributes
    ----------
    folder : Path
        ``<workspace>/<name>/records/<place>``: a series is known by where it is, seen from the workspace.
    """

    folder: Path

    @property
    def known(self) -> dict[Version, Record]:
        """The record of every version that was ever published, oldest first.

        Raises
        ------
        LedgerError
            If one is damaged.
        """
        found = {}
        for path in self.folder.glob("*.json") if self.folder.is_dir() else ():
            version = Version.parse(path.stem)
            if version is not None:
                found[version] = self._read(path, version)
        return dict(sorted(found.items()))

    @property
    def announced(self) -> Iterator[Announced]:
        """What killed runs left announced."""
        for path in sorted(self.folder.glob(".coming-*")) if self.folder.is_dir() else ():
            match = _COMING.fullmatch(path.name)
            version = None if match is None else Version.parse(match[2])
            if match is not None and version is not None:
                yield Announced(path, match[1], version)

    def announce(self, token: str, version: Version, content: bytes) -> Announced:
        """Note that a version is about to be put in its place; on disk when this returns."""
        path = private_folder(self.folder) / f".coming-{token}-{version}.json"
        write_whole(path, content)
        sync_folder(self.folder)
        return Announced(path, token, version)

    def complete(self, announced: Announced) -> None:
        """Note that it got there: from now on it counts, whatever becomes of its folder."""
        announced.path.replace(self._place(announced.version))
        sync_folder(self.folder)

    def forget(self, token: str) -> None:
        """Note that what was announced did not get there."""
        for one in self.announced:
            if one.token == token:
                one.path.unlink()
                sync_folder(self.folder)

    def learn(self, record: Record) -> None:
        """Keep the record of a version that is in its place and is not known here."""
        version = Version.parse(record.version)
        if version is None:
            raise ValueError("a record holds a version")
        private_folder(self.folder)
        write_whole(self._place(version), record.to_bytes())
        sync_folder(self.folder)

    def _place(self, version: Version) -> Path:
        return self.folder / f"{version}.json"

    def _read(self, path: Path, version: Version) -> Record:
        try:
            record = Record.from_json(path.read_bytes(), f"{version}, {path},")
        except (OSError, DataError) as error:
            found = str(error) if isinstance(error, DataError) else f"the record {path} cannot be read"
            raise LedgerError(
                f"{found}; restore it from a backup, or remove it if the folder of version {version} is still there: "
                "it is then learnt again"
            ) from error
        if record.version != str(version):
            raise LedgerError(
                f"the record {path} is that of version {record.version}; restore the one of version {version} from a "
                "backup"
            )
        return record
