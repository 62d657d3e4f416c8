"""Journal of a register: entries of published versions, prepared before one appears and settled after it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from secrets import token_hex

from funnel.errors import DataError, LedgerError
from funnel.readers.source_files import file_digest
from funnel.register.entry import (
    DONORS,
    ENTRY,
    FORGOTTEN,
    HEAD,
    PEOPLE,
    ROW_DONORS,
    ROWS,
    HeadEntry,
    RegisterEntry,
    RegisterHead,
    ordinal_of,
)
from funnel.register.entry_files import lost, of_another_funnel
from funnel.register.people import require_digest
from funnel.release.files import FileRef, private_folder, remove_tree, sync_folder, sync_tree, write_whole

PREPARING, COMING, FORGETTING = ".preparing-", ".coming-", ".forgetting-"

Published = Callable[[str, str], str | None]
"""Says of a series and a version the SHA-256 (hex) of the register entry in its record; None if it is not published."""


@dataclass(frozen=True)
class Prepared:
    """An entry that is whole on disk, of a version that is about to be published.

    Attributes
    ----------
    folder : Path
        Where it waits.
    entry : RegisterEntry
    entry_sha256, head_sha256 : str
        Of entry.json, and of head.json as it will be once the entry is settled: what record and ledger name.
    """

    folder: Path
    entry: RegisterEntry
    entry_sha256: str
    head_sha256: str


class Journal:
    """The head of a register and the entries that it names, each whole on disk or not there.

    Reading needs no lock; whoever writes holds the register (`funnel.register.register.open_register`).

    Parameters
    ----------
    root : Path
        ``<workspace>/registers/<name>``; need not be there yet.
    name : str
    """

    _head: tuple[RegisterHead, str] | None = None

    def __init__(self, root: Path, name: str) -> None:
        self.root = root
        self.name = name

    @property
    def head(self) -> RegisterHead | None:
        """What it holds; None before the first version.

        Raises
        ------
        LedgerError
            If it is gone although there are entries, or damaged.
        """
        return None if self._known is None else self._known[0]

    @property
    def head_sha256(self) -> str | None:
        """SHA-256 (hex) of head.json; None before the first version."""
        return None if self._known is None else self._known[1]

    @property
    def _known(self) -> tuple[RegisterHead, str] | None:
        if self._head is None:
            self._head = self._read_head(self.root / HEAD)
            if self._head is None and (folders := self._folders):
                raise lost(f"{self.root / HEAD} is gone, and the register has entries such as {folders[0]}")
        return self._head

    @cached_property
    def entries(self) -> tuple[RegisterEntry, ...]:
        """The entries of all versions, in the order of publication.

        Raises
        ------
        LedgerError
            If one is gone or was changed.
        """
        found: list[RegisterEntry] = []
        previous = None
        for known in () if self.head is None else self.head.entries:
            path = self.root / known.folder / ENTRY
            try:
                content = path.read_bytes()
            except OSError as error:
                raise lost(f"the entry {known.folder} of the register {self.name} is gone") from error
            if hashlib.sha256(content).hexdigest() != known.entry:
                raise lost(f"{path} was changed since it was written")
            try:
                entry = RegisterEntry.from_json(content, str(path))
            except DataError as error:
                raise of_another_funnel(path) from error
            if entry.folder != known.folder:
                raise lost(f"{path} was changed since it was written")
            if entry.previous != previous:
                raise lost(f"{path} does not follow the entry before it")
            previous = known.entry
            found.append(entry)
        return tuple(found)

    @property
    def forgotten(self) -> tuple[Path, str] | None:
        """The file of the digests of those who are forgotten, and its SHA-256 (hex); None while there is nobody."""
        if self.head is None or self.head.forgotten is None:
            return None
        return self.root / FORGOTTEN, self.head.forgotten

    def require_published(self, series: str, published: Mapping[str, str]) -> None:
        """Make sure that all versions of a series whose records name an entry are here.

        Parameters
        ----------
        series : str
        published : mapping of str to str
            For every version the SHA-256 (hex) of its entry.

        Raises
        ------
        LedgerError
            If one is missing or another one.
        """
        known = {(entry.series, entry.version): digest for entry, digest in self.with_digests()}
        for version, digest in published.items():
            if (series, version) not in known:
                raise lost(
                    f"version {version} of {series} was published, and the register {self.name} has no entry of it"
                )
            if known[series, version] != digest:
                raise lost(
                    f"the entry of version {version} of {series} in the register {self.name} is not the one it was "
                    "published with"
                )

    def require_head(self, head_sha256: str) -> None:
        """Make sure that the register is not older than a head that a record or the ledger names.

        Raises
        ------
        LedgerError
            If that head is neither the one that is here nor one before it.
        """
        earlier = () if self.head is None else self.head.earlier
        if head_sha256 != self.head_sha256 and head_sha256 not in earlier:
            raise LedgerError(
                f"the register {self.name} in {self.root} is older than what was published or forgotten since, as an "
                "old backup is; what came after it would be forgotten: restore the newest backup"
            )

    def commit(self, prepared: Prepared) -> None:
        """Let the entry of a version that was just published be one of the register."""
        self._commit(prepared.folder)

    def discard(self, prepared: Prepared) -> None:
        """Remove the entry of a version that was not published."""
        remove_tree(prepared.folder)
        sync_folder(self.root)

    def reconcile(self, published: Published) -> None:
        """Finish or remove what a killed run left behind, and make sure that nothing else is missing or old.

        Raises
        ------
        LedgerError
            If an entry, or the head, is not what records or entries say.
        """
        if not self.root.is_dir():
            return
        for leftover in self.root.glob(f"{PREPARING}*"):
            remove_tree(leftover)
        for folder in sorted(self.root.glob(f"{FORGETTING}*")):
            self.finish_forgetting(folder)
        for name in self._folders:
            # Renamed, after its version was published; its head is the last thing that moves.
            if (self.root / name / HEAD).is_file():
                self._take_head(self.root / name)
        for coming in sorted(self.root.glob(f"{COMING}*")):
            entry = self._entry_of(coming)
            if published(entry.series, entry.version) == file_digest(coming / ENTRY):
                self._commit(coming)
            else:
                remove_tree(coming)
                sync_folder(self.root)
        self.check()
        for entry, digest in self.with_digests():
            if published(entry.series, entry.version) not in (None, digest):
                raise lost(
                    f"the entry of version {entry.version} of {entry.series} in the register {self.name} is not the "
                    "one it was published with"
                )

    def check(self) -> None:
        """Make sure that head and entries fit together.

        Raises
        ------
        LedgerError
            If an entry is gone or was changed, or the head does not name one.
        """
        names = {known.folder for known in (() if self.head is None else self.head.entries)}
        for name in self._folders:
            if name not in names:
                raise LedgerError(
                    f"{self.root / HEAD} is older than the entry {name}, as an old backup is; it would be forgotten: "
                    "restore the newest backup of the whole register"
                )
        if self.forgotten is not None:
            require_digest(*self.forgotten)
        for entry in self.entries:
            donors = DONORS if entry.units is None else ROW_DONORS
            more = [name for name, is_there in ((ROWS, entry.units), (donors, entry.classes)) if is_there is not None]
            for name in (PEOPLE, *more, *entry.files):
                if not (self.root / entry.folder / name).is_file():
                    raise lost(f"{self.root / entry.folder / name} is gone")

    def replace(self, files: Mapping[str, FileRef], head: RegisterHead) -> None:
        """Put other files of people in the place of those there are, and a head that names them: all or nothing.

        Parameters
        ----------
        files : mapping of str to FileRef
            By path in the register; they are moved.
        head : RegisterHead
            From `following`.
        """
        working = private_folder(self.root / f"{PREPARING}{token_hex(6)}")
        try:
            for name, file in files.items():
                private_folder((working / name).parent)
                shutil.move(file.checked(), working / name)
            write_whole(working / HEAD, head.to_bytes())
            sync_tree(working)
            committed = self.root / f"{FORGETTING}{head.serial}"
            working.rename(committed)
            sync_folder(self.root)
        finally:
            remove_tree(working)
        self.finish_forgetting(committed)

    def finish_forgetting(self, folder: Path) -> None:
        """Move what is left of files that are to be replaced; the head is the last of them."""
        for path in sorted(folder.rglob("*.parquet")):
            target = self.root / path.relative_to(folder)
            path.replace(target)
            sync_folder(target.parent)
        if (folder / HEAD).is_file():
            self._take_head(folder)
        remove_tree(folder)
        sync_folder(self.root)

    def following(self, entries: tuple[HeadEntry, ...], forgotten: str | None) -> RegisterHead:
        """The head after this one."""
        known = self._known
        earlier = () if known is None else (*known[0].earlier, known[1])
        return RegisterHead(
            register=self.name, serial=len(earlier), entries=entries, forgotten=forgotten, earlier=earlier
        )

    def _commit(self, coming: Path) -> None:
        folder = self.root / coming.name.removeprefix(COMING)
        self._require_next(coming)
        coming.rename(folder)
        sync_folder(self.root)
        self._take_head(folder)

    def _take_head(self, folder: Path) -> None:
        self._require_next(folder)
        (folder / HEAD).replace(self.root / HEAD)
        for place in (folder, self.root):
            sync_folder(place)
        self._forget_what_was_read()

    def _require_next(self, folder: Path) -> None:
        """Make sure that the head in a folder follows the one that is here."""
        read = self._read_head(folder / HEAD)
        current = self._read_head(self.root / HEAD)
        if read is None or read[0].earlier[-1:] != (() if current is None else (current[1],)):
            raise lost(f"{folder / HEAD} does not follow the head of the register {self.name}")

    def _forget_what_was_read(self) -> None:
        for known in set(vars(self)) - {"root", "name"}:
            delattr(self, known)

    def _read_head(self, path: Path) -> tuple[RegisterHead, str] | None:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise lost(f"{path} cannot be read") from error
        try:
            head = RegisterHead.from_json(content, str(path))
        except DataError as error:
            raise lost(str(error)) from error
        if head.register_ != self.name:
            raise lost(f"{path} is the head of the register {head.register_}, not of {self.name}")
        return head, hashlib.sha256(content).hexdigest()

    def _entry_of(self, folder: Path) -> RegisterEntry:
        try:
            return RegisterEntry.read(folder / ENTRY)
        except DataError as error:
            raise lost(str(error)) from error

    def with_digests(self) -> list[tuple[RegisterEntry, str]]:
        """The entries of all versions with their SHA-256 (hex)."""
        known = () if self.head is None else self.head.entries
        return [(entry, one.entry) for entry, one in zip(self.entries, known, strict=True)]

    @property
    def _folders(self) -> list[str]:
        """Names of the folders of settled entries."""
        if not self.root.is_dir():
            return []
        return sorted(path.name for path in self.root.iterdir() if ordinal_of(path.name) is not None)
