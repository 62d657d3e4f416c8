"""The exact worst case of a channel over the confidence set: how far two secrets can be apart under any law in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.guarantees.chi2_ball import Tilt, extreme_law, tilt
from funnel.joint import FloatArray

# Shares of the deviation given to the first secret at first; the worst pairs are searched further.
_GRID = 13
_FINE, _ZOOMS = 17, 5
_FIRST, _AT_ONCE = 6, 64
# What a law attains is computed to this precision: beyond it above a limit, the limit is exceeded.
_DOUBT = 1e-6
_GOLDEN = (np.sqrt(5) - 1) / 2
_STEPS = 42
# What every ratio is raised by: the rounding of a quotient of two bounds that carry their own margins.
_ROUNDING = 1 + 2.0**-40

Places = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The confidence set F around conditional laws, as what it allows two secrets to deviate.

    ``F = {P : Σ (P̂ - P)²/P <= B}`` over all cells (s, u). For given conditionals the best marginal of S is
    proportional to ``P̂_s √D_s``, with ``D_s = Σ_u P̂²_{u|s} / P_{u|s}``, so they are possible iff
    ``Σ_s P̂_s √D_s <= √(1 + B)`` (METHOD section 5). Where only s and s' deviate, a share θ of ``κ = √(1+B) - 1`` for
    s and the rest for s' gives ``√D_s = 1 + θκ/P̂_s`` and ``√D_s' = 1 + (1-θ)κ/P̂_s'``.

    Parameters
    ----------
    law : ndarray, shape (c, u)
        P̂_{U|s}; zeros are cells that were never seen.
    prior : ndarray, shape (c,)
        P̂_s > 0.
    radius : float
        B >= 0.
    """

    law: FloatArray
    prior: FloatArray
    radius: float

    @property
    def deviation(self) -> float:
        """κ, rounded up."""
        return float(np.nextafter(np.sqrt(1 + self.radius) - 1, np.inf)) * (1 + 2.0**-48)

    def divergence(self, secrets: Places, shares: FloatArray) -> FloatArray:
        """D_s for secrets (N,) that deviate by shares (N,) or (N, k) of κ; rounded up."""
        prior = self.prior[secrets]
        if shares.ndim > 1:
            prior = prior[:, None]
        return np.asarray((1 + shares * self.deviation / prior) ** 2 * (1 + 2.0**-48))


@dataclass(frozen=True, eq=False)
class WorstPair:
    """Where a channel sets two secrets furthest apart under a law in the confidence set.

    Attributes
    ----------
    ratio : float
        Upper bound on the largest P(y|s)/P(y|s') over F, all outputs and all pairs; infinite if some law in F excludes
        s' under an output.
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
        What one law in F attains, up to 1e-7.
    share : ndarray
        θ of that law.
    """

    above: FloatArray
    found: FloatArray
    share: FloatArray


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
    multipliers fixed, ``numerator - r denominator`` is concave in θ, and its maximum bounds what no θ can exceed,
    whatever the multipliers: the saddle point makes the bound tight. O(b c u) for each θ of the grid, O(b c²) after.
    """
    b, c, u = rows.shape
    grid = np.linspace(0.0, 1.0, _GRID)
    secrets = np.tile(np.repeat(np.arange(c), _GRID), b)
    shares = np.tile(grid, b * c)
    flat = np.repeat(rows.reshape(b * c, u), _GRID, axis=0)
    law = neighbourhood.law[secrets]
    divergence = neighbourhood.divergence(secrets, shares)
    upper, lower = _tilts(flat, law, divergence, -flat, law, divergence)
    most = upper.above(divergence).reshape(b, c, _GRID)
    least = -lower.above(divergence).reshape(b, c, _GRID)
    # s has θ of the deviation, s' what is left.
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = most[:, :, None, :] / np.maximum(least[:, None, :, ::-1], 0.0)
    quotient[np.isnan(quotient)] = 1.0
    best = quotient.argmax(axis=3)
    y, s, t = np.meshgrid(np.arange(b), np.arange(c), np.arange(c), indexing="ij")
    chosen = best[y, s, t]
    places_high = ((y * c + s) * _GRID + chosen).ravel()
    places_low = ((y * c + t) * _GRID + (_GRID - 1 - chosen)).ravel()
    ratios = _saddle_bounds(
        _taken(upper, places_high), _taken(lower, places_low), neighbourhood, s.ravel(), t.ravel()
    ).reshape(b, c, c)
    diagonal = np.arange(c)
    ratios[:, diagonal, diagonal] = 1.0
    found = np.take_along_axis(quotient, best[..., None], axis=3)[..., 0]
    found[:, diagonal, diagonal] = 1.0
    return PairRatios(ratios, found, grid[best])


def within(rows: FloatArray, neighbourhood: Neighbourhood, limit: float) -> bool:
    """Whether no ratio exceeds a limit under any law in F; when in doubt, no."""
    pairs = pair_ratios(rows, neighbourhood)
    if (pairs.found > limit * (1 + _DOUBT)).any():
        return False
    doubtful = np.argwhere(pairs.above > limit)
    # Likeliest failures first, a few at a time: what fails, fails soon.
    doubtful = doubtful[np.argsort(-pairs.found[tuple(doubtful.T)], kind="stable")]
    for start in range(0, len(doubtful), _AT_ONCE):
        bounds, _ = refined(rows, neighbourhood, pairs, doubtful[start : start + _AT_ONCE])
        if (bounds > limit).any():
            return False
    return True


def worst_pair(rows: FloatArray, neighbourhood: Neighbourhood) -> WorstPair:
    """The largest ratio over all outputs, pairs of secrets and laws in F, as a tight upper bound with its place."""
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
        bounds, shares = refined(rows, neighbourhood, pairs, places)
        place = int(bounds.argmax())
        if bounds[place] > best.ratio:
            y, s, t = (int(k) for k in places[place])
            best = WorstPair(float(bounds[place]), y, s, t, float(shares[place]))
    return best


def attaining_law(rows: FloatArray, neighbourhood: Neighbourhood, worst: WorstPair) -> FloatArray:
    """A law P in F, shape (c, u), that attains the ratio of the worst pair to the precision of the search."""
    conditionals = neighbourhood.law.copy()
    roots = np.ones(len(neighbourhood.prior))
    for secret, share, sign in ((worst.high, worst.share, 1.0), (worst.low, 1 - worst.share, -1.0)):
        divergence = float((1 + share * neighbourhood.deviation / neighbourhood.prior[secret]) ** 2)
        conditionals[secret] = extreme_law(sign * rows[worst.output, secret], neighbourhood.law[secret], divergence)
        roots[secret] = np.sqrt(divergence)
    marginal = neighbourhood.prior * roots
    return np.asarray(conditionals * (marginal / marginal.sum())[:, None])


def _tilts(
    top: FloatArray,
    top_law: FloatArray,
    top_divergence: FloatArray,
    bottom: FloatArray,
    bottom_law: FloatArray,
    bottom_divergence: FloatArray,
) -> tuple[Tilt, Tilt]:
    """`tilt` of two sets of rows, in one search for both."""
    both = tilt(
        np.concatenate([top, bottom]),
        np.concatenate([top_law, bottom_law]),
        np.concatenate([top_divergence, bottom_divergence]),
    )
    number = len(top)
    return _taken(both, np.arange(number)), _taken(both, np.arange(number, 2 * number))


def _taken(tilts: Tilt, places: Places) -> Tilt:
    return Tilt(tilts.distance[places], tilts.mass[places], tilts.top[places], tilts.width[places], tilts.cells)


def _saddle_bounds(upper: Tilt, lower: Tilt, neighbourhood: Neighbourhood, high: Places, low: Places) -> FloatArray:
    """Bounds on the ratio over all θ for fixed multipliers; all shapes (N,).

    With ``r`` the quotient at some θ0, ``g(θ) = numerator - r denominator`` is concave, so it is at most
    ``g(θ0) + |g'(θ0)|`` on [0, 1]; the ratio is then at most r plus that over the smallest denominator, at θ = 0.
    """

    def parts(share: FloatArray) -> tuple[FloatArray, FloatArray]:
        return (
            upper.above(neighbourhood.divergence(high, share)),
            -lower.above(neighbourhood.divergence(low, 1 - share)),
        )

    smallest = parts(np.zeros(len(high)))[1]
    possible = smallest > 0
    # The quotient of a concave and a convex function has one maximum: golden sections.
    left, right = np.zeros(len(high)), np.ones(len(high))
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_STEPS):
            one, two = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
            (n1, d1), (n2, d2) = parts(one), parts(two)
            rises = n2 * d1 > n1 * d2
            left, right = np.where(rises, one, left), np.where(rises, right, two)
        share = (left + right) / 2
        numerator, denominator = parts(share)
        ratio = numerator / denominator
        slope_high = _slope(upper, neighbourhood, high, share)
        slope_low = _slope(lower, neighbourhood, low, 1 - share)
        # d(numerator)/dθ - r d(denominator)/dθ; the denominator's divergence falls as θ grows.
        slope = slope_high - ratio * slope_low
        # Towards an end that is already reached there is nothing to gain.
        room = np.where(slope > 0, 1 - share, share)
        bound = (ratio + np.abs(slope) * room / smallest) * _ROUNDING
    return np.where(possible, np.maximum(bound, 1.0), np.inf)


def _slope(tilts: Tilt, neighbourhood: Neighbourhood, secrets: Places, share: FloatArray) -> FloatArray:
    """d/dθ of ``-S²/D(θ)`` for one side, as a number >= 0; zero where the bound is the largest entry itself."""
    rate = neighbourhood.deviation / neighbourhood.prior[secrets]
    slope = 2 * rate * tilts.mass**2 / (1 + share * rate) ** 3
    clipped = tilts.distance > tilts.mass**2 / neighbourhood.divergence(secrets, share)
    return np.asarray(np.where(clipped, 0.0, slope))


def refined(
    rows: FloatArray, neighbourhood: Neighbourhood, pairs: PairRatios, places: npt.NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    """Tighter bounds for some pairs, multipliers and θ searched together.

    Parameters
    ----------
    rows : ndarray, shape (b, c, u)
    neighbourhood : Neighbourhood
    pairs : PairRatios
        Of the same rows.
    places : ndarray of int, shape (N, 3)
        The pairs (y, s, s').

    Returns
    -------
    bounds, shares : ndarray, shape (N,)
        Upper bounds on their ratios, and the θ that attains them to about 1e-8.
    """
    y, s, t = places.T
    number = len(places)
    high, low = np.repeat(s, _FINE), np.repeat(t, _FINE)
    top, bottom = np.repeat(rows[y, s], _FINE, axis=0), np.repeat(-rows[y, t], _FINE, axis=0)
    law = neighbourhood.law
    share, width = pairs.share[y, s, t], 1.0 / (_GRID - 1)
    for _ in range(_ZOOMS):
        steps = np.linspace(-width, width, _FINE)
        grid = np.clip(share[:, None] + steps, 0.0, 1.0).ravel()
        one, two = neighbourhood.divergence(high, grid), neighbourhood.divergence(low, 1 - grid)
        upper, lower = _tilts(top, law[high], one, bottom, law[low], two)
        denominator = -lower.above(two)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(denominator > 0, upper.above(one) / denominator, np.inf)
        best = np.arange(number) * _FINE + ratios.reshape(number, _FINE).argmax(axis=1)
        share, width = grid[best], 2 * width / (_FINE - 1)
    tightened = _saddle_bounds(_taken(upper, best), _taken(lower, best), neighbourhood, high[best], low[best])
    return np.minimum(pairs.above[y, s, t], tightened), share
