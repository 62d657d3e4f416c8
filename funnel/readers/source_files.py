"""Which files make up a source, in fixed order: one, or all parquet files below a folder; and their digests."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from funnel.errors import DataError
from funnel.storage import attempt, filesystem, local_path, open_binary

# How hive writes a null in the name of a folder.
_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class SourceFile:
    """One file of a source.

    Attributes
    ----------
    address : str
        Path or URL to open it by.
    name : str
        Its path relative to the folder of the source, which does not depend on where that is.
    """

    address: str
    name: str

    @property
    def partition(self) -> dict[str, str | None]:
        """Columns that the folders above the file state for all its rows, as in ``year=2020/part-0.parquet``."""
        stated = (part.split("=", 1) for part in self.name.split("/")[:-1] if "=" in part)
        return {unquote(key): None if value == _NULL else unquote(value) for key, value in stated if key}


@dataclass(frozen=True)
class SourceFiles:
    """All files of a source.

    Attributes
    ----------
    address : str
    files : tuple of SourceFile
        Sorted by name; at least one.
    dataset : bool
        Whether the address is a folder or a pattern rather than one file.
    """

    address: str
    files: tuple[SourceFile, ...]
    dataset: bool

    def digest(self) -> str:
        """SHA-256 of the content as it is now; of a dataset, over the names and digests of all its files.

        Raises
        ------
        DataError
            If a file cannot be read.
        """
        if not self.dataset:
            return file_digest(self.files[0].address)
        whole = hashlib.sha256()
        for file in self.files:
            whole.update(f"{file.name}\0{file_digest(file.address)}\n".encode(errors="surrogateescape"))
        return whole.hexdigest()


def find_files(address: str, kind: str, suffixes: tuple[str, ...] = ()) -> SourceFiles:
    """The files of a source of a format at an address.

    Files and folders whose names start with ``.`` or ``_`` are left out, as are, in a dataset, files that do not end
    in one of ``suffixes``; without suffixes the source can only be one file.

    Raises
    ------
    DataError
        If there is none.
    """
    path = local_path(address)
    dataset, found = _remote(address) if path is None else _local(path)
    if not dataset:
        return SourceFiles(address, tuple(found), dataset=False)
    if not suffixes:
        raise DataError(f"the source {address} is not one file; name one {kind} file, or a folder of parquet files")
    files = sorted((file for file in found if _wanted(file.name, suffixes)), key=lambda file: file.name)
    if not files:
        raise DataError(
            f"the source {address} holds no {kind} file, that is, none ending in {' or '.join(suffixes)}; check its "
            "path"
        )
    return SourceFiles(address, tuple(files), dataset=True)


def _wanted(name: str, suffixes: tuple[str, ...]) -> bool:
    return name.lower().endswith(suffixes) and not any(part.startswith((".", "_")) for part in name.split("/"))


def _absent(address: str) -> str:
    return f"there is no source file {address}; check its path"


def _local(path: Path) -> tuple[bool, list[SourceFile]]:
    if path.is_file():
        return False, [SourceFile(str(path), path.name)]
    if path == Path(path.anchor) or ("**" in path.parts and Path(_root(str(path))) == Path(path.anchor)):
        raise DataError(f"the source {path} is all of the computer; name the folder below which its files are")
    if path.is_dir():
        # Links to folders are not followed: they can lead in circles.
        return True, [SourceFile(str(file), file.relative_to(path).as_posix()) for file in _regular(path.rglob("*"))]
    if path.exists():
        raise DataError(f"the source {path} is not a regular file; name one file or a folder of parquet files")
    if not glob.has_magic(str(path)):
        raise DataError(_absent(str(path)))
    root = Path(_root(str(path)))
    matching = root.glob(str(path.relative_to(root)))
    return True, [SourceFile(str(file), file.relative_to(root).as_posix()) for file in _regular(matching)]


def _regular(paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if path.is_file()]


def _remote(address: str) -> tuple[bool, list[SourceFile]]:
    storage, inside = filesystem(address)

    def listed() -> tuple[bool, str, list[str]]:
        if storage.isfile(inside):
            return False, inside, [inside]
        if storage.isdir(inside):
            return True, inside, list(storage.find(inside))
        if glob.has_magic(inside):
            return True, _root(inside), [path for path in storage.glob(inside) if storage.isfile(path)]
        raise FileNotFoundError(inside)

    dataset, root, paths = attempt(listed, address, DataError, _absent(address))
    if not dataset:
        return False, [SourceFile(address, root.rpartition("/")[2])]
    start = root.rstrip("/") + "/"
    return True, [SourceFile(str(storage.unstrip_protocol(path)), path.removeprefix(start)) for path in paths]


def _root(pattern: str) -> str:
    """The folder above the first part of a pattern that is no plain name."""
    parts = pattern.split("/")
    first = next(position for position, part in enumerate(parts) if glob.has_magic(part))
    return "/".join(parts[:first]) or ("/" if pattern.startswith("/") else ".")


_BLOCK_BYTES = 1 << 22


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of the content of a file, local or at a URL, as 64 hexadecimal digits; memory is that of one block.

    Raises
    ------
    DataError
        If the file is missing or cannot be read.
    """
    address = os.fspath(path)

    def digest() -> str:
        total = hashlib.sha256()
        with open_binary(address) as stream:
            while block := stream.read(_BLOCK_BYTES):
                total.update(block)
        return total.hexdigest()

    return attempt(digest, address, DataError, f"{address} cannot be read: No such file or directory")
