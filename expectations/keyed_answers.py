"""Keyed answers: what records with keys must have drawn, derived once more from the release secret and their keys."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import accumulate, islice
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.pipeline.expectations.claims import Claim, claim
from funnel.recount import keyed_noise
from funnel.recount.keyed_noise import aes_blocks
from funnel.recount.released import ReleasedProtocol
from funnel.recount.source import source_rows
from funnel.recount.sparse_row import columns_of, entries_of
from funnel.release.snapshot import Snapshot
from funnel.sampling import KEY_COLUMN, RecordKey
from funnel.spec import ReleaseSpec

if TYPE_CHECKING:
    from funnel.pipeline.expectations.finished_folder import FinishedFolder

Words = npt.NDArray[np.uint64]
# Records at the beginning of the source whose digests are derived again.
_RECORDS = 4096


def answer_claims(finished: FinishedFolder) -> list[Claim]:
    """Every record has the published value that its key and the release secret give, derived again.

    What was decided about everybody when rows that are taken over were drawn is not derived again: it was judged then.

    Notes
    -----
    HKDF by the standard library, the law of a record by its cumulative weights: nothing of `funnel.sampling` is called.
    O(rows) time in constant memory.
    """
    snapshot, key, followed = finished.snapshot, finished.key, finished.followed
    if key is None:
        return [Claim("answers", "cannot be derived: the run hands on no release secret")]
    digests = claim(
        "digests",
        _digests_are_of_keys(finished.spec, snapshot, key),
        "are not those of the keys under the release secret",
    )
    given = finished.drawing_document is not None
    if given and followed is None:
        return [digests, Claim("answers")]
    protocol = ReleasedProtocol.parse(finished.folder.drawing.read_bytes()) if given else finished.laws.released
    pairs = finished.pairs
    drawn: Counter[int] = Counter()
    for cells, records in _drawn(followed or snapshot, key, protocol, followed is not None):
        drawn.update(dict(zip(cells.tolist(), records.tolist(), strict=True)))
    stated = dict(zip(pairs.cells.tolist(), pairs.records.tolist(), strict=True))
    wrong = sum(abs(drawn[cell] - stated.get(cell, 0)) for cell in {*drawn, *stated}) // 2
    return [
        digests,
        claim("answers", not wrong, f"of {wrong:,} records are not those that their keys and the secret give"),
    ]


def derived(key: RecordKey, kind: str, purpose: str, length: int) -> bytes:
    """HKDF-SHA512 (RFC 5869) of a release secret, without salt, for a kind of key and a purpose."""
    scope = [] if key.series is None else [json.dumps([key.series, *key.columns]).encode()]
    version = b"funnel record words 2" if scope else b"funnel record words 1"
    return keyed_noise.derived(key.secret, version, kind.encode(), *scope, purpose.encode())[:length]


def words_of(key: RecordKey, purposes: Sequence[str], *blocks: Words) -> npt.NDArray[np.uint64]:
    """64 bits of the CBC-MAC of blocks of 16 bytes, each under the key of its purpose; of n records, (n, 2)."""
    sums: Words = np.zeros_like(blocks[0])
    for purpose, block in zip(purposes, blocks, strict=True):
        content = aes_blocks(
            derived(key, "word", purpose, 32), np.ascontiguousarray(sums ^ block, dtype="<u8").tobytes()
        )
        sums = np.frombuffer(content, dtype="<u8").reshape(-1, 2)
    return sums[:, 0]


def key_digest(key: RecordKey, texts: Sequence[str], kinds: Sequence[str]) -> bytes:
    """The digest of one record's key, 16 bytes."""
    if len(texts) == 1 and kinds[0] == "number":
        return aes_blocks(derived(key, "integer", "record", 32), _block(texts[0]))
    if len(texts) == 1:
        message, name = texts[0].encode(), "text"
    else:
        message, name = b"".join(_part(text, kind) for text, kind in zip(texts, kinds, strict=True)), "composite"
    return hashlib.blake2b(message, digest_size=16, key=derived(key, name, "record", 64)).digest()


def _part(text: str, kind: str) -> bytes:
    if kind == "number":
        return b"i" + _block(text)
    return b"t" + len(text.encode()).to_bytes(8, "little") + text.encode()


def _block(text: str) -> bytes:
    return int(text).to_bytes(16, "little", signed=True)


def _digests_are_of_keys(spec: ReleaseSpec, snapshot: Snapshot, key: RecordKey) -> bool:
    """Whether the first records of the snapshot have the digests of keys at the beginning of the source."""
    with closing(source_rows(spec, key.columns)) as rows:
        first = list(islice(rows, _RECORDS))
    kinds = snapshot.key_kinds or ()
    # Records that were left out have no place in the snapshot.
    count = max(1, min(snapshot.rows, len(first) - snapshot.dropped))
    known = {key_digest(key, [str(text) for text in texts], kinds) for texts in first if None not in texts}
    with pq.ParquetFile(snapshot.data.path) as file:
        batch = next(file.iter_batches(batch_size=count, columns=[KEY_COLUMN]))
    stored = batch.column(0).to_pylist()
    return bool(stored) and (known.issuperset(stored) if len(first) > snapshot.dropped else bool(known & set(stored)))


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
    # An output of weight zero has no words, so it bounds none.
    laws = [list(entries_of(column)) for column in columns]
    of = [np.array([y for y, _ in law], dtype=np.int64) for law in laws]
    limits = [np.array(list(accumulate(weight for _, weight in law))[:-1], dtype=np.uint64) for law in laws]
    places = {symbol: x for x, symbol in enumerate(protocol.inputs)}
    b, outside = len(protocol.outputs), len(protocol.inputs)
    with pq.ParquetFile(snapshot.data.path) as file:
        for batch in file.iter_batches(columns=[*protocol.input_columns, KEY_COLUMN]):
            digests = np.frombuffer(b"".join(batch.column(KEY_COLUMN).to_pylist()), dtype="<u8").reshape(-1, 2)
            # Of a word of 64 bits the first 63 are compared with the sums of the weights.
            words = words_of(key, purposes, digests, *blocks) >> np.uint64(1)
            found = [
                x * b + of[x][np.searchsorted(limits[x], words[rows], side="right")]
                for x, rows in _by_input(batch.select(list(protocol.input_columns)), places, outside)
            ]
            cells, records = np.unique(np.concatenate(found), return_counts=True)
            yield cells, records.astype(np.int64)


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


def _by_input(
    batch: pa.RecordBatch, places: dict[tuple[str, ...], int], outside: int
) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    texts = [column.cast(pa.string()).to_pylist() for column in batch.columns]
    codes = np.array([places.get(row, outside) for row in zip(*texts, strict=True)], dtype=np.int64)
    for x in sorted(Counter(codes.tolist())):
        yield x, np.flatnonzero(codes == x)
