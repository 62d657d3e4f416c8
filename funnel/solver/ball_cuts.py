"""Half-spaces of rows over the χ² set, by two laws that one law of it has together; and the worst law of a ball."""

from __future__ import annotations

import numpy as np

from funnel.guarantees.chi2_ball import extreme_distribution
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.rldp import secret_by_input
from funnel.guarantees.worst_case import Neighbourhood
from funnel.joint import FloatArray, Joint
from funnel.solver.cuts import Flags


class BallCuts:
    """Half-spaces of rows, to begin with those of the estimate.

    Parameters
    ----------
    read : Joint
        The joint law (c, a) over what the channel reads.
    near : Neighbourhood
    seen : ndarray of bool, shape (a,)
        The inputs that rows are over; all others get the average row.
    """

    def __init__(self, read: Joint, near: Neighbourhood, seen: Flags) -> None:
        counts, self._reads_secret = secret_by_input(read)
        self._shape = counts.shape
        self._seen = np.flatnonzero(seen)
        self._law = read.p_input
        self._pairs: list[tuple[FloatArray, FloatArray]] = []
        c = counts.shape[0]
        for s in range(c):
            for t in range(c):
                if s != t:
                    self.add(s, t, near.law[s], near.law[t])

    def __len__(self) -> int:
        return len(self._pairs)

    def add(self, high: int, low: int, one: FloatArray, other: FloatArray) -> None:
        """``T_s·R_s <= e^ε T_s'·R_s'`` for laws R_s and R_s' of the input, each (u,)."""
        self._pairs.append((self._functional(high, one), self._functional(low, other)))

    def rows(self, epsilon: float) -> FloatArray:
        """The half-spaces for a budget, on rows T over the inputs that occur."""
        first, second = (np.array(side) for side in zip(*self._pairs, strict=True))
        return np.asarray(first - capped_exp(epsilon) * second)

    def _functional(self, secret: int, law: FloatArray) -> FloatArray:
        c, u = self._shape
        full = np.zeros(len(self._law))
        if self._reads_secret:
            full.reshape(c, u)[secret] = law
        else:
            full[:] = law
        # An input that never occurred gets the marginal: its share of the law goes to the average row.
        unseen = np.ones(len(full), dtype=bool)
        unseen[self._seen] = False
        return np.asarray(full[self._seen] + full[unseen].sum() * self._law[self._seen])


# Laws are drawn in until rounding is no doubt, by halves, as often.
_INSIDE, _INWARDS = 1 - 2.0**-40, 44


def worst_distribution(row: FloatArray, law: FloatArray, divergence: float) -> FloatArray:
    """A law R with ``Σ P̂²/R <= D`` whose average of a row is the largest, nearly, shape (u,).

    A half-space of a law outside the ball would cut off what the guarantee allows, and a bound would be none. The one
    that attains the largest average is at the end of the ball, where rounding puts it on either side.

    Parameters
    ----------
    row : ndarray, shape (u,)
        t, finite.
    law : ndarray, shape (u,)
        P̂, zeros allowed, summing to 1.
    divergence : float
        D >= 1.
    """
    found = extreme_distribution(row, law, divergence)
    low, high = 0.0, 1.0
    if _spread(found, law) <= divergence * _INSIDE:
        return found
    # Σ P̂²/R is convex, so it falls towards the estimate.
    for _ in range(_INWARDS):
        middle = (low + high) / 2
        inside = _spread((1 - middle) * found + middle * law, law) <= divergence * _INSIDE
        low, high = (low, middle) if inside else (middle, high)
    return np.asarray((1 - high) * found + high * law)


def _spread(found: FloatArray, law: FloatArray) -> float:
    seen = law > 0
    with np.errstate(divide="ignore"):
        return float((law[seen] ** 2 / found[seen]).sum())
