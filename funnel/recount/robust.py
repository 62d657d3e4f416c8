"""The level of RLDP, bounded a second time: a proof in integers that no distribution the data allow exceeds a ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx, fmpz

from funnel.errors import DataError
from funnel.recount.channel import Channel
from funnel.recount.intervals import ball
from funnel.recount.ratios import Ratio

# Roots are taken in units of 2^-96 of the unit of the weights.
_ROOT_BITS = 96
_CDF_BITS = 192
# A share of the deviation as log-odds: to rule a pair out quickly, and where its worst is sought.
_QUICK = (-7.0, -4.0, -2.0, -0.8, 0.0, 0.8, 2.0, 4.0, 7.0)
_FARTHEST, _STEPS = 45.0, 64
# Multipliers, in units of the spread of a row and as natural logarithms.
_NEAREST_LOG, _FARTHEST_LOG, _HALVINGS = -46.0, 40.0, 60
# What is added to a ratio that was found before it is proven, as powers of two, until a proof is found.
_SLACK = range(50, 2, -1)


def worst_robust_odds(channel: Channel, alpha: Fraction) -> Ratio:
    """An upper bound, proven, on ``P(y|s)/P(y|s')`` over all outputs, pairs of secrets and distributions P in F.

    ``F = {P : Σ (P̂ - P)²/P <= B}`` over all cells (s, u), seen or not, with ``B = χ²_{cells-1}^{-1}(1 - α)/n`` (RLDP
    (2)); B is rounded up.

    Raises
    ------
    DataError
        If a value of the secret never occurs.

    Notes
    -----
    With ``q_s = √(Σ_u P̂²_{u|s}/P_{u|s}) >= 1``, conditional distributions are possible if and only if
    ``Σ_s P̂_s q_s <= √(1+B)`` (METHOD section 5), so that of two secrets
    ``P̂_s q_s + P̂_t q_t <= C = P̂_s + P̂_t + √(1+B) - 1``. For any multipliers d, λ >= 0, with
    ``S = Σ_u P̂_{u|s} √(d + max T - T_u)``, Cauchy and Schwarz give ``P(y|s) <= max T + d - S²/q_s²``, and for all
    q >= 1

        ``-S²/q² - λ P̂ q <= -S² - λ P̂`` where ``2S² <= λ P̂``, and ``<= -(3/2) (2 S² λ² P̂²)^{1/3}`` always,

    whence ``P(y|s) - r P(y|t) <= A_s(λ) + r A_t(λ/r) + λ C``: where that is at most 0 for some numbers d_s, d_t and λ,
    no distribution in F has a ratio above r. The numbers come from a search in floats, which nobody need trust: the
    inequality is checked in whole numbers, with every root rounded against the release. Because q is convex in the
    distribution, some numbers attain the true worst case; the bound exceeds it by the rounding of the search alone,
    mostly below 1e-14.
    """
    if len(channel.secrets) < channel.c:
        raise DataError("a value of the secret never occurs, so the data set no bound on what could be said about it")
    deviation = _deviation(channel, alpha)
    best = Ratio()
    pairs: list[tuple[float, Fraction | None, _Pair]] = []
    for y, weights in enumerate(channel.weights):
        if len(set(weights)) == 1:
            # As likely from every input: it tells nothing under any distribution.
            continue
        above = [_side(channel, y, s, 1) for s in range(channel.c)]
        below = [_side(channel, y, s, -1) for s in range(channel.c)]
        for s in range(channel.c):
            for t in range(channel.c):
                if s != t and above[s].top > 0:
                    pair = _Pair(above[s], below[t], deviation)
                    crude = pair.crude()
                    pairs.append((math.inf if crude is None else float(crude), crude, pair))
    pairs.sort(key=lambda entry: -entry[0])
    for _, crude, pair in pairs:
        if best.value is None:
            break
        if crude is not None and (crude <= best.value or pair.is_decided(best.value)):
            continue
        found = pair.worst()
        if found is None or found > best.value:
            best = Ratio(found)
    return best


@dataclass(frozen=True)
class _Side:
    """One secret under one output: the largest mean of ``values`` over distributions with a given q.

    Attributes
    ----------
    values : tuple of int
        Weights T_u, or -T_u for the smallest mean.
    records : tuple of int
        n_{s,u}.
    total : int
        All records of the data.
    """

    values: tuple[int, ...]
    records: tuple[int, ...]
    total: int

    @property
    def top(self) -> int:
        """The largest value, seen or not."""
        return max(self.values)

    @property
    def width(self) -> int:
        """How far the values spread."""
        return self.top - min(self.values)

    @property
    def size(self) -> int:
        """Records of the secret."""
        return sum(self.records)

    @property
    def share(self) -> Fraction:
        """P̂_s."""
        return Fraction(self.size, self.total)

    def root(self, deviation: Fraction, part: float) -> float:
        """q for a part of the deviation."""
        return 1.0 + part * float(deviation / self.share)

    def bound(self, multiplier: Fraction, squared: Fraction) -> Fraction:
        """Not below any mean over distributions with q² at most ``squared``."""
        return min(Fraction(self.top), self.top + multiplier - _root_sum(self, multiplier) ** 2 / squared)

    def priced(self, multiplier: Fraction, price: Fraction) -> Fraction:
        """A(λ): not below the mean less ``λ P̂ q``, for any distribution and its q >= 1."""
        cost = price * self.share
        free = self.top - cost
        if cost == 0:
            return free
        square = _root_sum(self, multiplier) ** 2
        if 2 * square <= cost:
            return min(free, self.top + multiplier - square - cost)
        return min(free, self.top + multiplier - Fraction(3, 2) * _cube_root_below(2 * square * cost**2))

    def multiplier(self, root: float) -> Fraction:
        """The d that bounds the mean best for a q; to the precision of a search."""
        return Fraction(_searched(self, root)[0]) * self.width

    def mean(self, root: float) -> float:
        """The largest mean for a q, in floats."""
        distance, squares = _searched(self, root)
        if distance > 0:
            parts = [(share / math.sqrt(distance + gap), gap) for share, gap in _seen(self)]
            gap = math.fsum(part * gap for part, gap in parts) / math.fsum(part for part, _ in parts)
        else:
            gap = squares / root**2
        return float(self.top) - self.width * gap

    def gain(self, root: float) -> float:
        """Its slope: by how much it grows with q, over P̂."""
        return 2 * _searched(self, root)[1] / root**3 * self.width / float(self.share)


@lru_cache(1 << 12)
def _seen(side: _Side) -> list[tuple[float, float]]:
    """P̂_{u|s} and (max T - T_u) / width of the cells that were seen."""
    width, size, top = side.width or 1, side.size, side.top
    return [(n / size, (top - value) / width) for value, n in zip(side.values, side.records, strict=True) if n]


@lru_cache(1 << 14)
def _searched(side: _Side, root: float) -> tuple[float, float]:
    """d in units of the width, and S² in it: where ``S · Σ P̂/√(d + gap) = q²``, by bisection on the logarithm of d."""
    seen = _seen(side)
    if side.width == 0:
        return 0.0, 0.0
    limit = root * root
    if all(gap > 0 for _, gap in seen):
        mass = math.fsum(share * math.sqrt(gap) for share, gap in seen)
        if mass * math.fsum(share / math.sqrt(gap) for share, gap in seen) <= limit:
            return 0.0, mass**2
    low, high = _NEAREST_LOG, _FARTHEST_LOG
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        distance = math.exp(middle)
        mass = inverse = 0.0
        for share, gap in seen:
            root_of = math.sqrt(distance + gap)
            mass += share * root_of
            inverse += share / root_of
        low, high = (middle, high) if mass * inverse > limit else (low, middle)
    distance = math.exp(high)
    return distance, math.fsum(share * math.sqrt(distance + gap) for share, gap in seen) ** 2


@lru_cache(1 << 14)
def _root_sum(side: _Side, multiplier: Fraction) -> Fraction:
    """``S = Σ_u P̂_{u|s} √(d + max T - T_u)``, rounded down."""
    above, below, top = multiplier.numerator, multiplier.denominator, side.top
    roots = sum(
        n * math.isqrt(((above + (top - value) * below) << (2 * _ROOT_BITS)) // below)
        for value, n in zip(side.values, side.records, strict=True)
        if n
    )
    return Fraction(roots, side.size << _ROOT_BITS)


@dataclass(frozen=True)
class _Pair:
    """Two secrets under one output: s by its weights, t by their negatives; and √(1+B) - 1."""

    high: _Side
    low: _Side
    deviation: Fraction

    def crude(self) -> Fraction | None:
        """A bound on the ratio that lets both have all of the deviation; None where it is infinite."""
        bounds = []
        for side in (self.high, self.low):
            root = 1 + self.deviation / side.share
            bounds.append(side.bound(side.multiplier(float(root)), root**2))
        return bounds[0] / -bounds[1] if bounds[1] < 0 else None

    def is_decided(self, ratio: Fraction) -> bool:
        """Whether a few ways to split the deviation prove already that the ratio is not exceeded."""
        return any(self._proven(ratio, odds) for odds in _QUICK)

    def worst(self) -> Fraction | None:
        """The largest ratio, proven not to be exceeded; None where it is infinite."""
        low, high = -_FARTHEST, _FARTHEST
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._rises(middle) else (low, middle)
        splits = (low, high, (low + high) / 2)
        found = max(map(self._ratio, splits))
        if math.isfinite(found):
            for bits in _SLACK:
                ratio = max(Fraction(found), Fraction(1)) * (1 + Fraction(1, 2**bits))
                if any(self._proven(ratio, odds) for odds in splits):
                    return ratio
        return self.crude()

    def _roots(self, odds: float) -> tuple[float, float]:
        part, rest = 1 / (1 + math.exp(-odds)), 1 / (1 + math.exp(odds))
        return self.high.root(self.deviation, part), self.low.root(self.deviation, rest)

    def _ratio(self, odds: float) -> float:
        first, second = self._roots(odds)
        least = -self.low.mean(second)
        return self.high.mean(first) / least if least > 0 else math.inf

    def _rises(self, odds: float) -> bool:
        """Whether the ratio grows as s gets more of the deviation."""
        first, second = self._roots(odds)
        return self.high.gain(first) * -self.low.mean(second) > self.high.mean(first) * self.low.gain(second)

    def _proven(self, ratio: Fraction, odds: float) -> bool:
        """Whether the multipliers for a split prove that no distribution in F exceeds the ratio."""
        first, second = self._roots(odds)
        one, other = self.high.multiplier(first), self.low.multiplier(second)
        room = self.high.share + self.low.share + self.deviation
        for price in {Fraction(self.high.gain(first)), ratio * Fraction(self.low.gain(second))}:
            ours, theirs = self.high.priced(one, price), self.low.priced(other, price / ratio)
            if ours + ratio * theirs + price * room <= 0:
                return True
        return False


def _side(channel: Channel, y: int, s: int, sign: int) -> _Side:
    return _Side(tuple(sign * weight for weight in channel.row(y, s)), channel.counts[s], channel.n)


def _deviation(channel: Channel, alpha: Fraction) -> Fraction:
    """√(1+B) - 1, rounded up."""
    scale = 1 << 128
    squared = 1 + quantile_above(channel.c * channel.a - 1, 1 - alpha) / channel.n
    return Fraction(math.isqrt(squared.numerator * scale**2 // squared.denominator) + 1, scale) - 1


def quantile_above(degrees: int, level: Fraction) -> Fraction:
    """The quantile of χ², rounded up: its distribution function is ``P(degrees/2, x/2)``, in proven intervals."""
    if degrees == 0:
        return Fraction(0)
    low, high = Fraction(0), Fraction(degrees)
    with ctx.workprec(_CDF_BITS):

        def reached(x: Fraction) -> bool:
            return bool((ball(x) / 2).gamma_lower(arb(degrees) / 2, regularized=1) > ball(level))

        while not reached(high):
            low, high = high, 2 * high
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _cube_root_below(value: Fraction) -> Fraction:
    """A rational that is not above the cube root of a number >= 0, by a relative 2^-90 at most."""
    if value == 0:
        return Fraction(0)
    shift = max(0, 3 * 100 - value.numerator.bit_length() + value.denominator.bit_length())
    shift += -shift % 3
    root = fmpz((value.numerator << shift) // value.denominator).root(3)
    return Fraction(int(root), 1 << (shift // 3))
