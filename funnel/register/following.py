"""Following: the people of a snapshot with their histories, the snapshot that is drawn, and what was drawn of whom."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.errors import DataError
from funnel.frequencies.moves import Moves
from funnel.history import (
    HISTORY_COLUMN,
    Changes,
    Observed,
    Step,
    decision_array,
    drawing_protocol,
)
from funnel.history.decisions import channel_digest
from funnel.history.distributions import BoolArray
from funnel.history.mover_stayer import changes_without_class, class_cells, differs
from funnel.history.unit_rows import MOST_ROWS
from funnel.history.waves import wave_name
from funnel.joint import IntArray, Joint
from funnel.progress import Progress, quiet
from funnel.register.entry import PEOPLE
from funnel.register.entry_files import row_type
from funnel.register.people import BUCKET_ROWS, ByDigest, PersonArray, SortedFile, Tally, limits, places, write_people
from funnel.register.preparing import DrawnPeople
from funnel.register.register import Register
from funnel.release.files import FileRef, Sink, private_folder
from funnel.release.snapshot import Snapshot
from funnel.sampling import KEY_COLUMN, InputEncoder, RecordKey
from funnel.sampling.answers import answers
from funnel.sampling.key_column import key_array, stored_digests
from funnel.sampling.keyed import DIGEST_BYTES, DigestArray, decision_keys
from funnel.sampling.row_words import RowWords, decision_key
from funnel.sampling.spill import Spill
from funnel.tables import arrow_numbers, open_paged

HISTORIES, FOLLOWED = "histories.parquet", "followed.parquet"
FORGOTTEN_NODE = -1
"""In the place of a history: of people who are forgotten, and drawn from what depends on nothing. Where they have
several rows, of the first; -2 is for the second, and so on, since no word is for two rows."""

FORGOTTEN_CHANNEL = "forgotten"
"""In the place of the number of a channel: of the same people."""
_SOUGHT = np.dtype([("high", np.uint64), ("low", np.uint64), ("cell", np.int64), ("place", np.int64)])
_PLACED = np.dtype([("place", np.int64), ("node", np.int64), ("changed", np.int8)])
HISTORY_SCHEMA = pa.schema(
    [pa.field("node", pa.int64(), nullable=False), pa.field("changed", pa.int8(), nullable=False)]
)


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
            Moves.counted(name, changes, law, joint)
            for changes, (name, law) in zip(self.last, register.laws, strict=True)
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
        If the joint law is not that of the snapshot.

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
            rows = np.empty(group.num_rows, dtype=_SOUGHT)
            _fill(rows, stored_digests(group))
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
        self._laws = [law for _, law in register.laws]
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
        for ordinal, (file, law) in enumerate(zip(self._before, self._laws, strict=True)):
            earlier = file.below(limit)
            at = places(earlier, sought)
            there = np.flatnonzero(at >= 0)
            cell, had_changed = earlier["cell"][at[there]].astype(np.int64), earlier["changed"][at[there]] > 0
            nodes[there], latest[there] = earlier["node"][at[there]], ordinal
            had[there] |= had_changed | differs(law, cell, self._joint, cells[there])
            was.append((there, class_cells(cell, had_changed, len(law.inputs))))
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
            If these are not the people of the joint law.
        """
        joint, a, laws = self._joint, self._a, self._laws
        codes, records = self._present.counts()
        counted = np.zeros(self._cells, dtype=np.int64)
        counted[codes] = records
        if not np.array_equal(counted, joint.counts.ravel()):
            raise DataError("the joint law is not that of the snapshot; run the release again")
        codes, records = self._histories.counts()
        by_class = {v: self._changed[v].changes(2 * self._cells) for v in sorted(self._last)}
        observed = Observed(
            joint,
            _since(self._register, {v: changes_without_class(one, laws[v], joint) for v, one in by_class.items()}),
            codes // a,
            codes % a,
            records,
            self._silent,
            by_class=_since(self._register, by_class),
        )
        of_last = tuple(
            changes_without_class(tally.changes(2 * self._cells), law, joint)
            for tally, law in zip(self._moved, laws, strict=True)
        )
        return observed, of_last


def follow_snapshot(
    snapshot: Snapshot,
    people: People,
    step: Step,
    record_key: RecordKey,
    work: Path,
    progress: Progress = quiet,
) -> Snapshot:
    """The snapshot as it is drawn: with the channel of everybody's history, and keys of what was decided about them.

    Parameters
    ----------
    snapshot : Snapshot
    people : People
        From `observe`.
    step : Step
    record_key : RecordKey
        With the register's secret.
    work : Path

    Returns
    -------
    Snapshot
        Of the same records in the same row groups: the column ``"history channel"`` beside them, and `KEY_COLUMN` with
        keys of record and decision. Drawn with `funnel.history.drawing_protocol`. The same again for the same step.
    """
    if HISTORY_COLUMN in pq.read_schema(snapshot.data.path).names:
        raise DataError(f"a column is named {HISTORY_COLUMN!r}, as the channels of histories are; rename it")
    key = decision_key(record_key)
    channels = pa.array([*map(str, range(len(step.library))), FORGOTTEN_CHANNEL], pa.string())
    several = range(1, (MOST_ROWS if step.waves else 1) + 1)
    forgotten = [_forgotten_decision(step, row) for row in several]
    decisions = decision_array([*step.decision_digests(step.followed), *forgotten])
    private_folder(work)
    done = 0
    path = work / FOLLOWED
    writer = None
    with ExitStack() as stack:
        sink = stack.enter_context(Sink(path))
        files = zip(row_groups(snapshot.data.checked()), row_groups(people.histories.checked()), strict=True)
        for group, histories in files:
            nodes = histories.column(0).to_numpy()
            at = _followed(step, nodes)
            channel = np.append(step.drawn_from, [len(step.library)] * len(forgotten))[at]
            keys = decision_keys(stored_digests(group), decisions[at], key)
            names = [name for name in group.schema.names if name != KEY_COLUMN]
            column = pa.DictionaryArray.from_arrays(arrow_numbers(channel.astype(np.int32)), channels)
            batch = pa.RecordBatch.from_arrays(
                [*(group.column(name) for name in names), column, key_array(keys)],
                names=[*names, HISTORY_COLUMN, KEY_COLUMN],
            )
            if writer is None:
                writer = stack.enter_context(
                    pq.ParquetWriter(sink, batch.schema, compression="zstd", use_dictionary=[*names, HISTORY_COLUMN])
                )
            writer.write_table(pa.Table.from_batches([batch]), row_group_size=batch.num_rows)
            done += batch.num_rows
            progress("noting histories", done, snapshot.rows)
    return dataclasses.replace(snapshot, data=FileRef(str(path), sink.sha256))


def drawn_people(
    snapshot: Snapshot,
    followed: Snapshot,
    people: People,
    step: Step,
    words: RowWords,
    pairs: IntArray | None,
    work: Path,
    progress: Progress = quiet,
    bucket_rows: int = BUCKET_ROWS,
    predicted: tuple[IntArray, IntArray] | None = None,
) -> DrawnPeople:
    """Derive once more what was drawn of everybody, and write it down by the digests of their keys.

    Parameters
    ----------
    snapshot, followed : Snapshot
        As taken, and as drawn.
    people : People
    step : Step
    words : RowWords
        Those of the draw.
    pairs : ndarray of int64, shape (a + 1, b), or None
        What was counted of the draw by input and output of `drawing_protocol`, the last row of those who are forgotten:
        it has to be the same.
    work : Path
        Where the file of the people is written.
    predicted : tuple of two ndarrays of int64, each (k,)
        Histories and outputs that people are expected to have: they are numbered first, in this order, whether somebody
        has them or not.

    Raises
    ------
    DataError
        If answers are not those that were counted.
    """
    joint, drawing = step.joint, drawing_protocol(step)
    b = len(drawing.outputs)
    seen = np.zeros((len(drawing.inputs) + 1, b), dtype=np.int64)
    found = Tally()
    done = 0
    columns = [*drawing.inputs.columns, KEY_COLUMN]
    with ByDigest(snapshot.rows, private_folder(work), bucket_rows) as drawn:
        groups = zip(
            row_groups(snapshot.data.checked(), [*columns_of(joint), KEY_COLUMN]),
            row_groups(followed.data.checked(), columns),
            row_groups(people.histories.checked()),
            strict=True,
        )
        for group, asked, histories in groups:
            nodes = histories.column(0).to_numpy()
            outputs = np.empty(len(nodes), dtype=np.int64)
            start = 0
            for some in answers([asked], drawing, words):
                stop = start + len(some.outputs)
                outputs[start:stop] = some.outputs
                np.add.at(seen, (some.inputs, some.outputs.astype(np.int64)), 1)
                start = stop
            kept = np.flatnonzero(nodes >= 0)
            rows = np.empty(len(kept), dtype=row_type(PEOPLE))
            _fill(rows, stored_digests(group)[kept])
            rows["cell"] = cells_of(group, joint)[kept]
            rows["changed"] = histories.column("changed").to_numpy()[kept]
            # Numbered when all are known.
            rows["node"] = nodes[kept] * b + outputs[kept]
            found.add(rows["node"])
            drawn.add(rows)
            done += len(nodes)
            progress("noting what was drawn", done, snapshot.rows)
        if pairs is not None and not np.array_equal(seen, pairs):
            raise DataError("the answers, derived again, are not those that were drawn; run the release again")
        codes, _ = found.counts()
        if predicted is not None:
            first = predicted[0] * b + predicted[1]
            codes = np.concatenate([first, codes[~np.isin(codes, first)]])
        chapter = step.chapter(codes // b, codes % b)
        sha256, written = write_people(work, _numbered(drawn.sorted(), codes, chapter.first))
    return DrawnPeople(chapter, FileRef(str(work / PEOPLE), sha256), written)


def _numbered(pieces: Iterator[PersonArray], codes: IntArray, first: int) -> Iterator[PersonArray]:
    order = np.argsort(codes)
    for piece in pieces:
        piece["node"] = first + order[np.searchsorted(codes, piece["node"], sorter=order)]
        yield piece


def _forgotten_decision(step: Step, row: int = 1) -> bytes:
    """What is decided about those who are forgotten: the same row for every input; no history is like it."""
    channel = step.channel
    silent_rows = np.repeat(channel.marginal[:, None], len(channel.inputs), axis=1)
    said = channel_digest(silent_rows, channel.inputs, channel.outputs) + wave_name(step.version, row).encode()
    return hashlib.blake2b(said, digest_size=DIGEST_BYTES, person=b"funnel forgotten").digest()


def _followed(step: Step, nodes: IntArray) -> IntArray:
    """The place of every history among those that a step followed; those of rows that are forgotten come after."""
    at = np.minimum(np.searchsorted(step.followed, nodes), len(step.followed) - 1)
    gone = nodes < 0
    at[gone] = len(step.followed) + FORGOTTEN_NODE - nodes[gone]
    if (step.followed[at[~gone]] != nodes[~gone]).any():
        raise DataError("somebody has a history that nothing was decided for; run the release again")
    return np.asarray(at, dtype=np.int64)


def row_groups(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The row groups of a file, one after the other."""
    with open_paged(path) as file:
        for i in range(file.metadata.num_row_groups):
            table = file.read_row_group(i, columns=columns, use_threads=False).combine_chunks()
            yield from table.to_batches() or [_empty(table)]


def _empty(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in table.schema], schema=table.schema)


def columns_of(joint: Joint) -> list[str]:
    return list(dict.fromkeys([*joint.secret.columns, *joint.inputs.columns]))


def cells_of(group: pa.RecordBatch, joint: Joint) -> IntArray:
    """The cell of every record, shape (rows,)."""
    secret, inputs = InputEncoder(joint.secret).codes(group), InputEncoder(joint.inputs).codes(group)
    if (secret < 0).any() or (inputs < 0).any():
        raise DataError("a record of the snapshot is outside the joint law; run the release again")
    return np.asarray(secret * len(joint.inputs) + inputs, dtype=np.int64)


def _fill(rows: PersonArray, digests: DigestArray) -> None:
    rows["high"], rows["low"] = digests[:, 0], digests[:, 1]


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


def write_histories(path: Path, groups: Iterable[tuple[IntArray, IntArray]]) -> FileRef:
    """Write the histories of records, group by group, and whether these people ever changed."""
    with Sink(path) as sink, pq.ParquetWriter(sink, HISTORY_SCHEMA, compression="zstd", use_dictionary=False) as writer:
        for group in groups:
            columns = [arrow_numbers(np.ascontiguousarray(column)) for column in group]
            batch = pa.RecordBatch.from_arrays(columns, schema=HISTORY_SCHEMA)
            writer.write_table(pa.Table.from_batches([batch]), row_group_size=max(1, batch.num_rows))
    return FileRef(str(path), sink.sha256)


def _since(register: Register, changes: dict[int, Changes]) -> dict[int, Changes]:
    """By the ordinals of chapters what is known by those of entries."""
    return {chapter: one for ordinal, one in changes.items() for chapter in register.chapters_of(ordinal)}
