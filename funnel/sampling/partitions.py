"""Partitions: how the rows of a snapshot are cut for workers, and in which parts they are written.

Both depend on the snapshot and on the order of the release alone, never on the number or the kind of workers, and so do
the bytes of the release where record keys decide them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow.parquet as pq

from funnel.alphabet import Alphabet
from funnel.protocol import Protocol
from funnel.sampling.donors import Donors
from funnel.sampling.keyed import RecordKey
from funnel.sampling.output_columns import GROUP_ROWS
from funnel.sampling.output_values import Published, published_by
from funnel.sampling.row_order import PART_ROWS
from funnel.sampling.row_words import WordKeys
from funnel.sampling.spill import bucket_count

PARTITION_ROWS = 2 * GROUP_ROWS
"""Rows that a worker draws in one go, as far as the row groups of the snapshot allow."""


@dataclass(frozen=True)
class Plan:
    """Everything that the rows of a release are made from; small, and the same for every worker.

    Attributes
    ----------
    snapshot : str
        Path of a parquet file with the columns that the protocol reads, and `KEY_COLUMN` if ``keys`` are given.
    snapshot_sha256 : str
        Its digest.
    protocol : Protocol
    folder : str
        Private folder for what workers hand on; all of them can read and write it.
    groups : tuple of (int, int)
        First row group and the one after the last, for every partition.
    rows : int
        Rows of the snapshot.
    shuffle : bool
    parts : int
        Of a shuffled release, a power of two, so that random bits say exactly evenly which part a row belongs to.
    keys : WordKeys or None
        None to draw afresh.
    secret : Alphabet or None
        By whose values draws are counted, to be judged; they are drawn without it. None not to tell them apart.
    donors : Donors or None
        Where whole records are published, and the protocol is over classes of them.
    """

    snapshot: str
    snapshot_sha256: str
    protocol: Protocol
    folder: str
    groups: tuple[tuple[int, int], ...]
    rows: int
    shuffle: bool
    parts: int
    keys: WordKeys | None = None
    secret: Alphabet | None = None
    donors: Donors | None = None

    @cached_property
    def published(self) -> Published:
        """What is released for an output."""
        return published_by(self.protocol, self.donors)

    @property
    def purposes(self) -> tuple[str, ...]:
        """What random words are for: outputs, the donors of whole records, and the order of a shuffled release."""
        return ("draw", *(["donors"] if self.donors is not None else []), *(["order"] if self.shuffle else []))

    @cached_property
    def digest(self) -> str:
        """What the content of the working files depends on: files of another plan are not taken for this one's."""
        keys = b"" if self.keys is None else self.keys.digest
        secret = None if self.secret is None else (self.secret.columns, self.secret.symbols)
        said = [
            4,
            self.snapshot_sha256,
            self.protocol.digest,
            self.groups,
            self.shuffle,
            self.parts,
            keys.hex(),
            secret,
            None if self.donors is None else self.donors.digest,
        ]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def plan_rows(
    snapshot: str | Path,
    snapshot_sha256: str,
    protocol: Protocol,
    folder: str | Path,
    *,
    shuffle: bool,
    record_key: RecordKey | None = None,
    decided: bool = False,
    secret: Alphabet | None = None,
    donors: Donors | None = None,
    sizes: Sequence[int] | None = None,
    partition_rows: int = PARTITION_ROWS,
    part_rows: int = PART_ROWS,
) -> Plan:
    """Cut a snapshot into partitions.

    Parameters
    ----------
    snapshot, snapshot_sha256, protocol, folder, shuffle
        As in `Plan`.
    record_key : RecordKey, optional
        To give every record the answer that it gets whenever the same is decided about it.
    decided : bool
        Whether the snapshot has keys of records and decisions in the place of the digests of record keys.
    secret : Alphabet, optional
        Values of the secret, whose columns the snapshot then has, to count draws by.
    donors : Donors, optional
        As in `Plan`; the snapshot then has the number of every record.
    sizes : sequence of int, optional
        Rows of each row group, where they are known; else the file is asked.
    partition_rows, part_rows : int
        Rows of a partition, as far as row groups allow, and of a part, at most on average. For tests; among what
        decides the bytes of a release.
    """
    sizes = _sizes(snapshot) if sizes is None else sizes
    return Plan(
        str(snapshot),
        snapshot_sha256,
        protocol,
        str(folder),
        partition_groups(sizes, partition_rows),
        sum(sizes),
        shuffle,
        bucket_count(sum(sizes), part_rows),
        None if record_key is None else WordKeys.of(record_key, protocol, decided),
        secret,
        donors,
    )


def partition_groups(sizes: Sequence[int], partition_rows: int = PARTITION_ROWS) -> tuple[tuple[int, int], ...]:
    """First row group and the one after the last of every partition of a snapshot, as in `Plan`.

    Parameters
    ----------
    sizes : sequence of int
        Rows of each row group.
    """
    cuts: list[tuple[int, int]] = []
    start = held = 0
    for i, size in enumerate(sizes):
        if held and held + size > partition_rows:
            cuts.append((start, i))
            start, held = i, 0
        held += size
    return (*cuts, (start, len(sizes))) if held else tuple(cuts)


def _sizes(snapshot: str | os.PathLike[str]) -> list[int]:
    with pq.ParquetFile(snapshot) as file:
        return [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
