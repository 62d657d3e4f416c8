"""Keyed answers: what records with keys must have drawn, derived once more from the release secret and their keys.

A word is the CBC-MAC of two blocks, the digest of a record's key and that of a decision: what was published about the
person before, and the channel that is drawn from now. Both are made again from their definitions (decision 0034), with
nothing that the draw was made with.

Rows of a unit are drawn one after the other, and public tables are of the first ones. So their order must say nothing:
the row with the smallest word is first, and the word is the CBC-MAC of the unit's digest and of the number of the row
among those of its unit in the source.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from hashlib import blake2b
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.pipeline.expectations.claims import Claim, claim
from funnel.recount import noise
from funnel.recount.channel import columns_of, entries_of
from funnel.recount.chapters import NEW, Rows, Tree
from funnel.recount.noise import aes_blocks
from funnel.recount.register_files import Entry
from funnel.recount.released import ReleasedProtocol
from funnel.recount.rows import Cells
from funnel.recount.source import source_records
from funnel.release.snapshot import Snapshot
from funnel.sampling.key_column import KEY_COLUMN
from funnel.sampling.keyed import RecordKey
from funnel.spec import ReleaseSpec

if TYPE_CHECKING:
    from funnel.pipeline.expectations.finished_folder import FinishedFolder

Words = npt.NDArray[np.uint64]
# Records at the beginning of the source whose digests are derived again.
_RECORDS = 4096
_BATCH_ROWS = 1 << 16


def answer_claims(finished: FinishedFolder) -> list[Claim]:
    """Every record has the published value that its key and the release secret give, derived again.

    What was decided about everybody when rows that are taken over were drawn is not derived again: it was judged then.

    Notes
    -----
    HKDF by the standard library, the distribution of a record by its cumulative weights: nothing of `funnel.sampling`
    is called. O(rows) time in constant memory.
    """
    snapshot, key, followed = finished.snapshot, finished.key, finished.followed
    if key is None:
        return [Claim("answers", "cannot be derived: the run hands on no release secret")]
    of_keys = _digests_are_of_keys(finished.spec, snapshot, key)
    kept = finished.kept_keys is None or _keeps(finished.kept_keys, snapshot)
    lost = "are not those of the records, so that a later version about the same people would not be known"
    claims = [
        claim("digests", of_keys, "are not those of the keys under the release secret"),
        claim("kept digests", kept, lost),
    ]
    given = finished.drawing_document is not None
    if given and followed is None:
        return [*claims, Claim("answers")]
    protocol = (
        ReleasedProtocol.parse(finished.folder.drawing.read_bytes()) if given else finished.distributions.released
    )
    drawn: Counter[int] = Counter()
    for cells, records in _drawn(followed or snapshot, key, protocol, followed is not None):
        drawn.update(dict(zip(cells.tolist(), records.tolist(), strict=True)))
    stated = dict(zip(finished.pairs.cells.tolist(), finished.pairs.records.tolist(), strict=True))
    wrong = sum(abs(drawn[cell] - stated.get(cell, 0)) for cell in {*drawn, *stated}) // 2
    words = f"of {wrong:,} records are not those that their keys and the secret give"
    return [*claims, claim("answers", not wrong, words)]


def derived(key: RecordKey, kind: str, purpose: str, length: int) -> bytes:
    """HKDF-SHA512 (RFC 5869) of a release secret, without salt, for a kind of key and a purpose."""
    scope = [] if key.series is None else [json.dumps([key.series, *key.columns]).encode()]
    version = b"funnel record words 2" if scope else b"funnel record words 1"
    return noise.derived(key.secret, version, kind.encode(), *scope, purpose.encode())[:length]


def words_of(key: RecordKey, purposes: Sequence[str], *blocks: Words) -> npt.NDArray[np.uint64]:
    """64 bits of the CBC-MAC of blocks of 16 bytes, each under the key of its purpose; of n records, (n, 2)."""
    sums: Words = np.zeros_like(blocks[0])
    for purpose, block in zip(purposes, blocks, strict=True):
        content = aes_blocks(
            derived(key, "word", purpose, 32), np.ascontiguousarray(sums ^ block, dtype="<u8").tobytes()
        )
        sums = np.frombuffer(content, dtype="<u8").reshape(-1, 2)
    return sums[:, 0]


def key_digests(key: RecordKey, rows: Iterable[Sequence[str]], kinds: Sequence[str]) -> list[bytes]:
    """The digests of the keys of records, 16 bytes each."""
    if list(kinds) == ["number"]:
        blocks = aes_blocks(derived(key, "integer", "record", 32), b"".join(_block(text) for (text,) in rows))
        return [blocks[place : place + 16] for place in range(0, len(blocks), 16)]
    if len(kinds) == 1:
        name, messages = "text", [text.encode() for (text,) in rows]
    else:
        name = "composite"
        messages = [b"".join(map(_part, texts, kinds)) for texts in rows]
    of_kind = derived(key, name, "record", 64)
    return [hashlib.blake2b(message, digest_size=16, key=of_kind).digest() for message in messages]


def _part(text: str, kind: str) -> bytes:
    if kind == "number":
        return b"i" + _block(text)
    return b"t" + len(text.encode()).to_bytes(8, "little") + text.encode()


def _block(text: str) -> bytes:
    return int(text).to_bytes(16, "little", signed=True)


def _digests_are_of_keys(spec: ReleaseSpec, snapshot: Snapshot, key: RecordKey) -> bool:
    """Whether the first records of the snapshot have the digests of keys at the beginning of the source."""
    with closing(source_records(spec, key.columns)) as rows:
        first = [texts for texts, _ in islice(rows, _RECORDS)]
    kinds = snapshot.key_kinds or ()
    # Records that were left out have no place in the snapshot.
    count = max(1, min(snapshot.rows, len(first) - snapshot.dropped))
    known = set(key_digests(key, ([str(text) for text in texts] for texts in first if None not in texts), kinds))
    with pq.ParquetFile(snapshot.data.path) as file:
        batch = next(file.iter_batches(batch_size=count, columns=[KEY_COLUMN]))
    stored = batch.column(0).to_pylist()
    return bool(stored) and (known.issuperset(stored) if len(first) > snapshot.dropped else bool(known & set(stored)))


def _keeps(place: Path, snapshot: Snapshot) -> bool:
    """Whether a file has the digests of all records of a snapshot, in any order."""
    with pq.ParquetFile(snapshot.data.path) as file:
        stored = b"".join(text for batch in file.iter_batches(columns=[KEY_COLUMN]) for text in batch[0].to_pylist())
    kept, known = (
        np.frombuffer(content, dtype="<u8,<u8") for content in (place.read_bytes() if place.is_file() else b"", stored)
    )
    return np.array_equal(np.sort(kept), np.sort(known))


class Answers:
    """Which output a word gives under some weights: an output of weight zero has no words, so it bounds none."""

    def __init__(self, entries: Iterable[tuple[int, int]]) -> None:
        outputs, weights = zip(*entries, strict=True)
        self._outputs = np.array(outputs, dtype=np.int64)
        self._limits = np.array(list(accumulate(weights))[:-1], dtype=np.uint64)

    def of(self, words: Words) -> npt.NDArray[np.int64]:
        """Of words of 64 bits the first 63 are compared with the sums of the weights."""
        return self._outputs[np.searchsorted(self._limits, words >> np.uint64(1), side="right")]


def _drawn(
    snapshot: Snapshot, key: RecordKey, protocol: ReleasedProtocol, decided: bool
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Cells x · b + y and their records, some records at a time, as their digests and the secret give them.

    A word is the CBC-MAC of the digest of a record and of that of a decision: where the records do not have one of
    their own, that this very protocol is drawn from.
    """
    decision = np.frombuffer(_digest(protocol)[:16], dtype="<u8")
    purposes, blocks = (("answer",), []) if decided else (("decision", "answer"), [decision])
    columns = [*columns_of(protocol.weights, len(protocol.inputs)), protocol.marginal]
    answers = [Answers(entries_of(column)) for column in columns]
    places = {symbol: x for x, symbol in enumerate(protocol.inputs)}
    b, outside = len(protocol.outputs), len(protocol.inputs)
    with pq.ParquetFile(snapshot.data.path) as file:
        for batch in file.iter_batches(columns=[*protocol.input_columns, KEY_COLUMN]):
            digests = np.frombuffer(b"".join(batch.column(KEY_COLUMN).to_pylist()), dtype="<u8").reshape(-1, 2)
            words = words_of(key, purposes, digests, *blocks)
            texts = [column.cast(pa.string()).to_pylist() for column in batch.select(list(protocol.input_columns))]
            codes = np.array([places.get(row, outside) for row in zip(*texts, strict=True)], dtype=np.int64)
            found = [x * b + answers[x].of(words[rows]) for x, rows in _grouped(codes)]
            cells, records = np.unique(np.concatenate(found), return_counts=True)
            yield cells, records.astype(np.int64)


def _grouped(codes: npt.NDArray[np.int64]) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Every code with the places where it is."""
    order = np.argsort(codes, kind="stable")
    found, begins = np.unique(codes[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, begins[1:]), strict=True)


def _digest(protocol: ReleasedProtocol) -> bytes:
    """SHA-256 of the channel, written as the format of protocols says."""
    alphabets = {
        "inputs": {"columns": protocol.input_columns, "symbols": protocol.inputs},
        "outputs": {"columns": protocol.output_columns, "symbols": protocol.outputs},
    }
    content = {
        "format": "funnel-protocol/2" if protocol.sparse else "funnel-protocol/1",
        "denominator": str(protocol.denominator),
        **alphabets,
        "weights": [
            {str(x): str(weight) for x, weight in entries_of(row)}
            if protocol.sparse
            else [str(weight) for weight in row]
            for row in protocol.weights
        ],
        "marginal": [str(weight) for weight in protocol.marginal],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).digest()


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
    before = np.array(chapter.parents, dtype=np.int64)
    output = np.array(chapter.drawn, dtype=np.int64)
    decisions = decisions_of(entry, tree)
    blocks = np.array([decisions[node] for node in chapter.parents], dtype="V16").view("<u8").reshape(-1, 2)
    channel = np.array([chapter.followed[node] for node in before.tolist()], dtype=np.int64)
    answers: dict[int, Answers] = {}
    wrong = 0
    with pq.ParquetFile(entry.rows) as file:
        for batch in file.iter_batches(columns=["high", "low", "cell", "node"]):
            high, low, cell, node = (column.to_numpy() for column in batch.columns)
            place = node - chapter.first
            words = words_of(key, ("decision", "answer"), np.stack([high, low], axis=1), blocks[place])
            codes = channel[place] * chapter.a + cell % chapter.a
            for code, here in _grouped(codes):
                if code not in answers:
                    channels, x = chapter.channels[code // chapter.a], code % chapter.a
                    answers[code] = Answers((y, n) for y, row in enumerate(channels) for one, n in row if one == x)
                wrong += int(np.count_nonzero(answers[code].of(words[here]) != output[place[here]]))
    return wrong


def decisions_of(entry: Entry, tree: Tree) -> Mapping[int, bytes]:
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
    weights = np.zeros((chapter.b, chapter.read or chapter.a), dtype="<u8")
    for y, row in enumerate(rows):
        for x, weight in row:
            weights[y, x] = weight
    content = len(text).to_bytes(8, "little") + text + weights.tobytes()
    return blake2b(content, digest_size=16, person=b"funnel channel 1").digest()


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
    Rows of forgotten people are in the snapshot alone. O(n log n) time, and some 300 bytes a row.
    """
    parts = list(snapshot_cells(entry, snapshot))
    units, cells = (np.concatenate(some) for some in zip(*parts, strict=True))
    place = places_in_units(units, key)
    due = set(zip(*(column.tolist() for column in (units[:, 0], units[:, 1], place, cells)), strict=True))
    table = pq.read_table(entry.rows, columns=["high", "low", "row", "cell"])
    return sum(row not in due for row in zip(*(column.to_pylist() for column in table.columns), strict=True))


def values_of_first_rows(
    spec: ReleaseSpec, key: RecordKey, kinds: Sequence[str]
) -> tuple[Mapping[str, Mapping[str, int]], Mapping[str, int]]:
    """By column how many units have a category, or none, in their first row: names are learned from these.

    Rows without a unit are nobody's. Where rows that lack a value are left out, so are units whose first one does.

    Parameters
    ----------
    spec : ReleaseSpec
    key : RecordKey
        With the release secret.
    kinds : sequence of str
        Of the columns of the key.

    Notes
    -----
    O(n log n) time, and some 100 bytes a row.
    """
    absent, met = {None, *spec.source.missing}, dict[Cells, int]()
    digests, codes = list[bytes](), list[int]()
    with closing(source_records(spec, key.columns, spec.columns)) as records:
        while some := list(islice(records, _BATCH_ROWS)):
            known = [(texts, categories) for texts, categories in some if absent.isdisjoint(texts)]
            digests += key_digests(key, ([str(text) for text in texts] for texts, _ in known), kinds)
            codes += [met.setdefault(categories, len(met)) for _, categories in known]
    units = np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2)
    first = np.bincount(np.array(codes, dtype=np.int64)[places_in_units(units, key) == 1], minlength=len(met))
    values, missing = {column: Counter[str]() for column in spec.columns}, Counter[str]()
    for categories, count in zip(met, first.tolist(), strict=True):
        if spec.source.on_missing == "drop" and None in categories:
            continue
        for column, category in zip(spec.columns, categories, strict=True):
            if category is None:
                missing[column] += count
            else:
                values[column][category] += count
    return values, missing


def places_in_units(units: Words, key: RecordKey) -> npt.NDArray[np.int64]:
    """Which row of its unit each is by the secret, from 1, of all rows in the order of the source."""
    number = _numbers(units)
    blocks = np.stack([number, np.zeros_like(number)], axis=1).astype("<u8")
    words = words_of(key, ("row of a unit", "order of the rows of a unit"), units, blocks)
    order = np.lexsort((words, units[:, 1], units[:, 0]))
    place = np.empty(len(units), dtype=np.int64)
    place[order] = _numbers(units[order]) + 1
    return place


def snapshot_cells(entry: Entry, snapshot: Snapshot) -> Iterator[tuple[Words, npt.NDArray[np.int64]]]:
    """Digests and cells in an entry of the records of a snapshot, some at a time; -1 for unknown values."""
    # A published column may be secret too.
    columns = list(dict.fromkeys((*entry.secret_columns, *entry.input_columns, KEY_COLUMN)))
    with pq.ParquetFile(snapshot.data.path) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
            texts = {name: batch.column(name).cast(pa.string()).to_pylist() for name in columns[:-1]}
            secret, symbol = (
                zip(*(texts[name] for name in names), strict=True)
                for names in (entry.secret_columns, entry.input_columns)
            )
            cells = np.array(list(map(entry.chapter.cell, secret, symbol)), dtype=np.int64)
            digests = np.frombuffer(b"".join(batch.column(KEY_COLUMN).to_pylist()), dtype="<u8").reshape(-1, 2)
            yield digests, cells


def _numbers(units: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """How many rows before each are of the same unit."""
    order = np.lexsort((np.arange(len(units)), units[:, 1], units[:, 0]))
    begins = np.append(True, (np.diff(units[order], axis=0) != 0).any(axis=1))
    starts = np.maximum.accumulate(np.where(begins, np.arange(len(units)), 0))
    found = np.empty(len(units), dtype=np.int64)
    found[order] = np.arange(len(units)) - starts
    return found
