"""Record-keyed words: the same decision about a record gets the same word, whatever the order or the partitioning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from funnel.errors import DataError, SpecError
from funnel.sampling.random_words import WordArray
from funnel.tables import numbers_of

MIN_SECRET_BYTES = 32
DIGEST_BYTES = 16
_CHUNK_ROWS = 1 << 14
_BLOCK_BYTES = 16
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
# Of keys that depend on the secret alone, and of those of a series, or of a register, and its key columns.
_LABEL, _LABEL_OF_SERIES = b"funnel record words 1", b"funnel record words 2"


DigestArray = npt.NDArray[np.uint64]
"""Digests of record keys, shape (rows, 2)."""


@dataclass(frozen=True)
class RecordKey:
    """Which columns identify a record over time, and the release secret its words are derived with.

    Parameters
    ----------
    columns : tuple of str
        One or several columns of text or whole numbers whose values together are unique to a record.
    secret : bytes
        At least 32 random bytes, kept as long as records are to be known again. Whoever has it and a record's key
        can undo the protection of that record: it is never shown, logged or written beside a release.
    series : str, optional
        Name of the release series, or what `scope_of_register` makes of that of a register: records of other ones, and
        of differently named key columns, are then unrelated although the secret is the same.

    Raises
    ------
    SpecError
        If no column or a column twice is named, or the secret is too short or all one byte.

    Examples
    --------
    >>> import funnel
    >>> funnel.RecordKey(("person",), bytes(range(32)))
    RecordKey(columns=('person',))
    """

    columns: tuple[str, ...]
    secret: bytes = field(repr=False)
    series: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.columns or len(set(self.columns)) != len(self.columns):
            raise SpecError(f"a record key needs distinct columns, at least one, not {list(self.columns)}")
        if len(self.secret) < MIN_SECRET_BYTES:
            raise SpecError(
                f"the release secret has {len(self.secret)} bytes; make one of at least {MIN_SECRET_BYTES} random bytes"
            )
        if len(set(self.secret)) == 1:
            raise SpecError("the release secret is one byte repeated; make one of random bytes")

    @property
    def fingerprint(self) -> str:
        """What tells two secrets apart and says nothing else of them: 32 hexadecimal digits, whatever the columns."""
        return _derived(replace(self, series=None), "fingerprint", "", 16).hex()


def scope_of_register(name: str) -> str:
    """What stands for the series in the record keys of a register: one for all series in it, and no series' name."""
    return f"register {name}"


def word_key(record_key: RecordKey, purpose: str) -> bytes:
    """A key of AES-256 for words of one purpose, which says nothing of the secret or of other keys.

    Parameters
    ----------
    record_key : RecordKey
    purpose : str
        What the words are for, such as the columns they publish; words for different purposes are unrelated.
    """
    return _derived(record_key, "word", purpose, 32)


def decision_keys(digests: DigestArray, decisions: DigestArray, key: bytes) -> DigestArray:
    """128 bits per record and decision, which `encrypted_words` under another key makes the word of both.

    ``AES_key(record) XOR decision``, so that a word is ``AES_k2(AES_k1(record) XOR decision)``, the CBC-MAC of two
    blocks. For messages of one length that is a pseudo-random function of record and decision (Bellare, Kilian and
    Rogaway 1994): another decision about the same record has an unrelated word, the same decision has the same.

    Parameters
    ----------
    digests : ndarray of uint64, shape (rows, 2)
        From `key_digests`.
    decisions : ndarray of uint64, shape (rows, 2) or (2,)
        Digests of decisions, each as two little-endian numbers.
    key : bytes
        From `word_key`, for a purpose of its own.

    Returns
    -------
    ndarray of uint64, shape (rows, 2)
    """
    return np.asarray(encrypted_blocks(digests, key) ^ decisions)


def encrypted_words(keys: DigestArray, key: bytes) -> WordArray:
    """One uniform 64-bit word for every 128 bits: AES-256 under a key for a purpose, its first 64 bits.

    Parameters
    ----------
    keys : ndarray of uint64, shape (rows, 2)
        From `decision_keys` to draw with, from `key_digests` for other purposes.
    key : bytes
        From `word_key`.

    Returns
    -------
    ndarray of uint64, shape (rows,)

    Notes
    -----
    About 100 million records/s on one core.
    """
    return np.ascontiguousarray(encrypted_blocks(keys, key)[:, 0])


def key_digests(batch: pa.RecordBatch | pa.Table, record_key: RecordKey, purpose: str = "record") -> DigestArray:
    """128 pseudo-random bits per record, distinct for distinct keys: what stands for a record's key from here on.

    A single column of whole numbers goes through AES-256 under a key derived for the purpose: the block is the number
    in 128-bit two's complement, so any integer type gives the same digest and different numbers always differ. Text
    and composite keys go through keyed BLAKE2b, composites as self-delimiting parts, so ("a", "bc") is not
    ("ab", "c"). Each kind has a derived key of its own: the number 7 and the text "7" are unrelated. Keys are derived
    from the secret by HKDF-SHA512.

    Parameters
    ----------
    batch : pyarrow RecordBatch or Table
        Has the columns of ``record_key``: text or whole numbers, plain or dictionary-typed.
    record_key : RecordKey
    purpose : str
        Digests for different purposes are unrelated.

    Returns
    -------
    ndarray of uint64, shape (rows, 2)

    Raises
    ------
    DataError
        If a key column is missing, of another type, or null anywhere; says how many records, not which.

    Notes
    -----
    About 60 million records/s for whole numbers and half a million for text and composites, on one core.
    """
    columns = _key_columns(batch, record_key)
    missing = _null_rows(columns)
    if missing:
        raise missing_keys_error(missing, record_key)
    columns = [_text_or_integer(name, column) for name, column in zip(record_key.columns, columns, strict=True)]
    if len(columns) == 1 and pa.types.is_integer(columns[0].type):
        return encrypted_blocks(_integer_blocks(columns[0]), _derived(record_key, "integer", purpose, 32))
    if len(columns) == 1:
        return _hashed(_texts(columns[0]), _derived(record_key, "text", purpose, 64), batch.num_rows)
    parts = (_self_delimiting(column) for column in columns)
    composites = (b"".join(row) for row in zip(*parts, strict=True))
    return _hashed(composites, _derived(record_key, "composite", purpose, 64), batch.num_rows)


def count_missing_keys(batch: pa.RecordBatch | pa.Table, record_key: RecordKey) -> int:
    """Number of records with a null in any key column.

    Raises
    ------
    DataError
        If a key column is not in the table, or there more than once.
    """
    return _null_rows(_key_columns(batch, record_key))


def missing_keys_error(count: int, record_key: RecordKey) -> DataError:
    """The error that says how many records have no key."""
    return DataError(
        f"{count} records have no value in the record key {_named(record_key)}; "
        "drop them or give every record a key of its own"
    )


def repeated_keys_error(count: int, record_key: RecordKey) -> DataError:
    """The error that says how many records repeat the key of another one."""
    return DataError(
        f"{count:,} records repeat the record key {_named(record_key)} of another record; "
        "drop them or choose columns that together are unique"
    )


def _named(record_key: RecordKey) -> str:
    return ", ".join(repr(column) for column in record_key.columns)


def _key_columns(batch: pa.RecordBatch | pa.Table, record_key: RecordKey) -> list[pa.Array]:
    columns = []
    for name in record_key.columns:
        if batch.schema.names.count(name) != 1:
            state = "more than once in" if name in batch.schema.names else "not in"
            raise DataError(f"the record key column {name!r} is {state} the table; name a column that is there once")
        column = batch.column(name)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        columns.append(column)
    return columns


def key_kind(kind: pa.DataType) -> Literal["text", "number"] | None:
    """What the keys of a column of this type are; None if they cannot be keys. The number 7 and the text 7 differ."""
    if pa.types.is_dictionary(kind):
        return key_kind(kind.value_type)
    if pa.types.is_integer(kind):
        return "number"
    return "text" if any(test(kind) for test in _TEXTS) else None


def _text_or_integer(name: str, column: pa.Array) -> pa.Array:
    kind = key_kind(column.type)
    if kind is not None:
        return column if kind == "number" else column.cast(pa.large_string())
    raise DataError(
        f"the record key column {name!r} has type {column.type}; keys are text or whole numbers, so convert it"
    )


def _null_rows(columns: list[pa.Array]) -> int:
    return int(np.logical_or.reduce([column.is_null().to_numpy(zero_copy_only=False) for column in columns]).sum())


def _derived(record_key: RecordKey, kind: str, purpose: str, length: int) -> bytes:
    # The kinds are words without a NUL, so that no pair of kind and purpose can be read as another pair.
    if record_key.series is None:
        info = b"\0".join((_LABEL, kind.encode(), purpose.encode()))
    else:
        # JSON has no NUL either.
        scope = json.dumps([record_key.series, *record_key.columns])
        info = b"\0".join((_LABEL_OF_SERIES, kind.encode(), scope.encode(), purpose.encode()))
    return HKDF(algorithm=hashes.SHA512(), length=length, salt=None, info=info).derive(record_key.secret)


def _integer_blocks(column: pa.Array) -> npt.NDArray[np.uint64]:
    values = numbers_of(column)
    blocks = np.zeros((len(values), 2), dtype="<u8")
    if values.dtype.kind == "u":
        blocks[:, 0] = values
    else:
        signed = values.astype(np.int64)
        blocks[:, 0] = signed.view(np.uint64)
        blocks[:, 1] = (signed >> 63).view(np.uint64)
    return blocks


def encrypted_blocks(blocks: npt.NDArray[np.uint64], key: bytes) -> npt.NDArray[np.uint64]:
    """AES-256 of every block of 128 bits, shape (rows, 2): a permutation of all blocks, another for every key."""
    # One block a record and no chaining: the electronic code book mode is the block cipher itself, a permutation.
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    plain = np.ascontiguousarray(blocks, dtype="<u8").reshape(-1).view(np.uint8).data
    # The cipher asks for room for one block less a byte beyond what it writes.
    room = np.empty(len(plain) + _BLOCK_BYTES - 1, dtype=np.uint8)
    step = _CHUNK_ROWS * _BLOCK_BYTES
    for start in range(0, len(plain), step):
        encryptor.update_into(plain[start : start + step], room[start:].data)
    return room[: len(plain)].view("<u8").reshape(-1, 2).astype(np.uint64, copy=False)


def _hashed(messages: Iterator[bytes], key: bytes, rows: int) -> npt.NDArray[np.uint64]:
    digests = b"".join(blake2b(message, digest_size=DIGEST_BYTES, key=key).digest() for message in messages)
    return np.frombuffer(digests, dtype="<u8").reshape(rows, 2).astype(np.uint64)


def _texts(column: pa.Array) -> Iterator[bytes]:
    return iter(column.cast(pa.large_binary()).to_pylist())


def _self_delimiting(column: pa.Array) -> Iterator[bytes]:
    if pa.types.is_integer(column.type):
        blocks = _integer_blocks(column).tobytes()
        return (b"i" + blocks[start : start + 16] for start in range(0, len(blocks), 16))
    return (b"t" + len(text).to_bytes(8, "little") + text for text in _texts(column))
