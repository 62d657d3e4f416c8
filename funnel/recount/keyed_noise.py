"""Keyed noise: what the noise on a table has to be, found again from the secret of its series and the exact counts."""

from __future__ import annotations

import hmac
import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from flint import arb

from funnel.recount.intervals import ball, below

# So many blocks of AES of a count are read: they leave two values open once in 2^240 counts.
_BLOCKS = 2


def derived(secret: bytes, *info: bytes) -> bytes:
    """HKDF-SHA512 (RFC 5869) of a secret, without salt: one block of 64 bytes is enough for every key."""
    extracted = hmac.new(bytes(64), secret, "sha512").digest()
    return hmac.new(extracted, b"\0".join(info) + b"\1", "sha512").digest()


def aes_blocks(key: bytes, blocks: bytes) -> bytes:
    """AES-256 of every block of 16 bytes by itself."""
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return cipher.update(blocks) + cipher.finalize()


@dataclass(frozen=True)
class NoiseMaterial:
    """What noise follows from, besides the table.

    Attributes
    ----------
    secret : str
        Text of the secret of the series.
    series : str
    source : str
        SHA-256 (hex) of the source, digested again.
    """

    secret: str = field(repr=False)
    series: str
    source: str

    @property
    def root(self) -> bytes:
        """HKDF-SHA512 (RFC 5869) of the secret, without salt, for the noise of the series."""
        scope = json.dumps([self.series, "noise-secret"]).encode()
        return derived(bytes.fromhex(self.secret.strip()), b"funnel record words 2", b"word", scope, b"noise")[:32]

    def wrong(
        self, kind: str, epsilon: float, scale: float, of: Sequence[object], noise: Sequence[int], exact: Sequence[int]
    ) -> int:
        """How many counts of a table have other noise than the secret gives them.

        Parameters
        ----------
        kind : str
            "counts", "changes" or "rows".
        epsilon, scale : float
            Of the noise.
        of : sequence
            What the table is of: its alphabets with their columns, and the versions that it tells changes since.
        noise, exact : sequence of int
            In the order of the table.

        Notes
        -----
        The noise of count i has to be the k with ``F(k - 1) <= u < F(k)``, where F is the distribution function of the
        discrete Laplace law and the binary digits of u are ``AES_key(i, 0), AES_key(i, 1), …``. It is compared with
        that definition; no noise is drawn.
        """
        said = json.dumps([kind, self.source, epsilon, *of, list(exact)], separators=(",", ":"))
        key = hmac.new(self.root, b"funnel noise 1\0" + said.encode(), "sha256").digest()
        return sum(not _is_noise(k, u, scale) for k, u in zip(noise, _digits(key, len(noise)), strict=True))


def _digits(key: bytes, size: int) -> Iterator[int]:
    """Of every count the first binary digits of its u, as a whole number."""
    plain = b"".join(struct.pack("<QQ", place, block) for place in range(size) for block in range(_BLOCKS))
    words = iter(struct.unpack(f"<{2 * _BLOCKS * size}Q", aes_blocks(key, plain)))
    for _ in range(size):
        found = 0
        for _ in range(2 * _BLOCKS):
            found = (found << 64) | next(words)
        yield found


def _is_noise(k: int, digits: int, scale: float) -> bool:
    """Whether some u with these first digits has noise k."""
    unit = 1 << (128 * _BLOCKS)
    return not below(Fraction(digits + 1, unit), lambda: _up_to(k - 1, scale)) and below(
        Fraction(digits, unit), lambda: _up_to(k, scale)
    )


def _up_to(k: int, scale: float) -> arb:
    """F(k) = P(Z <= k) for P(k) proportional to e^(-|k| / scale)."""
    alpha = (-ball(1 / Fraction(scale))).exp()
    tail = alpha ** (k + 1 if k >= 0 else -k) / (1 + alpha)
    return 1 - tail if k >= 0 else tail
