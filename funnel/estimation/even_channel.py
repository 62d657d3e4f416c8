"""Even channel: what becomes of whole records where the donor is anybody of the new part of a class, each as likely.

Where the secret is published too, records are those of each secret, and who stays may be published with another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from funnel.joint import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class EvenChannel:
    """P(t, y | s, x) of secrets and a records: a record stays with its part, or is anybody's of another part.

    It has as many entries above zero as pairs of records, so it is kept as what it is made of. Products with it are
    those of an array of shape (c·a, c·a), secrets varying slowest.

    Parameters
    ----------
    moves : ndarray, shape (c, k, c, k)
        P(t, part | s, part) of secrets and parts; c is 1 where the secret is not published.
    part_of : ndarray of int, shape (a,)
    counts : ndarray of int, shape (a,)
        People with each record, at least one.
    kept : float
        Of the records that keep their part, the share that stay as they are; the others are anybody's of it, too.
    """

    # So that an array on the left leaves the product to it.
    __array_ufunc__ = None

    moves: FloatArray
    part_of: IntArray
    counts: IntArray
    kept: float = 1.0

    @cached_property
    def _sizes(self) -> FloatArray:
        return np.bincount(self.part_of, self.counts, self.moves.shape[1]).astype(np.float64)

    @cached_property
    def _group_of(self) -> IntArray:
        """Of every secret and record the secret and part, (c·a,)."""
        c, k = self.moves.shape[:2]
        return np.asarray((np.arange(c)[:, np.newaxis] * k + self.part_of).ravel())

    @cached_property
    def _leave(self) -> FloatArray:
        """P(t, part of somebody else | s, part), (c·k, c·k): what would go to a part that nobody was of stays."""
        c, k = self.moves.shape[:2]
        leaves = (self._sizes > 0)[:, np.newaxis] * np.where(np.eye(k, dtype=np.bool_), 1 - self.kept, 1.0)
        return np.asarray((leaves[:, np.newaxis] * self.moves).reshape(c * k, c * k))

    @cached_property
    def _stay(self) -> FloatArray:
        """P(t | s) of every record that keeps its part, shape (c, c, a)."""
        c, k = self.moves.shape[:2]
        part = np.arange(k)
        stay = np.moveaxis(self.moves[:, part, :, part], 0, -1) * self.kept
        own = np.arange(c)
        stay[own, own] += (1 - self._leave.sum(axis=0)).reshape(c, k) - stay.sum(axis=0)
        return np.asarray(stay[:, :, self.part_of])

    @cached_property
    def _members(self) -> Any:
        """Of every secret and part the shares of its people who have a record: sparse, shape (c·a, c·k)."""
        from scipy.sparse import csr_array

        c, k = self.moves.shape[:2]
        shares = np.tile(self.counts / self._sizes[self.part_of], c)
        return csr_array((shares, (np.arange(len(shares)), self._group_of)), shape=(len(shares), c * k))

    def diagonal(self) -> FloatArray:
        """The probability that a record stays as it is, (c·a,), but for donors who are like it."""
        return np.asarray(np.einsum("ssx->sx", self._stay).ravel())

    def __matmul__(self, shares: FloatArray) -> FloatArray:
        """The shares (c·a,) of published records, given those of true ones."""
        come = self._leave @ np.bincount(self._group_of, shares, len(self._leave))
        stay = np.einsum("tsx,sx->tx", self._stay, shares.reshape(len(self._stay), -1))
        return np.asarray(stay.ravel() + self._members @ come)

    def __rmatmul__(self, rows: Any) -> FloatArray:
        """The means of numbers of published records, dense or sparse (m, c·a), given the true record."""
        means = rows @ self._members
        dense = [one if isinstance(one, np.ndarray) else one.toarray() for one in (means, rows)]
        stay = np.einsum("tsx,mtx->msx", self._stay, dense[1].reshape(len(dense[1]), len(self._stay), -1))
        return np.asarray((dense[0] @ self._leave)[:, self._group_of] + stay.reshape(dense[1].shape))

    def agreeing(self, of: IntArray) -> FloatArray:
        """The chance of every record, (c·a,), to come to its own of some cells; ``of`` has the cell of each."""
        within = np.zeros((int(of.max()) + 1, len(self._leave)))
        np.add.at(within, (of, self._group_of), np.tile(self.counts / self._sizes[self.part_of], len(self._stay)))
        same = np.einsum("xk,kx->x", within[of], self._leave[:, self._group_of])
        cells = of.reshape(len(self._stay), -1)
        stay = (self._stay * (cells[:, np.newaxis] == cells)).sum(axis=0)
        return np.asarray(stay.ravel() + same)
