"""The part of one secret of a robust row over the χ² set: between two levels under every distribution of a ball."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from funnel.guarantees.chi2_ball import worst_distribution
from funnel.guarantees.worst_case import Neighbourhood
from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.simple_polytope import Places, SimplePolytope

# Units of work: of solving for a vertex, of looking at one for a cut, of an edge for a list, and of a search for a
# distribution.
_BY_MADE, _BY_VERTEX, _BY_EDGE, _BY_LAW = 4_000.0, 15.0, 250.0, 100 * CALL
# Beyond so many vertices a part is not cut further.
_MOST_VERTICES = 40_000


@dataclass(frozen=True, eq=False)
class Corners:
    """Corners of a part whose least level is 1, as masses ``p τ``.

    Attributes
    ----------
    masses : ndarray, shape (N, k)
    gain : ndarray, shape (N,)
        ``Σ m ln m``.
    mass : ndarray, shape (N,)
        ``Σ m``.
    """

    masses: FloatArray
    gain: FloatArray
    mass: FloatArray


class SecretPart:
    """A polytope around ``{(τ, ρ) : τ >= 0, τ·R >= 1 and τ·R' <= ρ for all distributions R, R' of two balls}``.

    The distributions are those of U given one secret with ``Σ P̂²/R <= D``, for a D from below (R) and one from above
    (R'). They are infinitely many: half-spaces are added where they are needed, and what is listed is never too little.
    With ρ as one more coordinate the corners for every ρ are the points of edges.

    Parameters
    ----------
    near : Neighbourhood
    secret : int
    share : float
        Of the deviation, for distributions from above; the rest is for distributions from below.
    least, most : float
        The range of ρ, 1 < least < most.
    budget : Budget
    """

    def __init__(
        self, near: Neighbourhood, secret: int, share: float, least: float, most: float, budget: Budget
    ) -> None:
        distribution = near.distribution[secret]
        self._distribution, self._prior = distribution[distribution > 0], float(near.prior[secret])
        self._budget, self._least = budget, least
        rate = near.deviation / self._prior
        self._above, self._below = (1 + share * rate) ** 2, (1 + (1 - share) * rate) ** 2
        self._corners: dict[float, Corners] = {}
        self._edges: tuple[Places, Places] | None = None
        k = self.size = len(self._distribution)
        # Coordinates y = P̂ τ and ρ: y >= 0, 1 <= Σ y <= ρ, which the estimate itself sets, and least <= ρ <= most.
        rows, bounds = np.zeros((k + 4, k + 1)), np.zeros(k + 4)
        rows[:k, :k] = -np.eye(k)
        rows[k, :k], bounds[k] = -1.0, -1.0
        rows[k + 1, :k], rows[k + 1, k] = 1.0, -1.0
        rows[k + 2, k], bounds[k + 2] = -1.0, -least
        rows[k + 3, k], bounds[k + 3] = 1.0, most
        vertices, active = [], []
        for u in range(k):
            others = [i for i in range(k) if i != u]
            for total, ratio, met in (
                (1.0, least, (k, k + 2)),
                (1.0, most, (k, k + 3)),
                (least, least, (k + 1, k + 2)),
                (most, most, (k + 1, k + 3)),
            ):
                vertices.append(np.append(np.where(np.arange(k) == u, total, 0.0), ratio))
                active.append([*others, *met])
        self._polytope = SimplePolytope(rows, bounds, np.array(vertices), np.array(active))
        # To begin with, the distributions that are worst where some values are high and the others are not.
        for high in itertools.product((0.0, 1.0), repeat=k):
            if 0 < sum(high) < k:
                self.cut(np.array(high))

    @property
    def vertices(self) -> int:
        """How many there are."""
        return len(self._polytope.vertices)

    def cut(self, row: FloatArray) -> int:
        """Add the half-spaces of the worst distributions for a row τ (k,); how many changed something."""
        if self.vertices > _MOST_VERTICES:
            return 0
        made = [
            self._polytope.cut(np.append(self._worst(row, True) / self._distribution, -1.0), 0.0),
            self._polytope.cut(np.append(-self._worst(row, False) / self._distribution, 0.0), -1.0),
        ]
        self._budget.spend(_BY_LAW + _BY_MADE * sum(made) + _BY_VERTEX * self.vertices)
        if sum(made):
            self._corners, self._edges = {}, None
        return sum(number > 0 for number in made)

    def _worst(self, row: FloatArray, upward: bool) -> FloatArray:
        """The distribution of the ball that gives a row the largest mean, or the least."""
        if upward:
            return worst_distribution(row, self._distribution, self._above)
        return worst_distribution(-row, self._distribution, self._below)

    def corners(self, ratio: float) -> Corners:
        """Corners for a ratio ρ of the levels, or where it is smaller than any for the least one.

        Raises
        ------
        SolverError
            If vertices are missing.
        """
        ratio = max(ratio, self._least * (1 + 1e-9))
        if ratio in self._corners:
            return self._corners[ratio]
        if self._edges is None:
            self._edges = self._polytope.edges()
            self._budget.spend(_BY_EDGE * len(self._edges[0]))
        vertices = self._polytope.vertices
        first, second = self._edges
        one, other = vertices[first, -1], vertices[second, -1]
        self._budget.spend(20 * CALL + 4.0 * len(first))
        crossing = (one <= ratio) != (other <= ratio)
        one, other = one[crossing], other[crossing]
        share = ((ratio - one) / (other - one))[:, None]
        shares = (1 - share) * vertices[first[crossing], :-1] + share * vertices[second[crossing], :-1]
        masses = self._prior * np.maximum(shares, 0.0)
        self._budget.spend(20 * CALL + 60.0 * masses.size)
        self._corners[ratio] = Corners(masses, np.asarray(xlogy(masses, masses).sum(axis=1)), masses.sum(axis=1))
        return self._corners[ratio]

    def row(self, masses: FloatArray) -> FloatArray:
        """Masses p τ (k,) as a row τ."""
        return np.asarray(masses / (self._prior * self._distribution))
