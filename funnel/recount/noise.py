"""Noise on published counts, found a second time: its distribution, its values, and which counts it leaves possible.

What the noise on a table has to be follows from the secret of its series and the exact counts.
"""

from __future__ import annotations

import hmac
import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, partial

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from flint import arb, ctx

from funnel.errors import DataError
from funnel.recount.count_box import CountBox
from funnel.recount.intervals import ball, below, exact_fraction
from funnel.recount.packed import divided_up

# Probabilities are whole numbers in units of 2^-256, rounded up; what is below 2^-216 is bounded by a geometric series.
_BITS, _DUST = 256, 40
# Further than this no sum is followed.
_TERMS = 1 << 23
# So many blocks of AES of a count are read: they leave two values open once in 2^240 counts.
_BLOCKS = 2


def scale_of(epsilon: float, sensitivity: int = 1) -> float:
    """The scale of noise that costs at most ``epsilon``: the least double s with s · epsilon >= sensitivity.

    P(k) is proportional to e^(-|k|/s), and one record more or less moves all counts by the sensitivity together.
    """
    scale = sensitivity / epsilon
    low, high = math.nextafter(scale, 0.0), math.nextafter(scale, math.inf)
    return next(one for one in (low, scale, high) if Fraction(one) * Fraction(epsilon) >= sensitivity)


@lru_cache(1 << 10)
def cell_limit(scale: float, tail: Fraction) -> int:
    """The least t with ``P(|Z| > t) <= tail``.

    With ``α = e^(-1/scale)`` the tail is ``2 α^(t+1) / (1 + α)``, so that t is the whole number from
    ``scale · ln(2 / ((1 + α) tail)) - 1`` on; which whole number that is, intervals decide.
    """
    guess = max(0, math.ceil(scale * math.log(2 / ((1 + math.exp(-1 / scale)) * float(tail))) - 1))
    # A double is off by some units in its last place; from the place before it on, the first that is proven.
    t = max(0, guess - 2)
    while not _is_rare(scale, t, tail):
        t += 1
    return t


def _is_rare(scale: float, t: int, tail: Fraction) -> bool:
    def room() -> arb:
        # The tail grows with α, and is transcendental: it equals no rational.
        alpha = (-ball(1 / Fraction(scale))).exp()
        return ball(tail) * (1 + alpha) - 2 * alpha ** (t + 1)

    return below(Fraction(0), room)


@lru_cache(1 << 10)
def total_limit(scale: float, cells: int, tail: Fraction) -> int:
    """The least t for which ``P(|Z_1 + … + Z_cells| > t) <= tail`` is proven.

    The sum is the difference of two sums of ``cells`` geometric variables, so that
    ``P(sum > t) = Σ_j P(N = j) P(N > t + j)`` with N negative binomial. Its probabilities are multiplied up and down
    from the mode in whole numbers, each rounded up, and what is far out is bounded by geometric series.

    Raises
    ------
    DataError
        If the noise is so wide that millions of terms do not hold it.
    """
    distribution, outside = _negative_binomial(scale, cells)
    beyond = [*distribution, 0]
    for place in range(len(distribution) - 1, -1, -1):
        beyond[place] += beyond[place + 1]
    room = (tail / 2) * (1 << (2 * _BITS))

    def enough(t: int) -> bool:
        # Both may be far out, on either side.
        inside = sum(
            share * (beyond[j + t + 1] + outside)
            for j, share in enumerate(distribution[: max(0, len(distribution) - t - 1)])
        )
        missed = outside * sum(distribution[max(0, len(distribution) - t - 1) :]) + (outside << _BITS)
        return inside + missed <= room

    low, high = -1, len(distribution)
    if not enough(high):
        raise DataError("the noise of the frequencies is too wide for a bound on their totals to be proven")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _negative_binomial(scale: float, cells: int) -> tuple[list[int], int]:
    """Probabilities around the mode, and a bound on all others; in units of 2^-256, rounded up."""
    unit = 1 << _BITS
    with ctx.workprec(2 * _BITS):
        alpha = (-ball(1 / Fraction(scale))).exp()
        largest, least = _up(alpha * unit), -_up(-alpha * unit)
        mode = math.floor((cells - 1) * math.exp(-1 / scale) / -math.expm1(-1 / scale))
        choose = (arb(cells + mode).lgamma() - arb(cells).lgamma() - arb(mode + 1).lgamma()).exp()
        top = _up(choose * (1 - alpha) ** cells * alpha**mode * unit)
    rising, share, j = [top], top, mode
    while share >> _DUST and len(rising) < _TERMS:
        share = divided_up(share * largest * (cells + j), unit * (j + 1))
        j += 1
        rising.append(share)
    falling: list[int] = []
    share, i = top, mode
    while share >> _DUST and i and len(falling) < _TERMS:
        share = divided_up(share * unit * i, least * (cells + i - 1))
        i -= 1
        falling.append(share)
    outside = _rest(rising[-1], Fraction(largest * (cells + j), unit * (j + 1)))
    if i:
        outside += _rest(share, Fraction(unit * i, least * (cells + i - 1)))
    return [*reversed(falling), *rising], outside


def _rest(last: int, ratio: Fraction) -> int:
    """What follows the last of some numbers whose quotients do not exceed the ratio."""
    if ratio >= 1:
        raise DataError("the noise of the frequencies is too wide for a bound on their totals to be proven")
    rest = last * ratio / (1 - ratio)
    return divided_up(rest.numerator, rest.denominator)


def _up(value: arb) -> int:
    return math.ceil(exact_fraction(value.upper()))


def limits_of(scale: float, beta: Fraction, c: int, a: int) -> tuple[int, int]:
    """The least limits of single counts and of totals of secrets that hold together but for a probability of ``beta``.

    Half of beta is shared by the c · a cells, and half by the totals of the c secrets.
    """
    return cell_limit(scale, beta / (2 * c * a)), total_limit(scale, a, beta / (2 * c))


def possible_counts(noisy: Sequence[Sequence[int]], of_cells: int, of_totals: int) -> CountBox:
    """Every table within these limits of the noisy one, c × a.

    The published counts, which are the noisy ones without those below 0, are always among the tables.
    """
    totals = []
    for row in noisy:
        published = sum(max(0, count) for count in row)
        totals.append((min(sum(row) - of_totals, published), max(sum(row) + of_totals, published)))
    return CountBox(
        tuple(tuple(max(0, count - of_cells) for count in row) for row in noisy),
        tuple(tuple(max(0, count + of_cells) for count in row) for row in noisy),
        tuple(totals),
    )


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
        self,
        kind: str,
        epsilon: float,
        scale: float,
        of: Sequence[object],
        noise: Sequence[int],
        exact: Sequence[int],
        within: int = 0,
    ) -> int:
        """How many counts of a table have other noise than the secret gives them.

        Parameters
        ----------
        kind : str
            "counts", "changes", "rows" or "means".
        epsilon, scale : float
            Of the noise.
        of : sequence
            What the table is of: its alphabets with their columns, and the versions that it tells changes since.
        noise, exact : sequence of int
            In the order of the table; of means, the noisy counts and changes that they are for.
        within : int
            How far the noise that is found may be from the one that was added.

        Notes
        -----
        The noise of count i has to be the k with ``F(k - 1) <= u < F(k)``, where F is the distribution function of the
        discrete Laplace distribution and the binary digits of u are ``AES_key(i, 0), AES_key(i, 1), …``. It is compared
        with that definition.
        """
        found = self._digits_of(kind, epsilon, of, exact, len(noise))
        return sum(abs(k - _noise(u, scale)) > within for k, u in zip(noise, found, strict=True))

    def of_values(self, kind: str, epsilon: float, column: str, counts: Mapping[str, int]) -> dict[str, int]:
        """How many records seem to have each value of a column, with the noise that decides which are named.

        Parameters
        ----------
        kind : "values" or "rest"
        epsilon : float
            What the look costs.
        counts : mapping of str to int
            Exact; noise is on them in the order of the values as text.
        """
        values, scale = sorted(counts), scale_of(epsilon)
        exact = [counts[value] for value in values]
        found = self._digits_of(kind, epsilon, [column, values], exact, len(values))
        return {value: n + _noise(u, scale) for value, n, u in zip(values, exact, found, strict=True)}

    def _digits_of(
        self, kind: str, epsilon: float, of: Sequence[object], exact: Sequence[int], size: int
    ) -> Iterator[int]:
        """The first binary digits of the u of every count, under the key of the table."""
        said = json.dumps([kind, self.source, epsilon, *of, list(exact)], separators=(",", ":"))
        return _digits(hmac.new(self.root, b"funnel noise 1\0" + said.encode(), "sha256").digest(), size)


def _digits(key: bytes, size: int) -> Iterator[int]:
    """Of every count the first binary digits of its u, as a whole number."""
    plain = b"".join(struct.pack("<QQ", place, block) for place in range(size) for block in range(_BLOCKS))
    words = iter(struct.unpack(f"<{2 * _BLOCKS * size}Q", aes_blocks(key, plain)))
    for _ in range(size):
        found = 0
        for _ in range(2 * _BLOCKS):
            found = (found << 64) | next(words)
        yield found


def _noise(digits: int, scale: float) -> int:
    """The least k with ``u < F(k)``, for the least u with these first digits."""
    u = Fraction(digits, 1 << (128 * _BLOCKS))
    # Where doubles lead, and from there as far as is proven.
    alpha, tail = math.exp(-1 / scale), float(min(u, 1 - u)) or 1e-300
    size = max(0, math.floor(-scale * math.log(tail * (1 + alpha))))
    k = -size if 2 * u < 1 else size
    while not below(u, partial(_up_to, k, scale)):
        k += 1
    while below(u, partial(_up_to, k - 1, scale)):
        k -= 1
    return k


def _up_to(k: int, scale: float) -> arb:
    """F(k) = P(Z <= k) for P(k) proportional to e^(-|k| / scale)."""
    alpha = (-ball(1 / Fraction(scale))).exp()
    tail = alpha ** (k + 1 if k >= 0 else -k) / (1 + alpha)
    return 1 - tail if k >= 0 else tail
