"""The stream of random words: known answers, health tests, and never used twice."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from funnel.errors import EntropyError
from funnel.sampling import random_words as words_module
from funnel.sampling.random_words import WordStream

KEY, NONCE = bytes(range(32)), bytes(range(100, 116))


def key_stream(count: int) -> np.ndarray:
    raw = Cipher(algorithms.AES(KEY), modes.CTR(NONCE)).encryptor().update(bytes(8 * count))
    return np.frombuffer(raw, dtype="<u8")


def test_first_block_is_the_published_one_of_nist_sp_800_38a() -> None:
    """F.5.5, CTR-AES256.Encrypt: output block 1."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    words = WordStream.with_known_key_for_tests(key, counter).words(2)
    assert words.astype("<u8").tobytes().hex() == "0bdf7df1591716335e9a8b15c860c502"


@given(st.lists(st.integers(0, 300), max_size=8))
def test_words_are_the_key_stream_however_they_are_asked_for(sizes: list[int]) -> None:
    stream = WordStream.with_known_key_for_tests(KEY, NONCE)
    pieces = [stream.words(size) for size in sizes]
    assert [len(piece) for piece in pieces] == sizes
    assert all(piece.dtype == np.uint64 for piece in pieces)
    np.testing.assert_array_equal(np.concatenate([*pieces, []]), key_stream(sum(sizes)))


def test_long_requests_cross_the_pieces_of_the_cipher() -> None:
    count = 3 * (1 << 15) + 7
    stream = WordStream.with_known_key_for_tests(KEY, NONCE)
    np.testing.assert_array_equal(stream.words(count), key_stream(count))


def test_two_streams_are_unrelated_and_uniform() -> None:
    first, second = WordStream().words(1 << 16), WordStream().words(1 << 16)
    assert not np.intersect1d(first, second).size
    for words in (first, second):
        for byte in range(8):
            counts = np.bincount(words.view(np.uint8)[byte::8], minlength=256)
            # Of fresh words: fewer than three in 10^11 runs fail, here and in the last line.
            assert stats.chisquare(counts).pvalue > 1e-12
        assert abs(stats.spearmanr(words[:-1], words[1:]).statistic) < 7 / 2**8


@pytest.mark.parametrize(
    "material", [bytes(48), b"\x5a" * 48, bytes(range(16)) * 3, bytes(range(32)) + bytes(range(16))]
)
def test_stuck_system_source_is_refused(material: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda count: material[:count])
    with pytest.raises(EntropyError, match="stuck"):
        WordStream()


def test_same_key_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    material = os.urandom(48)
    monkeypatch.setattr(os, "urandom", lambda count: material[:count])
    WordStream()
    with pytest.raises(EntropyError, match="same random key twice"):
        WordStream()


def test_same_key_twice_is_refused_whatever_the_nonce(monkeypatch: pytest.MonkeyPatch) -> None:
    urandom, key = os.urandom, os.urandom(32)
    monkeypatch.setattr(os, "urandom", lambda count: key + urandom(count - 32))
    WordStream()
    with pytest.raises(EntropyError, match="same random key twice"):
        WordStream()


def test_short_system_source_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    urandom = os.urandom
    monkeypatch.setattr(os, "urandom", lambda count: urandom(count - 1))
    with pytest.raises(EntropyError, match="47 random bytes instead of 48"):
        WordStream()


@pytest.mark.parametrize("error", [OSError(5, "input/output error"), NotImplementedError()])
def test_missing_system_source_is_refused(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(count: int) -> bytes:
        raise error

    monkeypatch.setattr(os, "urandom", fail)
    with pytest.raises(EntropyError, match="no random bytes"):
        WordStream()


class FaultyCipher:
    """Stands in for the encryptor: writes what a function of the piece's number says."""

    def __init__(self, piece: Callable[[int], bytes], written: int | None = None) -> None:
        self.piece, self.written, self.calls = piece, written, 0

    def update_into(self, data: memoryview, target: memoryview) -> int:
        content = self.piece(self.calls)
        target[:] = (content * (len(target) // len(content) + 1))[: len(target)]
        self.calls += 1
        return len(data) if self.written is None else self.written


def with_cipher(cipher: FaultyCipher) -> WordStream:
    stream = WordStream()
    stream._encryptor = cipher  # type: ignore[assignment]
    return stream


def test_stuck_cipher_is_noticed_within_a_piece() -> None:
    with pytest.raises(EntropyError, match="repeats itself"):
        with_cipher(FaultyCipher(lambda call: bytes(16))).words(4)


def test_restarted_cipher_is_noticed_from_one_piece_to_the_next() -> None:
    start = os.urandom(1 << 18)
    stream = with_cipher(FaultyCipher(lambda call: start))
    with pytest.raises(EntropyError, match="repeats itself"):
        stream.words(1 << 16)


def test_block_repeated_across_a_border_is_noticed() -> None:
    blocks = [os.urandom(16) for _ in range(3)]
    pieces = [blocks[0] + blocks[1], blocks[1] + blocks[2]]
    stream = with_cipher(FaultyCipher(lambda call: pieces[call]))
    stream.words(4)
    with pytest.raises(EntropyError, match="repeats itself"):
        stream.words(4)


def test_cipher_that_writes_too_little_is_noticed() -> None:
    with pytest.raises(EntropyError, match="fewer random words"):
        with_cipher(FaultyCipher(lambda call: os.urandom(64), written=16)).words(8)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_stream_cannot_be_duplicated(duplicate: Callable[[WordStream], object]) -> None:
    with pytest.raises(EntropyError, match="cannot be copied or pickled"):
        duplicate(WordStream())


def test_stream_is_refused_after_a_fork_and_a_new_one_differs() -> None:
    program = """
import os
from funnel.errors import EntropyError
from funnel.sampling.random_words import WordStream
stream = WordStream()
stream.words(3)
reader, writer = os.pipe()
if os.fork() == 0:
    try:
        stream.words(1)
    except EntropyError as error:
        os.write(writer, str(error).encode() + b"|" + WordStream().words(1).tobytes().hex().encode())
    os._exit(0)
os.wait()
os.close(writer)
message, word = os.read(reader, 1000).split(b"|")
assert b"after a fork" in message, message
assert word.decode() != stream.words(1).tobytes().hex()
print("refused")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"


def test_a_stream_belongs_to_the_process_that_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, here = WordStream(), os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    with pytest.raises(EntropyError, match="after a fork"):
        stream.words(1)


def test_threads_share_a_stream_without_sharing_words() -> None:
    stream = WordStream.with_known_key_for_tests(KEY, NONCE)
    drawn: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: drawn.extend(stream.words(501) for _ in range(50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(np.sort(np.concatenate(drawn)), np.sort(key_stream(4 * 50 * 501)))


def test_no_seed_and_no_key_to_be_seen() -> None:
    with pytest.raises(TypeError):
        WordStream(0)  # type: ignore[call-arg]
    stream = WordStream()
    held = [value for value in vars(stream).values() if isinstance(value, bytes)]
    assert held == []
    assert all(len(fingerprint) == 16 for fingerprint in words_module._KEYS_SEEN)
