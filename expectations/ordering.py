"""Ordering: what the places of a released file say, as tables of labels of places by outputs, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from funnel.alphabet import Alphabet
from funnel.drawn import DrawnCounts
from funnel.joint import IntArray
from funnel.tables import open_paged

CHUNK_ROWS = 1 << 16
BLOCKS = 64
# Tables beyond this are of the commonest labels, all others being one.
_MAX_TABLE = 1 << 22
_MAX_OUTPUTS = 1 << 11

BY_BLOCK = "block of rows"
# Rows that only lean to one end are told by few places: 60:40 among 3,000, where 64 blocks see nothing.
BY_HALF = "half of the rows"
BY_INPUT = "input at the same place of the source"
BY_SECRET = "secret at the same place of the source"
SORTED_BY_INPUT = "input at this place if the file were sorted by it"
SORTED_BY_SECRET = "secret at this place if the file were sorted by it"
BY_ROW_BEFORE = "output of the row before"
LABELS = (BY_BLOCK, BY_HALF, BY_INPUT, BY_SECRET, SORTED_BY_INPUT, SORTED_BY_SECRET, BY_ROW_BEFORE)


class Symbols:
    """Positions in an alphabet of the rows of a batch; one beyond the last for rows that hold none of its symbols.

    Parameters
    ----------
    alphabet : Alphabet
    """

    def __init__(self, alphabet: Alphabet) -> None:
        self._columns, self._count = alphabet.columns, len(alphabet)
        self._levels = [
            {text: i for i, text in enumerate(dict.fromkeys(symbol[j] for symbol in alphabet.symbols))}
            for j in range(len(alphabet.columns))
        ]
        # One more level of each column is for all other values.
        radices = [len(levels) + 1 for levels in self._levels]
        self._factors = [math.prod(radices[j + 1 :]) for j in range(len(radices))]
        places = [
            sum(factor * levels[text] for factor, levels, text in zip(self._factors, self._levels, symbol, strict=True))
            for symbol in alphabet.symbols
        ]
        self._order = np.argsort(np.array(places, dtype=np.int64))
        self._places = np.array(places, dtype=np.int64)[self._order]

    def codes(self, batch: pa.RecordBatch) -> IntArray:
        """The position of every row, shape (rows,)."""
        flat = np.zeros(batch.num_rows, dtype=np.int64)
        for column, levels, factor in zip(self._columns, self._levels, self._factors, strict=True):
            coded = batch.column(column)
            if not pa.types.is_dictionary(coded.type):
                coded = coded.dictionary_encode()
            other = len(levels)
            known = [levels.get(str(text), other) for text in coded.dictionary.to_pylist()]
            indices = coded.indices.cast(pa.int64()).fill_null(len(known)).to_numpy()
            flat += factor * np.array([*known, other], dtype=np.int64)[indices]
        found = np.minimum(np.searchsorted(self._places, flat), self._count - 1)
        return np.where(self._places[found] == flat, self._order[found], self._count)


def coded(path: Path, alphabet: Alphabet) -> Iterator[IntArray]:
    """Positions of the rows of a parquet file in an alphabet, in arrays of `CHUNK_ROWS` rows, the last one shorter."""
    symbols, held, count = Symbols(alphabet), list[IntArray](), 0
    with open_paged(path) as file:
        for batch in file.iter_batches(batch_size=CHUNK_ROWS, columns=list(alphabet.columns)):
            held.append(symbols.codes(batch))
            count += batch.num_rows
            while count >= CHUNK_ROWS:
                rows = np.concatenate(held)
                yield rows[:CHUNK_ROWS]
                held, count = [rows[CHUNK_ROWS:]], count - CHUNK_ROWS
    if count:
        yield np.concatenate(held)


class _Table:
    """Counts of (label, output), of the commonest labels and outputs only, where there are too many."""

    def __init__(self, labels: IntArray, outputs: IntArray) -> None:
        self._outputs, width = _folded(outputs, _MAX_OUTPUTS)
        self._labels, height = _folded(labels, max(2, _MAX_TABLE // width))
        self.counts = np.zeros((height, width), dtype=np.int64)

    def add(self, labels: IntArray, outputs: IntArray) -> None:
        cells = self._labels[labels] * self.counts.shape[1] + self._outputs[outputs]
        self.counts += np.bincount(cells, minlength=self.counts.size).reshape(self.counts.shape)


def _folded(totals: IntArray, most: int) -> tuple[IntArray, int]:
    """Which row of a table each label has, and how many rows it has; by how often labels occur, and by nothing else."""
    if len(totals) <= most:
        return np.arange(len(totals)), len(totals)
    places = np.full(len(totals), most - 1, dtype=np.int64)
    places[np.argsort(totals, kind="stable")[::-1][: most - 1]] = np.arange(most - 1)
    return places, most


def order_tables(
    released: Path,
    outputs: Alphabet,
    released_counts: IntArray,
    snapshot: Path,
    inputs: Alphabet,
    input_counts: IntArray,
    secret: Alphabet,
    secret_counts: IntArray,
) -> pd.DataFrame:
    """Tables of what places could say of the source, one a line.

    Parameters
    ----------
    released, outputs
        The file, and what its rows may be.
    released_counts : ndarray of int64, shape (b + 1,)
        Records of the file by output, the last ones without any.
    snapshot : Path
        The records in the order of the source.
    inputs, secret : Alphabet
    input_counts, secret_counts : ndarray of int64, shapes (a + 1,) and (c + 1,)
        Records of the snapshot by each of these, the last ones outside the alphabet.

    Returns
    -------
    pandas.DataFrame
        ``labels``: what places are labelled with; ``table``: an array of records by label and output.

    Notes
    -----
    Both files are read once, side by side; memory for a chunk of rows and the tables.
    """
    rows = int(released_counts.sum())
    blocks, halves = (np.diff(np.arange(parts + 1) * rows // parts) for parts in (BLOCKS, 2))
    tables = {
        BY_BLOCK: _Table(blocks, released_counts),
        BY_HALF: _Table(halves, released_counts),
        BY_INPUT: _Table(input_counts, released_counts),
        BY_SECRET: _Table(secret_counts, released_counts),
        SORTED_BY_INPUT: _Table(input_counts, released_counts),
        SORTED_BY_SECRET: _Table(secret_counts, released_counts),
        BY_ROW_BEFORE: _Table(released_counts, released_counts),
    }
    ends = {SORTED_BY_INPUT: input_counts.cumsum(), SORTED_BY_SECRET: secret_counts.cumsum()}
    ends |= {BY_BLOCK: blocks.cumsum(), BY_HALF: halves.cumsum()}
    at = 0
    streams = (coded(released, outputs), coded(snapshot, inputs), coded(snapshot, secret))
    for y, x, s in zip(*streams, strict=False):
        # Where the numbers of rows differ, which others judge, the last ones have no counterpart.
        size = min(len(y), len(x))
        places = np.arange(at, at + size)
        labels = {BY_INPUT: x[:size], BY_SECRET: s[:size]}
        for name, end in ends.items():
            labels[name] = np.minimum(np.searchsorted(end, places, side="right"), len(end) - 1)
        for name, some in labels.items():
            tables[name].add(some, y[:size])
        # A chunk begins at an even place, so no pair is cut.
        pairs = size // 2 * 2
        tables[BY_ROW_BEFORE].add(y[0:pairs:2], y[1:pairs:2])
        at += size
    return pd.DataFrame({"labels": list(tables), "table": [table.counts for table in tables.values()]})


def source_order(released: Path, outputs: Alphabet, snapshot: Path, inputs: Alphabet) -> DrawnCounts:
    """Records by the input at their place of the source and by their output, shape (1, a + 1, b + 1)."""
    a, b = len(inputs), len(outputs)

    def parts() -> Iterator[tuple[IntArray, IntArray]]:
        for y, x in zip(coded(released, outputs), coded(snapshot, inputs), strict=False):
            size = min(len(y), len(x))
            cells, records = np.unique(x[:size] * (b + 1) + y[:size], return_counts=True)
            yield cells, records.astype(np.int64)

    return DrawnCounts.total((1, a + 1, b + 1), parts())
