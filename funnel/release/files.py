"""Files that steps hand each other: written whole or not at all, named by path and content digest."""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from funnel.errors import DataError, OutputError, SpecError
from funnel.readers.source_files import file_digest
from funnel.release.layout import ReleaseFolder
from funnel.storage import writing_in


@dataclass(frozen=True)
class FileRef:
    """A file and what it held when it was made; small enough to hand from step to step.

    Attributes
    ----------
    path : str
    sha256 : str
        Hexadecimal digest of its bytes.
    """

    path: str
    sha256: str

    @classmethod
    def of(cls, path: Path) -> FileRef:
        """Reference to a file as it is now."""
        return cls(str(path), file_digest(path))

    def intact(self) -> bool:
        """Whether the file is there and unchanged."""
        return Path(self.path).is_file() and file_digest(self.path) == self.sha256

    def checked(self) -> Path:
        """The path of a large file, after making sure that it is what the reference says.

        Raises
        ------
        DataError
            If it is gone or has changed.
        """
        if not self.intact():
            raise self._changed()
        return Path(self.path)

    def read(self) -> bytes:
        """The content of a small file, read once: what is returned is what was checked.

        Raises
        ------
        DataError
            If it is gone or has changed.
        """
        try:
            content = Path(self.path).read_bytes()
        except OSError as error:
            raise self._changed() from error
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise self._changed()
        return content

    def _changed(self) -> DataError:
        return DataError(f"the working file {self.path} is gone or was changed; run the release again to remake it")


def private_folder(path: Path) -> Path:
    """Make a folder, and those above it that are missing, readable by its owner alone: working files hold source rows.

    Raises
    ------
    OutputError
        If it cannot be made.
    """
    try:
        for folder in (*reversed(path.parents), path):
            if not folder.is_dir():
                folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot make the folder {error.filename or path}: {error.strerror or type(error).__name__}; choose "
            "another place in [output] of the spec or change its permissions"
        ) from error
    return path


def open_to_all(path: Path) -> None:
    """Let everybody read a file or a folder with all below it, and its owner alone write: what is published is public.

    The mask of the process (umask) has no part in it. Who may reach the place depends on the folders above.
    """
    folder = path.is_dir()
    path.chmod(0o755 if folder else 0o644)
    if folder:
        for entry in path.iterdir():
            open_to_all(entry)


def write_whole(path: Path, content: bytes) -> FileRef:
    """Write a file so that it has either its old or its new content, whatever happens, and refer to it."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with writing_in(path), temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return FileRef(str(path), hashlib.sha256(content).hexdigest())


def write_new(path: Path, content: bytes) -> None:
    """Write a file into a folder that nobody reads yet; an error names it."""
    with writing_in(path):
        path.write_bytes(content)


def make_secret_file(path: Path, content: bytes, what: str) -> None:
    """Write a file that its owner alone may read; one that another run made meanwhile stays as it is.

    Raises
    ------
    OutputError
        If it cannot be written; ``what`` names it.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # Unlike a rename, a link never takes the place of a file that another run made meanwhile.
        os.link(temporary, path)
        sync_folder(path.parent)
    except FileExistsError:
        return
    except OSError as error:
        raise OutputError(
            f"{what} cannot be written to {path}: {error.strerror}; make room or give permission, then run the release "
            "again"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def require_secret(path: Path, what: str) -> None:
    """Make sure that nobody but its owner may read a file; SpecError names ``what`` it is."""
    if path.stat().st_mode & 0o077:
        raise SpecError(f"others may read {what} {path}; take their permission away with chmod 600")


class Sink(io.RawIOBase):
    """A file that knows the digest of what was written to it, and is on disk when it is closed."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._file = path.open("wb", buffering=0)
        self._total = hashlib.sha256()

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, content: Any) -> int:
        """Write all of the content."""
        view = memoryview(content).cast("B")
        self._total.update(view)
        size = len(view)
        with writing_in(self._path):
            while view:
                view = view[self._file.write(view) :]
        return size

    def close(self) -> None:
        """Force what was written to disk."""
        if not self.closed:
            try:
                os.fsync(self._file.fileno())
            finally:
                self._file.close()
                super().close()

    @property
    def sha256(self) -> str:
        """Digest (hex) of what was written."""
        return self._total.hexdigest()


def sync_tree(root: Path) -> None:
    """Force all files and folders below a folder to disk."""
    for folder, _, names in os.walk(root):
        for name in names:
            _sync(Path(folder) / name)
        _sync(Path(folder))


def sync_folder(path: Path) -> None:
    """Force the entries of a folder to disk: a rename is durable only after that."""
    _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_tree(path: Path) -> None:
    """Remove a folder that may hold half-written files; it is no error if it is gone."""
    if path.exists():
        shutil.rmtree(path)


def move_version(folder: ReleaseFolder, target: ReleaseFolder) -> None:
    """Rename both folders of a version, the public one last: until then nothing is visible, after it everything is."""
    folder.internal.rename(target.internal)
    sync_folder(target.internal.parent)
    folder.root.rename(target.root)
    sync_folder(target.root.parent)


def remove_version(folder: ReleaseFolder) -> None:
    """Remove both folders of a version, the public one last: as long as it is there, what was begun can be told."""
    remove_tree(folder.internal)
    remove_tree(folder.root)
