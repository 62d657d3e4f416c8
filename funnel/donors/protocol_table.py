"""The file of a protocol of many records: a parquet table of the records, with what each may become."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.alphabet import Alphabet
from funnel.errors import DataError, OutputError, SpecError
from funnel.protocol import DENOMINATOR, Protocol
from funnel.sparse_weights import SparseWeights

FORMAT: Final = "funnel-protocol-table/1"
_KEY: Final = b"funnel"


def write_protocol(protocol: Protocol, path: str | os.PathLike[str]) -> None:
    """Write a protocol whose outputs are its inputs as one parquet file, about as large as the records themselves.

    A row is a record: ``record`` (its values), ``marginal`` (of records that the protocol does not know), ``others``
    (the rows that it may become, rising) and ``weights`` (of these). A record stays as it is with what is left of
    2^63.

    Raises
    ------
    SpecError
        If the outputs are not the inputs.
    OutputError
        If the file cannot be written.
    """
    if protocol.outputs != protocol.inputs:
        raise SpecError("a protocol is written as a table of records where its outputs are its inputs; use to_json")
    becomes = protocol.sparse.transposed
    moved = becomes.outputs != becomes.inputs
    ends = np.concatenate([[0], np.cumsum(np.bincount(becomes.outputs[moved], minlength=len(protocol.inputs)))])
    offsets = pa.array(ends, pa.int32())
    columns = protocol.inputs.columns
    values = [pa.array([symbol[j] for symbol in protocol.inputs.symbols]) for j in range(len(columns))]
    table = pa.table(
        {
            "record": pa.StructArray.from_arrays(values, list(columns)),
            "marginal": pa.array(protocol.marginal),
            "others": pa.ListArray.from_arrays(offsets, pa.array(becomes.inputs[moved], pa.int32())),
            "weights": pa.ListArray.from_arrays(offsets, pa.array(becomes.values[moved].astype(np.int64))),
        }
    )
    said = {
        "format": FORMAT,
        "mechanism": protocol.mechanism,
        "guarantee": protocol.guarantee,
        "digest": protocol.digest,
    }
    named = [f"record.{column}" for column in columns] + ["marginal"]
    try:
        pq.write_table(
            table.replace_schema_metadata({_KEY: json.dumps(said).encode()}),
            path,
            compression="zstd",
            compression_level=9,
            use_dictionary=named,
            column_encoding={
                "others.list.element": "DELTA_BINARY_PACKED",
                # The low bytes are zero where one respondent has the record, and lie together so.
                "weights.list.element": "BYTE_STREAM_SPLIT",
            },
        )
    except OSError as error:
        raise OutputError(f"{os.fspath(path)} cannot be written; check the folder and its space") from error


def read_protocol(path: str | os.PathLike[str]) -> Protocol:
    """Read what `write_protocol` wrote.

    Raises
    ------
    DataError
        If it is no such file, or was altered.
    """
    if not Path(path).exists():
        raise DataError(f"there is no file {os.fspath(path)}; check the path")
    try:
        table = pq.read_table(path)
        said = json.loads(table.schema.metadata[_KEY])
        if said["format"] != FORMAT:
            raise DataError(f"the protocol is not of format {FORMAT}")
        record = table.column("record").combine_chunks()
        columns = tuple(field.name for field in record.type)
        symbols = zip(*(field.to_pylist() for field in record.flatten()), strict=True)
        inputs = Alphabet(columns, tuple(symbols))
        others, written = (table.column(name).combine_chunks() for name in ("others", "weights"))
        sizes = np.diff(np.asarray(others.offsets))
        if (sizes != np.diff(np.asarray(written.offsets))).any():
            raise ValueError("as many others as weights")
        left = np.repeat(np.arange(len(inputs)), sizes)
        taken, values = np.asarray(others.values), np.asarray(written.values).astype(np.uint64)
        gone = np.zeros(len(inputs), dtype=np.uint64)
        np.add.at(gone, left, values)
        every = np.arange(len(inputs))
        weights = SparseWeights.of_entries(
            np.concatenate([taken, every]),
            np.concatenate([left, every]),
            np.concatenate([values, np.uint64(DENOMINATOR) - gone]),
            (len(inputs), len(inputs)),
        )
        marginal = np.asarray(table.column("marginal")).astype(np.uint64)
        protocol = Protocol.of_sparse(weights, marginal, inputs, inputs, said["mechanism"], said["guarantee"])
    except (ValueError, KeyError, TypeError, IndexError, OSError, SpecError, pa.ArrowException) as error:
        raise DataError(f"this is not a readable protocol ({type(error).__name__}); take it from a release") from error
    if protocol.digest != said["digest"]:
        raise DataError("the protocol does not match its own digest: it has been altered or damaged")
    return protocol
