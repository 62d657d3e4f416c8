"""The published columns of output codes: as a table, and as a parquet file that is written piece by piece."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.errors import DataError
from funnel.protocol import Protocol
from funnel.sampling.spill import Closing
from funnel.tables import arrow_numbers, arrow_texts

GROUP_ROWS = 1 << 20
"""Rows of a row group of a released file."""

# Statistics of a page are made for every piece that is encoded at a time, so large pieces cost a third less.
_PIECE_ROWS = 1 << 16

WRITE_SETTINGS: dict[str, Any] = {"compression": "zstd", "write_batch_size": _PIECE_ROWS}
"""How released files are written; what a copy must be written with to be compared with a release."""


class CodedColumns:
    """Turns codes into published columns: text as dictionary type, without nulls and without metadata.

    Every column's dictionary lists all texts that it can have, whether or not they occur: it says nothing about the
    rows. Indices are the smallest signed integers that fit.

    Parameters
    ----------
    names : sequence of str
    categories : sequence of sequences of str
        The texts of every column.
    tables : sequence of ndarray of integers, each (b,)
        The position of the text that every code stands for.

    Notes
    -----
    O(rows · columns) to use.
    """

    def __init__(
        self,
        names: Sequence[str],
        categories: Sequence[Sequence[str]],
        tables: Sequence[npt.NDArray[np.integer[Any]]],
    ) -> None:
        self._size = len(tables[0])
        self._tables: list[npt.NDArray[np.signedinteger[Any]]] = []
        self._categories = [arrow_texts(list(texts)) for texts in categories]
        fields = []
        for name, texts, table in zip(names, categories, tables, strict=True):
            dtype = next(t for t in (np.int8, np.int16, np.int32) if len(texts) <= np.iinfo(t).max + 1)
            self._tables.append(np.asarray(table).astype(dtype))
            kind = pa.dictionary(pa.from_numpy_dtype(np.dtype(dtype)), pa.string())
            fields.append(pa.field(name, kind, nullable=False))
        self.schema = pa.schema(fields)

    def batch(self, codes: npt.NDArray[np.integer[Any]]) -> pa.RecordBatch:
        """The columns of some rows.

        Raises
        ------
        DataError
            If a code stands for nothing.
        """
        if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < self._size:
            raise DataError(f"output codes run from {codes.min()} to {codes.max()}; there are {self._size} outputs")
        columns = [np.empty(len(codes), dtype=table.dtype) for table in self._tables]
        # Piece by piece, which stays in the processor's cache with the wide codes that are looked up by.
        for start in range(0, len(codes), _PIECE_ROWS):
            piece = slice(start, start + _PIECE_ROWS)
            rows = codes[piece].astype(np.int64)
            for table, column in zip(self._tables, columns, strict=True):
                np.take(table, rows, out=column[piece], mode="clip")
        arrays = [
            # Positions in the categories by construction: not checked again.
            pa.DictionaryArray.from_arrays(arrow_numbers(column), categories, safe=False)
            for column, categories in zip(columns, self._categories, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class OutputColumns(CodedColumns):
    """The published columns of output codes; texts in the order in which the outputs name them.

    Parameters
    ----------
    protocol : Protocol

    Notes
    -----
    O(b · columns) to construct.
    """

    def __init__(self, protocol: Protocol) -> None:
        outputs = protocol.outputs
        super().__init__(outputs.columns, outputs.texts, list(outputs.codes.T))


class ReleaseWriter(Closing):
    """Writes a released parquet file from arrays of output codes, one row group each.

    The bytes depend on the arrays alone: hand over arrays of `GROUP_ROWS` rows (`funnel.sampling.even_chunks`), the
    last one shorter. Use as a context manager; a file that was not closed has no footer and is no parquet file.

    Parameters
    ----------
    path : path
    columns : CodedColumns
        `OutputColumns` of a protocol, or of whole records.
    """

    def __init__(self, path: str | os.PathLike[str], columns: CodedColumns) -> None:
        self._columns = columns
        self._writer = pq.ParquetWriter(Path(path), self._columns.schema, **WRITE_SETTINGS)

    def write(self, codes: npt.NDArray[np.integer[Any]]) -> None:
        """Write a row group."""
        self._writer.write_batch(self._columns.batch(codes), row_group_size=max(1, len(codes)))

    def close(self) -> None:
        """End the file."""
        self._writer.close()
