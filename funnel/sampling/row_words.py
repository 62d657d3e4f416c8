"""The random words of a row: to draw its output with, to order it by, and for rows that tie; fresh or keyed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Protocol as Interface

import numpy as np
import pyarrow as pa

from funnel.protocol import Protocol
from funnel.sampling.key_column import stored_digests
from funnel.sampling.keyed import DIGEST_BYTES, DigestArray, RecordKey, decision_keys, encrypted_words, word_key
from funnel.sampling.random_words import WordArray, WordStream


class RowWords(Interface):
    """Uniform 64-bit words for the rows of a task. Those for drawing, donors, ordering and ties are unrelated."""

    def to_draw(self, batch: pa.RecordBatch) -> WordArray:
        """A word for every row, shape (rows,), that its output is drawn with."""

    def to_donate(self, batch: pa.RecordBatch, attempt: int) -> WordArray:
        """A word for every row, shape (rows,), that its donor is drawn with; another one for every attempt."""

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

    def to_donate(self, batch: pa.RecordBatch, attempt: int) -> WordArray:
        """See `RowWords`."""
        return self._words("donors", batch.num_rows)

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
    words, donors, order, ties : bytes
        Keys of AES-256.
    records : bytes
        The key that decisions about records are encrypted with first.
    decision : bytes or None
        The one decision about all records; None where the rows have, in the place of their digests, what
        `funnel.sampling.keyed.decision_keys` made of them and of decisions of their own.
    """

    words: bytes = field(repr=False)
    donors: bytes = field(repr=False)
    order: bytes = field(repr=False)
    ties: bytes = field(repr=False)
    records: bytes = field(repr=False)
    decision: bytes | None

    @property
    def digest(self) -> bytes:
        """What tells all of them apart."""
        said = (self.words, self.donors, self.order, self.ties, self.records, self.decision or b"")
        return hashlib.sha256(b"".join(said)).digest()

    @property
    def scopes(self) -> dict[str, str]:
        """What tells apart, and tells nothing of, the keys of words of every purpose.

        Words to draw with, and those for donors, come again only with the same decision. Where every record has one
        of its own that is never between two protocols.
        """
        decided = self.order if self.decision is None else self.decision
        return {
            "draw": _scope(self.words + decided),
            "donors": _scope(self.donors + decided),
            "order": _scope(self.order),
        }

    @classmethod
    def of(cls, record_key: RecordKey, protocol: Protocol, decided: bool = False) -> WordKeys:
        """The keys for the release of a protocol.

        A record's word to draw with is for a decision: that this protocol is drawn from, or what was decided about the
        record given its history. Its order is another one under another protocol, so that versions cannot be linked by
        it.

        Parameters
        ----------
        record_key : RecordKey
        protocol : Protocol
        decided : bool
            Whether the rows come with keys of records and decisions.
        """
        order = f"record order {protocol.digest}"
        return cls(
            word_key(record_key, "answer"),
            word_key(record_key, "donor"),
            word_key(record_key, order),
            word_key(record_key, "tied " + order),
            decision_key(record_key),
            None if decided else bytes.fromhex(protocol.digest)[:DIGEST_BYTES],
        )


def decision_key(record_key: RecordKey) -> bytes:
    """The key that `funnel.sampling.keyed.decision_keys` takes for these records."""
    return word_key(record_key, "decision")


class KeyedWords:
    """Words that depend on the secret, on the digests of record keys and on what was decided, from batches with these.

    Parameters
    ----------
    keys : WordKeys
    """

    def __init__(self, keys: WordKeys) -> None:
        self._keys = keys

    def to_draw(self, batch: pa.RecordBatch) -> WordArray:
        """See `RowWords`."""
        return encrypted_words(self._decided(batch), self._keys.words)

    def to_donate(self, batch: pa.RecordBatch, attempt: int) -> WordArray:
        """See `RowWords`."""
        keys = self._decided(batch)
        keys[:, 1] ^= np.uint64(attempt)
        return encrypted_words(keys, self._keys.donors)

    def _decided(self, batch: pa.RecordBatch) -> DigestArray:
        """128 bits for every record and what is decided about it."""
        keys = stored_digests(batch)
        if self._keys.decision is None:
            return keys.copy()
        decision = np.frombuffer(self._keys.decision, dtype="<u8").astype(np.uint64)
        return decision_keys(keys, decision, self._keys.records)

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
    return hashlib.blake2b(key, digest_size=16, person=b"funnel word scop").hexdigest()
