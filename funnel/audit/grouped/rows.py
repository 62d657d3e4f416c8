"""Rows as arrays of codes: what stages read of records, what was published of them, and how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from funnel.errors import DataError
from funnel.joint import IntArray
from funnel.recount.grouped_text import GroupedText, TextStage
from funnel.tables import open_paged

# The code of a text that is in no row.
_NONE = -1


@dataclass(frozen=True, eq=False)
class Rows:
    """Texts of some columns, row by row, as codes.

    Attributes
    ----------
    columns : tuple of str
    texts : tuple of tuple of str
        Of every column those that its codes stand for.
    codes : ndarray of int32, shape (columns, rows)
    """

    columns: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    codes: IntArray

    @classmethod
    def read(cls, path: Path, columns: Sequence[str]) -> Rows:
        """Rows of a parquet file, in their order; four bytes for each of their cells.

        Raises
        ------
        DataError
            If it cannot be read, or a cell is no text.
        """
        known: list[dict[str, int]] = [{} for _ in columns]
        parts: list[list[IntArray]] = [[] for _ in columns]
        try:
            with open_paged(path) as file:
                for batch in file.iter_batches(batch_size=1 << 16, columns=list(columns)):
                    for j, column in enumerate(columns):
                        parts[j].append(_codes(batch.column(column), known[j]))
        except (OSError, KeyError, ValueError, pa.ArrowException) as error:
            raise DataError(f"{path.name} cannot be read as rows of texts ({type(error).__name__})") from error
        codes = [np.concatenate(some) if some else np.empty(0, dtype=np.int32) for some in parts]
        return cls(tuple(columns), tuple(tuple(one) for one in known), np.array(codes, dtype=np.int32))

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    def joined(self, columns: Sequence[str]) -> tuple[tuple[tuple[str, ...], ...], IntArray]:
        """The combinations of some columns that occur, and the number of that of every row."""
        places = [self.columns.index(column) for column in columns]
        found, numbers = np.unique(self.codes[places], axis=1, return_inverse=True)
        symbols = tuple(
            tuple(self.texts[place][code] for place, code in zip(places, row, strict=True)) for row in found.T.tolist()
        )
        return symbols, numbers.reshape(-1).astype(np.int64)

    def inputs(self, stage: TextStage) -> IntArray:
        """What a stage reads of every row, (rows,); -1 where it knows none."""
        columns = [*stage.columns, *([stage.ahead[0]] if stage.ahead and stage.ahead[0] not in stage.columns else [])]
        symbols, numbers = self.joined(columns)
        return np.array([stage.reads(columns, symbol) for symbol in symbols], dtype=np.int64)[numbers]

    @cached_property
    def counted(self) -> dict[tuple[str, ...], int]:
        """How often every combination of all columns is there."""
        symbols, numbers = self.joined(self.columns)
        return dict(zip(symbols, np.bincount(numbers, minlength=len(symbols)).tolist(), strict=True))


def _codes(values: pa.Array, known: dict[str, int]) -> IntArray:
    coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    texts = coded.dictionary.to_pylist()
    if coded.null_count or not all(isinstance(text, str) for text in texts):
        raise ValueError("a cell is no text")
    # What only a dictionary names is there in no row.
    indices = coded.indices.to_numpy(zero_copy_only=False)
    there = np.zeros(len(texts), dtype=np.bool_)
    there[indices] = True
    table = np.array(
        [
            known.setdefault(text, len(known)) if seen else _NONE
            for text, seen in zip(texts, there.tolist(), strict=True)
        ],
        dtype=np.int32,
    )
    return table[indices] if len(table) else np.empty(0, dtype=np.int32)


def by_group(counted: Mapping[tuple[str, ...], int], text: GroupedText) -> list[Counter[tuple[str, ...]]]:
    """How often each text of every group was published."""
    return [summed(counted, [text.columns.index(column) for column in stage.columns]) for stage in text.stages]


def summed(counted: Mapping[tuple[str, ...], int], places: Sequence[int]) -> Counter[tuple[str, ...]]:
    """How often each combination of the texts at some places was published."""
    found: Counter[tuple[str, ...]] = Counter()
    for record, number in counted.items():
        found[tuple(record[j] for j in places)] += number
    return found
