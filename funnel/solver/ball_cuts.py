"""Half-spaces of rows over the χ² set, by two distributions at once; and the worst in a ball."""

from __future__ import annotations

import itertools

import numpy as np

from funnel.guarantees.chi2_ball import extreme_distribution
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.reading import reads_secret
from funnel.joint import FloatArray
from funnel.solver.cuts import SetProblem


class BallCuts:
    """Half-spaces of rows, to begin with those of the estimate.

    Parameters
    ----------
    problem : SetProblem
        Over F.
    """

    def __init__(self, problem: SetProblem) -> None:
        self._problem = problem
        self._pairs: list[tuple[FloatArray, FloatArray]] = []
        distribution = problem.near.distribution
        for s, t in itertools.permutations(range(len(distribution)), 2):
            self.add(s, t, distribution[s], distribution[t])

    def __len__(self) -> int:
        return len(self._pairs)

    def add(self, high: int, low: int, one: FloatArray, other: FloatArray) -> None:
        """``T_s·R_s <= e^ε T_s'·R_s'`` for distributions R_s and R_s' of the input, each (u,)."""
        self._pairs.append((self._functional(high, one), self._functional(low, other)))

    def rows(self, epsilon: float) -> FloatArray:
        """The half-spaces for a budget, on rows T over the inputs that occur."""
        first, second = (np.array(side) for side in zip(*self._pairs, strict=True))
        return np.asarray(first - capped_exp(epsilon) * second)

    def _functional(self, secret: int, distribution: FloatArray) -> FloatArray:
        problem = self._problem
        full = np.zeros(len(problem.seen))
        if reads_secret(problem.read):
            full.reshape(problem.near.distribution.shape)[secret] = distribution
        else:
            full[:] = distribution
        return np.asarray(problem.on_seen(full[None])[0])


# Distributions are drawn in until rounding is no doubt, by halves, as often.
_INSIDE, _INWARDS = 1 - 2.0**-40, 44


def worst_distribution(row: FloatArray, distribution: FloatArray, divergence: float) -> FloatArray:
    """A distribution R with ``Σ P̂²/R <= D`` whose average of a row is the largest, nearly, shape (u,).

    A half-space of a distribution outside the ball would cut off what the guarantee allows, and a bound would be none.
    The one that attains the largest average is at the end of the ball, where rounding puts it on either side.

    Parameters
    ----------
    row : ndarray, shape (u,)
        t, finite.
    distribution : ndarray, shape (u,)
        P̂, zeros allowed, summing to 1.
    divergence : float
        D >= 1.
    """
    found = extreme_distribution(row, distribution, divergence)
    low, high = 0.0, 1.0
    if _spread(found, distribution) <= divergence * _INSIDE:
        return found
    # Σ P̂²/R is convex, so it falls towards the estimate.
    for _ in range(_INWARDS):
        middle = (low + high) / 2
        inside = _spread((1 - middle) * found + middle * distribution, distribution) <= divergence * _INSIDE
        low, high = (low, middle) if inside else (middle, high)
    return np.asarray((1 - high) * found + high * distribution)


def _spread(found: FloatArray, distribution: FloatArray) -> float:
    seen = distribution > 0
    with np.errstate(divide="ignore"):
        return float((distribution[seen] ** 2 / found[seen]).sum())
