"""Units of a register: people with several rows in one version, found again, drawn row by row, and noted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.errors import DataError
from funnel.frequencies import Frequencies
from funnel.frequencies.moves import Moves
from funnel.guarantees.base import Guarantee
from funnel.history import Changes, Chapter, Observed, Step, decision_array
from funnel.history.expected_waves import ExpectedUnits
from funnel.history.observed import Secrets
from funnel.history.unit_rows import counted_cells
from funnel.history.waves import CountedUnits, Draw, UnitVersion, Waves, follow_waves
from funnel.joint import IntArray, Joint
from funnel.progress import Progress, quiet
from funnel.protocol import Protocol
from funnel.register.entry import PEOPLE, ROWS
from funnel.register.following import FORGOTTEN_NODE, HISTORIES, HISTORY_SCHEMA, People
from funnel.register.people import PersonArray, SortedFile, places, write_people
from funnel.register.predicting import predicted_people
from funnel.register.preparing import DrawnPeople
from funnel.register.register import Register
from funnel.register.unit_rows import OrderedRows, digest_blocks, ordered_rows
from funnel.release.files import FileRef, Sink, private_folder
from funnel.release.snapshot import Snapshot
from funnel.sampling import RecordKey
from funnel.sampling.draw import ChannelSampler
from funnel.sampling.keyed import decision_keys, encrypted_words
from funnel.sampling.row_words import WordKeys, decision_key
from funnel.solver.budget import Budget
from funnel.tables import arrow_numbers

_LAST = np.dtype(
    [("high", np.uint64), ("low", np.uint64), ("cell", np.int32), ("changed", np.int8), ("node", np.int64)]
)
_ROW = np.dtype([("high", np.uint64), ("low", np.uint64), ("row", np.int32), ("cell", np.int32), ("node", np.int64)])
_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class Units(OrderedRows):
    """The units of a snapshot, with their histories.

    Attributes
    ----------
    nodes : ndarray of int64, shape (units,)
        The history of each; `FORGOTTEN_NODE` of those who are forgotten.
    changes : mapping of int to Changes
        By the ordinal of a chapter of the register's past.
    known : int
        Units of which something was published before.
    last : tuple of Changes
        By the ordinal of every version of the register: of the units whose last version it is.
    """

    nodes: IntArray
    changes: Mapping[int, Changes]
    known: int
    last: tuple[Changes, ...] = ()

    def moves(self, register: Register) -> list[Moves]:
        """The exact moves since every version of the register, from the last row there to the first one here."""
        return [
            Moves.counted(name, changes, law, self.joint)
            for changes, (name, law) in zip(self.last, register.laws, strict=True)
        ]

    @property
    def first(self) -> Joint:
        """Counts of the first row of every unit."""
        return counted_cells(self.cells[self.rows.at(1)], self.joint)

    @property
    def forgotten(self) -> int:
        """Rows of units that are forgotten."""
        return int(np.count_nonzero(self.nodes[self.rows.units] == FORGOTTEN_NODE))


def observe_units(
    register: Register,
    snapshot: Snapshot,
    joint: Joint,
    record_key: RecordKey,
    progress: Progress = quiet,
) -> Units:
    """Find the units of a snapshot and the history of each, and put the rows of each in an order.

    Raises
    ------
    SpecError
        If the rows of a unit have several secrets, or are too many.
    LedgerError
        If a file of the register is gone or was changed.
    DataError
        If the joint law is not that of the snapshot.

    Notes
    -----
    O(n log n) time, and arrays of some 100 bytes a row.
    """
    ordered = ordered_rows(snapshot, joint, record_key, progress)
    units, rows, all_cells = ordered.digests, ordered.rows, ordered.cells
    first = all_cells[rows.at(1)]
    nodes = np.zeros(len(units), dtype=np.int64)
    latest = np.full(len(units), -1, dtype=np.int64)
    changed = {}
    before = np.zeros(len(units), dtype=np.int64)
    for entry in register.entries:
        earlier = SortedFile(*register.people(entry.ordinal)).below(None)
        at = places(earlier, units)
        there = np.flatnonzero(at >= 0)
        nodes[there], latest[there] = earlier["node"][at[there]], entry.ordinal
        before[there] = earlier["cell"][at[there]]
        changed[entry.ordinal] = Changes.counted(before[there], first[there])
    if register.forgotten is not None:
        nodes[places(SortedFile(*register.forgotten).below(None), units) >= 0] = FORGOTTEN_NODE
    last = np.unique(latest[latest >= 0]).tolist()
    changes = {chapter: changed[ordinal] for ordinal in last for chapter in register.chapters_of(ordinal)}
    of_last = tuple(
        Changes.counted(before[latest == entry.ordinal], first[latest == entry.ordinal]) for entry in register.entries
    )
    return Units(joint, rows, all_cells, units, nodes, changes, int(np.count_nonzero(latest >= 0)), of_last)


def expected_units(register: Register, frequencies: Frequencies, secrets: Secrets) -> ExpectedUnits | None:
    """What noisy tables tell of the units of a version; None where these are counted exactly.

    Raises
    ------
    SpecError
        If the changes are not those since all versions of the register.
    LedgerError
        If a file of the register is gone or was changed.
    """
    rows = frequencies.rows
    if rows is None:
        return None
    who, observed = predicted_people(register, frequencies, secrets)
    return ExpectedUnits(who, observed, rows.changes(frequencies.joint), rows.waves)


def follow_units(
    register: Register,
    units: Units,
    guarantee: Guarantee,
    version: str,
    record_key: RecordKey,
    *,
    target: Protocol,
    reserve: float,
    secrets: Secrets,
    expected: ExpectedUnits | None = None,
    budget: float | Budget | None = None,
    progress: Progress = quiet,
) -> Waves:
    """Decide and draw all rows of a version; the words are those that the release draws with.

    For the units that are expected, where they are not counted exactly.
    """
    asked = UnitVersion(
        register.past,
        units.rows,
        units.cells,
        units.joint,
        units.nodes,
        guarantee,
        version,
        target,
        reserve,
        budget,
        progress,
    )
    plan = CountedUnits(units.changes, True, secrets) if expected is None else expected
    return follow_waves(asked, plan, _drawing(units, record_key))


def people_of(units: Units, waves: Waves, snapshot: Snapshot, work: Path) -> People:
    """The history before every row, in the order of the snapshot, as a file that it is drawn with."""
    private_folder(work)
    gone = units.nodes[units.rows.units] == FORGOTTEN_NODE
    nodes = np.where(gone, FORGOTTEN_NODE + 1 - units.rows.places, waves.before)
    start = 0
    with Sink(work / HISTORIES) as sink, pq.ParquetWriter(sink, HISTORY_SCHEMA, compression="zstd") as writer:
        for size in snapshot.sizes:
            unchanged = np.zeros(len(nodes[start : start + size]), dtype=np.int8)
            columns = [arrow_numbers(nodes[start : start + size]), arrow_numbers(unchanged)]
            batch = pa.RecordBatch.from_arrays(columns, schema=HISTORY_SCHEMA)
            writer.write_table(pa.Table.from_batches([batch]), row_group_size=max(1, size))
            start += size
    observed: Observed = waves.step.observed
    return People(observed, FileRef(str(work / HISTORIES), sink.sha256), units.forgotten, units.known)


def drawn_units(units: Units, waves: Waves, step: Step, pairs: IntArray | None, work: Path) -> DrawnPeople:
    """What was drawn of every row and where every unit stands after its last one, as the register keeps it.

    Parameters
    ----------
    units : Units
    waves : Waves
    step : Step
        That of the waves, with its outputs named.
    pairs : ndarray of int64, shape (a + 1, b), or None
        What was counted of the draw by input and output of the drawing protocol: it has to be the same.

    Raises
    ------
    DataError
        If answers are not those that were counted.
    """
    spoken = np.flatnonzero(waves.outputs >= 0)
    if pairs is not None and not np.array_equal(_pairs(step, units, waves, spoken), pairs[:-1]):
        raise DataError("the answers, derived again, are not those that were drawn; run the release again")
    rows = np.empty(len(spoken), dtype=_ROW)
    whose = units.rows.units[spoken]
    rows["high"], rows["low"] = units.digests["high"][whose], units.digests["low"][whose]
    rows["row"], rows["cell"], rows["node"] = units.rows.places[spoken], units.cells[spoken], waves.after[spoken]
    rows = rows[np.lexsort((rows["row"], whose))]
    last = np.flatnonzero(np.append(rows["high"][1:] != rows["high"][:-1], True) | _other_low(rows))
    people = np.zeros(len(last), dtype=_LAST)
    for name in ("high", "low", "cell", "node"):
        people[name] = rows[name][last]
    private_folder(work)
    people_sha256, _ = write_people(work, [people])
    rows_sha256, written = write_people(work, _pieces(rows), ROWS)
    # A wave that nobody expects any history after, and that nobody is in, has none.
    names = {wave.version for wave in step.waves}
    chapters = [chapter for chapter in waves.past.chapters if chapter.version in names]
    chapter = Chapter(
        step.version,
        str(step.guarantee),
        step.joint,
        step.observed.changes,
        step.channel,
        step.library,
        step.followed,
        step.drawn_from,
        chapters[0].first,
        np.concatenate([one.parents for one in chapters]),
        np.concatenate([one.outputs for one in chapters]),
    )
    return DrawnPeople(
        chapter,
        FileRef(str(work / PEOPLE), people_sha256),
        written,
        FileRef(str(work / ROWS), rows_sha256),
        units.first if waves.fitted is None else step.joint,
        chapters[1].changes[len(waves.past) - len(chapters)] if len(chapters) > 1 else None,
    )


def _other_low(rows: PersonArray) -> np.ndarray:
    return np.append(rows["low"][1:] != rows["low"][:-1], True)


def _pieces(rows: PersonArray) -> Iterator[PersonArray]:
    for start in range(0, len(rows), _BATCH_ROWS):
        yield rows[start : start + _BATCH_ROWS]


def _drawing(units: Units, record_key: RecordKey) -> Draw:
    """Draws the rows of a wave as the row engine will: by the digest of the unit and of what was decided."""
    a = len(units.joint.inputs)
    decided = decision_key(record_key)

    def draw(step: Step, wave: IntArray, before: IntArray) -> IntArray:
        at = np.searchsorted(step.followed, before)
        decisions = decision_array(step.decision_digests(step.followed))[at]
        keys = decision_keys(digest_blocks(units.digests[units.rows.units[wave]]), decisions, decided)
        words = encrypted_words(keys, WordKeys.of(record_key, step.channel, decided=True).words)
        pairs, codes = np.unique(step.drawn_from[at] * a + units.cells[wave] % a, return_inverse=True)
        columns = np.ascontiguousarray(step.library[pairs // a, :, pairs % a].T)
        return ChannelSampler(columns, step.channel.marginal).draw(codes, words).astype(np.int64)

    return draw


def _pairs(step: Step, units: Units, waves: Waves, spoken: IntArray) -> IntArray:
    """How many rows drew every output with every channel and input, in the order of `drawing_protocol`."""
    a, b = len(step.joint.inputs), len(step.channel.outputs)
    channels = step.drawn_from[np.searchsorted(step.followed, waves.before[spoken])]
    observed = step.observed
    known = np.unique(step.drawn_from[np.searchsorted(step.followed, observed.nodes)] * a + observed.inputs)
    place = np.searchsorted(known, channels * a + units.cells[spoken] % a)
    return np.bincount(place * b + waves.outputs[spoken], minlength=len(known) * b).reshape(len(known), b)
