"""Record-keyed words: the same record, the same word; and keys that are missing or repeated."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from funnel.errors import DataError, SpecError
from funnel.sampling import key_column
from funnel.sampling.key_column import DistinctKeys
from funnel.sampling.keyed import (
    RecordKey,
    count_missing_keys,
    encrypted_words,
    key_digests,
    key_kind,
    word_key,
)

SECRET = bytes(range(7, 47))
ID = RecordKey(("id",), SECRET)


def keyed_words(batch: pa.RecordBatch | pa.Table, record_key: RecordKey, purpose: str) -> np.ndarray:
    return encrypted_words(key_digests(batch, record_key), word_key(record_key, purpose))


def table(*values: object, type: pa.DataType | None = None) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(list(values), type=type)})


def derived(kind: bytes, purpose: bytes, length: int) -> bytes:
    info = b"funnel record words 1\0" + kind + b"\0" + purpose
    return HKDF(algorithm=hashes.SHA512(), length=length, salt=None, info=info).derive(SECRET)


@pytest.mark.parametrize("value", [0, 1, -1, 2**63 - 1, -(2**63), 2**64 - 1, 123456789])
def test_digest_of_a_number_is_aes_of_its_128_bits(value: int) -> None:
    block = value.to_bytes(16, "little", signed=True)
    encrypted = Cipher(algorithms.AES(derived(b"integer", b"p", 32)), modes.ECB()).encryptor().update(block)
    batch = table(value, type=pa.uint64() if value >= 2**63 else pa.int64())
    assert key_digests(batch, ID, "p").astype("<u8").tobytes() == encrypted


@pytest.mark.parametrize("batch", [table(-5), table("Zoë")])
def test_words_are_aes_of_digests(batch: pa.RecordBatch) -> None:
    digest = key_digests(batch, ID).astype("<u8").tobytes()
    encrypted = Cipher(algorithms.AES(derived(b"word", b"p", 32)), modes.ECB()).encryptor().update(digest)
    assert keyed_words(batch, ID, "p").tolist() == [int.from_bytes(encrypted[:8], "little")]


def test_digests_of_text_and_of_composites_are_keyed_blake2b() -> None:
    text = blake2b("Zoë".encode(), digest_size=16, key=derived(b"text", b"p", 64)).digest()
    assert key_digests(table("Zoë"), ID, "p").astype("<u8").tobytes() == text
    message = b"t" + (4).to_bytes(8, "little") + "Zoë".encode() + b"i" + (-5).to_bytes(16, "little", signed=True)
    both = blake2b(message, digest_size=16, key=derived(b"composite", b"p", 64)).digest()
    batch = pa.record_batch({"n": pa.array([-5]), "id": pa.array(["Zoë"])})
    assert key_digests(batch, RecordKey(("id", "n"), SECRET), "p").astype("<u8").tobytes() == both


@given(
    st.one_of(
        st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, min_size=1, max_size=40),
        st.lists(st.text(st.characters(exclude_categories=["Cs"])), unique=True, min_size=1, max_size=40),
    ),
    st.randoms(use_true_random=False),
)
def test_a_record_keeps_its_word_in_any_order_and_partition(values, random) -> None:  # type: ignore[no-untyped-def]
    words = dict(zip(values, keyed_words(table(*values), ID, "p").tolist(), strict=True))
    assert len(set(words.values())) == len(values)
    shuffled = random.sample(values, len(values))
    cut = random.randint(0, len(values))
    kind = table(*values).schema.field("id").type
    for part in (shuffled[:cut], shuffled[cut:]):
        assert keyed_words(table(*part, type=kind), ID, "p").tolist() == [words[value] for value in part]


def test_long_batches_cross_the_pieces_of_the_cipher() -> None:
    n = 40_000
    whole = keyed_words(pa.record_batch({"id": pa.array(np.arange(n))}), ID, "p")
    assert whole[[0, 16384, n - 1]].tolist() == [keyed_words(table(i), ID, "p")[0] for i in (0, 16384, n - 1)]
    assert len(np.unique(whole)) == n
    for byte in (0, 7):
        assert stats.chisquare(np.bincount(whole.view(np.uint8)[byte::8], minlength=256)).pvalue > 1e-9


def test_the_type_of_storage_does_not_matter() -> None:
    expected = keyed_words(table(3, 200, 3 + 10), ID, "p").tolist()
    for kind in (pa.uint8(), pa.int16(), pa.int32(), pa.uint64()):
        assert keyed_words(table(3, 200, 13, type=kind), ID, "p").tolist() == expected
    coded = pa.DictionaryArray.from_arrays(pa.array([1, 0, 2]), pa.array([200, 3, 13]))
    assert keyed_words(pa.record_batch({"id": coded}), ID, "p").tolist() == expected
    chunked = pa.table({"id": pa.chunked_array([[3], [200, 13]])})
    assert keyed_words(chunked, ID, "p").tolist() == expected
    texts = keyed_words(table("a", "é"), ID, "p").tolist()
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        assert keyed_words(table("a", "é", type=kind), ID, "p").tolist() == texts


def test_words_differ_by_purpose_secret_type_and_column_borders() -> None:
    words = {
        keyed_words(table(7), ID, "p")[0],
        keyed_words(table(7), ID, "q")[0],
        keyed_words(table(7), RecordKey(("id",), SECRET + b"x"), "p")[0],
        keyed_words(table("7"), ID, "p")[0],
    }
    assert len(words) == 4
    pair = RecordKey(("a", "b"), SECRET)
    composites = [("a", "bc"), ("ab", "c"), ("", "abc"), ("1", 1), (1, "1"), (1, 1), ("1", "1")]
    batches = [pa.record_batch({"a": pa.array([a]), "b": pa.array([b])}) for a, b in composites]
    assert len({int(keyed_words(batch, pair, "p")[0]) for batch in batches}) == len(composites)


def test_no_rows_give_no_words() -> None:
    for kind in (pa.int64(), pa.string()):
        assert keyed_words(table(type=kind), ID, "p").shape == (0,)
    none = pa.record_batch({"a": pa.array([], pa.int8()), "b": pa.array([], pa.string())})
    assert key_digests(none, RecordKey(("a", "b"), SECRET), "p").shape == (0, 2)


def test_missing_keys_are_counted_and_not_shown() -> None:
    pair = RecordKey(("name", "year"), SECRET)
    batch = pa.record_batch(
        {"name": pa.array(["Anna", None, "Bert", None, "Cleo"]), "year": pa.array([1931, 1932, None, None, 1935])}
    )
    assert count_missing_keys(batch, pair) == 3
    with pytest.raises(DataError) as caught:
        keyed_words(batch, pair, "p")
    assert "3 records have no value in the record key 'name', 'year'" in str(caught.value)
    assert not any(text in str(caught.value) for text in ("Anna", "Bert", "Cleo", "193"))


def test_nulls_inside_a_dictionary_are_missing_keys() -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, None]), pa.array(["a", None]))
    assert count_missing_keys(pa.record_batch({"id": coded}), ID) == 3
    assert count_missing_keys(table(None, None), ID) == 2


@pytest.mark.parametrize("values", [[1.5, 2.5], [True, False], [b"a"], [[1]]])
def test_keys_of_other_types_are_refused(values: list[object]) -> None:
    with pytest.raises(DataError, match=r"record key column 'id' has type .* text or whole numbers"):
        keyed_words(table(*values), ID, "p")


def test_columns_that_are_not_there_once_are_refused() -> None:
    with pytest.raises(DataError, match="'person' is not in the table"):
        keyed_words(table(1), RecordKey(("person",), SECRET), "p")
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    with pytest.raises(DataError, match="'id' is more than once in the table"):
        keyed_words(twice, ID, "p")


def test_the_secret_is_never_shown() -> None:
    for text in (repr(ID), str(ID), f"{ID}", f"{(ID,)}"):
        assert "id" in text
        assert SECRET.decode("latin-1") not in text
        assert SECRET.hex() not in text
        assert repr(SECRET)[2:-1] not in text
    with pytest.raises(AttributeError):
        ID.secret = b""  # type: ignore[misc]
    with pytest.raises(TypeError):
        json.dumps(ID)
    assert pickle.loads(pickle.dumps(ID)) == ID


def test_a_fingerprint_tells_secrets_apart_and_columns_not() -> None:
    fingerprints = [RecordKey((name,), secret).fingerprint for name in "ab" for secret in (SECRET, SECRET[::-1])]
    assert fingerprints[:2] == fingerprints[2:]
    assert fingerprints[0] != fingerprints[1]
    assert len(bytes.fromhex(fingerprints[0])) == 16
    # It is none of the keys that words are made with.
    assert bytes.fromhex(fingerprints[0]) not in word_key(RecordKey(("a",), SECRET), "fingerprint")


@pytest.mark.parametrize("secret", [b"", SECRET[:31], bytes(32), b"s" * 64])
def test_weak_secrets_are_refused_without_showing_them(secret: bytes) -> None:
    with pytest.raises(SpecError, match="make one of") as caught:
        RecordKey(("id",), secret)
    assert repr(secret)[2:-1][:8] not in str(caught.value) or not secret


@pytest.mark.parametrize("columns", [(), ("id", "id")])
def test_a_key_needs_distinct_columns(columns: tuple[str, ...]) -> None:
    with pytest.raises(SpecError, match="distinct columns"):
        RecordKey(columns, SECRET)


@given(
    st.lists(st.integers(-5, 30), max_size=60) | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=60),
    st.integers(1, 70),
    st.sampled_from(["number", "text", "both"]),
)
def test_repeated_keys_are_counted_over_the_whole_stream(values: list[int], cut: int, kind: str) -> None:
    batch = pa.record_batch({"id": pa.array(values, pa.int64()), "t": pa.array(map(str, values), pa.string())})
    key = RecordKey({"number": ("id",), "text": ("t",), "both": ("t", "id")}[kind], SECRET)
    with pytest.MonkeyPatch.context() as patch, DistinctKeys() as keys:
        patch.setattr(key_column, "_HELD_ROWS", 16)
        patch.setattr(key_column, "_BUCKET_ROWS", 2)
        for start in range(0, len(values), cut):
            keys.add(key_digests(batch.slice(start, cut), key))
        counts = Counter(values)
        assert keys.counts() == (len(counts), sum(count > 1 for count in counts.values()))


def test_a_bucket_that_cannot_be_split_is_counted() -> None:
    with pytest.MonkeyPatch.context() as patch, DistinctKeys() as keys:
        patch.setattr(key_column, "_HELD_ROWS", 1)
        patch.setattr(key_column, "_BUCKET_ROWS", 1)
        for number in (7, 7, 8, 7):
            keys.add(np.array([[number, 0]], dtype=np.uint64))
        assert keys.counts() == (2, 1)


def test_keys_that_runs_repeat_are_counted_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every key once in each of four runs; no more are looked at together than a run or a bucket may hold."""
    looked_at: list[int] = []
    real = key_column._at_most_twice

    def noted(digests: np.ndarray) -> np.ndarray:
        looked_at.append(len(digests))
        return real(digests)

    monkeypatch.setattr(key_column, "_at_most_twice", noted)
    monkeypatch.setattr(key_column, "_HELD_ROWS", 500)
    monkeypatch.setattr(key_column, "_BUCKET_ROWS", 10)
    digests = key_digests(table(*range(500)), ID)
    with DistinctKeys() as keys:
        for _ in range(4):
            keys.add(digests)
        # About 30 of 2,000 in every bucket: all are split, and each run of a bucket is looked at as well.
        monkeypatch.setattr(key_column, "_HELD_ROWS", 20)
        looked_at.clear()
        assert keys.counts() == (500, 500)
    assert max(looked_at) <= 20


def test_a_key_that_all_records_have_takes_no_room() -> None:
    digests = np.repeat(key_digests(table(7), ID), 100_000, axis=0)
    with DistinctKeys() as keys:
        for _ in range(6):
            keys.add(digests)
        assert keys.counts() == (1, 1)
        assert sum(keys._spill.sizes()) <= 2 * 6


def test_digests_alike_in_one_half_are_not_the_same_key() -> None:
    with DistinctKeys() as keys:
        keys.add(np.array([[5, 1], [5, 2], [6, 1], [5, 1]], dtype=np.uint64))
        assert keys.counts() == (3, 1)


def test_keys_in_a_dictionary_are_of_the_kind_of_its_values() -> None:
    assert key_kind(pa.dictionary(pa.int8(), pa.string())) == key_kind(pa.string()) == "text"
    assert key_kind(pa.dictionary(pa.int8(), pa.int64())) == key_kind(pa.int16()) == "number"
    assert key_kind(pa.float64()) is None
