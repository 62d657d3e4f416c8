"""Plain counts of a release whose protocol is invariant: their variances, and usual intervals that have room for them.

The outputs of an invariant protocol are its inputs, and the distribution p of the records stays: ``W p = p``. So counts
of published records are right on average. Given the records, what is published for each is drawn independently; the
mean of any numbers ψ over published records then has the variance ``E[Var(ψ(Y) | X)] / n``, and for records that are a
sample of a population ``(1 + r) Var(ψ(Y)) / n`` with ``r = E[Var(ψ(Y) | X)] / Var(ψ(Y))`` from 0 to 1. Proofs are in
docs/estimation.md.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from funnel.estimation.linear import Aimed, covariance, variances
from funnel.joint import FloatArray, IntArray
from funnel.protocol import DENOMINATOR, Protocol

_ROUNDING = 1e-12
# Of the entries of a channel: where more are above zero, products with a table of all of them are faster.
_DENSE = 0.05
# Of the variance of a count: below it limits are whole numbers.
_THIN = 0.3


def wilson(shares: FloatArray, sizes: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
    """Wilson's (1927) interval of shares of so many records; sizes may be infinite, or 0 where nothing is known.

    All p that ``(share - p)² <= z² p (1 - p) / size`` does not rule out.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = z * z / sizes
        middle = (shares + loss / 2) / (1 + loss)
        half = np.sqrt(loss * (shares * (1 - shares) + loss / 4)) / (1 + loss)
    nothing = ~(sizes > 0)
    low, up = np.where(nothing, 0.0, middle - half), np.where(nothing, 1.0, middle + half)
    # A share of none or of all is a limit itself, whatever rounding makes of it.
    return np.clip(np.fmin(low, shares), 0.0, 1.0), np.clip(np.fmax(up, shares), 0.0, 1.0)


def indicators(of: IntArray, cells: int) -> Any:
    """Which values are in each cell: zeros and ones, sparse, shape (cells, b)."""
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(of)), (of, np.arange(len(of)))), shape=(cells, len(of)))


class Shares(NamedTuple):
    """Shares of cells, shape (cells,) each: r is nan where a part has no records."""

    frequencies: FloatArray
    errors: FloatArray
    lower: FloatArray
    upper: FloatArray
    r: FloatArray


class PlainCounts:
    """Counts (b,) of published records, and the invariant protocol they were published by."""

    def __init__(self, protocol: Protocol, counts: IntArray) -> None:
        self._protocol, self.counts = protocol, counts
        self.n = int(counts.sum())
        self.shares: FloatArray = counts / self.n

    @cached_property
    def _channel(self) -> Any:
        from scipy.sparse import csr_array

        sparse = self._protocol.sparse
        if not self._protocol.is_sparse and len(sparse.values) > _DENSE * math.prod(sparse.shape):
            return self._protocol.matrix
        return csr_array((sparse.values / np.float64(DENOMINATOR), sparse.inputs, sparse.starts), shape=sparse.shape)

    def both_variances(self, influence: Any) -> tuple[FloatArray, FloatArray]:
        """``E[Var(ψ(Y) | X)]`` and ``Var(ψ(Y))``, (k,) each, of numbers ψ of published values (k, b), dense or sparse.

        X has the published shares, and Y is what the protocol makes of X: since p stays, the published values are
        distributed like that. Both are of the same X, so the first is at most the second, whatever was drawn.
        """
        given, whole = (
            variances(influence, self._channel, self.shares, 1, sampling=sampling) for sampling in (False, True)
        )
        # Where nothing is changed that matters, the first is a rounding of the second.
        return np.where(given > _ROUNDING * whole, np.minimum(given, whole), 0.0), whole

    def ratio(self, influence: Any) -> FloatArray:
        """r of numbers ψ that published values have: (k, b) to (k,), from 0 to 1."""
        given, whole = self.both_variances(influence)
        return np.divide(given, whole, out=np.zeros_like(given), where=whole > 0)

    def in_cells(self, cell_of: IntArray, part_of_cell: IntArray, sampling: bool, z: float) -> Shares:
        """Shares of cells among the records of their parts, with usual intervals for so many records as are worth it.

        Parameters
        ----------
        cell_of : ndarray of int, shape (b,)
            The cell of every value.
        part_of_cell : ndarray of int, shape (cells,)
        sampling : bool
            Whether errors and intervals are for the population that the records are a sample of.
        z : float
            Quantile of a standard normal distribution.

        Notes
        -----
        Published records of a part are m. The interval is Wilson's for ``m / r`` records, or ``m / (1 + r)`` with
        sampling: with it the usual variance is multiplied by r or 1 + r. Of counts whose variance is below 0.3,
        the interval for these records is extended to whole numbers.
        """
        from scipy.sparse import diags_array

        cells, parts = len(part_of_cell), int(part_of_cell.max()) + 1
        in_cell = np.bincount(cell_of, self.counts, cells)
        in_part = np.bincount(part_of_cell, in_cell, parts)[part_of_cell]
        there = in_part > 0
        shares = np.divide(in_cell, in_part, out=np.full(cells, np.nan), where=there)
        influence = indicators(cell_of, cells)
        if parts > 1:
            # A share within a part is a ratio: what is off in it is the cell less the share of the part.
            members = indicators(part_of_cell[cell_of], parts)[part_of_cell]
            influence = influence - diags_array(np.nan_to_num(shares)) @ members
        r = np.where(there, self.ratio(influence), np.nan)
        given = self.n * self.both_variances(influence)[0]
        usual = in_part * shares * (1 - shares) if sampling else 0.0
        errors = np.sqrt(np.divide(given + usual, in_part**2, out=np.full(cells, np.nan), where=there))
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = in_part / (1 + r if sampling else r)
        lower, upper = wilson(shares, np.where(there, sizes, 0.0), z)
        if not sampling:
            # What is hardly ever changed is off by a whole record or not at all.
            thin = there & (given > 0) & (given < _THIN)
            lower[thin] = np.floor(lower[thin] * in_part[thin]) / in_part[thin]
            upper[thin] = np.ceil(upper[thin] * in_part[thin]) / in_part[thin]
        return Shares(shares, errors, lower, upper, r)

    def aimed(self, aims: FloatArray, sampling: bool) -> Aimed:
        """Linear functions ``aims (k, b)`` of the shares, as published records have them."""
        found = aims @ self.shares
        whole = covariance(aims, self._channel, self.shares, self.n, sampling=False)
        if sampling:
            whole = whole + ((aims * self.shares) @ aims.T - np.outer(found, found)) / self.n
        none = np.zeros((len(aims), 0))
        return Aimed(found, found, whole, none, none[0], np.ones(len(aims), dtype=np.bool_), aims, 0.0)
