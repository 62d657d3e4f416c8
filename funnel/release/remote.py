"""A release series at a URL: which versions are whole there, and putting one there all or nothing."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from funnel.errors import LedgerError, OutputError
from funnel.progress import Progress
from funnel.release.layout import INDEX, LATEST, ReleaseFolder, Version
from funnel.storage import attempt, filesystem, joined

# They have no folders to make, and making one would make the bucket of a misspelt name.
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "adl", "oci", "oss", "memory"})

T = TypeVar("T")


@dataclass(frozen=True)
class RemoteSeries:
    """The public side of a release series, at an fsspec URL.

    Object stores rename nothing at once. So a version exists when its ``datapackage.json`` does, which is put there
    after all other files of the version and never before; and the object ``latest`` holds the newest version as text.

    Attributes
    ----------
    url : str
        ``<output folder>/<name>``.
    """

    url: str

    @property
    def published(self) -> list[Version]:
        """Versions that are whole, oldest first.

        Raises
        ------
        OutputError
            If the URL cannot be listed.
        """
        return sorted(version for version, whole in self._folders().items() if whole)

    def check_writable(self) -> None:
        """Write an empty object and remove it, so that no work is done for an output that cannot be published.

        Raises
        ------
        OutputError
            If there is no such bucket, or it may not be written.
        """
        storage, root = filesystem(self.url)
        probe = f"{root}/.writable-{secrets.token_hex(6)}"

        def write() -> None:
            _prepare(storage, probe)
            storage.pipe_file(probe, b"")
            storage.rm_file(probe)

        self._attempt(write)

    def remove_leftovers(self) -> None:
        """Remove what interrupted runs left: files of versions without a ``datapackage.json``."""
        storage, root = filesystem(self.url)
        for version, whole in self._folders().items():
            if not whole:
                self._attempt(lambda version=version: storage.rm(f"{root}/{version}", recursive=True))  # type: ignore[misc]

    def check_same(self, version: Version, local: ReleaseFolder) -> None:
        """Make sure that a version there is the one whose records are here.

        Raises
        ------
        LedgerError
            If it was published from another workspace.
        """
        package = joined(self.url, str(version), local.package.name)
        storage, inside = filesystem(package)
        if local.package.is_file() and self._attempt(lambda: storage.cat_file(inside)) != local.package.read_bytes():
            raise LedgerError(
                f"{joined(self.url, str(version))} was published from another workspace than {local.root}, so it is "
                "unknown what was published about the same people; publish from that workspace or under another URL"
            )

    def upload(self, version: Version, local: ReleaseFolder, progress: Progress) -> None:
        """Put the public files of a version there, ``datapackage.json`` last.

        Raises
        ------
        OutputError
            If a file cannot be written, or is not there in full after it was.
        """
        storage, root = filesystem(joined(self.url, str(version)))
        if self._attempt(lambda: storage.exists(f"{root}/{local.package.name}")):
            raise OutputError(f"{self.url} has a version {version} that another run put there meanwhile; run again")
        files = sorted(path for path in local.root.rglob("*") if path.is_file())
        for path in [*(path for path in files if path != local.package), local.package]:
            name = path.relative_to(local.root).as_posix()
            progress(f"uploading {name}", 0, None)
            self._attempt(lambda path=path, name=name: _put(storage, path, f"{root}/{name}"))  # type: ignore[misc]
            if self._attempt(lambda name=name: storage.size(f"{root}/{name}")) != path.stat().st_size:  # type: ignore[misc]
                raise OutputError(f"{joined(self.url, str(version), name)} did not arrive in full; run again")

    def point_latest(self) -> None:
        """Let ``latest`` name the newest version."""
        published = self.published
        if published:
            self._put(LATEST, f"{published[-1]}\n".encode())

    def put_index(self, content: bytes | None) -> None:
        """Put the series index there; nothing where there is none."""
        if content is not None:
            self._put(INDEX, content)

    def read_index(self) -> bytes | None:
        """The series index that is there; None where none is."""
        storage, inside = filesystem(joined(self.url, INDEX))
        return self._attempt(lambda: bytes(storage.cat_file(inside)) if storage.exists(inside) else None)

    def _put(self, name: str, content: bytes) -> None:
        """Let an object beside the versions hold this."""
        storage, inside = filesystem(joined(self.url, name))

        def put() -> None:
            if not storage.exists(inside) or storage.cat_file(inside) != content:
                storage.pipe_file(inside, content)

        self._attempt(put)

    def _folders(self) -> dict[Version, bool]:
        """Versions of which there is anything, and whether they are whole."""
        storage, root = filesystem(self.url)

        def found() -> list[str]:
            try:
                return [str(path) for path in storage.find(root)]
            except FileNotFoundError:
                return []

        folders: dict[Version, bool] = {}
        package = ReleaseFolder(Path()).package.name
        for path in self._attempt(found):
            first, _, rest = path.removeprefix(root.rstrip("/") + "/").partition("/")
            version = Version.parse(first)
            if version is not None and rest:
                folders[version] = folders.get(version, False) or rest == package
        return folders

    def _attempt(self, action: Callable[[], T]) -> T:
        missing = (
            f"{self.url} cannot be written: there is no such bucket or folder; check folder in [output] of the spec"
        )
        return attempt(action, self.url, OutputError, missing)


def _put(storage: Any, path: Path, target: str) -> None:
    _prepare(storage, target)
    storage.put_file(str(path), target)


def _prepare(storage: Any, target: str) -> None:
    protocols = {storage.protocol} if isinstance(storage.protocol, str) else set(storage.protocol)
    if protocols.isdisjoint(OBJECT_STORES):
        storage.makedirs(target.rpartition("/")[0], exist_ok=True)
