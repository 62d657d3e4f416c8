"""Noise: discrete Laplace numbers, a function of random bits that a key gives (decision 0037)."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import count

import numpy as np
from flint import arb, ctx, fmpq

from funnel.errors import SpecError
from funnel.joint import IntArray, Joint
from funnel.sampling.keyed import encrypted_blocks
from funnel.sampling.random_words import WordStream

# Of a block of AES; and how many more of them the logarithms of an interval are computed with.
_BITS, _GUARD = 128, 64


@dataclass(frozen=True)
class Noise:
    """What was added to counts: to each one whole number of the discrete Laplace distribution, P(k) ∝ e^(-|k| / scale).

    Attributes
    ----------
    epsilon : float
        Differential privacy of the counts (nats): one record more or less changes one count by one.
    delta : float
        Probability that a value of one person alone was named; 0 unless values were learned from the data.
    beta : float
        Probability, at most, that the true counts are outside the bounds made of this.

    Raises
    ------
    SpecError
        If any of them is out of range.
    """

    epsilon: float
    delta: float
    beta: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise SpecError(f"the epsilon of noise must be above 0 and finite, not {self.epsilon}")
        if not 0 <= self.delta < 1 or not 0 < self.beta < 1:
            raise SpecError(f"delta and beta of noise are probabilities, not {self.delta} and {self.beta}")

    @cached_property
    def scale(self) -> float:
        """The smallest double at or above 1 / epsilon: which is taken as the exact fraction that it is."""
        return scale_of(self.epsilon)


def scale_of(epsilon: float, sensitivity: int = 1) -> float:
    """The least double ``s`` with ``s * epsilon >= sensitivity`` exactly: noise of this scale costs at most epsilon."""
    scale = sensitivity / epsilon
    while Fraction(scale) * Fraction(epsilon) < sensitivity:
        scale = math.nextafter(scale, math.inf)
    while Fraction(below := math.nextafter(scale, 0.0)) * Fraction(epsilon) >= sensitivity:
        scale = below
    return scale


@dataclass(frozen=True)
class NoiseSecret:
    """What the noise of a series is derived from, with the source that is counted.

    Noise on a table is a pseudo-random function of what is added to: of the source, the table and its epsilon. So the
    same table of one source has one noise, however often it is asked for; all others have noise that is unrelated to it
    and to their counts, for everybody without the secret; and nobody who draws it can choose.

    Attributes
    ----------
    root : bytes
        From `funnel.release.secret.noise_root`. With it alone no noise can be taken off: that needs the source's digest
        and the exact table.
    source : str
        SHA-256 (hex) of the source.
    """

    root: bytes = field(repr=False)
    source: str

    def key(
        self, kind: str, epsilon: float, joint: Joint, exact: Sequence[IntArray], since: Sequence[str] = ()
    ) -> bytes:
        """The key of the noise on one table.

        Parameters
        ----------
        kind : str
            "counts", "changes", "rows", "means" or "departures".
        epsilon : float
            What the table costs (nats).
        joint : Joint
            Of the version; its alphabets are what counts.
        exact : sequence of ndarray of int64
            All counts that are to have noise, in their order; of means the noisy counts and changes that they are for.
        since : sequence of str
            The earlier versions that changes are since.
        """
        alphabets = [[one.columns, one.symbols] for one in (joint.secret, joint.inputs)]
        counts = [count for table in exact for count in table.ravel().tolist()]
        return self._key(kind, epsilon, [alphabets, list(since)], counts)

    def key_of_values(self, kind: str, epsilon: float, column: str, counts: Mapping[str, int]) -> bytes:
        """The key of the noise that decides which values of a column are named: of their counts, in this order.

        Parameters
        ----------
        kind : "values" or "rest"
            The values themselves, or what is left without a name of its own.
        """
        return self._key(kind, epsilon, [column, list(counts)], [*counts.values()])

    def _key(self, kind: str, epsilon: float, of: Sequence[object], counts: Sequence[int]) -> bytes:
        said = json.dumps([kind, self.source, epsilon, *of, counts], separators=(",", ":"))
        return hmac.new(self.root, b"funnel noise 1\0" + said.encode(), hashlib.sha256).digest()


def fresh_key() -> bytes:
    """A key of the operating system's entropy, for noise that nothing but itself tells of."""
    return WordStream().words(4).tobytes()


def discrete_laplace_variance(scale: float) -> float:
    """Of noise of this scale."""
    ratio = math.exp(-1 / scale)
    return 2 * ratio / (1 - ratio) ** 2


def draw_noise(size: int, epsilon: float, sensitivity: int = 1, key: bytes | None = None) -> IntArray:
    """Independent noise for ``size`` counts of which one record changes at most ``sensitivity`` by one, shape (size,).

    The noise of a count is ``F^-1(u)``: the whole number k with ``F(k - 1) <= u < F(k)``, where F is the distribution
    function of the discrete Laplace distribution and the binary digits of u are ``AES_key(i, 0), AES_key(i, 1), …`` of
    count i. As many of these are read as decide, by proven intervals, so that the distribution is exact where the
    digits are uniform: no float is rounded and no tail is cut.

    Parameters
    ----------
    size : int
    epsilon : float
    sensitivity : int
    key : bytes, optional
        From `NoiseSecret.key`; by default a fresh one.

    Raises
    ------
    EntropyError
        If there is no fresh key.

    Notes
    -----
    About 50,000 counts/s on one core.
    """
    given, scale = key or fresh_key(), scale_of(epsilon, sensitivity)
    blocks = np.zeros((size, 2), dtype=np.uint64)
    blocks[:, 0] = np.arange(size, dtype=np.uint64)
    first = encrypted_blocks(blocks, given).tolist()
    found = np.zeros(size, dtype=np.int64)
    for place, (high, low) in enumerate(first):
        digits = (high << 64) | low
        for more in count(1):
            noise = noise_at(digits, _BITS * more, scale)
            if noise is not None:
                found[place] = noise
                break
            ((high, low),) = encrypted_blocks(np.array([[place, more]], dtype=np.uint64), given).tolist()
            digits = (digits << _BITS) | (high << 64) | low
    return found


def noise_at(digits: int, bits: int, scale: float) -> int | None:
    """The noise of every u whose first binary digits are these, or None where they leave several open.

    With ``α = e^(-1/scale)`` and v the smaller of u and 1 - u, the size m of the noise is the whole number for which
    ``α^(m+1) < v (1 + α) <= α^m``, or 0: that is ``max(0, ⌊-scale · ln(v (1 + α))⌋)``. Below 1/2 it is negative.
    """
    half = 1 << (bits - 1)
    below = digits < half
    # v is between these, in units of 2^-bits.
    least, most = (digits, digits + 1) if below else (2 * half - digits - 1, 2 * half - digits)
    if not least:
        return None
    with ctx.workprec(bits + _GUARD):
        of_scale = Fraction(scale)
        wide = arb(fmpq(of_scale.numerator, of_scale.denominator))
        beside = 1 + (-1 / wide).exp()
        sizes = [(-wide * (arb(fmpq(v, 2 * half)) * beside).log()).floor().unique_fmpz() for v in (least, most)]
    found = {None if one is None else max(0, int(one)) for one in sizes}
    size = found.pop()
    return None if found or size is None else -size if below else size
