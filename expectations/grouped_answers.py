"""Grouped answers: what records with keys must have drawn at every stage, derived once more from secret and keys."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from funnel.audit.grouped.draws import Cells
from funnel.audit.grouped.rows import Rows
from funnel.joint import IntArray
from funnel.pipeline.expectations.claims import Claim, claim
from funnel.pipeline.expectations.keyed_answers import aes_blocks, derived, digests_claim
from funnel.recount.grouped_text import BITS, SILENT, GroupedText
from funnel.release.snapshot import Snapshot
from funnel.sampling import KEY_COLUMN, RecordKey
from funnel.spec import ReleaseSpec

CLAIMS = ("digests", "answers", "draws")
# Of a word of 64 bits the first so many are compared with sums of weights.
_WORD = 63


def grouped_answers(
    spec: ReleaseSpec,
    snapshot: Snapshot,
    key: RecordKey,
    text: GroupedText,
    released: Rows,
    source: Rows,
    draws: Cells | None,
) -> list[Claim]:
    """That records have the answers of their keys: the rows as a whole, and every number of draws.

    Parameters
    ----------
    spec : ReleaseSpec
    snapshot : Snapshot
        Has a digest of every record's key.
    key : RecordKey
        With the release secret.
    text : GroupedText
    released, source : Rows
        Of the file; and of the records, with secret and published columns.
    draws : Cells, optional
        As they are stored; None where answers were derived by an earlier funnel, which are not derived again.

    Notes
    -----
    Words by the standard library and AES, outputs by sums of weights in the order of the file: nothing that draws is
    called. O(rows · stages) time.
    """
    digests = digests_claim(spec, snapshot, key)
    if draws is None:
        return [digests, Claim("answers"), Claim("draws")]
    published, drawn = _derived_rows(snapshot, key, text, source, draws.secret)
    missing = Counter(published)
    missing.subtract(released.counted)
    wrong = sum(abs(number) for number in missing.values()) // 2
    cells = dict(zip(map(tuple, draws.cells.tolist()), draws.records.tolist(), strict=True))
    other = sum(abs(drawn[cell] - cells.get(cell, 0)) for cell in {*drawn, *cells})
    return [
        digests,
        claim("answers", not wrong, f"of {wrong:,} records are not those that their keys and the secret give"),
        claim("draws", not other, "are counted otherwise than the keys and the secret give them"),
    ]


def _derived_rows(
    snapshot: Snapshot, key: RecordKey, text: GroupedText, source: Rows, secrets: tuple[tuple[str, ...], ...]
) -> tuple[Counter[tuple[str, ...]], Counter[tuple[int, ...]]]:
    """Published records and draws, by stage, class, input, output and secret, as the keys give them."""
    first, second = (derived(key, "word", purpose, 32) for purpose in ("decision", "answer"))
    blocks = np.frombuffer(aes_blocks(first, _digests(Path(snapshot.data.path))), dtype=np.uint8).reshape(-1, 16)
    rows = len(blocks)
    of_secret = {symbol: s for s, symbol in enumerate(secrets)}
    names, numbers = source.joined([column for column in source.columns if column not in text.columns])
    secret = np.array([of_secret.get(symbol, len(secrets)) for symbol in names], dtype=np.int64)[numbers]
    classes = np.zeros(rows, dtype=np.int64)
    labels: list[IntArray] = []
    known: list[dict[tuple[str, ...], int]] = []
    drawn: Counter[tuple[int, ...]] = Counter()
    for number, stage in enumerate(text.stages):
        decision = np.frombuffer(hashlib.sha256(f"{text.digest} stage {number}".encode()).digest()[:16], dtype=np.uint8)
        words = np.frombuffer(aes_blocks(second, (blocks ^ decision).tobytes()), dtype="<u8")[::2] >> np.uint64(1)
        inputs, outputs = source.inputs(stage), np.full(rows, SILENT, dtype=np.int64)
        place = {stage.nothing: 0}
        shown, after = np.zeros(rows, dtype=np.int64), np.full(rows, SILENT, dtype=np.int64)
        speaking = np.flatnonzero(classes != SILENT)
        alike = np.stack([classes[speaking], inputs[speaking]])
        groups, members = np.unique(alike, axis=1, return_inverse=True)
        order = np.argsort(members.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(members.reshape(-1), minlength=groups.shape[1])).tolist()
        # Of nobody there are no parts: a stage may have nothing to say to any record.
        for (of_class, x), begin, end in zip(groups.T.tolist(), [0, *ends], ends, strict=False):
            some = speaking[order[begin:end]]
            channel, following = stage.classes[of_class]
            of_channel = stage.channels[channel]
            law = dict(of_channel.inputs.get(x, of_channel.rare))
            weights = [law.get(y, 0) << (_WORD - BITS) for y in range(len(following))]
            limits = np.cumsum(np.array(weights, dtype=np.uint64))
            outputs[some] = np.searchsorted(limits, words[some], side="right")
            texts = [place.setdefault(label, len(place)) for label in of_channel.labels]
            shown[some] = np.array(texts)[outputs[some]]
            after[some] = np.array(following)[outputs[some]]
        cells = np.stack([classes, inputs, outputs, secret])[:, speaking]
        found, counts = np.unique(cells, axis=1, return_counts=True)
        for cell, count in zip(found.T.tolist(), counts.tolist(), strict=True):
            drawn[(number, *cell)] += count
        labels.append(shown)
        known.append(place)
        classes = after
    return _published(text, np.array(labels), known), drawn


def _digests(snapshot: Path) -> bytes:
    with pq.ParquetFile(snapshot) as file:
        return b"".join(
            digest for batch in file.iter_batches(columns=[KEY_COLUMN]) for digest in batch.column(0).to_pylist()
        )


def _published(
    text: GroupedText, labels: IntArray, known: list[dict[tuple[str, ...], int]]
) -> Counter[tuple[str, ...]]:
    found, counts = np.unique(labels, axis=1, return_counts=True)
    names = [list(place) for place in known]
    published: Counter[tuple[str, ...]] = Counter()
    for row, count in zip(found.T.tolist(), counts.tolist(), strict=True):
        told = [part for of_stage, place in zip(names, row, strict=True) for part in of_stage[place]]
        published[tuple(told[text.order.index(j)] for j in range(len(text.columns)))] += count
    return published
