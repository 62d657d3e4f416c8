"""Snapshots with keys, as the row engine reads them, and plans that cut them into many small partitions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.alphabet import Alphabet
from funnel.protocol import Protocol
from funnel.readers.source_files import file_digest
from funnel.sampling.key_column import KEY_COLUMN
from funnel.sampling.keyed import RecordKey, key_digests
from funnel.sampling.partitions import Plan, plan_rows

FULL = 2**63
KEY = RecordKey(("id",), bytes(range(32)))
INPUTS = Alphabet(("x", "z"), (("a", "0"), ("b", "0"), ("b", "1")))
OUTPUTS = Alphabet(("x", "z"), (("a", "0"), ("a or b", "0"), ("b", "1")))
NOISY = Protocol(
    np.array([[FULL // 2, FULL // 4, 0], [FULL // 4, FULL // 2, 1], [FULL // 4, FULL // 4, FULL - 1]], dtype=np.uint64),
    np.array([FULL // 4, FULL // 4, FULL // 2], dtype=np.uint64),
    INPUTS,
    OUTPUTS,
)
OTHER = Protocol(NOISY.weights[[1, 0, 2]], NOISY.marginal, INPUTS, OUTPUTS)
ROWS = 30_000


def snapshot(folder: Path, *, reverse: bool = False, name: str = "snapshot.parquet", group_rows: int = 2000) -> Path:
    choice = np.random.default_rng(5)
    ids = choice.permutation(ROWS)
    z = ["0", "1", "elsewhere"]
    table = pa.table(
        {
            "x": pa.array(np.where(ids % 3 == 0, "a", "b")).dictionary_encode(),
            "z": pa.array([z[i] for i in np.where(ids % 3 == 0, 0, ids % 5 // 2)]).dictionary_encode(),
            "id": pa.array(ids),
        }
    )
    if reverse:
        table = table.take(pa.array(np.arange(ROWS)[::-1]))
    digests = key_digests(table, KEY).astype("<u8").view(np.uint8).tobytes()
    column = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), ROWS, [None, pa.py_buffer(digests)])
    pq.write_table(table.append_column(KEY_COLUMN, column), folder / name, row_group_size=group_rows)
    return folder / name


def planned(
    source: Path, name: str, *, shuffle: bool, keyed: bool, protocol: Protocol = NOISY, partition_rows: int = 7000
) -> Plan:
    folder = source.parent / name
    folder.mkdir()
    return plan_rows(
        source,
        file_digest(source),
        protocol,
        folder,
        shuffle=shuffle,
        record_key=KEY if keyed else None,
        partition_rows=partition_rows,
        part_rows=5000,
    )
