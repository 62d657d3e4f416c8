"""Region: the polytope of posteriors a cone allows, as one scaled system of linear conditions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.goal import ENTROPY, Goal

# A row is read as accurate to this share of its largest entry: far more than the rounding of e^ε, of the counts'
# quotients and of their sums, far less than what any gap can show.
DATA_ERROR = 2.0**-44
# Rows of a guarantee are of order one in posterior coordinates; below this a row is the rounding of a zero row.
_NOISE = 1e-13


@dataclass(frozen=True, eq=False)
class Region:
    """``{v >= 0 : Σ v = 1, G v <= 0}`` with the mean of the posteriors, and what the utility counts.

    Attributes
    ----------
    rows : ndarray, shape (m, a + levels)
        G, each row scaled to a largest entry of 1; rows that no v >= 0 can violate are left out.
    least : ndarray, shape (m,)
        Lower bounds on G v that follow from v >= 0, Σv = 1 or from a condition that is this one reversed.
    distribution : ndarray, shape (a,)
        p_X, inside the region.
    image : ndarray, shape (d, a), or None
        The utility counts ``w = image v``; None stands for v itself. Non-negative, with columns summing to 1.
    levels : int
        Further variables between 0 and 1 in the conditions, which the utility does not count: a posterior is in the
        region if some levels meet the conditions with it.
    goal : Goal
        The convex function of what is counted.
    """

    rows: FloatArray
    least: FloatArray
    distribution: FloatArray
    image: FloatArray | None
    levels: int = 0
    goal: Goal = ENTROPY

    @classmethod
    def of(
        cls, rows: FloatArray, distribution: FloatArray, image: FloatArray | None = None, goal: Goal = ENTROPY
    ) -> Region:
        """Region from the cone's rows in posterior coordinates (row T of a channel: ``v_x = p_x T_x / q``).

        Raises
        ------
        SolverError
            If p_X is not in the cone: then the channel that says nothing would break the guarantee.
        """
        if not (distribution > 0).all() or not np.isfinite(rows).all():
            raise SolverError("the optimiser needs inputs of positive probability and finite conditions")
        return cls(
            *_paired(_scaled(rows, distribution), distribution), distribution / distribution.sum(), image, goal=goal
        )

    @classmethod
    def with_levels(
        cls,
        rows: FloatArray,
        distribution: FloatArray,
        levels: int,
        image: FloatArray | None = None,
        goal: Goal = ENTROPY,
    ) -> Region:
        """Region from rows (m, a + levels) in posterior coordinates and levels, ``rows (v, levels) <= 0``."""
        if not (distribution > 0).all() or not np.isfinite(rows).all():
            raise SolverError("the optimiser needs inputs of positive probability and finite conditions")
        scaled = rows / np.abs(rows).max(axis=1, initial=_NOISE, keepdims=True)
        least = scaled[:, : len(distribution)].min(axis=1, initial=0.0) + np.minimum(
            scaled[:, len(distribution) :], 0.0
        ).sum(axis=1)
        return cls(scaled, least, distribution / distribution.sum(), image, levels, goal)

    @property
    def inputs(self) -> int:
        """a, the number of inputs."""
        return len(self.distribution)

    @property
    def counted(self) -> int:
        """d, the number of symbols the utility counts."""
        return len(self.distribution) if self.image is None else len(self.image)

    def counts(self, posteriors: FloatArray) -> FloatArray:
        """What the utility counts of posteriors (k, a): their images, shape (k, d)."""
        return posteriors if self.image is None else np.asarray(posteriors @ self.image.T)

    def gains(self, posteriors: FloatArray) -> FloatArray:
        """g of posteriors (k, a); shape (k,)."""
        return self.goal.gains(self.counts(posteriors))

    def one_sided(self) -> FloatArray:
        """The conditions as ``rows (v, levels) <= 0`` alone, (m', a + levels): a row with two bounds is two."""
        a = self.inputs
        lowest = self.rows[:, :a].min(axis=1, initial=0.0) + np.minimum(self.rows[:, a:], 0.0).sum(axis=1)
        bounded = self.least > lowest
        other = -self.rows[bounded]
        # Since Σv = 1.
        other[:, :a] += self.least[bounded, None]
        return np.vstack([self.rows, other])

    @cached_property
    def system(self) -> FloatArray:
        """All conditions on the variables (w, v, levels), or on (v, levels) without an image.

        The first row is Σv = 1; then, with an image, d rows ``image v - w = 0``; then ``G v <= 0``.
        """
        a, d = self.inputs, self.counted
        ones = np.hstack([np.ones((1, a)), np.zeros((1, self.levels))])
        if self.image is None:
            return np.vstack([ones, self.rows])
        return np.vstack(
            [
                np.hstack([np.zeros((1, d)), ones]),
                np.hstack([-np.eye(d), self.image, np.zeros((d, self.levels))]),
                np.hstack([np.zeros((len(self.rows), d)), self.rows]),
            ]
        )

    @property
    def equalities(self) -> int:
        """How many of the first rows of `system` are equalities."""
        return 1 if self.image is None else 1 + self.counted

    @cached_property
    def ceiling(self) -> FloatArray:
        """Upper bounds on the rows of `system`: 1 for the first, 0 for the others."""
        bounds = np.zeros(self.equalities + len(self.rows))
        bounds[0] = 1.0
        return bounds

    @cached_property
    def floor(self) -> FloatArray:
        """Lower bounds on the rows of `system`."""
        bounds = self.ceiling.copy()
        bounds[self.equalities :] = self.least
        return bounds


def _paired(rows: FloatArray, distribution: FloatArray) -> tuple[FloatArray, FloatArray]:
    """One row with two bounds for every two that bound the same sum from both sides, as LIP does for each lift.

    With Σv = 1, rows G and H = κ 1 - t G say κ/t <= G v <= 0. The bound is widened by what float rows differ from that.
    """
    least = rows.min(axis=1, initial=0.0)
    if len(rows) < 2:
        return rows, least
    centred = rows - rows.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centred, axis=1)
    steep = length > 1e-9
    cosine = np.where(np.outer(steep, steep), centred @ centred.T / np.maximum(np.outer(length, length), 1e-300), 0.0)
    kept, dropped = [], set()
    for i in range(len(rows)):
        if i in dropped:
            continue
        kept.append(i)
        j = int(cosine[i].argmin())
        if j <= i or j in dropped or cosine[i, j] > -1 + 1e-9:
            continue
        t = float(length[j] / length[i])
        constant = rows[j] + t * rows[i]
        if float(np.ptp(constant)) > 2.0**-46 * t:
            continue
        dropped.add(j)
        # Never above G p_X <= 0, which is in the region.
        least[i] = max(float(least[i]), min(float(constant.min()) / t, float(rows[i] @ distribution)) - 2.0**-50)
    return rows[kept], least[kept]


def _scaled(rows: FloatArray, distribution: FloatArray) -> FloatArray:
    largest = rows.max(axis=1, initial=0.0)
    kept = rows[largest > _NOISE]
    scaled = kept / np.abs(kept).max(axis=1, keepdims=True)
    excess = scaled @ distribution
    if (excess > 1e-6).any():
        raise SolverError("the channel that says nothing breaks this guarantee, so no optimum exists")
    # p_X is on the boundary when ε = 0; rounding must not push it out. Since Σv = 1, this widens the region a hair.
    return np.asarray(scaled - np.maximum(excess, 0.0)[:, None])
