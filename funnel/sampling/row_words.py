"""The random words of a row: to draw its output with, to order it by, and for rows that tie; fresh or keyed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol as Interface

import numpy as np
import pyarrow as pa

from funnel.protocol import Protocol
from funnel.sampling.key_column import stored_digests
from funnel.sampling.keyed import RecordKey, encrypted_words, word_key
from funnel.sampling.words import WordArray, WordStream


class RowWords(Interface):
    """Uniform 64-bit words for the rows of a task. Those for drawing, for ordering and for ties are unrelated."""

    def to_draw(self, batch: pa.RecordBatch) -> WordArray:
        """A word for every row, shape (rows,), that its output is drawn with."""

    def to_order(self, batch: pa.RecordBatch) -> WordArray:
        """A word for every row, shape (rows,), that its place is decided by."""

    def to_part(self, tag: int, attempt: int, count: int) -> WordArray:
        """Words, shape (count,), that decide between rows whose places are alike; others for every attempt."""


class FreshWords:
    """Words from streams that are made for this object alone, in the process that first asks; see `WordStream`.

    One for each purpose, so that no word is used twice.
    """

    def __init__(self) -> None:
        self._streams: dict[str, WordStream] = {}

    def to_draw(self, batch: pa.RecordBatch) -> WordArray:
        """See `RowWords`."""
        return self._words("draw", batch.num_rows)

    def to_order(self, batch: pa.RecordBatch) -> WordArray:
        """See `RowWords`."""
        return self._words("order", batch.num_rows)

    def to_part(self, tag: int, attempt: int, count: int) -> WordArray:
        """See `RowWords`."""
        return self._words("ties", count)

    def _words(self, purpose: str, count: int) -> WordArray:
        if purpose not in self._streams:
            self._streams[purpose] = WordStream()
        return self._streams[purpose].words(count)


@dataclass(frozen=True)
class WordKeys:
    """What a worker needs of a release secret: a derived key for each purpose of words, never the secret itself.

    Attributes
    ----------
    words, order, ties : bytes
        Keys of AES-256.
    """

    words: bytes = field(repr=False)
    order: bytes = field(repr=False)
    ties: bytes = field(repr=False)

    @property
    def scopes(self) -> tuple[str, str]:
        """What tells apart, and tells nothing of, the keys of words to draw with and of those to order by."""
        return _scope(self.words), _scope(self.order)

    @classmethod
    def of(cls, record_key: RecordKey, protocol: Protocol) -> WordKeys:
        """The keys for the release of a protocol.

        A record's word to draw with is for the published columns, so that successive protocols for them are coupled.
        Its order is another one under another protocol, so that versions cannot be linked by it.
        """
        order = f"record order {protocol.digest}"
        return cls(
            word_key(record_key, "release " + json.dumps(list(protocol.outputs.columns))),
            word_key(record_key, order),
            word_key(record_key, "tied " + order),
        )


class KeyedWords:
    """Words that depend on the secret and on the digests of the record keys alone, from batches that have them.

    Parameters
    ----------
    keys : WordKeys
    """

    def __init__(self, keys: WordKeys) -> None:
        self._keys = keys

    def to_draw(self, batch: pa.RecordBatch) -> WordArray:
        """See `RowWords`."""
        return encrypted_words(stored_digests(batch), self._keys.words)

    def to_order(self, batch: pa.RecordBatch) -> WordArray:
        """See `RowWords`."""
        return encrypted_words(stored_digests(batch), self._keys.order)

    def to_part(self, tag: int, attempt: int, count: int) -> WordArray:
        """See `RowWords`."""
        blocks = np.empty((count, 2), dtype=np.uint64)
        blocks[:, 0] = tag
        blocks[:, 1] = (attempt << 32) + np.arange(count)
        return encrypted_words(blocks, self._keys.ties)


def words_for(keys: WordKeys | None) -> RowWords:
    """Keyed words, or fresh ones if there are no keys."""
    return FreshWords() if keys is None else KeyedWords(keys)


def _scope(key: bytes) -> str:
    return blake2b(key, digest_size=16, person=b"funnel word scop").hexdigest()
