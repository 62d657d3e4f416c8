"""Sanitise: draw the released rows from a snapshot with a protocol, and count what was drawn."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from prefect import task
from prefect.cache_policies import NO_CACHE

from funnel.errors import DataError
from funnel.protocol import Protocol
from funnel.release.documents import dump
from funnel.release.layout import ReleaseFolder
from funnel.sampling import count_pairs, release_table, sanitised_codes
from funnel.source import file_digest
from tasks.files import FileRef, private_folder
from tasks.ingest import Snapshot
from tasks.optimise import Optimised
from tasks.step import plain_errors, tell

BATCH_ROWS = 1 << 17


@dataclass(frozen=True)
class Drawn:
    """The drawn rows, in the folder where the release is being put together.

    Attributes
    ----------
    folder : str
        Root of the coming release.
    data : FileRef
        Parquet of the published columns.
    draws : FileRef
        JSON counts of (input, output) pairs; internal.
    fresh : bool
        False if the rows are those of an earlier version, taken over unchanged.
    """

    folder: str
    data: FileRef
    draws: FileRef
    fresh: bool


# Never cached by the orchestrator: whether rows are drawn again is decided by the flow, knowingly.
@task(name="sanitise", cache_policy=NO_CACHE, persist_result=False)
@plain_errors
def sanitise(
    snapshot: Snapshot, optimised: Optimised, incoming: str, shuffle: bool, earlier: str | None = None
) -> Drawn:
    """Draw every record's output, stream it to parquet in bounded memory, and count the pairs drawn.

    Parameters
    ----------
    incoming : str
        Folder of the coming release.
    shuffle : bool
        Whether rows come in random order.
    earlier : str, optional
        Folder of a version whose rows were drawn from the same snapshot with the same protocol: they are taken over,
        and nothing is drawn.

    Raises
    ------
    EntropyError
        If the random source fails; nothing is written from it.
    """
    protocol = optimised.read_protocol()
    folder = ReleaseFolder(Path(incoming))
    folder.data.parent.mkdir(parents=True, exist_ok=True)
    private_folder(folder.audit)
    if earlier is None:
        _draw(snapshot, protocol, folder, shuffle)
    else:
        _take_over(ReleaseFolder(Path(earlier)), folder)
    return Drawn(incoming, FileRef.of(folder.data), FileRef.of(folder.draws), earlier is None)


def _draw(snapshot: Snapshot, protocol: Protocol, folder: ReleaseFolder, shuffle: bool) -> None:
    b, a = protocol.size
    pairs = np.zeros((a + 1, b), dtype=np.int64)

    def observe(inputs: np.ndarray, outputs: np.ndarray) -> None:
        nonlocal pairs
        pairs += count_pairs(inputs, outputs, a, b)
        tell("drawing", int(pairs.sum()), snapshot.rows)

    empty = release_table(np.empty(0, dtype=np.uint8), protocol)
    with pq.ParquetWriter(folder.data, empty.schema, compression="zstd") as writer:
        codes = sanitised_codes(_batches(snapshot), protocol, shuffle=shuffle, observe=observe, directory=folder.root)
        for chunk in codes:
            writer.write_table(release_table(chunk, protocol))
    if int(pairs.sum()) != snapshot.rows:
        raise DataError(f"{int(pairs.sum()):,} rows were drawn for {snapshot.rows:,} records; run the release again")
    folder.draws.write_bytes(dump({"pairs": pairs.tolist()}))


def _batches(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(snapshot.data.checked()) as file:
        yield from file.iter_batches(BATCH_ROWS)


def _take_over(earlier: ReleaseFolder, folder: ReleaseFolder) -> None:
    shutil.copyfile(earlier.data, folder.data)
    shutil.copyfile(earlier.draws, folder.draws)
    if file_digest(earlier.data) != file_digest(folder.data):
        raise DataError(f"the rows of {earlier.root} changed while they were taken over; run the release again")
