"""The exact worst case of a channel over the set: how far two secrets can be apart under any distribution in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.guarantees.chi2_ball import Tilt, drawn_in, extreme_distribution, tightest, tilt
from funnel.joint import FloatArray

# How the deviation is split between two secrets, as log-odds ln(θ/(1-θ)): where a cell is rare the best split can lie a
# millionth from an end, since what a small share allows grows with its root. Beyond the last the share is below 1e-15.
_HALF = (0.5, 1.1, 1.8, 2.8, 4.5, 7.5, 12.0, 20.0, 35.0)
_GRID = np.array([-np.inf, *(-odds for odds in reversed(_HALF)), 0.0, *_HALF, np.inf])
# Intervals of θ are halved until what they can hide is below this, relatively, or so often.
_CLOSE, _ROUNDS = 1e-9, 40
_FIRST, _AT_ONCE = 6, 64
# What a distribution attains is computed to this precision: beyond it above a limit, the limit is exceeded.
_DOUBT = 1e-6
# What every ratio is raised by: the rounding of a quotient of two bounds that carry their own margins.
_ROUNDING = 1 + 2.0**-40
# The rounding of a difference of two slopes, relative to these.
_SLOPE = 2.0**-45

Places = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The confidence set F around conditional distributions, as what it allows two secrets to deviate.

    ``F = {P : Σ (P̂ - P)²/P <= B}`` over all cells (s, u). For given conditionals the best marginal of S is
    proportional to ``P̂_s √D_s``, with ``D_s = Σ_u P̂²_{u|s} / P_{u|s}``, so they are possible iff
    ``Σ_s P̂_s √D_s <= √(1 + B)`` (METHOD section 5). Where only s and s' deviate, a share θ of ``κ = √(1+B) - 1`` for
    s and the rest for s' gives ``√D_s = 1 + θκ/P̂_s`` and ``√D_s' = 1 + (1-θ)κ/P̂_s'``.

    Parameters
    ----------
    distribution : ndarray, shape (c, u)
        P̂_{U|s}; zeros are cells that were never seen.
    prior : ndarray, shape (c,)
        P̂_s > 0.
    radius : float
        B >= 0.
    """

    distribution: FloatArray
    prior: FloatArray
    radius: float

    @property
    def deviation(self) -> float:
        """κ = B / (√(1+B) + 1), rounded up: no digit is lost where B is small."""
        return float(self.radius / (np.sqrt(1 + self.radius) + 1)) * (1 + 2.0**-48)

    def divergence(self, secrets: Places, shares: FloatArray) -> FloatArray:
        """D_s for secrets (N,) that deviate by shares (N,) of κ; rounded up."""
        return np.asarray((1 + shares * self.deviation / self.prior[secrets]) ** 2 * (1 + 2.0**-48))


@dataclass(frozen=True, eq=False)
class WorstPair:
    """Where a channel sets two secrets furthest apart under a distribution in the confidence set.

    Attributes
    ----------
    ratio : float
        Upper bound on the largest P(y|s)/P(y|s') over F, all outputs and all pairs; infinite if some distribution in F
        excludes s' under an output.
    output, high, low : int
        y, s and s'.
    share : float
        θ: the part of the deviation that s has.
    """

    ratio: float
    output: int
    high: int
    low: int
    share: float


@dataclass(frozen=True, eq=False)
class PairRatios:
    """For every output y and pair s, s' the largest P(y|s)/P(y|s') over F, from both sides; all shapes (b, c, c).

    Attributes
    ----------
    above : ndarray
        Never below it, and close; 1 on the diagonal.
    found : ndarray
        What one distribution in F attains, up to 1e-7.
    """

    above: FloatArray
    found: FloatArray


def pair_ratios(rows: FloatArray, neighbourhood: Neighbourhood) -> PairRatios:
    """Bounds on the ratio of every output and pair of secrets over F.

    Parameters
    ----------
    rows : ndarray, shape (b, c, u)
        ``T_{s,u}`` of every output; for a protocol that reads u alone the same for every s.
    neighbourhood : Neighbourhood

    Returns
    -------
    PairRatios

    Notes
    -----
    For a fixed θ numerator and denominator are maximised and minimised apart, by one multiplier each (`Tilt`). With the
    multipliers fixed, ``numerator - r denominator`` is concave in θ, so that its tangent at one θ bounds it over an
    interval. Between two neighbours of the grid the multipliers of both are tried, and the better bound is taken.
    O(b c u) for each θ of the grid, O(b c²) after.
    """
    b, c, u = rows.shape
    splits = _Splits.of(_GRID[1:-1])
    number = len(splits.share)
    secrets = np.tile(np.repeat(np.arange(c), number), b)
    flat = np.repeat(rows.reshape(b * c, u), number, axis=0)
    distribution = neighbourhood.distribution[secrets]
    # One search for both: what s gains with a share, and what s' loses with one. s' has what s leaves.
    gained = neighbourhood.divergence(secrets, np.tile(splits.share, b * c))
    lost = neighbourhood.divergence(secrets, np.tile(splits.rest, b * c))
    upper, lower = _tilts(flat, distribution, gained, -flat, distribution, lost)
    y, s, t = (places.ravel() for places in np.meshgrid(np.arange(b), np.arange(c), np.arange(c), indexing="ij"))
    above, found, before = np.ones(b * c * c), np.zeros(b * c * c), np.full(b * c * c, np.inf)
    edges = _Splits.of(_GRID)
    for k in range(number):
        tops, bottoms = _taken(upper, (y * c + s) * number + k), _taken(lower, (y * c + t) * number + k)
        pairs = _Pairs(tops, bottoms, neighbourhood, s, t)
        ratio, left, right = pairs.bounds(splits.at(k), edges.at(k), edges.at(k + 2))
        found = np.maximum(found, ratio)
        # Of each interval the better of what its two ends say.
        above = np.maximum(above, np.minimum(left, before))
        before = right
    above = np.maximum(above, before)
    ratios, attained = above.reshape(b, c, c), found.reshape(b, c, c)
    diagonal = np.arange(c)
    ratios[:, diagonal, diagonal] = 1.0
    attained[:, diagonal, diagonal] = 1.0
    return PairRatios(ratios, attained)


def within(rows: FloatArray, neighbourhood: Neighbourhood, limit: float) -> bool:
    """Whether no ratio exceeds a limit under any distribution in F; when in doubt, no."""
    if _exceeds(rows, neighbourhood, limit * (1 + _DOUBT)):
        return False
    pairs = pair_ratios(rows, neighbourhood)
    if (pairs.found > limit * (1 + _DOUBT)).any():
        return False
    doubtful = np.argwhere(pairs.above > limit)
    # Likeliest failures first, a few at a time: what fails, fails soon.
    doubtful = doubtful[np.argsort(-pairs.found[tuple(doubtful.T)], kind="stable")]
    for start in range(0, len(doubtful), _AT_ONCE):
        bounds, _ = refined(rows, neighbourhood, pairs, doubtful[start : start + _AT_ONCE], limit)
        if (bounds > limit).any():
            return False
    return True


def _exceeds(rows: FloatArray, neighbourhood: Neighbourhood, limit: float) -> bool:
    """Whether the estimate itself, which is in F, exceeds a limit: O(b c u), and what fails mostly fails here."""
    told = np.einsum("bcu,cu->bc", rows, neighbourhood.distribution)
    return bool((told.max(axis=1) > limit * told.min(axis=1)).any())


def worst_pair(rows: FloatArray, neighbourhood: Neighbourhood) -> WorstPair:
    """The largest ratio over outputs, pairs of secrets and F, as a tight upper bound with its place."""
    pairs = pair_ratios(rows, neighbourhood)
    order = np.argwhere(pairs.above > 1.0)
    order = order[np.argsort(-pairs.above[tuple(order.T)], kind="stable")]
    best = WorstPair(1.0, 0, 0, 0, 0.5)
    start, size = 0, _FIRST
    while start < len(order):
        places = order[start : start + size]
        start, size = start + size, _AT_ONCE
        if float(pairs.above[tuple(places[0])]) <= best.ratio:
            # Bounds fall from here on, and refining only lowers them.
            break
        bounds, shares = refined(rows, neighbourhood, pairs, places, best.ratio)
        place = int(bounds.argmax())
        if bounds[place] > best.ratio:
            y, s, t = (int(k) for k in places[place])
            best = WorstPair(float(bounds[place]), y, s, t, float(shares[place]))
    return best


def attaining_distribution(rows: FloatArray, neighbourhood: Neighbourhood, worst: WorstPair) -> FloatArray:
    """A distribution P in F, shape (c, u), that attains the ratio of the worst pair to the precision of the search.

    It is in F whatever rounding did: see `funnel.guarantees.chi2_ball.drawn_in`.
    """
    conditionals = neighbourhood.distribution.copy()
    roots = np.ones(len(neighbourhood.prior))
    for secret, share, sign in ((worst.high, worst.share, 1.0), (worst.low, 1 - worst.share, -1.0)):
        divergence = float((1 + share * neighbourhood.deviation / neighbourhood.prior[secret]) ** 2)
        conditionals[secret] = extreme_distribution(
            sign * rows[worst.output, secret], neighbourhood.distribution[secret], divergence
        )
        roots[secret] = np.sqrt(divergence)
    marginal = neighbourhood.prior * roots
    distribution = conditionals * (marginal / marginal.sum())[:, None]
    estimate = neighbourhood.distribution * neighbourhood.prior[:, None]
    there, radius = distribution > 0, neighbourhood.radius
    # Entries are known to a relative 2^-50, and by Cauchy and Schwarz ``Σ |P̂ - P| P̂/P <= √(χ² (1 + χ²))``: what is then
    # wrong in χ² is below 2^-48 of that.
    room = radius * (1 - 2.0**-40) - 2.0**-46 * float(np.sqrt(radius * (1 + radius)))
    return drawn_in(
        distribution,
        estimate,
        lambda found: float(((found - estimate)[there] ** 2 / found[there]).sum()) <= room,
    )


def _tilts(
    top: FloatArray,
    top_distribution: FloatArray,
    top_divergence: FloatArray,
    bottom: FloatArray,
    bottom_distribution: FloatArray,
    bottom_divergence: FloatArray,
) -> tuple[Tilt, Tilt]:
    """`tilt` of two sets of rows, in one search for both."""
    both = tilt(
        np.concatenate([top, bottom]),
        np.concatenate([top_distribution, bottom_distribution]),
        np.concatenate([top_divergence, bottom_divergence]),
    )
    number = len(top)
    lowest = _taken(both, np.arange(number, 2 * number))
    # The bottom is what is divided by.
    return _taken(both, np.arange(number)), tightest(lowest, bottom, bottom_distribution, bottom_divergence)


def _taken(tilts: Tilt, places: Places) -> Tilt:
    return Tilt(tilts.distance[places], tilts.mass[places], tilts.top[places], tilts.width[places], tilts.cells)


@dataclass(frozen=True, eq=False)
class _Splits:
    """Ways to split the deviation: θ and 1 - θ, each to full relative precision; shapes (N,)."""

    share: FloatArray
    rest: FloatArray

    @classmethod
    def of(cls, odds: FloatArray) -> _Splits:
        """Those of log-odds."""
        with np.errstate(over="ignore"):
            return cls(1 / (1 + np.exp(-odds)), 1 / (1 + np.exp(odds)))

    def at(self, place: int) -> _Splits:
        return _Splits(self.share[place : place + 1], self.rest[place : place + 1])

    def beyond(self, other: _Splits) -> FloatArray:
        """θ - θ' of two splits, θ >= θ', rounded up."""
        # Of two shares near 1 the rests tell the difference.
        near = self.share < 0.5
        one, two = np.where(near, self.share, other.rest), np.where(near, other.share, self.rest)
        return np.asarray(one - two + 2.0**-50 * (one + two))


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of secrets with fixed multipliers: N(θ) >= P(y|s) and M(θ) <= P(y|s') over F; all shapes (N,)."""

    upper: Tilt
    lower: Tilt
    neighbourhood: Neighbourhood
    high: Places
    low: Places

    def numerator(self, split: _Splits) -> FloatArray:
        return self.upper.above(self.neighbourhood.divergence(self.high, split.share))

    def denominator(self, split: _Splits) -> FloatArray:
        return -self.lower.above(self.neighbourhood.divergence(self.low, split.rest))

    def bounds(self, split: _Splits, left: _Splits, right: _Splits) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The ratio N/M at θ0, and what it is at most on [left, θ0] and on [θ0, right].

        With r = N(θ0)/M(θ0), g = N - r M is concave and 0 at θ0, so ``g(θ) <= g'(θ0) (θ - θ0)``, and
        ``N/M = r + g/M`` with M rising in θ: at most ``r + g'(θ0) (right - θ0)/M(θ0)`` to the right where g rises, and
        ``r + |g'(θ0)| (θ0 - left)/M(left)`` to the left where it falls; r itself on the other side.
        """
        least = self.denominator(split)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(least > 0, self.numerator(split) / least, np.inf)
            rising = _slope(self.upper, self.neighbourhood, self.high, split.share)
            falling = ratio * _slope(self.lower, self.neighbourhood, self.low, split.rest)
            rounding = _SLOPE * (rising + falling)
            above = np.maximum(rising - falling, 0.0) + rounding
            below = np.maximum(falling - rising, 0.0) + rounding
            first = self.denominator(left)
            after = (ratio + above * right.beyond(split) / least) * _ROUNDING
            before = np.where(first > 0, ratio + below * split.beyond(left) / first, np.inf) * _ROUNDING
        possible = least > 0
        return (
            np.asarray(ratio),
            np.where(possible, np.maximum(before, 1.0), np.inf),
            np.where(possible, np.maximum(after, 1.0), np.inf),
        )


def _slope(tilts: Tilt, neighbourhood: Neighbourhood, secrets: Places, share: FloatArray) -> FloatArray:
    """d/dθ of ``-S²/D(θ)`` for one side, as a number >= 0; zero where the bound is the largest entry itself."""
    rate = neighbourhood.deviation / neighbourhood.prior[secrets]
    slope = 2 * rate * tilts.mass**2 / (1 + share * rate) ** 3
    clipped = tilts.distance > tilts.mass**2 / neighbourhood.divergence(secrets, share)
    return np.asarray(np.where(clipped, 0.0, slope))


def refined(
    rows: FloatArray,
    neighbourhood: Neighbourhood,
    pairs: PairRatios,
    places: npt.NDArray[np.int64],
    enough: float = 1.0,
) -> tuple[FloatArray, FloatArray]:
    """Tighter bounds for some pairs: branch and bound over θ, each interval with its own multipliers.

    Parameters
    ----------
    rows : ndarray, shape (b, c, u)
    neighbourhood : Neighbourhood
    pairs : PairRatios
        Of the same rows.
    places : ndarray of int, shape (N, 3)
        The pairs (y, s, s').
    enough : float
        Bounds below it need not be tight.

    Returns
    -------
    bounds, shares : ndarray, shape (N,)
        Upper bounds on their ratios, and the θ that attains them to about 1e-8.

    Notes
    -----
    The tangent of an interval is off by the square of its width, so intervals that cannot be settled soon lie at the
    maximum alone: a few of each pair for each halving. O(N c u) a halving.
    """
    y, s, t = places.T
    number = len(places)
    distribution = neighbourhood.distribution
    bounds, shares = np.ones(number), np.full(number, 0.5)
    best = pairs.found[y, s, t].copy()
    attained = np.zeros(number)
    # Intervals of log-odds that are not settled: whose they are, from where to where.
    whose = np.repeat(np.arange(number), len(_GRID) - 1)
    start, end = np.tile(_GRID[:-1], number), np.tile(_GRID[1:], number)
    for last in range(_ROUNDS, -1, -1):
        # The two endless ones are as narrow as any, and begin where they end.
        middle = np.where(np.isinf(start), end, np.where(np.isinf(end), start, (start + end) / 2))
        split = _Splits.of(middle)
        high, low = s[whose], t[whose]
        upper, lower = _tilts(
            rows[y[whose], high],
            distribution[high],
            neighbourhood.divergence(high, split.share),
            -rows[y[whose], low],
            distribution[low],
            neighbourhood.divergence(low, split.rest),
        )
        ratio, before, after = _Pairs(upper, lower, neighbourhood, high, low).bounds(
            split, _Splits.of(start), _Splits.of(end)
        )
        # Of each pair the interval with the largest ratio.
        order = np.lexsort((ratio, whose))
        largest = order[np.append(np.diff(whose[order]) > 0, True)]
        largest = largest[ratio[largest] > attained[whose[largest]]]
        attained[whose[largest]], shares[whose[largest]] = ratio[largest], split.share[largest]
        best = np.maximum(best, attained)
        bound = np.maximum(before, after)
        # An infinite ratio stays one, and a bound that is attained is good enough.
        limit = np.maximum(best[whose] * (1 + _CLOSE), enough)
        open_ = (bound > limit) & np.isfinite(best[whose]) & np.isfinite(start) & np.isfinite(end) & (last > 0)
        np.maximum.at(bounds, whose[~open_], bound[~open_])
        whose, start, middle, end = whose[open_], start[open_], middle[open_], end[open_]
        if not len(whose):
            break
        whose = np.tile(whose, 2)
        start, end = np.concatenate([start, middle]), np.concatenate([middle, end])
    return np.minimum(pairs.above[y, s, t], bounds), shares
