"""Types of one column in the several files of a dataset: which agree, and how their batches become alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.types as pt


def agreed(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """The type to read a column as that has these types in two files; None if they mean different things.

    All ways to store text agree, as do integers of all widths; a column of nulls alone agrees with everything.
    """
    first, second = _values(first), _values(second)
    if first.equals(second) or pt.is_null(second):
        return first
    if pt.is_null(first):
        return second
    if pt.is_integer(first) and pt.is_integer(second) and not (pt.is_uint64(first) or pt.is_uint64(second)):
        return pa.int64()
    return None


def _values(kind: pa.DataType) -> pa.DataType:
    """The type of the values, however they are stored."""
    if pt.is_dictionary(kind):
        kind = kind.value_type
    if pt.is_large_string(kind) or pt.is_string_view(kind):
        return pa.string()
    return kind


def alike(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """An array as the agreed type; text as dictionary<int32, string>, so that repeated text is not stored again."""
    if not pt.is_string(kind):
        values = array.dictionary_decode() if pt.is_dictionary(array.type) else array
        return values if values.type.equals(kind) else values.cast(kind)
    if not pt.is_dictionary(array.type):
        return array.cast(pa.string()).dictionary_encode()
    indices = array.indices.cast(pa.int32())
    return pa.DictionaryArray.from_arrays(indices, array.dictionary.cast(pa.string()))


def gathered(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order with small batches joined, up to ``rows`` rows each.

    A dataset of many small files would otherwise be handled a few rows at a time.
    """
    waiting: list[pa.RecordBatch] = []
    n_waiting = 0
    for batch in batches:
        if n_waiting and n_waiting + batch.num_rows > rows:
            yield _joined(waiting)
            waiting, n_waiting = [], 0
        if batch.num_rows:
            waiting.append(batch)
            n_waiting += batch.num_rows
    if waiting:
        yield _joined(waiting)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (whole,) = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks().to_batches()
    return whole
