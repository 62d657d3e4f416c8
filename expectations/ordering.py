"""Ordering: what the places of a released file say, as tables of labels of places by outputs, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from funnel.alphabet import Alphabet
from funnel.drawn import DrawnCounts
from funnel.joint import IntArray
from funnel.tables import open_paged

CHUNK_ROWS = 1 << 16
BLOCKS = 64
# Tables beyond this are of the commonest labels, all others being one.
_MAX_TABLE = 1 << 22
_MAX_OUTPUTS = 1 << 11
# Between the values of a row; those of one that contain it are tested for order as if they were others.
_JOINED = "\x1f"

BY_BLOCK = "block of rows"
# Rows that only lean to one end are told by few places: 60:40 among 3,000, where 64 blocks see nothing.
BY_HALF = "half of the rows"
BY_INPUT = "input at the same place of the source"
BY_SECRET = "secret at the same place of the source"
SORTED_BY_INPUT = "input at this place if the file were sorted by it"
SORTED_BY_SECRET = "secret at this place if the file were sorted by it"
BY_ROW_BEFORE = "output of the row before"
FAILURES = {
    BY_BLOCK: "the file is not the same everywhere",
    BY_HALF: "rows lean to one end of the file",
    BY_INPUT: "rows follow the order of the source",
    BY_SECRET: "rows follow the order of the secrets in the source",
    SORTED_BY_INPUT: "rows are sorted by the input",
    SORTED_BY_SECRET: "rows are sorted by the secret",
    BY_ROW_BEFORE: "rows depend on the row before them",
}
"""Every kind of label of a place, with what it means that outputs have to do with it."""


@dataclass(frozen=True, eq=False)
class Placed:
    """The rows of a file by one of their alphabets.

    Parameters
    ----------
    path : Path
    alphabet : Alphabet
    counts : ndarray of int64, shape (a + 1,)
        Records by symbol, the last ones outside the alphabet.
    """

    path: Path
    alphabet: Alphabet
    counts: IntArray

    def codes(self) -> Iterator[IntArray]:
        """Positions of the rows in the alphabet, some at a time."""
        return coded(self.path, self.alphabet)


def coded(path: Path, alphabet: Alphabet) -> Iterator[IntArray]:
    """Positions of the rows of a parquet file in an alphabet, in arrays of `CHUNK_ROWS` rows, the last one shorter.

    One beyond the last for rows that hold none of its symbols.
    """
    symbols, held, count = pa.array(_JOINED.join(symbol) for symbol in alphabet.symbols), list[IntArray](), 0
    with open_paged(path) as file:
        for batch in file.iter_batches(batch_size=CHUNK_ROWS, columns=list(alphabet.columns)):
            texts = [batch.column(name).cast(pa.string()) for name in alphabet.columns]
            joined = pc.binary_join_element_wise(*texts, _JOINED)
            held.append(pc.index_in(joined, symbols).cast(pa.int64()).fill_null(len(alphabet)).to_numpy())
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


def order_tables(released: Placed, inputs: Placed, secret: Placed) -> dict[str, IntArray]:
    """Records by label of their place and output, for every kind of label that could tell something of the source.

    Parameters
    ----------
    released : Placed
        The file, by output.
    inputs, secret : Placed
        The records in the order of the source, by each of these.

    Notes
    -----
    Both files are read once, side by side; memory for a chunk of rows and the tables.
    """
    rows = int(released.counts.sum())
    blocks, halves = (np.diff(np.arange(parts + 1) * rows // parts) for parts in (BLOCKS, 2))
    tables = {
        BY_BLOCK: _Table(blocks, released.counts),
        BY_HALF: _Table(halves, released.counts),
        BY_INPUT: _Table(inputs.counts, released.counts),
        BY_SECRET: _Table(secret.counts, released.counts),
        SORTED_BY_INPUT: _Table(inputs.counts, released.counts),
        SORTED_BY_SECRET: _Table(secret.counts, released.counts),
        BY_ROW_BEFORE: _Table(released.counts, released.counts),
    }
    ends = {SORTED_BY_INPUT: inputs.counts.cumsum(), SORTED_BY_SECRET: secret.counts.cumsum()}
    ends |= {BY_BLOCK: blocks.cumsum(), BY_HALF: halves.cumsum()}
    at = 0
    streams = (released.codes(), inputs.codes(), secret.codes())
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
    return {name: table.counts for name, table in tables.items()}


def source_order(released: Path, outputs: Alphabet, snapshot: Path, inputs: Alphabet) -> DrawnCounts:
    """Records by the input at their place of the source and by their output, shape (1, a + 1, b + 1)."""
    a, b = len(inputs), len(outputs)

    def parts() -> Iterator[tuple[IntArray, IntArray]]:
        for y, x in zip(coded(released, outputs), coded(snapshot, inputs), strict=False):
            size = min(len(y), len(x))
            cells, records = np.unique(x[:size] * (b + 1) + y[:size], return_counts=True)
            yield cells, records.astype(np.int64)

    return DrawnCounts.total((1, a + 1, b + 1), parts())
