"""Snapshot rows: the records of a snapshot, row group by row group, as cells; and a column of histories beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.errors import DataError
from funnel.joint import IntArray, Joint
from funnel.release.files import FileRef, Sink
from funnel.sampling.codes import InputEncoder
from funnel.tables import arrow_numbers, open_paged

HISTORY_SCHEMA = pa.schema(
    [pa.field("node", pa.int64(), nullable=False), pa.field("changed", pa.int8(), nullable=False)]
)


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
        raise DataError("a record of the snapshot is outside the joint distribution; run the release again")
    return np.asarray(secret * len(joint.inputs) + inputs, dtype=np.int64)


def write_histories(path: Path, groups: Iterable[tuple[IntArray, IntArray]]) -> FileRef:
    """Write the histories of records, group by group, and whether these people ever changed."""
    with Sink(path) as sink, pq.ParquetWriter(sink, HISTORY_SCHEMA, compression="zstd", use_dictionary=False) as writer:
        for group in groups:
            columns = [arrow_numbers(np.ascontiguousarray(column)) for column in group]
            batch = pa.RecordBatch.from_arrays(columns, schema=HISTORY_SCHEMA)
            writer.write_table(pa.Table.from_batches([batch]), row_group_size=max(1, batch.num_rows))
    return FileRef(str(path), sink.sha256)
