"""Bounds: what the true counts may be where only noisy ones are known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from funnel.errors import SpecError

IntArray = npt.NDArray[np.int64]
Number = TypeVar("Number", np.int64, np.object_)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Every table of true counts that noise does not rule out: cells and totals, each between two whole numbers.

    A table ``n`` is within the bounds if ``lower <= n <= upper`` in every cell and ``totals[s, 0] <= n[s].sum() <=
    totals[s, 1]`` for every secret.

    Parameters
    ----------
    lower, upper : ndarray of int64, shape (c, a)
        Least and largest number of records of each (secret, input); read-only.
    totals : ndarray of int64, shape (c, 2)
        Least and largest number of records of each secret; read-only.
    beta : float
        Probability over the noise, at most, that the true counts are outside any of these.

    Raises
    ------
    SpecError
        If shapes do not fit, bounds cross or are negative, or no table is within them.
    """

    lower: IntArray
    upper: IntArray
    totals: IntArray
    beta: float

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "totals"):
            given = np.asarray(getattr(self, name))
            if given.dtype.kind not in "iu" or given.ndim != 2:
                raise SpecError(f"the {name} bounds of counts must be a table of whole numbers")
            values = given.astype(np.int64)
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        if self.upper.shape != self.lower.shape or self.totals.shape != (len(self.lower), 2):
            raise SpecError(
                f"bounds of shapes {self.lower.shape}, {self.upper.shape} and {self.totals.shape} do not fit one table "
                "of counts"
            )
        if not 0 <= self.beta < 1:
            raise SpecError(f"beta is a probability below 1, not {self.beta}")
        if (self.lower < 0).any() or (self.lower > self.upper).any() or (self.totals < 0).any():
            raise SpecError("bounds of counts must not be negative, and none below may exceed the one above")
        least, most = self.totals.T
        if ((least > most) | (self.lower.sum(axis=1) > most) | (self.upper.sum(axis=1) < least)).any():
            raise SpecError("no table of counts is within these bounds of its cells and of its totals")

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Number of secrets and of inputs."""
        c, a = self.lower.shape
        return c, a

    def hold(self, counts: IntArray) -> bool:
        """Whether a table of counts, shape (c, a), is within the bounds. O(c a)."""
        if counts.shape != self.shape:
            return False
        totals = counts.sum(axis=1)
        return bool(
            ((self.lower <= counts) & (counts <= self.upper)).all()
            and ((self.totals[:, 0] <= totals) & (totals <= self.totals[:, 1])).all()
        )

    def with_secret(self) -> Bounds:
        """The same as seen by a protocol that reads (secret, input): shape (c, c·a), zero off the diagonal."""
        return Bounds(spread(self.lower), spread(self.upper), self.totals, self.beta)


def spread(table: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """A (c, a) table over (secret, (secret, input)): shape (c, c·a), zero off the diagonal."""
    c, a = table.shape
    wide = np.zeros((c, c, a), dtype=table.dtype)
    wide[np.arange(c), np.arange(c)] = table
    return wide.reshape(c, c * a)
