"""Following: the snapshot that is drawn, given everybody's history, and what was drawn of whom."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.errors import DataError
from funnel.history.decisions import channel_digest, decision_array
from funnel.history.past import wave_name
from funnel.history.step import HISTORY_COLUMN, Step, drawing_protocol
from funnel.history.unit_rows import MOST_ROWS
from funnel.joint import IntArray
from funnel.progress import Progress, quiet
from funnel.register.entry import PEOPLE
from funnel.register.entry_files import row_type
from funnel.register.look_up import FORGOTTEN_NODE, People
from funnel.register.people import BUCKET_ROWS, ByDigest, PersonArray, Tally, people_of, write_people
from funnel.register.preparing import DrawnPeople
from funnel.register.snapshot_rows import cells_of, columns_of, row_groups
from funnel.release.files import FileRef, Sink, private_folder
from funnel.release.snapshot import Snapshot
from funnel.sampling.answers import answers
from funnel.sampling.key_column import KEY_COLUMN, key_array, stored_digests
from funnel.sampling.keyed import DIGEST_BYTES, DigestArray, RecordKey, decision_keys
from funnel.sampling.row_words import RowWords, decision_key
from funnel.tables import arrow_numbers

if TYPE_CHECKING:
    from funnel.register.donor_rows import DonorRows

FOLLOWED = "followed.parquet"
FORGOTTEN_CHANNEL = "forgotten"
"""In the place of the number of a channel: of the same people."""


def follow_snapshot(
    snapshot: Snapshot,
    people: People,
    step: Step,
    record_key: RecordKey,
    work: Path,
    progress: Progress = quiet,
    donors: DonorRows | None = None,
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
    donors : DonorRows, optional
        Where whole records are published: whose each is. The snapshot then has the numbers of these records, and says
        whose was published last.

    Returns
    -------
    Snapshot
        Of the same records in the same row groups: the column ``"history channel"`` beside them, and `KEY_COLUMN` with
        keys of record and decision. Drawn with `funnel.history.drawing_protocol`. The same again for the same step.
    """
    if HISTORY_COLUMN in pq.read_schema(snapshot.data.path).names:
        raise DataError(f"a column is named {HISTORY_COLUMN!r}, as the channels of histories are; rename it")
    deciding = Deciding(step, record_key)
    channels = pa.array([*map(str, range(len(step.library))), FORGOTTEN_CHANNEL], pa.string())
    private_folder(work)
    done = 0
    path = work / FOLLOWED
    writer = None
    with ExitStack() as stack:
        sink = stack.enter_context(Sink(path))
        files = zip(row_groups(snapshot.data.checked()), row_groups(people.histories.checked()), strict=True)
        for group, histories in files:
            channel, keys = deciding.of(histories.column(0).to_numpy(), stored_digests(group))
            column = pa.DictionaryArray.from_arrays(arrow_numbers(channel.astype(np.int32)), channels)
            told = {name: group.column(name) for name in group.schema.names if name != KEY_COLUMN}
            told |= {HISTORY_COLUMN: column}
            told |= {} if donors is None else donors.columns(done, done + group.num_rows)
            batch = pa.RecordBatch.from_arrays([*told.values(), key_array(keys)], names=[*told, KEY_COLUMN])
            if writer is None:
                writer = stack.enter_context(
                    pq.ParquetWriter(sink, batch.schema, compression="zstd", use_dictionary=[*told])
                )
            writer.write_table(pa.Table.from_batches([batch]), row_group_size=batch.num_rows)
            done += batch.num_rows
            progress("noting histories", done, snapshot.rows)
    return dataclasses.replace(snapshot, data=FileRef(str(path), sink.sha256))


class Deciding:
    """Which channel people draw from given their history, and what their random bits are derived from.

    Parameters
    ----------
    step : Step
    record_key : RecordKey
        With the register's secret.
    """

    def __init__(self, step: Step, record_key: RecordKey) -> None:
        several = range(1, (MOST_ROWS if step.waves else 1) + 1)
        forgotten = [_forgotten_decision(step, row) for row in several]
        self._step, self._key = step, decision_key(record_key)
        self._channels = np.append(step.drawn_from, [len(step.library)] * len(forgotten))
        self._decisions = decision_array([*step.decision_digests(step.followed), *forgotten])

    def of(self, nodes: IntArray, digests: DigestArray) -> tuple[IntArray, DigestArray]:
        """The channels of people with these histories and digests, and the keys of records and decisions."""
        at = _followed(self._step, nodes)
        return np.asarray(self._channels[at]), decision_keys(digests, self._decisions[at], self._key)


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
            rows = people_of(stored_digests(group)[kept], row_type(PEOPLE))
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
