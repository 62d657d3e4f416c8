"""What a worker does: draw a partition, and write a part; each a function of the plan, with a result on disk.

A result is a file and beside it a record of its digest. Both are written under temporary names and renamed, the record
last: so a result is there whole or not at all, whenever a worker dies, and whoever takes over the task finds it or
makes it. Fresh words come from a stream that the worker makes for the task alone; two workers never share one.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.errors import DataError
from funnel.joint import Joint
from funnel.protocol import Protocol
from funnel.sampling.chunks import even_chunks
from funnel.sampling.codes import CodeArray, InputEncoder
from funnel.sampling.columns import GROUP_ROWS, ReleaseWriter
from funnel.sampling.draw import ChannelSampler, OutputArray
from funnel.sampling.keyed import DigestArray, encrypted_words
from funnel.sampling.pairs import PairCounts
from funnel.sampling.partitions import KEY_COLUMN, Plan
from funnel.sampling.shuffle import tagged
from funnel.sampling.spill import sizes_of_ranges
from funnel.sampling.words import WordStream
from funnel.tables import open_paged

_READ_ROWS = 1 << 17
_DRAW_ROWS = 1 << 16
# Rows that are sorted by part at a time; more make longer pieces, fewer stay in the processor's cache.
_SPILL_ROWS = 1 << 18


@dataclass(frozen=True)
class Done:
    """The result of a task.

    Attributes
    ----------
    file : str
        Name of the file in the folder of the plan.
    digest : str
        BLAKE2b of its bytes.
    rows : int
    pairs : tuple of (int, int)
        Of a drawn partition, numbers of cells of the (a + 1, b) table of (input, output) pairs, and their counts.
    bounds : tuple of tuples of int
        For every piece of a partition that is to be shuffled, the place of the first row of each part, and the end.
    """

    file: str
    digest: str
    rows: int
    pairs: tuple[tuple[int, int], ...] = ()
    bounds: tuple[tuple[int, ...], ...] = ()


def draw_partition(plan: Plan, index: int) -> Done:
    """Draw the outputs of a partition: encoded, if the order is kept, else sorted by part."""
    protocol = plan.protocol
    name = f"partition-{index:05d}.{'codes' if plan.shuffle else 'parquet'}"

    def make(path: Path) -> Done:
        b, a = protocol.size
        counts = PairCounts(a, b)

        def codes() -> Iterator[tuple[OutputArray, DigestArray | None]]:
            for outputs, inputs, digests in _drawn(plan, index):
                counts.add(inputs, outputs)
                yield outputs, digests

        bounds: list[tuple[int, ...]] = []
        if plan.shuffle:
            bounds = _write_by_part(path, plan, codes())
        else:
            with ReleaseWriter(path, protocol) as writer:
                for chunk in even_chunks((outputs for outputs, _ in codes()), GROUP_ROWS):
                    writer.write(chunk)
        flat = counts.table().reshape(-1)
        rows = int(flat.sum())
        cells = np.flatnonzero(flat)
        return Done(name, "", rows, tuple(zip(cells.tolist(), flat[cells].tolist(), strict=True)), tuple(bounds))

    return _result(plan, name, make)


def count_partition(
    snapshot: str,
    groups: tuple[int, int],
    secret: tuple[str, ...],
    inputs: tuple[str, ...],
    order: Mapping[str, Sequence[str]],
) -> Joint:
    """Count the joint law of the secret and the input in some row groups of a snapshot."""
    return Joint.from_batches(_row_groups(snapshot, groups, [*secret, *inputs]), secret, inputs, order)


def write_part(plan: Plan, part: int, drawn: tuple[Done, ...]) -> Done:
    """Put the rows of a part, from all partitions, into their final order and encode them."""
    protocol = plan.protocol
    name = f"part-{part:05d}.parquet"

    def make(path: Path) -> Done:
        words = _read_part(plan, part, drawn)
        words.sort()
        codes = words.astype(_code_type(protocol))
        with ReleaseWriter(path, protocol) as writer:
            writer.write(codes)
        return Done(name, "", len(codes))

    return _result(plan, name, make)


@dataclass(frozen=True)
class _Channel:
    """A protocol that is known by its digest, however often it is sent to a worker."""

    digest: str
    protocol: Protocol = field(compare=False)


@lru_cache(maxsize=2)
def _sampler(channel: _Channel) -> ChannelSampler:
    """Made once in a process: for hundreds of symbols its tables take as long as a good part of a partition."""
    return ChannelSampler.from_protocol(channel.protocol)


def _drawn(plan: Plan, index: int) -> Iterator[tuple[OutputArray, CodeArray, DigestArray | None]]:
    protocol = plan.protocol
    sampler = _sampler(_Channel(protocol.digest, protocol))
    encoder = InputEncoder(protocol.inputs)
    stream = WordStream() if plan.keys is None else None
    columns = list(protocol.inputs.columns)
    columns += [] if plan.keys is None else [KEY_COLUMN]
    for batch in _row_groups(plan.snapshot, plan.groups[index], columns):
        for start in range(0, batch.num_rows, _DRAW_ROWS):
            some = batch.slice(start, _DRAW_ROWS)
            inputs = encoder.codes(some)
            if stream is not None:
                yield sampler.draw(inputs, stream.words(len(inputs))), inputs, None
            elif plan.keys is not None:
                digests = _digests(some.column(KEY_COLUMN))
                yield sampler.draw(inputs, encrypted_words(digests, plan.keys.words)), inputs, digests


def _row_groups(snapshot: str, groups: tuple[int, int], columns: list[str]) -> Iterator[pa.RecordBatch]:
    with open_paged(snapshot) as file:
        yield from file.iter_batches(_READ_ROWS, row_groups=list(range(*groups)), columns=columns, use_threads=False)


def _digests(column: pa.FixedSizeBinaryArray) -> DigestArray:
    values = np.frombuffer(column.buffers()[1], dtype="<u8", count=2 * (column.offset + len(column)))
    return values.reshape(-1, 2)[column.offset :]


def _write_by_part(
    path: Path, plan: Plan, drawn: Iterator[tuple[OutputArray, DigestArray | None]]
) -> list[tuple[int, ...]]:
    """Write rows piece by piece, within a piece sorted by part; return where in each piece the parts begin."""
    stream = WordStream() if plan.keys is None else None
    bits, bounds, at = plan.parts.bit_length() - 1, [], 0

    def words() -> Iterator[npt.NDArray[np.uint64]]:
        # The words whose order is that of the release: their highest bits are the part.
        for outputs, digests in drawn:
            if stream is not None:
                yield tagged(outputs, stream.words(len(outputs)))
            elif plan.keys is not None and digests is not None:
                yield tagged(outputs, encrypted_words(digests, plan.keys.order))

    with path.open("wb", buffering=0) as file:
        for piece in even_chunks(words(), _SPILL_ROWS):
            # Sorting words is several times faster than moving each to its part.
            piece.sort()
            _write_all(file, piece)
            ends = at + np.cumsum(sizes_of_ranges(piece, 64 - bits, plan.parts))
            bounds.append((at, *ends.tolist()))
            at += len(piece)
    return bounds


def _write_all(file: Any, rows: npt.NDArray[Any]) -> None:
    remaining = rows.view(np.uint8).data
    while remaining:
        remaining = remaining[file.write(remaining) :]


def _read_part(plan: Plan, part: int, drawn: tuple[Done, ...]) -> npt.NDArray[np.uint64]:
    size = sum(bounds[part + 1] - bounds[part] for done in drawn for bounds in done.bounds)
    words, at = np.empty(size, dtype=np.uint64), 0
    for done in drawn:
        with (Path(plan.folder) / done.file).open("rb", buffering=0) as file:
            for bounds in done.bounds:
                target = words[at : at + bounds[part + 1] - bounds[part]].view(np.uint8).data
                file.seek(8 * bounds[part])
                while target:
                    count = file.readinto(target)
                    if not count:
                        raise DataError(f"the working file {done.file} was cut short; run the release again")
                    target = target[count:]
                at += bounds[part + 1] - bounds[part]
    return words


def _code_type(protocol: Protocol) -> np.dtype[Any]:
    return ChannelSampler.output_type(len(protocol.outputs))


def _result(plan: Plan, name: str, make: Callable[[Path], Done]) -> Done:
    """The result that is there already, if it is whole and of this very plan; else what ``make`` writes."""
    folder = Path(plan.folder)
    record = folder / f"{name}.json"
    if (found := _found(folder, record, plan)) is not None:
        return found
    token = secrets.token_hex(6)
    temporary = folder / f".{name}.{token}"
    said = folder / f".{name}.json.{token}"
    try:
        with writing_in(folder):
            made = make(temporary)
            done = Done(made.file, content_digest(temporary), made.rows, made.pairs, made.bounds)
            temporary.replace(folder / name)
            said.write_text(json.dumps({"plan": plan.digest, "done": vars(done)}), encoding="utf-8")
            said.replace(record)
    finally:
        temporary.unlink(missing_ok=True)
        said.unlink(missing_ok=True)
    return done


@contextmanager
def writing_in(folder: Path) -> Iterator[None]:
    """Name the folder in errors of the system that name no file, such as that of a full disk."""
    try:
        yield
        return
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        failure = OSError(error.errno, os.strerror(error.errno), str(folder))
    # The words of a library around the reason are left out.
    raise failure


def _found(folder: Path, record: Path, plan: Plan) -> Done | None:
    if not record.is_file():
        return None
    try:
        said = json.loads(record.read_text(encoding="utf-8"))
        if said["plan"] != plan.digest:
            return None
        done = Done(
            said["done"]["file"],
            said["done"]["digest"],
            said["done"]["rows"],
            tuple((int(cell), int(count)) for cell, count in said["done"]["pairs"]),
            tuple(tuple(line) for line in said["done"]["bounds"]),
        )
    except (ValueError, KeyError, TypeError):
        return None
    path = folder / done.file
    return done if path.is_file() and content_digest(path) == done.digest else None


def content_digest(path: str | os.PathLike[str]) -> str:
    """BLAKE2b of a file: to notice that a working file is not the one that was written."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=32)).hexdigest()
