"""Register: everything that was published about some people, version by version, and who may add to it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from funnel.errors import DataError, OutputError, PipelineError, SpecError
from funnel.history.expected import Expected
from funnel.history.observers import MOVER_STAYER, OBSERVERS, TRANSITIONS, checked_observers
from funnel.history.past import Chapter, Past
from funnel.joint import Joint
from funnel.register.chapters import read_chapters, read_expected
from funnel.register.entry import DONORS, PEOPLE, ROW_DONORS, ROWS, RegisterHead
from funnel.register.entry_files import lost
from funnel.register.journal import Journal
from funnel.register.people import SortedFile, Tally
from funnel.release.classes_document import ClassesDocument
from funnel.release.files import private_folder

REGISTERS, LOCK = "registers", "lock"


class Register(Journal):
    """Everything that was published about some people, by the digests of their keys.

    Parameters
    ----------
    root : Path
        ``<workspace>/registers/<name>``; need not be there yet.
    name : str
    """

    @classmethod
    def of(cls, workspace: Path, name: str) -> Register:
        """The register of a name in a workspace."""
        return cls(workspace / REGISTERS / name, name)

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
                read = read_chapters(self.root / entry.folder, entry, numbers, self.distributions[:ordinal])
                numbers.append(range(len(chapters), len(chapters) + len(read)))
                chapters += read
            return Past(tuple(chapters))
        except DataError as error:
            raise lost(f"the register {self.name} does not fit together ({error})") from error

    @property
    def distributions(self) -> list[tuple[str, Joint]]:
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

    def donors(self, ordinal: int) -> tuple[Path, str] | None:
        """The file of whose records were published in a version, and its SHA-256 (hex); None of no whole records."""
        known = self._require_head().entries[ordinal]
        name = DONORS if known.rows is None else ROW_DONORS
        return None if known.donors is None else (self.root / known.folder / name, known.donors)

    def people(self, ordinal: int) -> tuple[Path, str]:
        """The file of the people of a version, and its SHA-256 (hex)."""
        known = self._require_head().entries[ordinal]
        return self.root / known.folder / PEOPLE, known.people

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

    @property
    def classes(self) -> ClassesDocument | None:
        """The classes of whole records, which are those of the first version; None of no whole records."""
        return self.entries[0].classes if self.entries else None

    def require_alike(self, *, whole: bool) -> None:
        """Make sure that whole records are published in all versions or in none.

        Raises
        ------
        SpecError
            If it is otherwise in those that are there.
        """
        if self.entries and whole != (self.classes is not None):
            one, other = ("one channel over few columns", "whole records of many")
            here, now = (one, other) if whole else (other, one)
            raise SpecError(
                f"the register {self.name} has versions of {here} about these people, and this one would be of {now}: "
                "nothing is proven of both together; publish those columns, or name another register in [history]"
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

    def _require_head(self) -> RegisterHead:
        if self.head is None:
            raise ValueError(f"the register {self.name} has no versions")
        return self.head


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
