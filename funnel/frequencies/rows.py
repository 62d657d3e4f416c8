"""Rows: noisy tables of how the rows of a unit follow one another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.errors import SpecError
from funnel.frequencies.moves import TABLES
from funnel.frequencies.noise import scale_of
from funnel.joint import IntArray


@dataclass(frozen=True, eq=False)
class NoisyRows:
    """What noisy tables tell of the rows of units, which are in a random order.

    Attributes
    ----------
    epsilon : float
        Differential privacy of all of them together (nats), for one unit more or less.
    stayed, left : ndarray of int64, shape (c, a)
        Units with two rows or more by the secret and the published input of the first: whose second row has the same
        published input, and whose has not. May be negative.
    sizes : ndarray of int64, shape (k,)
        Units with 1, 2, … k rows. May be negative.

    Raises
    ------
    SpecError
        If the tables do not fit one another.
    """

    epsilon: float
    stayed: IntArray
    left: IntArray
    sizes: IntArray

    def __post_init__(self) -> None:
        for name in ("stayed", "left", "sizes"):
            table = np.array(getattr(self, name), dtype=np.int64)
            table.setflags(write=False)
            object.__setattr__(self, name, table)
        if self.stayed.ndim != 2 or self.stayed.shape != self.left.shape or self.sizes.ndim != 1:
            raise SpecError("the tables of the rows of units do not fit one another")

    @property
    def scale(self) -> float:
        """Of the noise in every count: the smallest double at or above 2 / epsilon."""
        return scale_of(self.epsilon, TABLES)
