"""Donor rows: whose record is published for everybody in a version of whole records, as a register keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.history.distributions import BoolArray
from funnel.history.donor_channels import begin_anew, joined, nearest_classes
from funnel.history.donor_draws import StandIns, begun_as, draw_outputs, read_by
from funnel.history.donor_step import over_classes
from funnel.history.step import HISTORY_COLUMN, Step
from funnel.joint import IntArray
from funnel.protocol import Protocol, WeightArray
from funnel.register.entry import DONORS, FORGOTTEN, PEOPLE
from funnel.register.entry_files import row_type
from funnel.register.following import Deciding
from funnel.register.look_up import People
from funnel.register.people import SortedFile, people_of, places, write_people
from funnel.register.preparing import DrawnPeople
from funnel.register.register import Register
from funnel.register.snapshot_rows import cells_of, columns_of, row_groups
from funnel.release.files import FileRef, private_folder
from funnel.release.snapshot import Snapshot
from funnel.sampling.donors import RECORD_COLUMN, STANDING_COLUMN
from funnel.sampling.key_column import KEY_COLUMN, key_array, stored_digests
from funnel.sampling.keyed import DigestArray, RecordKey
from funnel.sampling.row_words import KeyedWords, WordKeys
from funnel.tables import arrow_numbers, arrow_texts, numbers_of


@dataclass(frozen=True, eq=False)
class DonorRows:
    """What is drawn of the people of a version, row by row of its snapshot; made with `draw_donors`.

    Attributes
    ----------
    step : Step
    digests : ndarray of uint64, shape (rows, 2)
    nodes, changed, cells : ndarray of int64, shape (rows,)
        The history of everybody, below 0 of those who are forgotten; whether they ever changed; secret and class.
    records : ndarray of int64, shape (rows,)
        The number of everybody's record among the different ones.
    read, outputs, stands_for : ndarray of int64, shape (rows,)
        What their channel reads, what is drawn, and the row whose record is published.
    drawing : Protocol
        What rows are drawn with, over channel, `STANDING_COLUMN` and class; it publishes classes.
    """

    step: Step
    digests: DigestArray
    nodes: IntArray
    changed: IntArray
    cells: IntArray
    records: IntArray
    read: IntArray
    outputs: IntArray
    stands_for: IntArray
    drawing: Protocol

    @cached_property
    def standing(self) -> tuple[str, ...]:
        """The symbols of `STANDING_COLUMN`, by the numbers that channels read."""
        return standing_names(self.step)

    def columns(self, start: int, stop: int) -> dict[str, pa.Array]:
        """What a snapshot that is drawn says of some of its rows: whose record is published, and was last."""
        read = arrow_numbers(self.read[start:stop].astype(np.int32))
        return {
            RECORD_COLUMN: pa.array(self.records[self.stands_for[start:stop]].astype(np.int32)),
            STANDING_COLUMN: pa.DictionaryArray.from_arrays(read, arrow_texts([*self.standing])),
        }

    def require_drawn(self, pairs: IntArray) -> None:
        """Make sure that what was counted of the draw by input and output of `drawing`, (a + 1, k), is this."""
        seen = np.zeros(pairs.shape, dtype=np.int64)
        np.add.at(seen, (_codes(self), self.outputs % len(self.step.joint.inputs)), 1)
        if not np.array_equal(seen, pairs):
            raise DataError("the answers, derived again, are not those that were drawn; run the release again")

    def noted(self, pairs: IntArray, work: Path) -> DrawnPeople:
        """The same by the digests of keys, if it is what was drawn; files are written into a folder.

        Parameters
        ----------
        pairs : ndarray of int64, shape (a + 1, k)
            What was counted of the draw by input and output of `drawing`.
        work : Path

        Raises
        ------
        DataError
            If it is not.
        """
        self.require_drawn(pairs)
        step = self.step
        order = _in_order(self.digests)
        kept = order[self.nodes[order] >= 0]
        chapter, after = step.published(self.nodes[kept], self.outputs[kept])
        rows = people_of(self.digests[kept], row_type(PEOPLE))
        rows["cell"], rows["changed"], rows["node"] = self.cells[kept], self.changed[kept], after
        of = people_of(self.digests[kept], row_type(DONORS))
        of["of_high"], of["of_low"] = self.digests[self.stands_for[kept]].T
        people, written = write_people(private_folder(work), [rows])
        donors, _ = write_people(work, [of], DONORS)
        return DrawnPeople(
            chapter, FileRef(str(work / PEOPLE), people), written, donors=FileRef(str(work / DONORS), donors)
        )


def draw_donors(register: Register, snapshot: Snapshot, people: People, step: Step, record_key: RecordKey) -> DonorRows:
    """Draw the next output of everybody, and whose record is published then.

    Parameters
    ----------
    register : Register
        As it was before the version.
    snapshot : Snapshot
        With classes and numbers of records.
    people : People
        From `observe`.
    step : Step
        From `donor_step`.
    record_key : RecordKey
        With the register's secret.

    Notes
    -----
    Some 100 bytes a row.
    """
    joint, k = step.joint, len(step.joint.inputs)
    columns = [*columns_of(joint), RECORD_COLUMN, KEY_COLUMN]
    parts = [
        (stored_digests(group), cells_of(group, joint), numbers_of(group.column(RECORD_COLUMN)).astype(np.int64))
        for group in row_groups(snapshot.data.checked(), columns)
    ]
    digests, cells, records = (np.concatenate(some) for some in zip(*parts, strict=True))
    histories = [group.columns for group in row_groups(people.histories.checked())]
    nodes, changed = (np.concatenate([one.to_numpy() for one in some]) for some in zip(*histories, strict=True))
    of_class, silent, order = cells % k, nodes < 0, _in_order(digests)
    standing = _standing(register, digests, order, silent)
    read = read_by(of_class, standing, k)
    channels, keys = Deciding(step, record_key).of(nodes, digests)
    # Whoever is forgotten draws from a column of its own.
    column = np.where(silent, -1, channels * (2 * k + 1) + read)
    met, codes = np.unique(column, return_inverse=True)
    donors = np.bincount(of_class[~silent], minlength=k)
    anew = joined(begin_anew(joint.counts.sum(axis=0)), nearest_classes(joint, donors, 1))[:, 0]
    weights = np.stack([anew if one < 0 else step.library[one // (2 * k + 1)][:, one % (2 * k + 1)] for one in met])
    drawing = drawing_of_classes(step, np.unique(column[~silent] * k + of_class[~silent]), anew[k:])
    batch = pa.RecordBatch.from_arrays([key_array(keys)], names=[KEY_COLUMN])
    words = KeyedWords(WordKeys.of(record_key, drawing, decided=True))
    outputs = draw_outputs(np.ascontiguousarray(weights.T), codes.reshape(-1), words.to_draw(batch))
    who = StandIns(of_class, order[~silent[order]], lambda attempt: words.to_donate(batch, attempt))
    later = nodes != 0
    stands_for = who.drawn(standing, begun_as(outputs, read, later, k), later)
    return DonorRows(step, digests, nodes, changed, cells, records, read, outputs, stands_for, drawing)


def standing_names(step: Step) -> tuple[str, ...]:
    """What `STANDING_COLUMN` says, by the numbers that channels read."""
    names = [name for (name,) in step.joint.inputs.symbols]
    return (*(f"own: {name}" for name in names), *(f"donor: {name}" for name in names), "gone")


def drawing_of_classes(step: Step, cells: IntArray, anew: WeightArray) -> Protocol:
    """The channels of a step as one protocol over classes, of the (channel, read, class) that people have.

    Of whom nothing is read gets a record of a class by the weights ``anew``, (k,).
    """
    k = len(step.joint.inputs)
    names, classes = standing_names(step), [name for (name,) in step.joint.inputs.symbols]
    columns, of_class = cells // k, cells % k
    channels, read = columns // (2 * k + 1), columns % (2 * k + 1)
    symbols = tuple(
        (str(channel), names[x], classes[c])
        for channel, x, c in zip(channels.tolist(), read.tolist(), of_class.tolist(), strict=True)
    )
    weights = step.library[channels, :, read].T
    told = over_classes(step.channel)
    return Protocol(
        np.ascontiguousarray(weights[:k] + weights[k:]),
        anew.copy(),
        Alphabet((HISTORY_COLUMN, STANDING_COLUMN, *step.joint.inputs.columns), symbols),
        told.outputs,
        mechanism="history",
        guarantee=told.guarantee,
    )


def _codes(rows: DonorRows) -> IntArray:
    """The input of the drawing that every row has; one more of those who are forgotten."""
    names, k = rows.standing, len(rows.step.joint.inputs)
    classes = [name for (name,) in rows.step.joint.inputs.symbols]
    silent = rows.nodes < 0
    channels = np.where(silent, 0, rows.step.channels_of(np.where(silent, rows.step.followed[0], rows.nodes)))
    codes, place = np.unique((channels * len(names) + rows.read) * k + rows.cells % k, return_inverse=True)
    known = [
        rows.drawing.inputs.get((str(code // k // len(names)), names[code // k % len(names)], classes[code % k]))
        for code in codes.tolist()
    ]
    return np.where(silent, len(rows.drawing.inputs), np.array(known)[place.reshape(-1)])


def _standing(register: Register, digests: DigestArray, order: IntArray, silent: BoolArray) -> IntArray:
    """The row whose record was published last for each, (rows,): their own of new people, -1 where it is gone."""
    sought = people_of(digests[order], row_type(FORGOTTEN))
    of = sought.copy()
    for entry in register.entries:
        file = register.donors(entry.ordinal)
        if file is not None:
            earlier = SortedFile(*file).below(None)
            at = places(earlier, sought)
            there = at >= 0
            of["high"][there], of["low"][there] = earlier["of_high"][at[there]], earlier["of_low"][at[there]]
    found = places(sought, of)
    standing = np.empty(len(order), dtype=np.int64)
    standing[order] = np.where((found < 0) | silent[order], -1, order[found])
    return standing


def _in_order(digests: DigestArray) -> IntArray:
    return np.asarray(np.lexsort((digests[:, 1], digests[:, 0])), dtype=np.int64)
