"""History answers: what everybody in a register must have drawn, derived once more from the release secret alone.

A word is the CBC-MAC of two blocks, the digest of a record's key and that of a decision: what was published about the
person before, and the channel that is drawn from now. Both are made again from their definitions (decision 0034), with
nothing that the draw was made with.

Rows of a unit are drawn one after the other, and public tables are of the first ones. So their order must say nothing:
the row with the smallest word is first, and the word is the CBC-MAC of the unit's digest and of the number of the row
among those of its unit in the source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from funnel.pipeline.expectations.keyed_answers import derived
from funnel.recount.chapters import NEW, Chapter, Rows, Tree
from funnel.recount.keyed_noise import aes_blocks
from funnel.recount.register_files import Entry
from funnel.release.snapshot import Snapshot
from funnel.sampling.key_column import KEY_COLUMN
from funnel.sampling.keyed import RecordKey

Words = npt.NDArray[np.uint64]
Placed = npt.NDArray[np.void]
_ROW = np.dtype([("unit", "V16"), ("place", "<i8"), ("cell", "<i8")])
_BATCH_ROWS = 1 << 16


def wrong_answers(entries: tuple[Entry, ...], key: RecordKey) -> int:
    """How many people of the last version have another answer than their key, their history and the secret give them.

    Parameters
    ----------
    entries : tuple of Entry
        All versions of a register.
    key : RecordKey
        With the release secret.

    Notes
    -----
    O(people) time in memory for the histories alone.
    """
    entry = entries[-1]
    chapter, tree = entry.chapter, Tree([one.chapter for one in entries])
    first, second = (derived(key, "word", purpose, 32) for purpose in ("decision", "answer"))
    before = np.array(chapter.parents, dtype=np.int64)
    output = np.array(chapter.drawn, dtype=np.int64)
    decisions = _decisions(entry, tree)
    blocks = np.array([decisions[node] for node in chapter.parents], dtype="V16").view("<u8").reshape(-1, 2)
    channel = np.array([chapter.followed[node] for node in before.tolist()], dtype=np.int64)
    limits = _Limits(chapter)
    wrong = 0
    with pq.ParquetFile(entry.rows) as file:
        for batch in file.iter_batches(columns=["high", "low", "cell", "node"]):
            high, low, cell, node = (column.to_numpy() for column in batch.columns)
            place = node - chapter.first
            records = _encrypted(first, np.stack([high, low], axis=1))
            words = _encrypted(second, records ^ blocks[place])[:, 0] >> np.uint64(1)
            wrong += int(np.count_nonzero(~limits.met(words, channel[place], cell % chapter.a, output[place])))
    return wrong


def _encrypted(key: bytes, blocks: Words) -> Words:
    content = aes_blocks(key, np.ascontiguousarray(blocks, dtype="<u8").tobytes())
    return np.frombuffer(content, dtype="<u8").reshape(-1, 2)


def _decisions(entry: Entry, tree: Tree) -> Mapping[int, bytes]:
    """The digest of what is decided about every history of a version, 16 bytes."""
    chapter = entry.chapter
    channels = {k: channel_digest(rows, entry) for k, rows in chapter.channels.items()}
    histories = {NEW: blake2b(digest_size=16, person=b"funnel history 1").digest()}
    for node in sorted(chapter.followed):
        _history_digest(node, tree, histories)
    return {
        node: blake2b(histories[node] + channels[k], digest_size=16, person=b"funnel decision1").digest()
        for node, k in chapter.followed.items()
    }


def _history_digest(node: int, tree: Tree, known: dict[int, bytes]) -> None:
    """Note the digest of a history, and of those that it goes on from."""
    path = []
    while node not in known:
        path.append(node)
        node = tree.parents[node]
    for one in reversed(path):
        content = known[node] + tree.outputs[one].to_bytes(8, "little") + tree.name(one).encode()
        known[one] = blake2b(content, digest_size=16, person=b"funnel history 1").digest()
        node = one


def channel_digest(rows: Rows, entry: Entry) -> bytes:
    """The digest of a channel of an entry, with its alphabets: 16 bytes."""
    chapter = entry.chapter
    outputs = chapter.outputs
    if chapter.units is not None:
        # Names of outputs are given once all rows of everybody are drawn.
        outputs = tuple((str(y),) * len(entry.output_columns) for y in range(chapter.b))
    alphabets = ((entry.input_columns, chapter.inputs), (entry.output_columns, outputs))
    header = [[list(columns), [list(symbol) for symbol in symbols]] for columns, symbols in alphabets]
    text = json.dumps(header, ensure_ascii=True, separators=(",", ":")).encode()
    weights = [[0] * chapter.a for _ in range(chapter.b)]
    for y, row in enumerate(rows):
        for x, weight in row:
            weights[y][x] = weight
    content = b"".join(weight.to_bytes(8, "little") for row in weights for weight in row)
    return blake2b(
        len(text).to_bytes(8, "little") + text + content, digest_size=16, person=b"funnel channel 1"
    ).digest()


class _Limits:
    """Which words give an output: those from the sum of the weights before it to that with its own."""

    def __init__(self, chapter: Chapter) -> None:
        self._chapter = chapter
        self._columns: dict[tuple[int, int], list[int]] = {}

    def met(
        self,
        words: Words,
        channels: npt.NDArray[np.int64],
        inputs: npt.NDArray[np.int64],
        outputs: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.bool_]:
        """Whether each of these words, of 63 bits, gives its output."""
        a, b = self._chapter.a, self._chapter.b
        codes, places = np.unique((channels * a + inputs) * b + outputs, return_inverse=True)
        sums = [self._sums(code // b // a, code // b % a) for code in codes.tolist()]
        least = np.array([of[code % b] for of, code in zip(sums, codes.tolist(), strict=True)], dtype=np.uint64)
        above = np.array([of[code % b + 1] for of, code in zip(sums, codes.tolist(), strict=True)], dtype=np.uint64)
        return np.asarray((least[places] <= words) & (words < above[places]))

    def _sums(self, channel: int, x: int) -> list[int]:
        if (channel, x) not in self._columns:
            sums = [0]
            for row in self._chapter.channels[channel]:
                sums.append(sums[-1] + dict(row).get(x, 0))
            self._columns[channel, x] = sums
        return self._columns[channel, x]


def misplaced_rows(entry: Entry, key: RecordKey, snapshot: Snapshot) -> int:
    """How many rows of a register's version are not the row of their unit that the secret makes them.

    Parameters
    ----------
    entry : Entry
        Of a version whose units have several rows.
    key : RecordKey
        With the release secret.
    snapshot : Snapshot
        The records in the order of the source.

    Notes
    -----
    Rows of forgotten people are in the snapshot alone. O(n log n) time, and arrays of some 100 bytes a row.
    """
    due = {row.tobytes() for row in _derived_rows(entry, key, snapshot)}
    return sum(row.tobytes() not in due for row in _of_register(entry))


def _of_register(entry: Entry) -> Placed:
    """The rows as the register has them."""
    table = pq.read_table(entry.rows, columns=["high", "low", "row", "cell"])
    high, low, place, cell = (column.to_numpy() for column in table.columns)
    return _rows(np.stack([high, low], axis=1), place, cell)


def _derived_rows(entry: Entry, key: RecordKey, snapshot: Snapshot) -> Placed:
    """The rows of the snapshot, each at its place by the secret."""
    secrets = {symbol: s for s, symbol in enumerate(entry.chapter.secret)}
    inputs = {symbol: x for x, symbol in enumerate(entry.chapter.inputs)}
    split, a = len(entry.secret_columns), entry.chapter.a
    digests, cells = bytearray(), []
    with pq.ParquetFile(snapshot.data.path) as file:
        columns = [*entry.secret_columns, *entry.input_columns]
        for batch in file.iter_batches(_BATCH_ROWS, columns=[*columns, KEY_COLUMN]):
            digests += b"".join(batch.column(KEY_COLUMN).to_pylist())
            texts = zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
            cells += [secrets[row[:split]] * a + inputs[row[split:]] for row in texts]
    units = np.frombuffer(bytes(digests), dtype="<u8").reshape(-1, 2)
    number = _numbers(units)
    first, second = (derived(key, "word", purpose, 32) for purpose in ("row of a unit", "order of the rows of a unit"))
    blocks = np.stack([number, np.zeros_like(number)], axis=1).astype("<u8")
    words = _encrypted(second, _encrypted(first, units) ^ blocks)[:, 0]
    order = np.lexsort((words, units[:, 1], units[:, 0]))
    place = np.empty(len(units), dtype=np.int64)
    place[order] = _numbers(units[order]) + 1
    return _rows(units, place, np.array(cells, dtype=np.int64))


def _numbers(units: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """How many rows before each are of the same unit."""
    order = np.lexsort((np.arange(len(units)), units[:, 1], units[:, 0]))
    begins = np.append(True, (np.diff(units[order], axis=0) != 0).any(axis=1))
    starts = np.maximum.accumulate(np.where(begins, np.arange(len(units)), 0))
    found = np.empty(len(units), dtype=np.int64)
    found[order] = np.arange(len(units)) - starts
    return found


def _rows(units: npt.NDArray[np.uint64], place: npt.NDArray[np.int64], cell: npt.NDArray[np.int64]) -> Placed:
    found = np.empty(len(units), dtype=_ROW)
    found["unit"] = np.ascontiguousarray(units, dtype="<u8").view("V16").reshape(-1)
    found["place"], found["cell"] = place, cell
    return found
