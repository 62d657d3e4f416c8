"""Rows of a grouped release: partitions drawn stage by stage and put in order, by whatever workers there are.

As `funnel.sampling.engine`, in three rounds instead of two: what a record is published as is one of as many texts for
every column, and which of their combinations were drawn is known only when all partitions are drawn. A row travels as
the number of its combination among these, in the order of its codes, so that with record keys all bytes depend on the
plan alone. A worker holds one partition; the different published records of all of them are held by everybody.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.groups.drawing import GroupedColumns, Sampler, read_columns, stage_words
from funnel.groups.probe import probe_digest
from funnel.groups.protocol import GroupedProtocol
from funnel.joint import IntArray
from funnel.progress import Progress, quiet
from funnel.sampling.chunks import even_chunks, sliced
from funnel.sampling.codes import InputEncoder
from funnel.sampling.columns import GROUP_ROWS, ReleaseWriter
from funnel.sampling.engine import OneWorker, Workers, all_done
from funnel.sampling.key_column import KEY_COLUMN
from funnel.sampling.keyed import RecordKey
from funnel.sampling.order import PART_ROWS, code_bits, released_order
from funnel.sampling.partitions import PARTITION_ROWS, partition_groups, parts_for
from funnel.sampling.parts import (
    Done,
    content_digest,
    read_part,
    require_unchanged,
    result_of,
    row_groups,
    write_by_part,
    writing_in,
)
from funnel.sampling.row_words import WordKeys, words_for
from funnel.sampling.splice import splice
from funnel.sampling.word_record import WordRecord, rarity_for
from funnel.sampling.words import WordArray
from funnel.word_statistics import WordStatistics, together

_DRAW_ROWS = 1 << 16
_PUBLISHED = "published.npy"


@dataclass(frozen=True, eq=False)
class DrawnGroups:
    """What was seen of the drawing of all rows; internal.

    Attributes
    ----------
    cells : ndarray of int64, shape (m, 5)
        Stage, class, input, output and secret, distinct and in order; see `funnel.release.grouped_draws`.
    records : ndarray of int64, shape (m,)
    words : tuple of WordStatistics
        Of the words that were drawn with, of all stages, and of those that rows were ordered by, if they were.
    probe : str
        What the sampler answers where outputs meet.
    published : int
        Different records that were published.
    """

    cells: IntArray
    records: IntArray
    words: tuple[WordStatistics, ...]
    probe: str
    published: int


@dataclass(frozen=True)
class GroupedPlan:
    """Everything that the rows of a grouped release are made from; attributes as `funnel.sampling.partitions.Plan`."""

    snapshot: str
    snapshot_sha256: str
    protocol: GroupedProtocol
    folder: str
    groups: tuple[tuple[int, int], ...]
    rows: int
    shuffle: bool
    parts: int
    keys: WordKeys | None
    secret: Alphabet

    @cached_property
    def digest(self) -> str:
        """What the content of the working files depends on: files of another plan are not taken for this one's."""
        keys = "" if self.keys is None else self.keys.digest.hex()
        secret = [self.secret.columns, self.secret.symbols]
        cut = [self.groups, self.shuffle, self.parts]
        said = ["groups 1", self.snapshot_sha256, self.protocol.digest, *cut, keys, *secret]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def plan_groups(
    snapshot: str | Path,
    snapshot_sha256: str,
    protocol: GroupedProtocol,
    folder: str | Path,
    *,
    shuffle: bool,
    secret: Alphabet,
    sizes: Sequence[int],
    record_key: RecordKey | None = None,
    partition_rows: int = PARTITION_ROWS,
    part_rows: int = PART_ROWS,
) -> GroupedPlan:
    """Cut a snapshot into partitions; parameters as `funnel.sampling.plan_rows` has them."""
    return GroupedPlan(
        str(snapshot),
        snapshot_sha256,
        protocol,
        str(folder),
        partition_groups(sizes, partition_rows),
        sum(sizes),
        shuffle,
        parts_for(sum(sizes), part_rows),
        None if record_key is None else WordKeys.of(record_key, protocol),
        secret,
    )


def release_groups(
    plan: GroupedPlan, target: str | Path, workers: Workers | None = None, progress: Progress = quiet
) -> DrawnGroups:
    """Draw all rows of a plan and write them to one parquet file.

    With record keys the bytes of the file depend on the plan alone. What workers have finished stays in the folder of
    the plan, and is not done again by a further call with the same plan and folder.

    Raises
    ------
    DataError
        If a snapshot or a working file is damaged or changes on the way, or rows are missing in the end.
    EntropyError
        If a worker's source of random words fails.
    PipelineError
        If workers keep dying.
    """
    workers = workers if workers is not None else OneWorker()
    folder = Path(plan.folder)
    drawn = all_done(workers, draw_groups, [(plan, i) for i in range(len(plan.groups))], "drawing", plan.rows, progress)
    records = np.unique(np.concatenate([_read(folder, done)["published"] for done in drawn]), axis=0)
    with writing_in(folder):
        np.save(folder / _PUBLISHED, records)
    digest = content_digest(folder / _PUBLISHED)
    light = [replace(done, cells=b"", words=()) for done in drawn]
    tasks = [(plan, i, done, digest) for i, done in enumerate(light)]
    ordered = all_done(workers, order_groups, tasks, "numbering", plan.rows, progress)
    parts = ordered
    if plan.shuffle:
        done_before = tuple(replace(done, words=()) for done in ordered)
        of_part = [(plan, i, done_before, digest) for i in range(plan.parts)]
        parts = all_done(workers, write_groups, of_part, "writing in random order", plan.rows, progress)
    for done in parts:
        require_unchanged(folder / done.file, done.digest)
    with writing_in(Path(target).parent):
        rows = splice([folder / done.file for done in parts], target)
    cells, counts = _summed([np.frombuffer(done.cells, dtype="<i8").astype(np.int64).reshape(-1, 6) for done in drawn])
    seen = int(counts[cells[:, 0] == 0].sum())
    if not rows == seen == plan.rows:
        raise DataError(
            f"{seen:,} rows were drawn and {rows:,} written for {plan.rows:,} records; run the release again"
        )
    streams = [together(tuple(done.words[0] for done in drawn))]
    if plan.shuffle:
        streams.append(together(tuple(done.words[0] for done in ordered)))
    return DrawnGroups(cells, counts, tuple(streams), probe_digest(plan.protocol), len(records))


def draw_groups(plan: GroupedPlan, index: int) -> Done:
    """Draw what a partition is published as: its different records, and for every row the number of its own."""
    protocol = plan.protocol
    name = f"drawn-{index:05d}.npz"

    def make(path: Path) -> Done:
        words, sampler, secrets = stage_words(plan.keys, protocol), Sampler(protocol), InputEncoder(plan.secret)
        scope = None if plan.keys is None else plan.keys.scopes[0]
        noted = WordRecord(rarity_for(plan.rows * len(protocol.stages)), 0, scope)
        found: list[IntArray] = []
        codes: list[IntArray] = []
        for batch in _batches(plan, index):
            secret = secrets.codes(batch)
            secret[secret < 0] = len(plan.secret)
            steps = sampler.steps(batch, words)
            for number, step in enumerate(steps):
                noted.add(step.words)
                found.append(_cells(number, step.classes, step.inputs, step.outputs, secret))
            codes.append(sampler.codes)
        every = np.concatenate(codes)
        published, numbers = np.unique(every.astype(np.int32), axis=0, return_inverse=True)
        with path.open("wb") as file:
            np.savez(file, published=published, numbers=numbers.reshape(-1).astype(np.int32))
        cells, counts = _summed(found)
        told = np.column_stack([cells, counts]).astype("<i8").tobytes()
        return Done(name, "", len(every), told, (), (noted.statistics(),))

    return result_of(plan, name, make)


def order_groups(plan: GroupedPlan, index: int, drawn: Done, published_digest: str) -> Done:
    """Number the rows of a partition among all published records: by part if they are shuffled, else as columns."""
    name = f"partition-{index:05d}.{'codes' if plan.shuffle else 'parquet'}"

    def make(path: Path) -> Done:
        published = _published(plan, published_digest)
        there = _read(Path(plan.folder), drawn)
        numbers = _places(published, there["published"])[there["numbers"]]
        if not plan.shuffle:
            columns = GroupedColumns(plan.protocol, published)
            with ReleaseWriter(path, columns) as writer:
                for chunk in even_chunks(iter([numbers]), GROUP_ROWS):
                    writer.write(chunk)
            return Done(name, "", len(numbers))
        words, bits = words_for(plan.keys), code_bits(len(published))
        noted = WordRecord(rarity_for(plan.rows), bits, None if plan.keys is None else plan.keys.scopes[1])

        def tagged() -> Iterator[WordArray]:
            start = 0
            for batch in _batches(plan, index, keys_only=True):
                some = words.to_order(batch) & ~np.uint64((1 << bits) - 1)
                some |= numbers[start : start + batch.num_rows].astype(np.uint64)
                start += batch.num_rows
                noted.add(some)
                yield some

        bounds = tuple(write_by_part(path, tagged(), plan.parts))
        return Done(name, "", len(numbers), b"", bounds, (noted.statistics(),))

    return result_of(plan, name, make)


def write_groups(plan: GroupedPlan, part: int, ordered: tuple[Done, ...], published_digest: str) -> Done:
    """Put the rows of a part, from all partitions, into their final order and encode them."""
    name = f"part-{part:05d}.parquet"

    def make(path: Path) -> Done:
        published = _published(plan, published_digest)
        codes = released_order(read_part(plan, part, ordered), len(published), words_for(plan.keys))
        with ReleaseWriter(path, GroupedColumns(plan.protocol, published)) as writer:
            writer.write(codes)
        return Done(name, "", len(codes))

    return result_of(plan, name, make)


def _batches(plan: GroupedPlan, index: int, keys_only: bool = False) -> Iterator[pa.RecordBatch]:
    keys = [] if plan.keys is None else [KEY_COLUMN]
    # Without keys the order needs the number of rows alone, which any column tells.
    read = plan.secret.columns if not keys else ()
    columns = [*read] if keys_only else [*read_columns(plan.protocol), *plan.secret.columns]
    return sliced(row_groups(plan.snapshot, plan.groups[index], [*dict.fromkeys([*columns, *keys])]), _DRAW_ROWS)


def _cells(number: int, classes: IntArray, inputs: IntArray, outputs: IntArray, secret: IntArray) -> IntArray:
    """Distinct (stage, class, input, output, secret) of the rows that drew, and their counts, (m, 6)."""
    drew = np.flatnonzero(outputs >= 0)
    radices = [int(part[drew].max(initial=-1)) + 2 for part in (inputs, outputs, secret)]
    flat = classes[drew]
    for part, radix in zip((inputs, outputs, secret), radices, strict=True):
        flat = flat * radix + part[drew] + 1
    keys, counts = np.unique(flat, return_counts=True)
    columns = []
    for radix in reversed(radices):
        keys, column = np.divmod(keys, radix)
        columns.append(column - 1)
    return np.column_stack([np.full(len(keys), number), keys, *reversed(columns), counts]).astype(np.int64)


def _summed(parts: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Distinct cells in order and the sum of their counts, of tables (m, 6)."""
    every = np.concatenate([*parts, np.empty((0, 6), dtype=np.int64)])
    cells, places = np.unique(every[:, :5], axis=0, return_inverse=True)
    counts = np.zeros(len(cells), dtype=np.int64)
    np.add.at(counts, places.reshape(-1), every[:, 5])
    return cells, counts


def _places(published: npt.NDArray[np.int32], some: npt.NDArray[np.int32]) -> IntArray:
    """Where some of the published records stand among all of them."""
    _, places = np.unique(np.concatenate([published, some]), axis=0, return_inverse=True)
    return np.asarray(places.reshape(-1)[len(published) :], dtype=np.int64)


def _read(folder: Path, done: Done) -> dict[str, npt.NDArray[np.int32]]:
    path = folder / done.file
    require_unchanged(path, done.digest)
    with np.load(path) as there:
        return {name: there[name] for name in ("published", "numbers")}


def _published(plan: GroupedPlan, digest: str) -> npt.NDArray[np.int32]:
    path = Path(plan.folder) / _PUBLISHED
    require_unchanged(path, digest)
    return np.asarray(np.load(path), dtype=np.int32)
