"""Even channel: what becomes of whole records where the donor is anybody of the new part of a class, each as likely."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from funnel.joint import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class EvenChannel:
    """P(y|x) of a records, column by column: a record stays with its part, or is anybody's of another part.

    It has as many entries above zero as pairs of records, so it is kept as what it is made of. Products with it are
    those of an array of shape (a, a).

    Parameters
    ----------
    moves : ndarray, shape (k, k)
        P(part | part).
    part_of : ndarray of int, shape (a,)
    counts : ndarray of int, shape (a,)
        People with each record, at least one.
    """

    # So that an array on the left leaves the product to it.
    __array_ufunc__ = None

    moves: FloatArray
    part_of: IntArray
    counts: IntArray

    @cached_property
    def _sizes(self) -> FloatArray:
        return np.bincount(self.part_of, self.counts, len(self.moves)).astype(np.float64)

    @cached_property
    def _leave(self) -> FloatArray:
        """P(other part | part): what would go to a part of which nobody was published stays."""
        leave = np.where(self._sizes[:, np.newaxis] > 0, self.moves, 0.0)
        np.fill_diagonal(leave, 0.0)
        return leave

    @cached_property
    def _members(self) -> Any:
        """Of every part the shares of its people who have a record: sparse, shape (a, k)."""
        from scipy.sparse import csr_array

        shape = (len(self.counts), len(self.moves))
        shares = self.counts / self._sizes[self.part_of]
        return csr_array((shares, (np.arange(shape[0]), self.part_of)), shape=shape)

    def diagonal(self) -> FloatArray:
        """The probability that a record stays as it is, (a,), but for donors who are like it."""
        return np.asarray((1 - self._leave.sum(axis=0))[self.part_of])

    def __matmul__(self, shares: FloatArray) -> FloatArray:
        """The shares (a,) of published records, given those of true ones."""
        come = self._leave @ np.bincount(self.part_of, shares, len(self.moves))
        return np.asarray(self.diagonal() * shares + self._members @ come)

    def __rmatmul__(self, rows: Any) -> FloatArray:
        """The means of numbers of published records, dense or sparse (k, a), given the true record."""
        means = rows @ self._members
        dense = [one if isinstance(one, np.ndarray) else one.toarray() for one in (means, rows)]
        return np.asarray((dense[0] @ self._leave)[:, self.part_of] + dense[1] * self.diagonal())

    def agreeing(self, of: IntArray, shares: FloatArray) -> float:
        """The share of records that come to the same of some cells, by the cell of every record, (a,)."""
        within = np.zeros((int(of.max()) + 1, len(self.moves)))
        np.add.at(within, (of, self.part_of), self.counts / self._sizes[self.part_of])
        same = np.einsum("xk,kx->x", within[of], self._leave[:, self.part_of])
        return float((self.diagonal() + same) @ shares)
