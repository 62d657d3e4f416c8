"""Input codes: the position in a protocol's input alphabet of every row, without a loop over rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.tables import numbers_of, positions_of

CodeArray = npt.NDArray[np.int64]
OUTSIDE = -1
# Larger tables of combinations are searched instead of looked up.
_MAX_TABLE = 1 << 22
# Combinations of categories for which one table is made that says the code of each; it stays in the processor's cache.
_MAX_GRID = 1 << 18


class InputEncoder:
    """Maps rows to positions in an alphabet over one or several columns; -1 for rows outside it.

    Values are compared as text, ``str(value)``, as `funnel.Joint` does. Only distinct values are handled one by one;
    rows go through index arrays: each column's values to levels, then column by column the pair (symbol prefix so
    far, level) to the longer prefix, in mixed radix. Where the dictionaries of a batch have few combinations this is
    done once for each combination, and rows are looked up; the table is kept while the dictionaries stay the same.
    Nulls are outside the alphabet; a dictionary that holds a null or a value twice is read by what its entries say.

    Parameters
    ----------
    inputs : Alphabet
        a symbols over the columns to read.

    Notes
    -----
    O(a · columns) to construct; O(rows · columns) per batch, with a logarithmic factor for alphabets whose table of
    prefix and level would exceed 4 million cells.
    """

    def __init__(self, inputs: Alphabet) -> None:
        self.columns = inputs.columns
        self._levels: list[dict[str, int]] = []
        self._extend: list[Callable[[CodeArray], CodeArray]] = []
        prefixes, known = np.zeros(len(inputs), dtype=np.int64), 1
        for j in range(len(self.columns)):
            levels = {label: i for i, label in enumerate(inputs.texts[j])}
            # One more level and one more prefix stand for everything outside.
            radix = len(levels) + 1
            pairs, longer = np.unique(prefixes * radix + inputs.codes[:, j], return_inverse=True)
            is_last = j == len(self.columns) - 1
            target = _positions(longer) if is_last else np.arange(len(pairs))
            outside = OUTSIDE if is_last else len(pairs)
            self._levels.append(levels)
            self._extend.append(_lookup(pairs, target, outside, (known + 1) * radix))
            prefixes, known = longer, len(pairs)
        self._radices = [len(levels) + 1 for levels in self._levels]
        self._dictionaries: list[pa.Array] = []
        self._grid: CodeArray | None = None

    def codes(self, batch: pa.RecordBatch | pa.Table) -> CodeArray:
        """Position of every row's symbol in the alphabet, -1 if it has none; shape (rows,).

        Raises
        ------
        DataError
            If a column is missing, there twice, or not of a plain type.
        """
        if isinstance(batch, pa.Table):
            parts = [self.codes(part) for part in batch.select(self._present(batch)).to_batches()]
            return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
        columns = [self._coded(batch.column(name), j) for j, name in enumerate(self._present(batch))]
        dictionaries = [column.dictionary for column in columns]
        # One more entry of each dictionary stands for null.
        sizes = [len(dictionary) + 1 for dictionary in dictionaries]
        indices = [self._indices(column, j) for j, column in enumerate(columns)]
        if math.prod(sizes) > _MAX_GRID:
            return self._by_prefixes(
                [self._levels_of(d, j)[i] for j, (d, i) in enumerate(zip(dictionaries, indices, strict=True))]
            )
        if self._grid is None or not _same(dictionaries, self._dictionaries):
            self._dictionaries, self._grid = dictionaries, self._grid_of(dictionaries)
        return np.take(self._grid, _flat(indices, sizes), mode="clip")

    def _present(self, batch: pa.RecordBatch | pa.Table) -> list[str]:
        for name in self.columns:
            if batch.schema.names.count(name) != 1:
                state = "is more than once in" if name in batch.schema.names else "is not in"
                raise DataError(f"column {name!r}, which the protocol reads, {state} the table")
        return list(self.columns)

    def _coded(self, column: pa.Array, j: int) -> pa.DictionaryArray:
        if pa.types.is_dictionary(column.type):
            return column
        try:
            return pc.dictionary_encode(column)
        except pa.ArrowNotImplementedError:
            raise DataError(
                f"column {self.columns[j]!r} has type {column.type}; publish columns of text, numbers or dates"
            ) from None

    def _indices(self, column: pa.DictionaryArray, j: int) -> npt.NDArray[np.integer[Any]]:
        """Index of every row into the distinct values; the one after the last is for nulls."""
        if not column.indices.null_count:
            return positions_of(column, self.columns[j])
        # Checked before nulls get an index of their own, which a damaged column could hold as well.
        positions_of(column.drop_null(), self.columns[j])
        return numbers_of(column.indices.cast(pa.int64()).fill_null(len(column.dictionary)))

    def _levels_of(self, dictionary: pa.Array, j: int) -> CodeArray:
        """The level of every distinct value; the last is for nulls."""
        known, outside = self._levels[j], len(self._levels[j])
        levels = [outside if value is None else known.get(str(value), outside) for value in dictionary.to_pylist()]
        return np.array([*levels, outside], dtype=np.int64)

    def _by_prefixes(self, levels: list[CodeArray]) -> CodeArray:
        """Codes from the levels of every column, all of the same length."""
        prefixes = np.zeros(1, dtype=np.int64)
        for extend, radix, column in zip(self._extend, self._radices, levels, strict=True):
            prefixes = extend(prefixes * radix + column)
        return prefixes

    def _grid_of(self, dictionaries: list[pa.Array]) -> CodeArray:
        """The code of every combination of entries of the dictionaries, the last column's entry changing fastest."""
        levels = [self._levels_of(dictionary, j) for j, dictionary in enumerate(dictionaries)]
        return self._by_prefixes([axis.reshape(-1) for axis in np.meshgrid(*levels, indexing="ij")])


def _same(dictionaries: list[pa.Array], others: list[pa.Array]) -> bool:
    return all(one.equals(other) for one, other in zip(dictionaries, others, strict=True))


def _flat(indices: list[npt.NDArray[np.integer[Any]]], sizes: list[int]) -> CodeArray:
    """The position of every row's combination in the table of all combinations."""
    if len(indices) == 1:
        return indices[0].astype(np.int64)
    # Below 2^18, so narrow numbers do, and the processor handles more of them at a time.
    flat = indices[0].astype(np.int32)
    for column, size in zip(indices[1:], sizes[1:], strict=True):
        flat *= np.int32(size)
        np.add(flat, column, out=flat, casting="unsafe")
    return flat.astype(np.int64)


def input_codes(batch: pa.RecordBatch | pa.Table, inputs: Alphabet) -> CodeArray:
    """Position in the alphabet of every row's values, -1 outside it; see `InputEncoder`, which keeps its tables."""
    return InputEncoder(inputs).codes(batch)


def _positions(longer: CodeArray) -> CodeArray:
    """Symbol of every complete prefix; symbols are distinct, so this is the inverse of a permutation."""
    positions = np.empty(len(longer), dtype=np.int64)
    positions[longer] = np.arange(len(longer))
    return positions


def _lookup(pairs: CodeArray, target: CodeArray, outside: int, size: int) -> Callable[[CodeArray], CodeArray]:
    """The map from pairs (sorted, below ``size``) to their targets and from any other number to ``outside``."""
    if size <= _MAX_TABLE:
        table = np.full(size, outside, dtype=np.int64)
        table[pairs] = target
        return lambda keys: table[keys]

    def search(keys: CodeArray) -> CodeArray:
        places = np.minimum(np.searchsorted(pairs, keys), len(pairs) - 1)
        return np.where(pairs[places] == keys, target[places], outside)

    return search
