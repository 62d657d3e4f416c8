"""A set of distributions of (S, X) that the data leave possible, as what a guarantee over all of them asks of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from funnel.guarantees.greedy import Places
from funnel.joint import FloatArray, IntArray
from funnel.protocol import WeightArray


class Extreme(NamedTuple):
    """Distributions of a set that are worst for rows, one for each of m rows, and what they leave open.

    Attributes
    ----------
    given : ndarray, shape (m, c, u)
        p(x|s).
    prior : ndarray, shape (m, c)
        p(s).
    lower, upper : ndarray, shape (m, c, u)
        Every p(x|s) between these limits is one of the set beside any others, with these p(s).
    """

    given: FloatArray
    prior: FloatArray
    lower: FloatArray
    upper: FloatArray


class DistributionSet(ABC):
    """A set of distributions over (secret, input), shape (c, u).

    Rows T of a channel are given as (b, c, u), or (b, 1, u) where a protocol does not read the secret. Floats are for
    searches and reports; `exact_given` and `exact_lift` decide, in whole numbers.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (c, u)
        Limits of every entry.
    """

    lower: IntArray
    upper: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        """(c, u)."""
        c, u = self.lower.shape
        return c, u

    @property
    @abstractmethod
    def possible(self) -> npt.NDArray[np.bool_]:
        """The secrets (c,) that occur under some distribution of the set; the others set no condition."""

    @property
    def conceivable(self) -> npt.NDArray[np.bool_]:
        """The entries (c, u) that some distribution of the set may have; a superset will do."""
        return np.asarray((self.upper > 0) & self.possible[:, None])

    @abstractmethod
    def without(self, entries: npt.NDArray[np.bool_]) -> Self | None:
        """The distributions of the set under which nobody has these entries (c, u); None where there are none."""

    @property
    def wider(self) -> npt.NDArray[np.bool_]:
        """Where, (c, c), every p(x|t) of the set is known to be a p(x|s) of it: at [s, t], and wherever s = t."""
        return np.eye(self.shape[0], dtype=bool)

    @abstractmethod
    def given(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The largest and the least P(y|s) over the set, each (b, c)."""

    @abstractmethod
    def lifts(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The largest P(y|s)/P(y) and the largest P(y)/P(y|s) over the set, each (b, c); nan where y never occurs."""

    @abstractmethod
    def given_distributions(
        self, rows: FloatArray, secrets: Places, upward: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """For each of k rows the p(x|s) of its secret (k,) that makes P(y|s) largest, or least, and limits of others.

        Each has shape (k, u), as in `Extreme`.
        """

    @abstractmethod
    def lift_distributions(self, rows: FloatArray, secrets: Places, upward: bool) -> Extreme:
        """For each of k rows a distribution with the largest lift of its secret, or inverse."""

    @abstractmethod
    def exact_given(self, row: WeightArray) -> list[tuple[Fraction, Fraction] | None]:
        """The largest and the least ``2^63 P(y|s)`` of one row (c or 1, u) of weights, for each possible secret."""

    @abstractmethod
    def exact_lift(self, row: WeightArray, secret: int, upward: bool) -> Fraction | None:
        """The largest lift of a possible secret, or the largest inverse: never below it; None where it is infinite."""

    def may_exceed(self, rows: FloatArray, secrets: Places, upward: bool, limit: float) -> npt.NDArray[np.bool_]:
        """Whether that may be above a limit, for rows (k, c or 1, u) and their secrets (k,), as far as floats tell.

        Where it is not known, all of them may.
        """
        return np.ones(len(rows), dtype=np.bool_)

    def exceeds(self, row: WeightArray, secret: int, upward: bool, limit: Fraction) -> bool:
        """Whether that is above a limit."""
        lift = self.exact_lift(row, secret, upward)
        return lift is None or lift > limit
