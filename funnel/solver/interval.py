"""Interval: what a guarantee leaves of the posterior of one of two secrets, and the vertices of such posteriors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.guarantees.base import PosteriorGuarantee
from funnel.joint import FloatArray

Places = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Interval:
    """low <= ρ <= high; the prior is inside.

    Attributes
    ----------
    low, high : float
    """

    low: float
    high: float

    @classmethod
    def of(cls, guarantee: PosteriorGuarantee, prior: float) -> Interval:
        """What a guarantee leaves of ρ, for the prior P(s) of one of two secrets."""
        return cls.of_cone(guarantee.posterior_cone(np.array([1 - prior, prior]))).around(prior)

    @classmethod
    def of_cone(cls, cone: FloatArray) -> Interval:
        """What conditions (k, 2) on the posterior of two secrets leave of that of the second."""
        low, high = 0.0, 1.0
        for at_zero, at_one in cone:
            slope = at_one - at_zero
            if slope > 0:
                high = min(high, -at_zero / slope)
            elif slope < 0:
                low = max(low, -at_zero / slope)
        return cls(low, high)

    def around(self, prior: float) -> Interval:
        """The same with the prior, which is always allowed; rounding must not exclude it."""
        return Interval(min(self.low, prior), max(self.high, prior))

    @property
    def ends(self) -> tuple[tuple[int, float], tuple[int, float]]:
        """Both ends, numbered as `Shares` numbers them."""
        return (1, self.low), (2, self.high)

    def sides(self, r: FloatArray, end: float) -> tuple[Places, Places]:
        """The inputs below and above an end."""
        return np.flatnonzero(r < end), np.flatnonzero(r > end)

    def inside(self, r: FloatArray) -> npt.NDArray[np.bool_]:
        """Which inputs may be published alone."""
        return (r >= self.low) & (r <= self.high)

    def vertices(self, r: FloatArray) -> FloatArray:
        """All vertices (k, a) of the posteriors with ρ in the interval, for inputs with P(s|x) = r, (a,); O(a³).

        Inputs inside alone, and pairs on both sides of an end, in the shares that put the pair there.
        """
        found = [np.eye(len(r))[self.inside(r)]]
        for _, end in self.ends:
            below, above = self.sides(r, end)
            first, second = np.repeat(below, len(above)), np.tile(above, len(below))
            # Each share by itself: one minus a share near 1 would lose the digits of a rare input.
            width, pairs = r[second] - r[first], np.arange(len(first))
            vertices = np.zeros((len(first), len(r)))
            vertices[pairs, first], vertices[pairs, second] = (r[second] - end) / width, (end - r[first]) / width
            found.append(vertices)
            if self.low == self.high:
                break
        return np.vstack(found)
