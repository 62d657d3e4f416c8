"""Random words: a stream of uniform 64-bit words from AES-256-CTR, keyed from the operating system."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from typing import NoReturn, SupportsIndex

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from funnel.errors import EntropyError

WordArray = npt.NDArray[np.uint64]
WordSource = Callable[[int], WordArray]
"""Anything that returns the asked number of uniform, independent 64-bit words, such as ``WordStream().words``."""

KEY_BYTES = 32
NONCE_BYTES = 16
BLOCK_BYTES = 16
BLOCK_WORDS = BLOCK_BYTES // 8

# Encrypting zeros gives the key stream itself; pieces of this size stay in the processor's cache.
_ZEROS = memoryview(bytes(1 << 18))

# Fingerprints of the keys drawn in this process, each with a token of its stream. `dict.setdefault` is atomic, so no
# lock is needed that a fork could leave locked; a child inherits the table and also notices a key its parent drew.
_KEYS_SEEN: dict[bytes, object] = {}


class WordStream:
    """Uniform, unpredictable 64-bit words for one worker: the key stream of AES-256 in counter mode.

    Key and first counter block come from the operating system at construction and are never shown, stored or
    shared. There is no seed: a release must not be repeatable by anyone who guesses one. (For answers that repeat
    per record, see `funnel.sampling.keyed`.) A thread lock makes concurrent calls safe; they still get distinct words.

    The words are indistinguishable from uniform ones for anyone who cannot break AES-256: after n blocks the
    advantage is at most n²/2^129 (counter mode never repeats a block), 2^-49 after 2^40 blocks or 16 TB.

    Raises
    ------
    EntropyError
        At construction, if the operating system gives no random bytes, gives bytes that are stuck, or gives the same
        key twice in a process; later, if the stream repeats a block, which counter mode never does, or is used in
        another process than its own, copied or pickled, any of which would use the same words twice.

    Notes
    -----
    The continuous test compares the first block of each piece of up to 256 KiB with the piece's second block and with
    the first and the last block of the piece before: enough to see a cipher that is stuck, that restarts, or whose
    output does not arrive, at no measurable cost.

    Speed: about 300 million words/s on one core, from 16,384 words a call on.
    """

    def __init__(self) -> None:
        material = _system_bytes(KEY_BYTES + NONCE_BYTES)
        _require_lively(material)
        key, nonce = material[:KEY_BYTES], material[KEY_BYTES:]
        mine = object()
        if _KEYS_SEEN.setdefault(_fingerprint(key), mine) is not mine:
            raise EntropyError("the operating system gave the same random key twice; its random source cannot be used")
        self._start(key, nonce)

    @classmethod
    def with_known_key_for_tests(cls, key: bytes, nonce: bytes) -> WordStream:
        """A stream with a key that is not secret, for known-answer tests only: its words must never reach a release."""
        stream = cls.__new__(cls)
        stream._start(key, nonce)
        return stream

    def _start(self, key: bytes, nonce: bytes) -> None:
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(nonce)).encryptor()
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._spare = np.empty(0, dtype="<u8")
        self._previous: tuple[bytes, ...] = ()

    def words(self, n: int) -> WordArray:
        """The next ``n`` words of the stream, shape (n,), each uniform on [0, 2^64); O(n).

        Raises
        ------
        EntropyError
            If the stream repeats itself or is used in another process than the one that made it.
        """
        if os.getpid() != self._pid:
            raise EntropyError("a stream of random words was used after a fork; make a new one in every process")
        with self._lock:
            kept = len(self._spare)
            # Whole blocks only, so that the continuous test always compares blocks that start where a block starts.
            fresh = -(-max(0, n - kept) // BLOCK_WORDS) * BLOCK_WORDS
            words = np.empty(kept + fresh, dtype="<u8")
            words[:kept] = self._spare
            self._fill(words[kept:])
            self._spare = words[n:].copy()
        return words[:n].astype(np.uint64, copy=False)

    def _fill(self, words: WordArray) -> None:
        target = words.view(np.uint8).data
        for start in range(0, len(target), len(_ZEROS)):
            piece = target[start : start + len(_ZEROS)]
            if self._encryptor.update_into(_ZEROS[: len(piece)], piece) != len(piece):
                raise EntropyError("the cipher returned fewer random words than it was asked for")
            self._require_fresh(piece)

    def _require_fresh(self, piece: memoryview) -> None:
        first, last = bytes(piece[:BLOCK_BYTES]), bytes(piece[-BLOCK_BYTES:])
        second = bytes(piece[BLOCK_BYTES : 2 * BLOCK_BYTES])
        if first in self._previous or first == second:
            raise EntropyError("the stream of random words repeats itself; nothing may be drawn from it")
        self._previous = (first, last)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise EntropyError("a stream of random words cannot be copied or pickled; make a new one where it is needed")


def _system_bytes(count: int) -> bytes:
    try:
        material = os.urandom(count)
    except (OSError, NotImplementedError) as error:
        raise EntropyError("the operating system gave no random bytes, so nothing can be drawn safely") from error
    if len(material) != count:
        raise EntropyError(f"the operating system gave {len(material)} random bytes instead of {count}")
    return material


def _fingerprint(key: bytes) -> bytes:
    """What tells keys apart without telling a key."""
    return hashlib.blake2b(key, digest_size=16, person=b"funnel key seen").digest()


def _require_lively(material: bytes) -> None:
    """Refuse material of one repeated byte or with a repeated block: by chance less often than once in 2^126 tries."""
    blocks = [material[i : i + BLOCK_BYTES] for i in range(0, len(material), BLOCK_BYTES)]
    if len(set(material)) == 1 or len(set(blocks)) != len(blocks):
        raise EntropyError("the operating system's random bytes are stuck; its random source cannot be used")
