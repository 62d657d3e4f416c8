"""Look-up: the people of a snapshot with their histories, counted while they are found in a register."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from funnel.errors import DataError
from funnel.frequencies.moves import Moves
from funnel.history.changes import Changes
from funnel.history.distributions import BoolArray
from funnel.history.mover_stayer import changes_without_class, class_cells, differs
from funnel.history.observed import Observed
from funnel.joint import IntArray, Joint
from funnel.progress import Progress, quiet
from funnel.register.people import BUCKET_ROWS, ByDigest, PersonArray, SortedFile, Tally, limits, people_of, places
from funnel.register.register import Register
from funnel.register.snapshot_rows import cells_of, columns_of, row_groups, write_histories
from funnel.release.files import FileRef, private_folder
from funnel.release.snapshot import Snapshot
from funnel.sampling.key_column import KEY_COLUMN, stored_digests
from funnel.sampling.spill import Spill

HISTORIES = "histories.parquet"
FORGOTTEN_NODE = -1
"""In the place of a history: of people who are forgotten, and drawn from what depends on nothing. Where they have
several rows, of the first; -2 is for the second, and so on, since no word is for two rows."""

_SOUGHT = np.dtype([("high", np.uint64), ("low", np.uint64), ("cell", np.int64), ("place", np.int64)])
_PLACED = np.dtype([("place", np.int64), ("node", np.int64), ("changed", np.int8)])


@dataclass(frozen=True, eq=False)
class People:
    """The people of a snapshot with their histories.

    Attributes
    ----------
    observed : Observed
        Counts alone; those who are forgotten count as new, they are in no history.
    histories : FileRef
        Parquet with the columns ``node`` and ``changed``: of every record of the snapshot, in its order, the history,
        and `FORGOTTEN_NODE` of those who are forgotten; and 1 of those who ever changed
        (`funnel.history.mover_stayer`).
    forgotten : int
        How many those are.
    known : int
        People of whom something was published before.
    last : tuple of Changes
        By the ordinal of every version of the register: of the people whose last version it is.
    """

    observed: Observed
    histories: FileRef
    forgotten: int
    known: int
    last: tuple[Changes, ...] = ()

    def moves(self, register: Register) -> list[Moves]:
        """The exact moves since every version of the register, of the people whose last version it is."""
        joint = self.observed.counted_joint
        return [
            Moves.counted(name, changes, distribution, joint)
            for changes, (name, distribution) in zip(self.last, register.distributions, strict=True)
        ]


def observe(
    register: Register,
    snapshot: Snapshot,
    joint: Joint,
    work: Path,
    progress: Progress = quiet,
    bucket_rows: int = BUCKET_ROWS,
) -> People:
    """Find the history of everybody in a snapshot, and count how people changed since earlier versions.

    Parameters
    ----------
    register : Register
    snapshot : Snapshot
        With digests of record keys under the register's secret.
    joint : Joint
        Of the snapshot; its inputs are what the channels read.
    work : Path
        Private folder for what is made on the way.
    progress : callable, optional
    bucket_rows : int, optional
        For tests: people who are looked up in one go.

    Raises
    ------
    LedgerError
        If a file of the register is gone or was changed.
    DataError
        If the joint distribution is not that of the snapshot.

    Notes
    -----
    O(n log n) time for n people of all versions, each file read once; memory grows with the versions, the histories and
    the different changes, not with people.
    """
    private_folder(work)
    lookup = LookUp(register, joint)
    with ExitStack() as stack:
        people = stack.enter_context(ByDigest(snapshot.rows, work, bucket_rows))
        place = 0
        for group in row_groups(snapshot.data.checked(), [*columns_of(joint), KEY_COLUMN]):
            rows = people_of(stored_digests(group), _SOUGHT)
            rows["cell"] = cells_of(group, joint)
            rows["place"] = np.arange(place, place + len(rows))
            place += len(rows)
            people.add(rows)
            progress("looking up histories", place, 2 * snapshot.rows)
        placed = stack.enter_context(Spill(-(-snapshot.rows // bucket_rows), work))
        for sought, limit in zip(people.sorted(), limits(people.buckets), strict=True):
            nodes, had = lookup.found(sought, limit)
            _place(placed, sought["place"], nodes, had, bucket_rows)
            progress("looking up histories", snapshot.rows + lookup.known, 2 * snapshot.rows)
        histories = write_histories(work / HISTORIES, _in_order(placed, snapshot))
    observed, last = lookup.counted()
    return People(observed, histories, lookup.forgotten, lookup.known, last)


class LookUp:
    """Who had which history in a register, counted while people, or units, are looked up, some at a time."""

    def __init__(self, register: Register, joint: Joint) -> None:
        self._register, self._joint, self._a = register, joint, len(joint.inputs)
        self._cells = self._a * len(joint.secret)
        self._before = [SortedFile(*register.people(entry.ordinal)) for entry in register.entries]
        self._distributions = [distribution for _, distribution in register.distributions]
        self._gone = None if register.forgotten is None else SortedFile(*register.forgotten)
        self._changed, self._moved = ([Tally() for _ in self._before] for _ in range(2))
        self._last: set[int] = set()
        self._histories, self._present = Tally(), Tally()
        self._silent = np.zeros(self._a, dtype=np.int64)
        self.known = 0

    def found(self, sought: PersonArray, limit: int | None) -> tuple[IntArray, BoolArray]:
        """The history of everybody sought, with digests below a limit, and who changed by now; both are counted."""
        nodes = np.zeros(len(sought), dtype=np.int64)
        latest = np.full(len(sought), -1, dtype=np.int64)
        had, cells = np.zeros(len(sought), dtype=bool), sought["cell"]
        was = []
        for ordinal, (file, distribution) in enumerate(zip(self._before, self._distributions, strict=True)):
            earlier = file.below(limit)
            at = places(earlier, sought)
            there = np.flatnonzero(at >= 0)
            cell, had_changed = earlier["cell"][at[there]].astype(np.int64), earlier["changed"][at[there]] > 0
            nodes[there], latest[there] = earlier["node"][at[there]], ordinal
            had[there] |= had_changed | differs(distribution, cell, self._joint, cells[there])
            was.append((there, class_cells(cell, had_changed, len(distribution.inputs))))
        now = class_cells(cells, had, self._a)
        for ordinal, (there, cell) in enumerate(was):
            change = cell * (2 * self._cells) + now[there]
            self._changed[ordinal].add(change)
            self._moved[ordinal].add(change[latest[there] == ordinal])
        self._last.update(np.unique(latest[latest >= 0]).tolist())
        self._histories.add(nodes * self._a + cells % self._a)
        self._present.add(cells)
        self.known += int(np.count_nonzero(latest >= 0))
        if self._gone is not None:
            among = places(self._gone.below(limit), sought) >= 0
            self._silent += np.bincount(cells[among] % self._a, minlength=self._a)
            nodes[among] = FORGOTTEN_NODE
        return nodes, had

    @property
    def forgotten(self) -> int:
        """How many of those found are forgotten."""
        return int(self._silent.sum())

    def counted(self) -> tuple[Observed, tuple[Changes, ...]]:
        """What was counted, once everybody is found, and changes by the version that is the last one of people.

        Raises
        ------
        DataError
            If these are not the people of the joint distribution.
        """
        joint, a, distributions = self._joint, self._a, self._distributions
        codes, records = self._present.counts()
        counted = np.zeros(self._cells, dtype=np.int64)
        counted[codes] = records
        if not np.array_equal(counted, joint.counts.ravel()):
            raise DataError("the joint distribution is not that of the snapshot; run the release again")
        codes, records = self._histories.counts()
        by_class = {v: self._changed[v].changes(2 * self._cells) for v in sorted(self._last)}
        observed = Observed(
            joint,
            _since(
                self._register, {v: changes_without_class(one, distributions[v], joint) for v, one in by_class.items()}
            ),
            codes // a,
            codes % a,
            records,
            self._silent,
            by_class=_since(self._register, by_class),
        )
        of_last = tuple(
            changes_without_class(tally.changes(2 * self._cells), distribution, joint)
            for tally, distribution in zip(self._moved, distributions, strict=True)
        )
        return observed, of_last


def _place(spill: Spill, place: IntArray, nodes: IntArray, changed: BoolArray, bucket_rows: int) -> None:
    bucket = place // bucket_rows
    order = np.argsort(bucket, kind="stable")
    rows = np.empty(len(place), dtype=_PLACED)
    rows["place"], rows["node"], rows["changed"] = place[order], nodes[order], changed[order]
    spill.add(rows, np.bincount(bucket, minlength=len(spill.sizes())))


def _in_order(placed: Spill, snapshot: Snapshot) -> Iterator[tuple[IntArray, IntArray]]:
    """The history of every record in the order, and the row groups, of the snapshot."""
    held = np.empty(0, dtype=_PLACED)
    buckets = iter(range(len(placed.sizes())))
    for size in snapshot.sizes:
        while len(held) < size:
            bucket = next(buckets)
            rows = placed.rows(bucket, bucket + 1)
            held = np.concatenate([held, rows[np.argsort(rows["place"])]])
        yield held["node"][:size], held["changed"][:size]
        held = held[size:]


def _since(register: Register, changes: dict[int, Changes]) -> dict[int, Changes]:
    """By the ordinals of chapters what is known by those of entries."""
    return {chapter: one for ordinal, one in changes.items() for chapter in register.chapters_of(ordinal)}
