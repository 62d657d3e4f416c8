"""Forget: one person, or several, erased from a register, and what follows from that for later versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from funnel.errors import DataError, LedgerError, SpecError
from funnel.register.entry import FORGOTTEN, PEOPLE, ROWS
from funnel.register.entry_files import row_type
from funnel.register.journal import COMING, PREPARING
from funnel.register.people import PersonArray, SortedFile, people_of, places, write_people
from funnel.register.register import Register
from funnel.release.files import FileRef, private_folder, remove_tree
from funnel.sampling.keyed import RecordKey, key_digests

_WORK = f"{PREPARING}forgetting"
_WHOLE = {"number": pa.int64(), "text": pa.string()}


@dataclass(frozen=True)
class Forgotten:
    """What was erased.

    Attributes
    ----------
    people : int
        How many of those asked for were in the register.
    unknown : int
        How many were not: nothing of theirs was there to erase.
    rows : int
        What was published about them, over all versions.
    versions : tuple of str
        Names of the versions that they were in.
    entirely : bool
        Whether the digests of their keys were erased too.
    head_sha256 : str
        Of the register's head.json afterwards.
    """

    people: int
    unknown: int
    rows: int
    versions: tuple[str, ...]
    entirely: bool
    head_sha256: str

    def sentence(self) -> str:
        """What that means, for whoever asked."""
        who = "1 person was" if self.people == 1 else f"{self.people:,} people were"
        erased = f"{who} erased from the register: {self.rows:,} answers in {len(self.versions)} versions"
        if self.entirely:
            return (
                f"{erased}, and the digest of every key; a later version would take whoever is in it for a new person, "
                "without regard to what was published before, and the bound would not hold for both together"
            )
        return (
            f"{erased}; the digest of every key alone is kept, so that whoever is in a later version gets an answer "
            "that depends on nothing, and the bound still holds"
        )


def digests_of(people: Sequence[Mapping[str, str]], register: Register, record_key: RecordKey) -> PersonArray:
    """The digests of keys that are given as texts, in their order and each once.

    Parameters
    ----------
    people : sequence of mapping of str to str
        For every person the value of each column of the record key.
    register : Register
        Says whether keys are text or whole numbers.
    record_key : RecordKey
        With the register's secret.

    Raises
    ------
    SpecError
        If columns are missing or others are named, or a value is no whole number where keys are. No value is named.
    """
    columns = register.entries[-1].key_columns if register.entries else record_key.columns
    kinds = register.entries[-1].key_kinds if register.entries else ("text",) * len(columns)
    for person in people:
        if sorted(person) != sorted(columns):
            raise SpecError(f"a person is known by {', '.join(columns)}; give a value for each of these and no other")
    try:
        table = pa.table(
            {
                name: pa.array([_value(person[name], kind) for person in people], _kind_of(people, name, kind))
                for name, kind in zip(columns, kinds, strict=True)
            }
        )
    except ValueError as error:
        raise SpecError("a key is no whole number, and the keys of this register are; give them as digits") from error
    return np.unique(people_of(key_digests(table, record_key), row_type(FORGOTTEN)))


def forget(register: Register, asked: PersonArray, *, entirely: bool = False) -> Forgotten:
    """Erase what was published about people, in all versions of a register; all of it or, when it fails, nothing.

    The counts of the versions stay: they are of all people together. So does what was published: it cannot be taken
    back.

    Parameters
    ----------
    register : Register
        Held, and reconciled.
    asked : ndarray of structured rows
        From `digests_of`.
    entirely : bool
        Whether to erase the digests of their keys too. By default they are kept, and later versions give these people
        an answer that depends on nothing.

    Raises
    ------
    DataError
        If none of them is in the register.
    LedgerError
        If a version is being published, or a file is gone or was changed.

    Notes
    -----
    Every file of people is read and written once, in constant memory.
    """
    head = register.head
    if head is None:
        raise DataError(f"the register {register.name} is empty: nothing was published about anybody")
    if any(register.root.glob(f"{COMING}*")):
        raise LedgerError(f"a version about the people of the register {register.name} is being published; wait for it")
    work = private_folder(register.root / _WORK)
    files: dict[str, FileRef] = {}
    entries = list(head.entries)
    known = np.zeros(len(asked), dtype=bool)
    versions = []
    rows = 0
    try:
        for ordinal, entry in enumerate(register.entries):
            target = private_folder(work / entry.folder)
            erasing = _Erasing(SortedFile(*register.people(ordinal)), asked)
            sha256, _ = write_people(target, erasing.kept())
            if erasing.count:
                files[f"{entry.folder}/{PEOPLE}"] = FileRef(str(target / PEOPLE), sha256)
                erased, known_rows = erasing.count, register.rows(ordinal)
                if known_rows is not None:
                    of_rows = _Erasing(SortedFile(*known_rows), asked)
                    rows_sha256, _ = write_people(target, of_rows.kept(), ROWS)
                    files[f"{entry.folder}/{ROWS}"] = FileRef(str(target / ROWS), rows_sha256)
                    entries[ordinal] = entries[ordinal].model_copy(update={"rows": rows_sha256})
                    erased = of_rows.count
                missing = entries[ordinal].missing + erased
                entries[ordinal] = entries[ordinal].model_copy(update={"people": sha256, "missing": missing})
                versions.append(entry.name)
                rows += erased
                known |= erasing.found
            if (known_donors := register.donors(ordinal)) is not None:
                # Also where they are donors of others alone.
                name = known_donors[0].name
                sha256, _ = write_people(target, _without_donors(SortedFile(*known_donors), asked), name)
                files[f"{entry.folder}/{name}"] = FileRef(str(target / name), sha256)
                entries[ordinal] = entries[ordinal].model_copy(update={"donors": sha256})
        erasing = _Erasing(None if register.forgotten is None else SortedFile(*register.forgotten), asked)
        before = list(erasing.kept())
        if not known.any() and not (entirely and erasing.count):
            again = "; they were erased before" if erasing.count else ""
            raise DataError(f"nobody of those asked for is in the register {register.name}{again}; nothing was changed")
        kept = np.unique(np.concatenate([*before, asked[:0] if entirely else asked[known | erasing.found]]))
        forgotten = None
        if len(kept):
            forgotten, _ = write_people(work, [kept], FORGOTTEN)
            files[FORGOTTEN] = FileRef(str(work / FORGOTTEN), forgotten)
        register.replace(files, register.following(tuple(entries), forgotten))
    finally:
        remove_tree(work)
    people = int(np.count_nonzero(known | erasing.found if entirely else known))
    return Forgotten(people, len(asked) - people, rows, tuple(versions), entirely, register.head_sha256 or "")


class _Erasing:
    """A file of people without some of them, and which of them were there."""

    def __init__(self, file: SortedFile | None, asked: PersonArray) -> None:
        self._file, self._asked = file, asked
        self.found = np.zeros(len(asked), dtype=bool)
        self.count = 0

    def kept(self) -> Iterator[PersonArray]:
        """The others, in their order."""
        for piece in () if self._file is None else self._file.pieces():
            at = places(self._asked, piece)
            there = at >= 0
            self.found[at[there]] = True
            self.count += int(np.count_nonzero(there))
            yield piece[~there]


def _without_donors(file: SortedFile, asked: PersonArray) -> Iterator[PersonArray]:
    """Whose records were published for others than some people; where it was theirs, nobody's any more."""
    for piece in _Erasing(file, asked).kept():
        donors = people_of(np.stack([piece["of_high"], piece["of_low"]], axis=1), row_type(FORGOTTEN))
        order = np.argsort(donors, order=("high", "low"), kind="stable")
        gone = np.zeros(len(piece), dtype=bool)
        gone[order] = places(asked, donors[order]) >= 0
        for name in {"of_high", "of_low", "of_row"}.intersection(piece.dtype.names or ()):
            piece[name][gone] = 0
        yield piece


def _value(text: str, kind: str) -> int | str:
    return int(text) if kind == "number" else text


def _kind_of(people: Sequence[Mapping[str, str]], name: str, kind: str) -> pa.DataType:
    # Digests are the same for all types of whole numbers; only the largest do not fit the signed one.
    large = kind == "number" and any(int(person[name]) >= 2**63 for person in people)
    return pa.uint64() if large else _WHOLE[kind]
