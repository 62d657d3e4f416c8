"""Statistics as analysts compute them, from counts of records by cell: estimates, influence values, usual intervals.

Each is a function of counts (a,) over the cells of a table; regressions are those of the records behind the counts.
Influence is by how much n times the estimate changes with one more record of a cell, up to a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from funnel import Alphabet
from funnel.estimation.plain_counts import wilson
from funnel.joint import FloatArray, IntArray

Z = 1.959963984540054
_STEPS = 50


class Shown(NamedTuple):
    """A release: the records (a,) of a sample and those that were published, the share of records unchanged, and r.

    `ratio` gives r of influence (k, a), `chi_square_ratio` that of a test of two columns.
    """

    records: IntArray
    shown: IntArray
    unchanged: float
    ratio: Callable[[FloatArray], FloatArray]
    chi_square_ratio: Callable[[str, str], float]


Interval = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


class Figures(NamedTuple):
    """Estimates (k,), influence of a record of every cell (k, a), and intervals at 95 % by a factor of variances.

    Each estimate rests on so many records at least (k,): those that count for it and those that do not, those of its
    group, or those of each corner of its table.
    """

    estimates: FloatArray
    influence: FloatArray
    interval: Interval
    rests_on: FloatArray


def _wald(estimates: FloatArray, variances: FloatArray) -> Interval:
    def interval(factor: FloatArray) -> tuple[FloatArray, FloatArray]:
        half = Z * np.sqrt(variances * factor)
        return estimates - half, estimates + half

    return interval


Statistic = Callable[[FloatArray], Figures]


def members(inputs: Alphabet, columns: tuple[str, ...]) -> FloatArray:
    """Which inputs are in each cell of some columns, zeros and ones (cells, a)."""
    places = [inputs.columns.index(column) for column in columns]
    known: dict[tuple[str, ...], int] = {}
    of = [known.setdefault(tuple(symbol[place] for place in places), len(known)) for symbol in inputs.symbols]
    return np.equal(np.array(of), np.arange(len(known))[:, np.newaxis]).astype(float)


def shares(cells: FloatArray) -> Statistic:
    """Shares of cells (k, a), with Wilson's intervals."""

    def found(counts: FloatArray) -> Figures:
        n = counts.sum()
        p = cells @ counts / n
        rests_on = n * np.minimum(p, 1 - p)
        return Figures(p, cells, lambda factor: wilson(p, n / np.maximum(factor, 1e-300), Z), rests_on)

    return found


def log_odds_ratios(one: FloatArray, other: FloatArray) -> Statistic:
    """Of being in cells of one column (k, a), as against its first, and in the first cell of another one (2, a)."""

    def found(counts: FloatArray) -> Figures:
        estimates, variances, influence, rests_on = [], [], [], []
        for cell in one[1:]:
            corners = [row * column for row in (one[0], cell) for column in other]
            inside = np.array([corner @ counts for corner in corners])
            signs = np.array([1, -1, -1, 1])
            estimates.append(signs @ np.log(inside))
            variances.append((1 / inside).sum())
            influence.append((signs / inside) @ np.array(corners) * counts.sum())
            rests_on.append(inside.min())
        of_all = np.array(estimates)
        return Figures(of_all, np.array(influence), _wald(of_all, np.array(variances)), np.array(rests_on))

    return found


def means(groups: FloatArray, numbers: FloatArray) -> Statistic:
    """Means of a number in groups (k, a)."""

    def found(counts: FloatArray) -> Figures:
        inside = groups @ counts
        mean = (groups @ (counts * numbers)) / inside
        off = groups * (numbers - mean[:, np.newaxis])
        influence = off * (counts.sum() / inside)[:, np.newaxis]
        return Figures(mean, influence, _wald(mean, (off**2 @ counts) / (inside - 1) / inside), inside)

    return found


def least_squares(design: FloatArray, response: FloatArray, robust: bool) -> Statistic:
    """Coefficients of a linear regression on columns of a design (a, k); errors as usual, or robust ones (HC0)."""

    def found(counts: FloatArray) -> Figures:
        n, inverse = counts.sum(), np.linalg.inv((design.T * counts) @ design)
        coefficients = inverse @ (design.T @ (counts * response))
        left = response - design @ coefficients
        influence = n * (inverse @ design.T) * left
        variances = np.diag(inverse) * (counts @ left**2) / (n - design.shape[1])
        used = influence**2 @ counts / n**2 if robust else variances
        return Figures(coefficients, influence, _wald(coefficients, used), np.full(len(coefficients), counts.sum()))

    return found


def logistic(design: FloatArray, response: FloatArray, robust: bool = False) -> Statistic:
    """Coefficients of a logistic regression of zeros and ones, by Newton's steps; errors as usual, or robust ones."""

    def found(counts: FloatArray) -> Figures:
        coefficients = np.zeros(design.shape[1])
        for _ in range(_STEPS):
            fitted = 1 / (1 + np.exp(-design @ coefficients))
            inverse = np.linalg.inv((design.T * (counts * fitted * (1 - fitted))) @ design)
            step = inverse @ (design.T @ (counts * (response - fitted)))
            coefficients = coefficients + step
            if np.abs(step).max() < 1e-10:
                break
        else:
            raise ArithmeticError("Newton's steps did not end")
        influence = counts.sum() * (inverse @ design.T) * (response - fitted)
        used = influence**2 @ counts / counts.sum() ** 2 if robust else np.diag(inverse)
        return Figures(coefficients, influence, _wald(coefficients, used), np.full(len(coefficients), counts.sum()))

    return found


def quantiles(numbers: FloatArray, at: tuple[float, ...]) -> Statistic:
    """Quantiles of a number whose classes are one wide, by straight lines inside of them; intervals are Woodruff's."""
    ends, shares_at = np.append(np.unique(numbers), numbers.max() + 1), np.array(at)

    def found(counts: FloatArray) -> Figures:
        n = counts.sum()
        below = np.array([counts[numbers < end].sum() for end in ends]) / n

        def at_share(share: FloatArray) -> FloatArray:
            return np.asarray(np.interp(share, below, ends))

        def interval(factor: FloatArray) -> tuple[FloatArray, FloatArray]:
            half = Z * np.sqrt(shares_at * (1 - shares_at) / n * factor)
            return at_share(shares_at - half), at_share(shares_at + half)

        estimates = at_share(shares_at)
        # What matters is whether a record is below; of the class of the quantile itself a part of the records is.
        influence = np.clip(estimates[:, np.newaxis] - numbers, 0.0, 1.0)
        return Figures(estimates, influence, interval, n * np.minimum(shares_at, 1 - shares_at))

    return found


def chi_square(counts: FloatArray, one: FloatArray, other: FloatArray) -> tuple[float, int]:
    """The statistic of independence of two columns, and its degrees of freedom."""
    table = (one * counts) @ other.T
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(((table - expected) ** 2 / expected).sum()), (len(one) - 1) * (len(other) - 1)
