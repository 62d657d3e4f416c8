"""The channel whose records tell shares best: an optimal design over rows of a cone, by a barrier and new columns.

The information that records have about shares is linear in how often each posterior is drawn,
``J = Σ_y P(y) w_y w_yᵀ`` with ``w = v / √p`` in units of √p, and the sum of the variances of chosen shares,
``tr(L J⁻¹)``, is convex in J. So the best mixture of posteriors that averages to p is a convex programme: an L-optimal
design (Pukelsheim, Optimal Design of Experiments, 2006, chapters 5 and 9) with a equations beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.pricing import Pricer
from funnel.solver.region import Region
from funnel.solver.split import best_split

Trace = Callable[[float, float | None], None]

# The barrier ends where what it adds is this part of the gap; each of its steps is so much harder than the last.
_BARRIER, _HARDER = 0.1, 20.0
_NEWTON, _SETTLED = 15, 1e-5
# Columns that enter in a round, how many there may be in all, and the mass that a round's new ones start with.
_ENTERING, _MOST, _SHARE = 100, 1200, 0.05
# The least share that is tried, what of the first mixture is for others, and the mass below which a column is dropped.
_LEAST_SHARE, _ASIDE, _DROPPED = 1e-6, 0.2, 1e-4
# How roughly the first round is solved, and how much finer each is than the last.
_ROUGH, _FINER = 0.3, 0.3
# Directions that columns are climbed from in a round, steps of a climb, and rounds without any that end the search.
_STARTS, _CLIMB, _IDLE = 48, 6, 3
# Two posteriors this close are one.
_SAME = 1e-9
# Relative, of prices: what is nothing but rounding.
_ROUNDING = 1e-9
_INSIDE = 1e-12


@dataclass(frozen=True, eq=False)
class Design:
    """A mixture of posteriors for estimation.

    Attributes
    ----------
    posteriors : ndarray, shape (k, a)
    mass : ndarray, shape (k,)
        P(y) of each, all above zero, with ``mass @ posteriors = p``.
    value : float
        ``tr(L J⁻¹)``: the sum of variances for one record.
    bound : float or None
        No mixture of posteriors in the region has less; None where not all of its vertices were looked at.
    finished : bool
        False if the budget ended the search.
    """

    posteriors: FloatArray
    mass: FloatArray
    value: float
    bound: float | None
    finished: bool


def optimal_design(
    region: Region,
    wanted: FloatArray,
    gap: float,
    budget: Budget,
    vertices: FloatArray | None = None,
    trace: Trace | None = None,
) -> Design:
    """Minimise ``tr(L J⁻¹)`` over mixtures of posteriors in a region that average to its distribution.

    With multipliers λ such that ``d(v) = wᵀ J⁻¹ L J⁻¹ w <= λᵀv`` for every vertex, no mixture has less than
    ``tr(L J⁻¹)² / λᵀp``: that is convexity at a multiple of J, the best one. Vertices are all that rows need to be,
    since J of a row that is split into others only grows.

    Parameters
    ----------
    region : Region
        Without levels, counting inputs, and with p in its interior.
    wanted : ndarray, shape (a, r)
        ``L = wanted wantedᵀ`` in units of √p.
    gap : float
        Ends the search: relative, between value and bound, or between two rounds where there is no bound.
    budget : Budget
    vertices : ndarray, shape (k, a), optional
        All vertices of the region; without them, columns are climbed to from many directions and nothing is proven.
    trace : callable, optional
        Told value and bound after each round.

    Raises
    ------
    SolverError
        If p is not in the interior of the region, or the budget ends before there is any mixture.

    Notes
    -----
    A round takes about 30 Newton steps of O(k³ + k² (a + r)) for k columns; with vertices, K a r to price K of them.
    """
    distribution = region.distribution
    columns = _Columns(region)
    search = _Listed(vertices) if vertices is not None else _Climbing(region, budget)
    columns.start(search.corners(), vertices, budget)
    barrier = _Barrier(distribution, wanted, budget)
    bound: float | None = None
    idle, last, finished, rough = 0, np.inf, False, _ROUGH
    while True:
        # Masses of the first rounds are not worth many digits.
        barrier.minimise(columns, max(gap, rough))
        rough *= _FINER
        found = search.climb(barrier, columns.posteriors)
        excess = barrier.prices_of(found)
        if vertices is not None:
            most = barrier.level + max(0.0, float(excess.max()))
            bound = max(bound or 0.0, barrier.value**2 / most * (1 - _ROUNDING))
        if trace is not None:
            trace(barrier.value, bound)
        idle = idle + 1 if rough < gap and last - barrier.value < gap * barrier.value / 4 else 0
        last = min(last, barrier.value)
        finished = idle >= _IDLE if bound is None else barrier.value <= bound * (1 + gap)
        if finished or budget.expired or not barrier.settled:
            break
        columns.drop()
        entering = np.argsort(-excess, kind="stable")[:_ENTERING]
        added = columns.add(found[entering[excess[entering] > _ROUNDING * barrier.level]])
        if not added and vertices is not None and rough < gap:
            break
    mass, posteriors = columns.used(
        lambda posteriors, mass: barrier.at(posteriors, mass) <= barrier.value * (1 + gap / 4)
    )
    return Design(posteriors, mass, barrier.value, bound, finished)


class _Columns:
    """The posteriors that a mixture is made of, with masses above zero that average to the distribution exactly."""

    def __init__(self, region: Region) -> None:
        self._region, self._distribution = region, region.distribution
        self.posteriors = np.zeros((0, len(region.distribution)))
        self.mass = np.zeros(0)

    def start(self, corners: FloatArray, vertices: FloatArray | None, budget: Budget) -> None:
        """Begin with the most informative mixture, and posteriors that have others across p, so that they average to p.

        Raises
        ------
        SolverError
            If p is at an end of the region.
        """
        away = self._distribution - corners
        steps = self._steps(away)
        # A corner at p has nothing across p.
        kept = (steps > _INSIDE) & (np.abs(away).max(axis=1) > _SAME)
        if not kept.any():
            raise SolverError("no posterior other than the prior is allowed on both sides of it")
        corners, away, steps = corners[kept], away[kept], steps[kept]
        across = np.maximum(self._distribution + steps[:, None] * away, 0.0)
        part = steps / (1 + steps)
        split = best_split(np.vstack([corners, across]) if vertices is None else vertices, self._distribution, budget)
        self.posteriors = np.vstack([split.posteriors, corners, across])
        masses = [split.mass / split.mass.sum(), part / len(part), (1 - part) / len(part)]
        self.mass = np.concatenate([(1 - _ASIDE) * masses[0], _ASIDE * masses[1], _ASIDE * masses[2]])
        moved = self._moved(np.ones(len(self.mass), dtype=bool), self.mass)
        if moved is None:
            raise SolverError("the first mixture does not average to the input distribution; change epsilon slightly")
        self.mass = moved

    def add(self, new: FloatArray) -> int:
        """Take posteriors in, with a little mass that the others give."""
        new = self._unlike(new)[: max(0, _MOST - len(self.mass))]
        share = _SHARE
        while len(new) and share > _LEAST_SHARE:
            mass = np.concatenate([self.mass * (1 - share), np.full(len(new), share / len(new))])
            posteriors, before = np.vstack([self.posteriors, new]), self.posteriors
            self.posteriors = posteriors
            moved = self._moved(np.ones(len(mass), dtype=bool), mass)
            if moved is not None:
                self.mass = moved
                return len(new)
            self.posteriors = before
            share /= 4
        return 0

    def drop(self) -> None:
        """Leave out what has hardly any mass, if the rest can make up for it."""
        chosen = self.mass > _DROPPED / len(self.mass)
        mass = self._moved(chosen, self.mass)
        if mass is not None:
            self.posteriors, self.mass = self.posteriors[chosen], mass

    def used(self, enough: Callable[[FloatArray, FloatArray], bool]) -> tuple[FloatArray, FloatArray]:
        """As few masses and posteriors as are enough, those with the most mass."""
        order = np.argsort(-self.mass, kind="stable")
        best = self.mass, self.posteriors
        low, high = 0, len(order)
        while high - low > 1:
            middle = (low + high) // 2
            chosen = np.zeros(len(order), dtype=bool)
            chosen[order[:middle]] = True
            mass = self._moved(chosen, self.mass)
            if mass is not None and enough(self.posteriors[chosen], mass):
                best, high = (mass, self.posteriors[chosen]), middle
            else:
                low = middle
        return best

    def _moved(self, chosen: npt.NDArray[np.bool_], mass: FloatArray) -> FloatArray | None:
        """The masses of those chosen, moved a little so that they average to the distribution; None if they cannot."""
        posteriors, mass = self.posteriors[chosen], mass[chosen]
        for _ in range(2):
            missing = self._distribution - mass @ posteriors
            scaled = posteriors * mass[:, None] / np.sqrt(self._distribution)
            moved, *_ = np.linalg.lstsq(scaled.T, missing / np.sqrt(self._distribution), rcond=None)
            mass = mass * (1 + moved)
        if not (mass > 0).all() or np.abs(mass @ posteriors - self._distribution).max() > _INSIDE:
            return None
        return mass

    def _unlike(self, new: FloatArray) -> FloatArray:
        rounded = np.round(np.vstack([self.posteriors, new]) / _SAME)
        _, first = np.unique(rounded, axis=0, return_index=True)
        first = np.sort(first[first >= len(self.posteriors)]) - len(self.posteriors)
        return np.asarray(new[first])

    def _steps(self, away: FloatArray) -> FloatArray:
        """How far from p the region goes in directions (k, a)."""
        region, distribution = self._region, self._distribution
        at, along = region.rows @ distribution, away @ region.rows.T
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = [
                np.where(along > 0, np.maximum(-at, 0.0) / along, np.inf),
                np.where(along < 0, np.minimum(region.least - at, 0.0) / along, np.inf),
                np.where(away < 0, -distribution / away, np.inf),
            ]
        return np.asarray(np.min([limit.min(axis=1, initial=np.inf) for limit in limits], axis=0))


class _Barrier:
    """Newton's method on ``t tr(L J⁻¹) - Σ ln mass`` along the equations, for one t after another."""

    def __init__(self, distribution: FloatArray, wanted: FloatArray, budget: Budget) -> None:
        self._roots, self._wanted, self._budget = np.sqrt(distribution), wanted, budget
        self.distribution = distribution
        self.value = np.inf
        self.level = np.inf
        self.settled = False
        self._prices = np.zeros(len(distribution))
        self._pulled = np.zeros_like(wanted)

    def minimise(self, columns: _Columns, gap: float) -> None:
        """Move the masses of columns to where what the barrier adds is a part of the gap."""
        scaled = columns.posteriors / self._roots
        number = len(columns.mass)
        value, *_ = self._at(scaled, columns.mass)
        if not np.isfinite(value):
            raise SolverError("the posteriors that are allowed leave some shares unknown")
        harder = number / value
        self.settled = False
        while True:
            self._centre(columns, scaled, harder)
            if self._budget.expired or number / harder <= _BARRIER * gap * self.value:
                break
            harder *= _HARDER
        self.settled = True
        # λ from where the gradient of t tr(L J⁻¹) - Σ ln mass lies in the span of the equations.
        weights = columns.mass[:, None] * columns.posteriors
        pulled = scaled @ self._pulled
        told = (pulled**2).sum(axis=1) * columns.mass + 1 / harder
        prices, *_ = np.linalg.lstsq(weights, told, rcond=None)
        excess = (pulled**2).sum(axis=1) - columns.posteriors @ prices
        self._prices = prices
        self.level = float(prices @ self.distribution) + max(0.0, float(excess.max()))

    def prices_of(self, posteriors: FloatArray) -> FloatArray:
        """By how much posteriors (k, a) exceed their prices, ``d(v) - λᵀv``; shape (k,)."""
        self._budget.spend(CALL + 0.2 * posteriors.size * self._wanted.shape[1])
        return np.asarray(((posteriors / self._roots @ self._pulled) ** 2).sum(axis=1) - posteriors @ self._prices)

    def slopes_of(self, posteriors: FloatArray) -> FloatArray:
        """The gradient of that (k, a)."""
        scaled = self._pulled / self._roots[:, None]
        return np.asarray(2 * (posteriors @ scaled) @ scaled.T - self._prices)

    def at(self, posteriors: FloatArray, mass: FloatArray) -> float:
        """``tr(L J⁻¹)`` of a mixture."""
        return self._at(posteriors / self._roots, mass)[0]

    def _at(self, scaled: FloatArray, mass: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """``tr(L J⁻¹)``, ``J⁻¹ wanted`` and J⁻¹; infinite where J is singular."""
        information = scaled.T @ (scaled * mass[:, None])
        try:
            lower = np.linalg.cholesky(information)
        except np.linalg.LinAlgError:
            return np.inf, self._wanted, information
        half = np.linalg.solve(lower, np.eye(len(lower)))
        inverse = half.T @ half
        pulled = inverse @ self._wanted
        return float((pulled * self._wanted).sum()), pulled, inverse

    def _centre(self, columns: _Columns, scaled: FloatArray, harder: float) -> None:
        import scipy.linalg

        posteriors, mass = columns.posteriors, columns.mass
        number, a = posteriors.shape
        value, pulled, inverse = self._at(scaled, mass)
        for _ in range(_NEWTON):
            self._budget.spend(CALL * 20 + 0.1 * (number**3 + number**2 * (2 * a) + 4.0 * number * a**2))
            drawn = scaled @ pulled
            # In units of the masses themselves, where the barrier's own part is the identity.
            weighted = mass[:, None] * scaled
            curvature = 2 * harder * (weighted @ inverse @ weighted.T) * (drawn @ drawn.T)
            curvature[np.diag_indices(number)] += 1.0
            gradient = -harder * mass * (drawn**2).sum(axis=1) - 1.0
            equations = mass[:, None] * posteriors
            lower = scipy.linalg.cholesky(curvature, lower=True, overwrite_a=True, check_finite=False)
            sides = np.column_stack([equations, gradient])
            solved = scipy.linalg.solve_triangular(lower, sides, lower=True, check_finite=False)
            held, pull = solved[:, :-1], solved[:, -1]
            # The part of the pull that is across the equations.
            basis, *_ = scipy.linalg.qr(held, mode="economic", check_finite=False)
            across = pull - basis @ (basis.T @ pull)
            step = -scipy.linalg.solve_triangular(lower, across, lower=True, trans="T", check_finite=False)
            decrement = float(-(gradient @ step))
            if decrement < _SETTLED or self._budget.expired:
                break
            far = min(1.0, 0.95 / max(1e-300, float(-step.min()))) if step.min() < 0 else 1.0
            here = harder * value - np.log(mass).sum()
            while far > 1e-10:
                moved = mass * (1 + far * step)
                value, pulled, inverse = self._at(scaled, moved)
                if harder * value - np.log(moved).sum() <= here - 0.1 * far * decrement:
                    break
                far /= 2
            else:
                value, pulled, inverse = self._at(scaled, mass)
                break
            mass = moved
        columns.mass, self.value, self._pulled = mass, value, pulled


class _Listed:
    """All vertices of a region."""

    def __init__(self, vertices: FloatArray) -> None:
        self._vertices = vertices

    def corners(self) -> FloatArray:
        """Where each input is likeliest: what a search starts from."""
        return np.asarray(self._vertices[np.unique(np.argmax(self._vertices, axis=0))])

    def climb(self, barrier: _Barrier, known: FloatArray) -> FloatArray:
        """All of them."""
        return self._vertices


class _Climbing:
    """Finds vertices of a region where a convex function is large, by its tangents from many directions."""

    def __init__(self, region: Region, budget: Budget) -> None:
        self._region, self._budget = region, budget
        self._pricer = Pricer(region, budget)
        self._random = np.random.default_rng(0)

    def corners(self) -> FloatArray:
        """Where each input is likeliest, and as many directions by chance."""
        size = len(self._region.distribution)
        chance = self._random.normal(size=(size, size)) / np.sqrt(self._region.distribution)
        return np.vstack([self._highest(np.eye(size)), self._highest(chance)])

    def climb(self, barrier: _Barrier, known: FloatArray) -> FloatArray:
        """Posteriors (k, a) where what exceeds the prices is at a local maximum, from known ones and by chance."""
        size = len(self._region.distribution)
        chance = self._highest(self._random.normal(size=(_STARTS, size)) / np.sqrt(self._region.distribution))
        excess = barrier.prices_of(known)
        best = np.vstack([known[np.argsort(-excess, kind="stable")[:_STARTS]], chance])
        for _ in range(_CLIMB):
            if self._budget.expired:
                break
            found = self._highest(barrier.slopes_of(best))
            if len(found) != len(best):
                break
            better = barrier.prices_of(found) > barrier.prices_of(best) + _INSIDE
            if not better.any():
                break
            best[better] = found[better]
        return best

    def _highest(self, costs: FloatArray) -> FloatArray:
        """The posteriors (k, a) of highest costs; those that the programme did not find are p."""
        scaled = costs / np.maximum(1e-300, np.abs(costs).max(axis=1, keepdims=True))
        inside, found = self._pricer.highest(scaled)
        return np.where(inside[:, None], found, self._region.distribution)
