"""The folder of a register: entries of published draws, prepared before a version appears and settled after it."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from secrets import token_hex

import numpy as np
from filelock import FileLock, Timeout

from funnel.errors import DataError, LedgerError, OutputError, PipelineError, SpecError
from funnel.history import Chapter, Past
from funnel.history.expected import Expected
from funnel.history.observers import MOVER_STAYER, OBSERVERS, TRANSITIONS, checked_observers
from funnel.joint import Joint
from funnel.register.chapters import read_chapters, read_expected
from funnel.register.entry import (
    ENTRY,
    FORGOTTEN,
    HEAD,
    PEOPLE,
    ROWS,
    HeadEntry,
    RegisterEntry,
    RegisterHead,
    ordinal_of,
)
from funnel.register.entry_files import of_another_funnel
from funnel.register.people import SortedFile, Tally, require_digest
from funnel.release.files import FileRef, private_folder, remove_tree, sync_folder, sync_tree, write_whole
from funnel.source import file_digest

REGISTERS, LOCK = "registers", "lock"
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


class Register:
    """Everything that was published about some people, by the digests of their keys.

    Reading needs no lock; whoever writes holds the register (`open_register`).

    Parameters
    ----------
    root : Path
        ``<workspace>/registers/<name>``; need not be there yet.
    name : str
    """

    def __init__(self, root: Path, name: str) -> None:
        self.root = root
        self.name = name
        self._head: tuple[RegisterHead, str] | None = None

    @classmethod
    def of(cls, workspace: Path, name: str) -> Register:
        """The register of a name in a workspace."""
        return cls(workspace / REGISTERS / name, name)

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
                raise LedgerError(
                    f"{self.root / HEAD} is gone, and the register has entries such as {folders[0]}; what was "
                    "published about these people would be forgotten: restore the register from a backup"
                )
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
                raise self._lost(f"the entry {known.folder} of the register {self.name} is gone") from error
            if hashlib.sha256(content).hexdigest() != known.entry:
                raise self._lost(f"{path} was changed since it was written")
            try:
                entry = RegisterEntry.from_json(content, str(path))
            except DataError as error:
                raise of_another_funnel(path) from error
            if entry.folder != known.folder:
                raise self._lost(f"{path} was changed since it was written")
            if entry.previous != previous:
                raise self._lost(f"{path} does not follow the entry before it")
            previous = known.entry
            found.append(entry)
        return tuple(found)

    @cached_property
    def past(self) -> Past:
        """What was published, history by history.

        Raises
        ------
        LedgerError
            If a file is gone or was changed.
        """
        try:
            chapters: list[Chapter] = []
            numbers: list[range] = []
            for ordinal, entry in enumerate(self.entries):
                read = read_chapters(self.root / entry.folder, entry, numbers, self.laws[:ordinal])
                numbers.append(range(len(chapters), len(chapters) + len(read)))
                chapters += read
            return Past(tuple(chapters))
        except DataError as error:
            raise self._lost(f"the register {self.name} does not fit together ({error})") from error

    @property
    def laws(self) -> list[tuple[str, Joint]]:
        """Name and published counts of every version, of first rows where units have several."""
        return [(one.name, one.joint if one.first_rows is None else one.first_rows) for one in self.entries]

    @cached_property
    def expected(self) -> Expected:
        """Who is expected to have which history after the last version.

        Where that one had no noise, nothing hides how many people had which history in it, nor in those before: these
        are counted then.

        Raises
        ------
        LedgerError
            If a file is gone or was changed.
        """
        if not self.entries:
            return Expected.nobody()
        last = self.entries[-1]
        found = read_expected(self.root / last.folder, last)
        return self._counted_histories() if found is None else found

    def _counted_histories(self) -> Expected:
        """How many people really have which history as their last one."""
        past = self.past
        people = np.zeros(past.size)
        for entry in self.entries:
            tally = Tally()
            for piece in SortedFile(*self.people(entry.ordinal)).pieces():
                tally.add(piece["node"])
            there, counts = tally.counts()
            people[there] += counts
            # They no longer have the history that they had before.
            before = there
            for chapter in reversed([past.chapters[number] for number in self.chapters_of(entry.ordinal)]):
                inside = before >= chapter.first
                before = np.where(inside, chapter.parents[np.where(inside, before - chapter.first, 0)], before)
            np.subtract.at(people, before, counts)
        nodes = np.flatnonzero(people[1:] > 0) + 1
        return Expected(nodes, people[nodes], np.zeros(len(past)))

    def chapters_of(self, ordinal: int) -> range:
        """The numbers in `past` of the chapters of a version: one for each row that people have in it."""
        firsts = [number for number, chapter in enumerate(self.past.chapters) if chapter.row == 1]
        return range(firsts[ordinal], [*firsts, len(self.past)][ordinal + 1])

    def rows(self, ordinal: int) -> tuple[Path, str] | None:
        """The file of all rows of the people of a version, and its SHA-256 (hex); None where they have one each."""
        known = self._require_head().entries[ordinal]
        return None if known.rows is None else (self.root / known.folder / ROWS, known.rows)

    def people(self, ordinal: int) -> tuple[Path, str]:
        """The file of the people of a version, and its SHA-256 (hex)."""
        known = self._require_head().entries[ordinal]
        return self.root / known.folder / PEOPLE, known.people

    @property
    def forgotten(self) -> tuple[Path, str] | None:
        """The file of the digests of those who are forgotten, and its SHA-256 (hex); None while there is nobody."""
        if self.head is None or self.head.forgotten is None:
            return None
        return self.root / FORGOTTEN, self.head.forgotten

    @property
    def fingerprint(self) -> str | None:
        """Of the secret that people are known by; None before the first version."""
        return self.entries[-1].fingerprint if self.entries else None

    def require_fitting(
        self, secret: Sequence[str], key_columns: Sequence[str], key_kinds: Sequence[str] | None = None
    ) -> None:
        """Make sure that a series can share the register.

        Parameters
        ----------
        secret, key_columns : sequence of str
            Columns that are secret, and of the record key.
        key_kinds : sequence of "text" or "number", optional
            Where they are known.

        Raises
        ------
        SpecError
            If the versions in it have another secret or another record key.
        """
        if not self.entries:
            return
        entry = self.entries[-1]
        if tuple(secret) != entry.secret.columns:
            raise SpecError(
                f"the register {self.name} is about the secret {', '.join(entry.secret.columns)}, not "
                f"{', '.join(secret)}: one bound holds for one secret; name the same columns, or another register in "
                "[history]"
            )
        if tuple(key_columns) != entry.key_columns:
            raise SpecError(
                f"the people of the register {self.name} are known by {', '.join(entry.key_columns)}, not by "
                f"{', '.join(key_columns)}, so that nobody would be known again; name the same record_key"
            )
        if key_kinds is not None and tuple(key_kinds) != entry.key_kinds:
            raise SpecError(
                f"the record key of the register {self.name} was {_kinds(entry.key_kinds)}, and is now "
                f"{_kinds(key_kinds)}: a number and its text are different keys, so that nobody would be known again; "
                "give the columns the type they had"
            )

    def observers(self, asked: Sequence[str] | None) -> tuple[str, ...]:
        """For whom a version whose changes are counted without noise is bounded.

        Parameters
        ----------
        asked : sequence of str or None
            As the spec names them; None for all for whom that can be proven.

        Raises
        ------
        SpecError
            If one is named for whom it cannot.
        """
        if asked is None:
            return OBSERVERS if self.past.has_classes else (TRANSITIONS,)
        if MOVER_STAYER in asked and not self.past.has_classes:
            other = next(one for one in self.entries if one.noise is not None or one.units is not None)
            raise SpecError(
                f"version {other.version} of {other.series} was published with noise on its frequencies, or with "
                "several rows of a unit, so that nobody counted its changes by whether people changed before; write "
                'observers = ["transitions"] in [history], or begin another register'
            )
        return checked_observers(asked)

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
                raise self._lost(
                    f"version {version} of {series} was published, and the register {self.name} has no entry of it"
                )
            if known[series, version] != digest:
                raise self._lost(
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

    def settle(self, prepared: Prepared) -> None:
        """Let the entry of a version that was just published be one of the register."""
        self._settle(prepared.folder)

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
                self._settle(coming)
            else:
                remove_tree(coming)
                sync_folder(self.root)
        self.check()
        for entry, digest in self.with_digests():
            if published(entry.series, entry.version) not in (None, digest):
                raise self._lost(
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
            for name in (PEOPLE, *([] if entry.units is None else [ROWS]), *entry.files):
                if not (self.root / entry.folder / name).is_file():
                    raise self._lost(f"{self.root / entry.folder / name} is gone")

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

    def _settle(self, coming: Path) -> None:
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
            raise self._lost(f"{folder / HEAD} does not follow the head of the register {self.name}")

    def _forget_what_was_read(self) -> None:
        self._head = None
        for name in ("entries", "past", "expected"):
            self.__dict__.pop(name, None)

    def _read_head(self, path: Path) -> tuple[RegisterHead, str] | None:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._lost(f"{path} cannot be read") from error
        try:
            head = RegisterHead.from_json(content, str(path))
        except DataError as error:
            raise self._lost(str(error)) from error
        if head.register_ != self.name:
            raise self._lost(f"{path} is the head of the register {head.register_}, not of {self.name}")
        return head, hashlib.sha256(content).hexdigest()

    def _entry_of(self, folder: Path) -> RegisterEntry:
        try:
            return RegisterEntry.read(folder / ENTRY)
        except DataError as error:
            raise self._lost(str(error)) from error

    def with_digests(self) -> list[tuple[RegisterEntry, str]]:
        """The entries of all versions with their SHA-256 (hex)."""
        known = () if self.head is None else self.head.entries
        return [(entry, one.entry) for entry, one in zip(self.entries, known, strict=True)]

    def _require_head(self) -> RegisterHead:
        if self.head is None:
            raise ValueError(f"the register {self.name} has no versions")
        return self.head

    @property
    def _folders(self) -> list[str]:
        """Names of the folders of settled entries."""
        if not self.root.is_dir():
            return []
        return sorted(path.name for path in self.root.iterdir() if ordinal_of(path.name) is not None)

    def _lost(self, what: str) -> LedgerError:
        return LedgerError(
            f"{what}; what was published about these people would be forgotten: restore the register from a backup"
        )


@contextmanager
def open_register(workspace: Path, name: str) -> Iterator[Register]:
    """Hold a register: whoever publishes about its people, or forgets one of them, does so alone.

    Raises
    ------
    PipelineError
        If another run holds it.
    OutputError
        If it cannot be written.
    """
    register = Register.of(workspace, name)
    try:
        private_folder(register.root)
        if not os.access(register.root, os.W_OK):
            # Else it would be noticed when everything is drawn.
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        lock = FileLock(register.root / LOCK, blocking=False, mode=0o600)
        lock.acquire()
    except Timeout as error:
        raise PipelineError(
            f"another run publishes about the people of the register {name}; wait until it has ended"
        ) from error
    except OSError as error:
        raise OutputError(
            f"the register {register.root} cannot be written: {error.strerror or type(error).__name__}; change its "
            "permissions"
        ) from error
    with lock:
        yield register


def _kinds(kinds: Sequence[str]) -> str:
    return ", ".join("whole numbers" if kind == "number" else "text" for kind in kinds)
