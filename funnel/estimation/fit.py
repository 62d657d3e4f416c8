"""Fit: shares of the true values by one method, and linear estimates that are efficient there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from funnel.errors import SolverError, SpecError
from funnel.estimation.likelihood import likeliest_shares, on_simplex
from funnel.estimation.linear import Aimed, LinearEstimate, aimed_weights, covariance
from funnel.estimation.rare import RareValues
from funnel.estimation.share_information import MOST_WORK
from funnel.joint import FloatArray, IntArray
from funnel.protocol import Protocol

# Of a log-likelihood in nats: far less than what an error of a hundredth of a standard error changes.
_GAP = 1e-5
# How much of every value the reference has in which is decided what can be told.
_ALIKE = 0.5
# An output has at least so much of a record where the fit says it never comes.
_LEAST = 0.1


class Fit:
    """Estimates by one method from counts of outputs of one channel, of whose inputs some may be rare."""

    def __init__(self, rare: RareValues, cell_of: IntArray, cells: int, method: str) -> None:
        self.rare, self.channel, self._method = rare, rare.seen, method
        self._of_all, self._cell_of, self._cells = cell_of, cell_of[rare.others], cells
        self.fixed = np.bincount(cell_of[rare.places], rare.taken, cells).astype(np.float64)
        self.is_rare = np.bincount(self._cell_of, minlength=cells) == 0

    @property
    def aims(self) -> FloatArray:
        """Which values each cell has, zeros and ones (cells, a)."""
        aims = np.zeros((self._cells, len(self._of_all)))
        aims[self._of_all, np.arange(len(self._of_all))] = 1.0
        return aims

    def in_cells(self, shares: FloatArray) -> FloatArray:
        """Shares of values that are not rare, among each other, as shares of cells (cells,)."""
        return self._with_rare(np.bincount(self._cell_of, shares, self._cells).astype(np.float64))

    def _with_rare(self, cells: FloatArray) -> FloatArray:
        return self.rare.left * cells + self.fixed

    def of(self, counts: IntArray, start: FloatArray | None = None) -> tuple[FloatArray, FloatArray, LinearEstimate]:
        """Shares of the others among each other, unbiased shares of cells (cells,), and how the others' are made."""
        at = self._fitted(counts, start)
        linear = self._linear(at.outputs, at.reference)
        return at.shares, self._with_rare(linear.weights @ self.rare.shares_of(counts)), linear

    def aimed(self, counts: IntArray, aims: FloatArray, sampling: bool) -> Aimed:
        """Linear functions of the shares of all values, told by ``aims (k, a)``."""
        at, n = self._fitted(counts, None), int(counts.sum())
        weights, told = aimed_weights(self.channel, at.outputs, at.reference, aims[:, self.rare.others])
        of_rare = aims[:, self.rare.places]
        fixed, left = of_rare @ self.rare.taken, self.rare.left
        return Aimed(
            left * (aims[:, self.rare.others] @ at.shares) + fixed,
            left * (weights @ self.rare.shares_of(counts)) + fixed,
            left**2
            * (covariance(weights, self.channel, at.shares, n, sampling) + self.rare.departed_covariance(weights)),
            self.rare.slopes(weights, of_rare),
            self.rare.taken,
            told,
            left * weights,
            self.rare.rounded,
        )

    def _fitted(self, counts: IntArray, start: FloatArray | None) -> _Fitted:
        n, a, seen = int(counts.sum()), self.channel.shape[1], self.rare.shares_of(counts)
        if self._method == "inverse":
            # The same weights whatever was drawn, so that nothing is biased.
            alike = np.full(a, 1 / a)
            outputs = self.channel @ alike
            weights, _ = aimed_weights(self.channel, outputs, alike, np.eye(a))
            return _Fitted(on_simplex(weights @ seen), outputs, alike)
        # Fewer than no records are none.
        there = np.maximum(seen, 0.0)
        found = likeliest_shares(self.channel, there / there.sum(), _GAP / n, start)
        if found.gap > _GAP / n:
            raise SolverError(
                f"the likeliest shares were not found in {found.steps:,} steps: answers of this protocol tell values "
                'hardly apart; estimate by method="inverse", or fewer columns'
            )
        reference = (1 - _ALIKE) * found.shares + _ALIKE / a
        # Of an output that the fit never gives, nothing may weigh without limit.
        least = np.minimum(self.channel @ reference, _LEAST / n)
        return _Fitted(found.shares, np.maximum(self.channel @ found.shares, least), reference)

    def simulated(
        self, shares: FloatArray, n: int, number: int, sampling: bool, random: np.random.Generator
    ) -> FloatArray:
        """Unbiased shares of cells (cells, number) from simulated releases of these shares."""
        outputs = self.channel @ shares
        found = []
        for _ in range(number):
            if sampling:
                counts = random.multinomial(n, outputs / outputs.sum())
            else:
                people = _whole(shares, n)
                counts = random.multinomial(people, self.channel.T / self.channel.T.sum(axis=1)[:, None]).sum(axis=0)
            found.append(self.of(counts, shares)[1])
        return np.array(found).T

    def _linear(self, outputs: FloatArray, reference: FloatArray) -> LinearEstimate:
        # A cell of rare values alone has none of the inputs.
        there, of = np.unique(self._cell_of, return_inverse=True)
        linear = LinearEstimate.of(self.channel, outputs, reference, of, len(there))
        if linear is None:
            raise _too_many(self.channel.shape[1], self.channel.shape[0])
        weights, told = np.zeros((self._cells, len(outputs))), np.zeros(self._cells, dtype=np.bool_)
        weights[there], told[there] = linear.weights, linear.told
        sums = tuple(tuple(there[list(group)].tolist()) for group in linear.sums)
        return LinearEstimate(weights, told, sums)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Shares (a,) of the others, the output distribution (b,) there, and a distribution (a,) to decide at."""

    shares: FloatArray
    outputs: FloatArray
    reference: FloatArray


def require_few(protocol: Protocol) -> None:
    """Before any table is made of them: that the protocol has not too many values.

    Raises
    ------
    SpecError
        If it has.
    """
    b, a = protocol.size
    if protocol.is_sparse or float(a) * b * min(a, b) > MOST_WORK:
        raise _too_many(a, b)


def require_confidence(confidence: float) -> None:
    """That it is one.

    Raises
    ------
    SpecError
        If it is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise SpecError("the confidence of an interval is between 0 and 1, such as 0.95")


def _too_many(a: int, b: int) -> SpecError:
    return SpecError(f"{a:,} values and {b:,} outputs are too many to estimate from at once")


def _whole(shares: FloatArray, n: int) -> IntArray:
    """Whole numbers in proportion to shares that sum to n, by largest remainders."""
    counts = np.floor(shares * n).astype(np.int64)
    order = np.argsort(counts - shares * n, kind="stable")
    counts[order[: n - int(counts.sum())]] += 1
    return counts


def normal_quantile(confidence: float) -> float:
    """How many standard errors an interval reaches to each side.

    Raises
    ------
    SpecError
        If the confidence is not between 0 and 1.
    """
    from scipy.special import ndtri

    require_confidence(confidence)
    return float(ndtri((1 + confidence) / 2))


Method = Literal["count", "em", "inverse"]
METHODS: tuple[Method, ...] = get_args(Method)


def method_for(protocol: Protocol, given: tuple[str, ...], asked: Method | None) -> Method:
    """The method asked for, or the usual one: plain counts where these are right on average, else the likeliest shares.

    Parameters
    ----------
    protocol : Protocol
    given : tuple of str
        Columns that make groups and that the protocol does not read. Counts in such a group are not right on average:
        what is balanced is the whole table.
    asked : Method, optional

    Raises
    ------
    SpecError
        If there is no such method, or plain counts are asked for where they are biased.
    """
    if asked is not None and asked not in METHODS:
        raise SpecError(f"unknown method {asked!r} of estimation; choose one of {', '.join(METHODS)}")
    counts = protocol.is_invariant and not given
    if asked == "count" and not counts:
        where = f"groups of {given[0]!r}, which was not published" if given else "a protocol that is not invariant"
        raise SpecError(f"plain counts are biased in {where}; estimate by method='em'")
    return asked or ("count" if counts else "em")
