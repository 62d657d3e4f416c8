"""ShareInformation: what released records tell of the shares of true values, and which of them only in sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from funnel.joint import FloatArray, IntArray

# What the singular values of a channel may take: about two seconds.
MOST_WORK = 1e9
# Directions in which the information is smaller than this part of the largest tell nothing.
_NOTHING = 1e-10
# Parts of a cell, as a vector of length one, that are smaller than the square root of this are rounding.
_UNSEEN = float(np.sqrt(_NOTHING))
# Less than this part of the variance that a cell has in any case is what is left of a difference of equal numbers, some
# 1e-15. Of variances and not of errors, whose rounding is its root and depends on how many records there are.
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class ShareInformation:
    """The Fisher information of n released records about the shares of a true values, by its singular vectors.

    The distribution of the outputs is that of one column of ``Q = P(y|x)`` for each value, so the information about the
    shares p is ``n Qᵀ diag(1/q) Q``, restricted to changes of p that sum to zero. Its inverse is the covariance of an
    efficient estimate of p. In units of √p its eigenvalues are between 0 and n, whatever the shares.

    Attributes
    ----------
    shares : ndarray, shape (a,)
        All above zero, with sum one.
    directions : ndarray, shape (a, k)
        Orthogonal directions, in units of √p, that the outputs tell something of.
    strengths : ndarray, shape (k,)
        How strongly: singular values of ``diag(1/√q) Q diag(√p)``, the first of which is one.
    answers : ndarray, shape (b, k)
        The share of every output in the estimate along each direction, but for its strength; zero for outputs that
        cannot be.
    n : int
        Records.
    departed : float
        Variance of the noise in what is taken off the share of every output, as `DepartedShares` has it.
    """

    shares: FloatArray
    directions: FloatArray
    strengths: FloatArray
    answers: FloatArray
    n: int
    departed: float = 0.0

    @classmethod
    def of(cls, channel: FloatArray, shares: FloatArray, n: int, departed: float = 0.0) -> ShareInformation | None:
        """Of a channel (b, a) and shares (a,) without zeros; None where a b min(a, b) is above 10⁹."""
        outputs = channel @ shares
        seen = outputs > 0
        b, a = int(seen.sum()), len(shares)
        if float(a) * b * min(a, b) > MOST_WORK:
            return None
        roots = np.sqrt(shares)
        scaled = channel[seen] * roots / np.sqrt(outputs[seen])[:, np.newaxis]
        answering, found, directions = np.linalg.svd(scaled, full_matrices=False)
        telling = found**2 > _NOTHING * found[0] ** 2
        answers = np.zeros((len(channel), int(telling.sum())))
        answers[seen] = answering[:, telling] / np.sqrt(outputs[seen])[:, np.newaxis]
        return cls(shares, directions[telling].T, found[telling], answers, n, departed)

    @property
    def condition(self) -> float:
        """The largest error of any contrast of shares over the least, in units in which sampling makes all equal.

        Infinite where some cannot be told.
        """
        return 1.0 / float(self.strengths.min()) if len(self.strengths) == len(self.shares) else np.inf

    def errors(self, cell_of: IntArray, cells: int) -> FloatArray:
        """Standard errors (cells,) that drawing and the noise of departures add to estimates of the shares of cells.

        The estimates are those that are efficient without that noise. Of their variance, ``π (1 - π) / n`` is there
        without a protocol.

        Parameters
        ----------
        cell_of : ndarray of int, shape (a,)
            The cell of each value.
        cells : int
            How many there are; each has values.

        Returns
        -------
        ndarray
            nan where released records alone cannot tell the share; zero where it is below ``3e-7 √(π / n)``, a part of
            the error of sampling that arithmetic cannot tell from nothing.

        Notes
        -----
        O(a k).
        """
        along = self._along(cell_of, cells)
        total: FloatArray = np.bincount(cell_of, self.shares, cells).astype(np.float64)
        # The square of the total, which both variances are less by, cancels.
        added = ((along / self.strengths) ** 2).sum(axis=1) - total
        added[added < _ROUNDING * total] = 0.0
        variances = added / self.n
        if self.departed:
            # What is taken off adds up to nothing, so a weight that all outputs have meets no noise.
            variances += self.departed * len(self.answers) * (along / self.strengths @ self.answers.T).var(axis=1)
        return np.where(self._unseen(along, total) > _UNSEEN, np.nan, np.sqrt(variances))

    def only_in_sum(self, cell_of: IntArray, cells: int) -> tuple[tuple[int, ...], ...]:
        """Groups of cells that are told only together: the share of each group can be told, of its cells alone none.

        The changes of shares that leave the distribution of the outputs as it is sum to zero over every connected
        component of the matroid of their rows, since all of them together do.

        Notes
        -----
        O(cells a min(cells, a)).
        """
        import scipy.linalg
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        along = self._along(cell_of, cells)
        total: FloatArray = np.bincount(cell_of, self.shares, cells).astype(np.float64)
        roots = np.sqrt(self.shares)
        cell = np.zeros((cells, len(roots)))
        cell[cell_of, np.arange(len(roots))] = roots
        unseen = (cell - along @ self.directions.T) / np.sqrt(total)[:, np.newaxis]
        (open_,) = np.nonzero(self._unseen(along, total) > _UNSEEN)
        if not len(open_):
            return ()
        rows = unseen[open_]
        _, triangle, order = scipy.linalg.qr(rows.T, mode="economic", pivoting=True)
        size = np.abs(np.diag(triangle))
        rank = int((size > np.sqrt(_UNSEEN) * 1e-2 * size[0]).sum())
        # Every row is a combination of the first ones; a row and those that it is made of belong together.
        made = scipy.linalg.solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:])
        upon, row = np.nonzero(np.abs(made) > 1e-6)
        ends = (order[upon], order[rank + row])
        linked = coo_array((np.ones(len(upon)), ends), shape=(len(open_), len(open_)))
        count, component = connected_components(linked, directed=False)
        groups = [open_[component == one] for one in range(count)]
        # What cells that are told lack, up to a limit, the sums of the others lack too.
        most = cells - len(open_)

        def is_told(group: IntArray) -> bool:
            share = float(total[group].sum())
            lacking = (np.sqrt(total[group])[:, np.newaxis] * unseen[group]).sum(axis=0)
            return bool(lacking @ lacking <= _UNSEEN * max(share, most * (1 - share)))

        open_sums = [group for group in groups if not is_told(group)]
        if open_sums and not is_told(np.concatenate(open_sums)):
            # All of them together are: they lack what those lack that are told.
            open_sums = groups
        told = [group for group in groups if not any(group is one for one in open_sums)]
        together = [np.sort(np.concatenate(open_sums))] if open_sums else []
        return tuple(tuple(group.tolist()) for group in (*told, *together))

    def _along(self, cell_of: IntArray, cells: int) -> FloatArray:
        """The cells (cells, k) in the directions that are told."""
        along = np.zeros((cells, len(self.strengths)))
        np.add.at(along, cell_of, np.sqrt(self.shares)[:, np.newaxis] * self.directions)
        return along

    def _unseen(self, along: FloatArray, total: FloatArray) -> FloatArray:
        """How much (cells,) of the square of each cell lies in no direction that is told, between 0 and 1."""
        return np.asarray(1 - (along**2).sum(axis=1) / total)


_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class CountedShares:
    """Plain counts of n records whose outputs are their inputs; as `ShareInformation`, whose tables it makes too.

    Given the true values published records are independent, so the count of a set A of values has the variance
    ``Σ_i P(Y_i in A)(1 - P(Y_i in A))``.

    Attributes
    ----------
    channel : ndarray, shape (a, a)
        P(y|x) of the values that occur, in one order.
    shares : ndarray, shape (a,)
        Of these values, with sum one.
    n : int
        Records.
    """

    # Plain counts solve no equations.
    condition: ClassVar[float] = 1.0

    channel: FloatArray
    shares: FloatArray
    n: int

    def errors(self, cell_of: IntArray, cells: int) -> FloatArray:
        """Standard errors (cells,) that drawing adds to the shares of cells of values."""
        inside = np.zeros((cells, len(self.shares)))
        np.add.at(inside, cell_of, self.channel)
        inside = np.clip(inside, 0.0, 1.0)
        spread = inside * (1.0 - inside)
        # A sum of probabilities that is one misses it by rounding.
        return np.asarray(np.sqrt(np.where(spread < _ROUNDING, 0.0, spread) @ self.shares / self.n))

    def only_in_sum(self, cell_of: IntArray, cells: int) -> tuple[tuple[int, ...], ...]:
        """Every share is counted, none only together with others."""
        return ()
