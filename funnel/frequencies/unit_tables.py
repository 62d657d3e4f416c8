"""Unit tables: noisy tables of how the rows of a unit follow one another, and the distribution that is made of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from funnel.errors import SpecError
from funnel.frequencies.limits import moves_limit
from funnel.frequencies.moves import TABLES, Moves
from funnel.frequencies.noise import NoiseSecret, draw_noise, scale_of
from funnel.history.changes import Changes, MoveLimits
from funnel.joint import IntArray, Joint, freeze

CHANCE: Final = 1e-3
"""With at most this probability a version takes noise alone for units with so many rows."""


@dataclass(frozen=True, eq=False)
class UnitCounts:
    """Exact counts of units by their first two rows, which are in a random order, and by how many they have.

    Parameters
    ----------
    first : Joint
        Units by secret and published input of their first row, counts (c, a).
    stayed, left : ndarray of int64, shape (c, a) or (c, 1)
        Those of them with two rows or more, by secret and input of the first or by secret alone: whose second row has
        the same published input, and whose has not.
    sizes : ndarray of int64, shape (k,)
        Units with 1, 2, … k rows.

    Raises
    ------
    SpecError
        If the tables do not fit one another.
    """

    first: Joint
    stayed: IntArray
    left: IntArray
    sizes: IntArray

    def __post_init__(self) -> None:
        freeze(self, "stayed", "left", "sizes")
        c, a = self.first.counts.shape
        if self.stayed.shape not in ((c, a), (c, 1)) or self.stayed.shape != self.left.shape or self.sizes.ndim != 1:
            raise SpecError("the tables of the rows of units do not fit one another")

    @property
    def by_secret(self) -> UnitCounts:
        """The same counted by secret alone: fewer counts, of more units each, under as much noise."""
        stayed, left = (one.sum(axis=1, keepdims=True) for one in (self.stayed, self.left))
        return UnitCounts(self.first, stayed, left, self.sizes)

    def with_noise(self, epsilon: float, secret: NoiseSecret | None = None) -> NoisyRows:
        """All but the counts of first rows with noise in every count, whether any unit is in it or not.

        One unit more or less changes one of ``sizes`` and at most one of ``stayed`` and ``left`` by one.

        Parameters
        ----------
        epsilon : float
            For all of them together (nats).
        secret : NoiseSecret, optional
            What the noise is derived from; without it the noise is fresh.

        Raises
        ------
        EntropyError
            If no noise can be drawn.
        """
        tables = (self.stayed, self.left, self.sizes)
        key = None if secret is None else secret.key("rows", epsilon, self.first, tables)
        drawn = draw_noise(sum(one.size for one in tables), epsilon, TABLES, key)
        of_each = np.split(drawn, np.cumsum([one.size for one in tables])[:-1])
        noisy = (one + noise.reshape(one.shape) for one, noise in zip(tables, of_each, strict=True))
        return NoisyRows(epsilon, *noisy)


@dataclass(frozen=True, eq=False)
class NoisyRows:
    """What noisy tables tell of the rows of units, which are in a random order.

    Attributes
    ----------
    epsilon : float
        Differential privacy of all of them together (nats), for one unit more or less.
    stayed, left : ndarray of int64, shape (c, a) or (c, 1)
        Units with two rows or more by the secret and the published input of the first, or by the secret alone: whose
        second row has the same published input, and whose has not. May be negative.
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
        freeze(self, "stayed", "left", "sizes")
        if self.stayed.ndim != 2 or self.stayed.shape != self.left.shape or self.sizes.ndim != 1:
            raise SpecError("the tables of the rows of units do not fit one another")

    @property
    def scale(self) -> float:
        """Of the noise in every count: the smallest double at or above 2 / epsilon."""
        return scale_of(self.epsilon, TABLES)

    def changes(self, first: Joint) -> Changes:
        """The distribution of the change from a row of a unit to the next, in integers, of which rows matter as ratios.

        The secret stays. A row that has another published input than the one before has that of a first row.

        Parameters
        ----------
        first : Joint
            Published counts of first rows, clipped at 0.

        Raises
        ------
        SpecError
            If the tables do not fit it.
        DataError
            If there are too many units, or too many values, for whole numbers of 64 bits.
        """
        return self._moves.changes(first, first)

    def limits(self, beta: float) -> MoveLimits:
        """What the true counts are between, but for a probability of beta.

        Raises
        ------
        SpecError
            If units are not counted by secret alone.
        """
        return self._moves.limits(moves_limit(self.stayed.size + self.left.size, self.scale, beta))

    @property
    def _moves(self) -> Moves:
        return Moves("a row of a unit", np.eye(len(self.stayed), dtype=np.int64), self.stayed, self.left)

    @property
    def waves(self) -> tuple[int, ...]:
        """About how many units have a first row, a second one, …: falling, the first one above zero.

        Up to the last number of rows that more units seem to have than noise explains: noise is above t scales with a
        probability of at most e^-t, any of k numbers with k e^-t, which is `CHANCE` for t = ln(k / `CHANCE`).
        """
        sure = np.flatnonzero(self.sizes > math.log(len(self.sizes) / CHANCE) * self.scale)
        sizes = np.maximum(self.sizes[: int(sure[-1]) + 1 if len(sure) else 1], 0)
        units = np.cumsum(sizes[::-1])[::-1]
        return (max(1, int(units[0])), *map(int, units[1:]))
