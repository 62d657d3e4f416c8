"""Tables of a register entry: parquet files of plain whole numbers, written with their digest and read back checked."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.errors import LedgerError
from funnel.joint import IntArray
from funnel.protocol import WeightArray
from funnel.register.entry import (
    CHANGES,
    CHANNELS,
    DONORS,
    EFFECTIVE,
    EXPECTED,
    FOLLOWED,
    FORGOTTEN,
    NODES,
    PEOPLE,
    ROW_DONORS,
    ROWS,
)
from funnel.release.files import Sink
from funnel.tables import arrow_numbers

Columns = Mapping[str, npt.NDArray[Any]]


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])


# OUTSIDE stands for a record whose input is outside the alphabet.
OUTSIDE = -1
SCHEMAS: Mapping[str, pa.Schema] = {
    # The digest of the record key: its first and its last 64 bits, each little-endian; node: the history afterwards;
    # changed: 1 of those who ever changed (`funnel.history.mover_stayer`), 0 too of people who have several rows.
    PEOPLE: _schema(high=pa.uint64(), low=pa.uint64(), cell=pa.int32(), changed=pa.int8(), node=pa.int64()),
    # All rows of units, in the order in which they were drawn: ``row`` is from 1, ``node`` the history after it;
    # 0 where nothing is read of the unit, and the row is published as anybody's.
    ROWS: _schema(high=pa.uint64(), low=pa.uint64(), row=pa.int32(), cell=pa.int32(), node=pa.int64()),
    # Whose record was published last for a person, as ``high`` and ``low`` are; 0 and 0 once they are forgotten.
    DONORS: _schema(high=pa.uint64(), low=pa.uint64(), of_high=pa.uint64(), of_low=pa.uint64()),
    # The same of the rows of units.
    ROW_DONORS: _schema(
        high=pa.uint64(), low=pa.uint64(), row=pa.int32(), of_high=pa.uint64(), of_low=pa.uint64(), of_row=pa.int32()
    ),
    # Those who are forgotten and still get an answer that depends on nothing.
    FORGOTTEN: _schema(high=pa.uint64(), low=pa.uint64()),
    # Row r is the history ``first + r``: that of its parent and then this output.
    NODES: _schema(parent=pa.int64(), output=pa.int32()),
    # People in an earlier version and in this one, by what they were and what they are, and by whether they had changed
    # up to each of these; 0 where people have several rows.
    CHANGES: _schema(
        version=pa.int32(),
        before=pa.int32(),
        after=pa.int32(),
        changed_before=pa.int8(),
        changed_after=pa.int8(),
        records=pa.int64(),
    ),
    # What was drawn from: weights that are not zero.
    CHANNELS: _schema(channel=pa.int32(), input=pa.int32(), output=pa.int32(), weight=pa.uint64()),
    # Which channel people with a history drew from.
    FOLLOWED: _schema(node=pa.int64(), channel=pa.int32()),
    # The effective channel, which is published; input -1: of a record whose input is outside the alphabet.
    EFFECTIVE: _schema(input=pa.int32(), output=pa.int32(), weight=pa.uint64()),
    # How many people are expected to have a history, by what is public; -1 - v: one that is not predicted, where
    # chapter v is the last version of theirs.
    EXPECTED: _schema(node=pa.int64(), people=pa.float64()),
}
SETTINGS: Mapping[str, Any] = {"compression": "zstd", "use_dictionary": False, "write_statistics": True}


def row_type(name: str) -> np.dtype[Any]:
    """Of the rows of a table of `SCHEMAS` as numpy holds them."""
    return np.dtype([(field.name, field.type.to_pandas_dtype()) for field in SCHEMAS[name]])


def record_batch(schema: pa.Schema, columns: Columns) -> pa.RecordBatch:
    """Arrays as a batch of a schema; whatever does not fit its types is an error, never another number."""
    arrays = []
    for field in schema:
        wanted = np.dtype(field.type.to_pandas_dtype())
        given = np.ascontiguousarray(columns[field.name])
        fitting = given.astype(wanted)
        if given.dtype != wanted and not np.array_equal(fitting.astype(object), given.astype(object)):
            raise ValueError(f"numbers of the column {field.name} do not fit {field.type}")
        arrays.append(arrow_numbers(fitting))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def write_table(folder: Path, name: str, columns: Columns) -> str:
    """Write a small table, on disk when this returns; its SHA-256 (hex).

    Parameters
    ----------
    folder : Path
    name : str
        One of `SCHEMAS`.
    columns : mapping of str to ndarray
        All of one length.
    """
    schema = SCHEMAS[name]
    with Sink(folder / name) as sink, pq.ParquetWriter(sink, schema, **SETTINGS) as writer:
        writer.write_batch(record_batch(schema, columns))
    return sink.sha256


def read_table(folder: Path, name: str, sha256: str) -> dict[str, npt.NDArray[Any]]:
    """Read a small table, if it is the one that was written.

    Raises
    ------
    LedgerError
        If it is gone, was changed, or is no such table.
    """
    path = folder / name
    try:
        content = path.read_bytes()
    except OSError as error:
        raise damaged(path, "is gone or cannot be read") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise damaged(path, "was changed since it was written")
    table = pq.read_table(io.BytesIO(content))
    if not table.schema.equals(SCHEMAS[name]):
        raise of_another_funnel(path)
    return {field: table.column(field).to_numpy() for field in table.column_names}


def damaged(path: Path, what: str) -> LedgerError:
    """The error of a file of the register that is not what it was."""
    return lost(f"{path} {what}")


def lost(what: str) -> LedgerError:
    """The error of a register that does not have all that was published about its people."""
    return LedgerError(
        f"{what}; what was published about these people would be forgotten: restore the register from a backup"
    )


def of_another_funnel(path: Path) -> LedgerError:
    """The error of a file of the register that is what it was, in a form that this funnel does not read."""
    return LedgerError(
        f"{path} was written by another version of funnel, in a form that this one does not read; go on with that "
        "version, or name another register in [history]: it begins with nothing of what was published so far, so that "
        "the bound does not hold for both together"
    )


def sparse(library: WeightArray) -> Columns:
    """Channels, shape (m, b, a), as the columns of their table."""
    channel, output, input_ = np.nonzero(library)
    order = np.lexsort((output, input_, channel))
    channel, output, input_ = channel[order], output[order], input_[order]
    return {"channel": channel, "input": input_, "output": output, "weight": library[channel, output, input_]}


def dense(columns: Columns, outputs: int, inputs: int) -> WeightArray:
    """The channels of a table, shape (m, outputs, inputs)."""
    m = int(columns["channel"].max(initial=-1)) + 1
    library = np.zeros((m, outputs, inputs), dtype=np.uint64)
    library[columns["channel"], columns["output"], columns["input"]] = columns["weight"]
    return library


def sparse_channel(weights: WeightArray, marginal: WeightArray) -> Columns:
    """One channel, shape (b, a), and what records outside its alphabet draw from, as the columns of its table."""
    b, a = weights.shape
    columns = sparse(np.concatenate([marginal.reshape(1, b, 1), weights.reshape(1, b, a)], axis=2))
    return {"input": columns["input"] + OUTSIDE, "output": columns["output"], "weight": columns["weight"]}


def dense_channel(columns: Columns, outputs: int, inputs: int) -> tuple[WeightArray, WeightArray]:
    """Weights, shape (outputs, inputs), and marginal, shape (outputs,), of a table."""
    both = np.zeros((outputs, inputs + 1), dtype=np.uint64)
    both[columns["output"], columns["input"] - OUTSIDE] = columns["weight"]
    return both[:, 1:], both[:, 0]


def node_columns(parents: IntArray, outputs: IntArray) -> Columns:
    """Histories that a version added, as the columns of their table."""
    return {"parent": parents, "output": outputs}
