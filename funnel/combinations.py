"""Combinations: which ones of the values of some columns occur in a stream of record batches, and how often."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.alphabet import natural_key
from funnel.errors import DataError
from funnel.tables import positions_of

IntArray = npt.NDArray[np.int64]

# Combinations that are counted in a table of all of them, rather than sorted.
_MAX_TABLE = 2**20


def count_combinations(
    batches: Iterable[pa.RecordBatch], columns: tuple[str, ...]
) -> tuple[Counter[tuple[str, ...]], dict[str, dict[str, int]]]:
    """Counts of the combinations that occur, and for each column the rank of each of its texts."""
    counted: Counter[tuple[str, ...]] = Counter()
    declared: dict[str, dict[str, int]] = {column: {} for column in columns}
    is_declared = dict.fromkeys(columns, True)
    texts: list[list[str]] = []
    sizes: list[int] = []
    dictionaries: list[pa.Array] = []
    # Rows by combination of entries of the dictionaries, for as long as these stay the same.
    table: IntArray | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        values = [batch.column(column) for column in columns]
        coded = [_coded(one, column) for one, column in zip(values, columns, strict=True)]
        here = [one.dictionary for one in coded]
        if not dictionaries or not all(one.equals(d) for one, d in zip(here, dictionaries, strict=True)):
            if table is not None:
                _add(counted, texts, table)
            table, dictionaries = None, here
            texts = [_texts(dictionary, column) for dictionary, column in zip(here, columns, strict=True)]
            sizes = [len(names) for names in texts]
            for one, column, names in zip(values, columns, texts, strict=True):
                is_declared[column] &= pa.types.is_dictionary(one.type)
                for name in names:
                    declared[column].setdefault(name, len(declared[column]))
        codes = [positions_of(one, column) for one, column in zip(coded, columns, strict=True)]
        if math.prod(sizes) <= _MAX_TABLE:
            of_batch = _table(codes, sizes)
            table = of_batch if table is None else table + of_batch
        else:
            for cell, count in _cells(codes, sizes):
                counted[tuple(names[code] for names, code in zip(texts, cell, strict=True))] += count
    if table is not None:
        _add(counted, texts, table)
    ranks = {}
    for column, seen in declared.items():
        order = list(seen) if is_declared[column] else sorted(seen, key=natural_key)
        ranks[column] = {name: rank for rank, name in enumerate(order)}
    return counted, ranks


def _coded(values: pa.Array, column: str) -> pa.DictionaryArray:
    """The values by the categories they hold."""
    try:
        coded = values if isinstance(values, pa.DictionaryArray) else values.dictionary_encode()
    except pa.ArrowNotImplementedError as error:
        raise DataError(f"column {column!r} is of type {values.type}, whose values are no categories") from error
    if coded.null_count:
        raise _nulls(column)
    return coded


def _texts(categories: pa.Array, column: str) -> list[str]:
    """Every entry of a dictionary as text."""
    undefined = pa.types.is_floating(categories.type) and categories.is_nan().true_count > 0
    if categories.null_count or undefined:
        raise _nulls(column)
    return [str(value) for value in categories.to_pylist()]


def _nulls(column: str) -> DataError:
    return DataError(f"column {column!r} holds nulls; make them a category or drop the rows")


def _cells(codes: list[npt.NDArray[np.integer[Any]]], sizes: list[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Each combination of codes that occurs, with its number of rows."""
    if math.prod(sizes) < 2**63:
        flat, counts = np.unique(np.ravel_multi_index(codes, sizes), return_counts=True)
        parts = np.unravel_index(flat, sizes)
    else:
        # Too many possible combinations to number in 64 bits: slower, but nothing wraps around.
        columns, counts = np.unique(np.stack(codes), axis=1, return_counts=True)
        parts = tuple(columns)
    return zip(zip(*(part.tolist() for part in parts), strict=True), counts.tolist(), strict=True)


def _add(counted: Counter[tuple[str, ...]], texts: list[list[str]], table: IntArray) -> None:
    """Add what a table has counted, by the texts of the combinations."""
    flat = np.flatnonzero(table)
    cells = zip(*(part.tolist() for part in np.unravel_index(flat, [len(names) for names in texts])), strict=True)
    for cell, count in zip(cells, table[flat].tolist(), strict=True):
        counted[tuple(names[code] for names, code in zip(texts, cell, strict=True))] += count


def _table(codes: list[npt.NDArray[np.integer[Any]]], sizes: list[int]) -> IntArray:
    """Number of rows of every combination, flat; few combinations, so narrow numbers do, and are faster."""
    size = math.prod(sizes)
    narrow = np.dtype(np.uint8 if size <= 256 else np.int32)
    flat: npt.NDArray[np.integer[Any]] = codes[0].astype(narrow)
    for column, radix in zip(codes[1:], sizes[1:], strict=True):
        # 256 is 0 for a byte, but then the combinations so far have the number 0 too.
        np.multiply(flat, np.array(radix).astype(narrow), out=flat)
        np.add(flat, column.astype(narrow), out=flat)
    if narrow.itemsize == 1 and len(flat) >= 4 * 256 * size:
        return _table_of_bytes(flat, size)
    return np.bincount(flat, minlength=size)


def _table_of_bytes(flat: npt.NDArray[np.integer[Any]], size: int) -> IntArray:
    """How often each number below ``size`` occurs: counted two rows at a time, which takes half as long."""
    even = len(flat) // 2 * 2
    pairs = np.bincount(flat[:even].view("<u2"), minlength=256 * size).reshape(size, 256)
    table: IntArray = pairs.sum(axis=1) + pairs.sum(axis=0)[:size]
    table[flat[even:]] += 1
    return table
