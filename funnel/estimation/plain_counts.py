"""Plain counts of a release whose protocol is invariant: their variances, and usual intervals that have room for them.

The outputs of an invariant protocol are its inputs, and the distribution p of the records stays: ``W p = p``. So counts
of published records are right on average. Given the records, what is published for each is drawn independently; the
mean of any numbers ψ over published records then has the variance ``E[Var(ψ(Y) | X)] / n``, and for records that are a
sample of a population ``(1 + r) Var(ψ(Y)) / n`` with ``r = E[Var(ψ(Y) | X)] / Var(ψ(Y))`` from 0 to 1. Proofs are in
docs/estimation.md. Where a protocol was made for noisy counts, what these may be off is added to the first variance, as
far as it shows in published counts, so that r may be above 1 for values of few records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from funnel.alphabet import Alphabet
from funnel.estimation.even_channel import EvenChannel
from funnel.estimation.linear import Aimed, variances
from funnel.estimation.value_cells import cells_of
from funnel.joint import FloatArray, IntArray
from funnel.protocol import DENOMINATOR, Protocol

_ROUNDING = 1e-12
# Of the entries of a channel: where more are above zero, products with a table of all of them are faster.
_DENSE = 0.05
# Of a product with records whose donors are anybody, at a time.
_ENTRIES = 2**23
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


@dataclass(frozen=True, eq=False)
class CountNoise:
    """Independent noise in the counts that a protocol was made for.

    Attributes
    ----------
    variances : ndarray, shape (k,)
        Of the counts of k groups of values, in records.
    group_of : ndarray of int, shape (b,), or None
        The group of each value; None where each is one of its own.
    is_whole : bool
        Whether published counts have the whole noise on average, as those have that noisy counts put right; else they
        have that of records which leave their value.
    """

    variances: FloatArray
    group_of: IntArray | None = None
    is_whole: bool = False


class PlainCounts:
    """Published records, counted, and what becomes of a record with each of their values.

    Parameters
    ----------
    values : Alphabet
        Of b published values.
    counts : ndarray of int, shape (b,)
        Published records with each.
    channel : ndarray, sparse array or EvenChannel, shape (b, b)
        P(y|x): every column has the sum one.
    categories : sequence of sequence of str, optional
        Of each column, in the order that cells are listed in; without it that in which values have them.
    noise : CountNoise, optional
        In the counts that the channel was made for.
    factor : float
        What standard errors of drawing are multiplied by, where the channel alone does not tell all of them.
    """

    def __init__(
        self,
        values: Alphabet,
        counts: IntArray,
        channel: Any,
        categories: Sequence[Sequence[str]] = (),
        noise: CountNoise | None = None,
        factor: float = 1.0,
    ) -> None:
        self.values, self.counts, self._channel, self._categories = values, counts, channel, categories
        self._noise, self._factor = noise, factor
        self.n = int(counts.sum())
        self.shares: FloatArray = counts / self.n

    @classmethod
    def of(cls, protocol: Protocol, counts: IntArray, noise: CountNoise | None = None) -> Self:
        """Of the outputs of an invariant protocol."""
        return cls(protocol.outputs, counts, _channel(protocol), noise=noise)

    def cells(self, columns: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], ...], IntArray]:
        """The cells of some columns, in order, and that of every value (b,)."""
        cells, of = cells_of(self.values, columns)
        if not self._categories:
            return cells, of
        listed = [self._categories[self.values.columns.index(column)] for column in columns]
        ranks = [{text: rank for rank, text in enumerate(texts)} for texts in listed]
        order = sorted(range(len(cells)), key=lambda k: [of[text] for of, text in zip(ranks, cells[k], strict=True)])
        return tuple(cells[k] for k in order), np.argsort(order)[of]

    def both_variances(self, influence: Any) -> tuple[FloatArray, FloatArray]:
        """``E[Var(ψ(Y) | X)]`` and ``Var(ψ(Y))``, (k,) each, of numbers ψ of published values (k, b), dense or sparse.

        X has the published shares, and Y is what the protocol makes of X: since p stays, the published values are
        distributed like that. Both are of the same X, so the first is at most the second, whatever was drawn. Noise is
        added to the first.
        """
        given, whole = self._drawn_variances(influence)
        if self._noise is not None:
            given = given + (self._moved_by_noise(influence, self._noise) ** 2).sum(axis=1) * self.n
        return given, whole

    def drawing_errors(self, cell_of: IntArray, cells: int) -> FloatArray:
        """Standard errors of the shares of cells of these records that drawing alone adds, (cells,).

        Parameters
        ----------
        cell_of : ndarray of int, shape (b,)
            The cell of every value.
        cells : int
        """
        return np.asarray(np.sqrt(self._drawn_variances(indicators(cell_of, cells))[0] / self.n))

    def _drawn_variances(self, influence: Any) -> tuple[FloatArray, FloatArray]:
        parts = [influence]
        if isinstance(self._channel, EvenChannel):
            # Its products are dense.
            rows = max(1, _ENTRIES // len(self.shares))
            parts = [influence[start : start + rows] for start in range(0, influence.shape[0], rows)]
        given, whole = (
            np.concatenate([variances(one, self._channel, self.shares, 1, sampling=sampling) for one in parts])
            for sampling in (False, True)
        )
        # Where nothing is changed that matters, the first is a rounding of the second.
        return np.where(given > _ROUNDING * whole, np.minimum(given, whole), 0.0) * self._factor**2, whole

    def _moved_by_noise(self, influence: Any, noise: CountNoise) -> FloatArray:
        """By how much means of numbers (k, b) are off for one standard deviation of each of g counts, (k, g).

        A channel W that is in balance for noisy counts n + e publishes the counts n + e (1 - W) on average.
        """
        if noise.is_whole:
            rows = influence if isinstance(influence, np.ndarray) else influence.toarray()
            moved = rows - (rows @ self.shares)[:, np.newaxis]
        else:
            moved = influence - influence @ self._channel
        if noise.group_of is not None:
            moved = moved @ _means_of_groups(noise.group_of, self.shares, len(noise.variances))
        dense = moved if isinstance(moved, np.ndarray) else moved.toarray()
        return np.asarray(dense * np.sqrt(noise.variances) / self.n)

    def ratio(self, influence: Any) -> FloatArray:
        """r of numbers ψ that published values have: (k, b) to (k,), from 0 to 1, or more with noise."""
        return ratios(*self.both_variances(influence))

    @property
    def expected(self) -> FloatArray:
        """The share of records that become each value, (b,), where X has the published shares."""
        return np.asarray(self._channel @ self.shares, dtype=np.float64)

    @property
    def unchanged(self) -> FloatArray:
        """The probability that a value stays as it is, (b,)."""
        return np.asarray(self._channel.diagonal(), dtype=np.float64)

    def stays(self, columns: tuple[str, ...]) -> float:
        """The expected share of records whose values of some columns stay as they are.

        X has the published shares: what a record becomes is a function of its own value, so their mean is unbiased.
        """
        _, of = self.cells(columns)
        return min(1.0, float(self.stays_by_cell(of).sum()))

    def stays_by_cell(self, of: IntArray) -> FloatArray:
        """Of every cell the expected share of all records that are in it and stay there.

        Parameters
        ----------
        of : ndarray of int, shape (b,)
            The cell of every value.
        """
        from scipy.sparse import coo_array

        if isinstance(self._channel, EvenChannel):
            return np.asarray(np.bincount(of, self._channel.agreeing(of) * self.shares), dtype=np.float64)
        entries = coo_array(self._channel)
        to, origin = of[entries.coords[0]], of[entries.coords[1]]
        there = np.where(to == origin, entries.data * self.shares[entries.coords[1]], 0.0)
        return np.asarray(np.bincount(origin, there, int(of.max()) + 1), dtype=np.float64)

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
        both = self.both_variances(influence)
        r, given = np.where(there, ratios(*both), np.nan), self.n * both[0]
        usual = in_part * shares * (1 - shares) if sampling else 0.0
        errors = np.sqrt(np.divide(given + usual, in_part**2, out=np.full(cells, np.nan), where=there))
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = in_part / (1 + r if sampling else r)
        lower, upper = wilson(shares, np.where(there, sizes, 0.0), z)
        if not sampling:
            lower, upper = to_whole_records(lower, upper, np.where(there, given, 0.0), in_part)
        return Shares(shares, errors, lower, upper, r)

    def aimed(self, aims: Any, sampling: bool) -> Aimed:
        """Linear functions ``aims (k, b)`` of the shares, dense or sparse, as published records have them."""
        found, outputs = aims @ self.shares, self._channel @ self.shares
        means = aims @ self._channel
        whole = (_gram(aims, outputs) - _gram(means, self.shares)) * (self._factor**2 / self.n)
        if sampling:
            whole = whole + (_gram(aims, self.shares) - np.outer(found, found)) / self.n
        if self._noise is not None:
            moved = self._moved_by_noise(aims, self._noise)
            whole = whole + moved @ moved.T
        # Nothing is taken for rare, and the channel is not rounded.
        none = np.zeros((len(found), 0))
        told = np.ones(len(found), dtype=np.bool_)
        return Aimed(found, found, whole, none, none[0], told, np.zeros((len(found), 1)), 0.0)


def to_whole_records(
    lower: FloatArray, upper: FloatArray, variances: FloatArray, records: IntArray | int
) -> tuple[FloatArray, FloatArray]:
    """Intervals of shares, extended to whole records where a count has a variance that is small, but not nothing.

    What is hardly ever changed is off by a whole record or not at all.

    Parameters
    ----------
    lower, upper : ndarray, shape (k,)
    variances : ndarray, shape (k,)
        Of counts of records.
    records : int or ndarray of int, shape (k,)
        What the shares are of.
    """
    thin, size = (variances > 0) & (variances < _THIN), np.maximum(records, 1)
    return np.where(thin, np.floor(lower * size) / size, lower), np.where(thin, np.ceil(upper * size) / size, upper)


def ratios(given: FloatArray, whole: FloatArray) -> FloatArray:
    """r, by both variances (k,); 0 where nothing varies."""
    return np.divide(given, whole, out=np.zeros_like(given), where=whole > 0)


def _means_of_groups(group_of: IntArray, shares: FloatArray, groups: int) -> Any:
    """Weights of values in the mean of their group, by their shares: sparse, shape (b, groups)."""
    from scipy.sparse import csr_array

    of_group = np.bincount(group_of, shares, groups)[group_of]
    weights = np.divide(shares, of_group, out=np.zeros_like(shares), where=of_group > 0)
    return csr_array((weights, (np.arange(len(shares)), group_of)), shape=(len(shares), groups))


def _channel(protocol: Protocol) -> Any:
    from scipy.sparse import csr_array

    sparse = protocol.sparse
    if not protocol.is_sparse and len(sparse.values) > _DENSE * math.prod(sparse.shape):
        return protocol.matrix
    return csr_array((sparse.values / np.float64(DENOMINATOR), sparse.inputs, sparse.starts), shape=sparse.shape)


def _gram(rows: Any, weights: FloatArray) -> FloatArray:
    """``rows diag(weights) rowsᵀ``, of dense or sparse rows (k, b), shape (k, k)."""
    if isinstance(rows, np.ndarray):
        return np.asarray((rows * weights) @ rows.T)
    return np.asarray((rows.multiply(weights) @ rows.T).toarray())
