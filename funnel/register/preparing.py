"""Preparing: the entry of a version that is about to be published, written whole beside its register."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Literal

from funnel.errors import LedgerError, OutputError
from funnel.frequencies.public_counts import Frequencies
from funnel.history.changes import Changes
from funnel.history.expected import Expected
from funnel.history.observed import Secrets
from funnel.history.past import Chapter
from funnel.joint import IntArray, Joint
from funnel.register.chapters import write_chapter
from funnel.register.entry import DONORS, ENTRY, HEAD, PEOPLE, ROW_DONORS, ROWS, HeadEntry, OpenPart, RegisterEntry
from funnel.register.journal import COMING, PREPARING, Prepared
from funnel.register.register import Register
from funnel.release.classes_document import ClassesDocument
from funnel.release.files import FileRef, private_folder, remove_tree, sync_folder, sync_tree, write_whole
from funnel.release.frequencies_document import ChangesPart


@dataclass(frozen=True, eq=False)
class DrawnPeople:
    """What was drawn of whom, as the register is to keep it.

    Attributes
    ----------
    chapter : Chapter
    people : FileRef
        The file of the people, to be moved into the entry.
    rows : int
        People in it; of units, rows in theirs.
    unit_rows : FileRef, optional
        Where people have several rows: the file of all of them, while ``people`` has where each unit stands after its
        last one. The chapter is then about all rows, and its histories go on within it.
    first : Joint, optional
        Counts of the first rows of units.
    within : Changes, optional
        From a row of a unit to the next.
    second : ndarray of int64, shape (c, 2), optional
        By secret, units whose second row has the published input of the first, and whose has another one; exact.
    donors : FileRef, optional
        Where whole records are published: the file of whose each is; by row, where people have several.
    """

    chapter: Chapter
    people: FileRef
    rows: int
    unit_rows: FileRef | None = None
    first: Joint | None = None
    within: Changes | None = None
    second: IntArray | None = None
    donors: FileRef | None = None


@dataclass(frozen=True, kw_only=True)
class EntryTerms:
    """What an entry states of its version besides people and counts.

    Attributes
    ----------
    series, version : str
    reserve : float
    key_columns, key_kinds : tuple of str
    fingerprint : str
        Of the release secret.
    observers : tuple of str
        For whom the version is bounded.
    secrets : "all" or "current"
        Of which versions secrets are.
    people_counted : int, optional
        Everybody in the version, where the counts of the chapter do not tell.
    expected : Expected, optional
        With noise: who is expected to have which history from then on.
    is_robust : bool
        Whether the bound holds under every set of tables that noise leaves open.
    classes : ClassesDocument, optional
        Where whole records are published.
    """

    series: str
    version: str
    reserve: float
    key_columns: tuple[str, ...]
    key_kinds: tuple[Literal["text", "number"], ...]
    fingerprint: str
    observers: tuple[str, ...]
    secrets: Secrets
    people_counted: int | None = None
    expected: Expected | None = None
    is_robust: bool = False
    classes: ClassesDocument | None = None


def prepare_entry(
    register: Register, noted: DrawnPeople, terms: EntryTerms, frequencies: Frequencies | None = None
) -> Prepared:
    """Write the entry of a version that is about to be published; whole and on disk when this returns.

    Parameters
    ----------
    register : Register
    noted : DrawnPeople
        Named ``"<series>/<version>"``; its files are moved into the entry.
    terms : EntryTerms
    frequencies : Frequencies, optional
        What the counts of the chapter are, with the noisy tables beside them; without it they are exact.

    Raises
    ------
    OutputError
        If it cannot be written.
    LedgerError
        If another entry waits.
    """
    if any(register.root.glob(f"{COMING}*")):
        raise LedgerError(f"another entry of the register {register.name} waits to be settled; run the release again")
    working = private_folder(register.root / f"{PREPARING}{token_hex(6)}")
    try:
        entry = _entry(register, noted, terms, frequencies, working)
        shutil.move(noted.people.checked(), working / PEOPLE)
        for file, name in ((noted.unit_rows, ROWS), (noted.donors, ROW_DONORS if noted.unit_rows else DONORS)):
            if file is not None:
                shutil.move(file.checked(), working / name)
        entry_sha256 = write_whole(working / ENTRY, entry.to_bytes()).sha256
        everybody = noted.chapter.joint.n if terms.people_counted is None else terms.people_counted
        known = HeadEntry(
            folder=entry.folder,
            entry=entry_sha256,
            people=noted.people.sha256,
            rows=None if noted.unit_rows is None else noted.unit_rows.sha256,
            donors=None if noted.donors is None else noted.donors.sha256,
            missing=everybody - noted.rows,
        )
        before, forgotten = ((), None) if register.head is None else (register.head.entries, register.head.forgotten)
        head = register.following(entries=(*before, known), forgotten=forgotten)
        head_sha256 = write_whole(working / HEAD, head.to_bytes()).sha256
        sync_tree(working)
        coming = register.root / f"{COMING}{entry.folder}"
        working.rename(coming)
        sync_folder(register.root)
    except OSError as error:
        raise OutputError(
            f"the entry of the register {register.name} cannot be written to {error.filename or register.root}: "
            f"{error.strerror or type(error).__name__}; make room or give permission, then run the release again"
        ) from error
    finally:
        remove_tree(working)
    return Prepared(coming, entry, entry_sha256, head_sha256)


def _entry(
    register: Register, noted: DrawnPeople, terms: EntryTerms, frequencies: Frequencies | None, working: Path
) -> RegisterEntry:
    """The document of an entry, whose tables are written into a folder."""
    chapter, earlier = noted.chapter, register.with_digests()
    joint, channel, noise = chapter.joint, chapter.channel, None if frequencies is None else frequencies.noise
    since: dict[int, Changes] = {}
    if noise is None:
        numbers = {place: one.ordinal for one in register.entries for place in register.chapters_of(one.ordinal)}
        counted = chapter.changes if chapter.by_class is None else chapter.by_class
        since = {numbers[place]: one for place, one in counted.items()}
        if noted.within is not None:
            since[len(earlier)] = noted.within
    open_ = frequencies if terms.is_robust else None
    return RegisterEntry.like(
        terms,
        ordinal=len(earlier),
        name=chapter.version,
        secret=joint.secret,
        inputs=joint.inputs,
        outputs=channel.outputs,
        guarantee=chapter.guarantee,
        mechanism=channel.mechanism,
        channel=channel.digest,
        counts=joint.counts,
        units=None if noted.first is None else noted.first.counts,
        second_rows=noted.second if noise is None else None,
        noise=None if noise is None else noise.epsilon,
        changes=None if frequencies is None or frequencies.changes is None else ChangesPart.of(frequencies.changes),
        rows=None if frequencies is None else frequencies.rows,
        means=None if frequencies is None else frequencies.means,
        departures=None if frequencies is None else frequencies.departures,
        left_open=None if open_ is None else _left_open(open_),
        first=chapter.first,
        files=write_chapter(working, chapter, since, register.distributions, terms.expected),
        previous=earlier[-1][1] if earlier else None,
    )


def _left_open(frequencies: Frequencies) -> OpenPart:
    """What a register keeps of noise, where the bound holds under every set of tables that it leaves open."""
    if frequencies.noise is None or frequencies.noisy is None:
        raise ValueError("only noise leaves anything open")
    return OpenPart.like(frequencies, beta=frequencies.noise.beta)
