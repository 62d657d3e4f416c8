"""estimate_numbers: means, totals and quantiles of a published column of numbers, with errors and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.errors import SpecError
from funnel.estimation.cells import cells_of, named_columns
from funnel.estimation.counted import Released, output_counts_by
from funnel.estimation.fit import Fit, normal_quantile, too_many
from funnel.estimation.information import MOST_WORK
from funnel.estimation.layout import table
from funnel.estimation.linear import Aimed
from funnel.estimation.methods import Method, method_for
from funnel.estimation.plain_counts import PlainCounts
from funnel.estimation.rare import AtMost, RareValues
from funnel.estimation.ratio import Ratio, ratio
from funnel.joint import FloatArray, IntArray
from funnel.protocol import Protocol

StandFor = Mapping[str, float | tuple[float, float] | None]
"""What categories stand for: a number, an interval of numbers, or none."""

QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True, eq=False)
class NumberEstimate:
    """Means, totals and quantiles of a column of numbers, in every cell of other columns.

    Attributes
    ----------
    column : str
    by : tuple of str
    cells : tuple of tuple of str
        Their values; one of none without ``by``.
    means, mean_errors, mean_lower, mean_upper : ndarray, shape (cells,)
        Of the records of a cell that have a number; mean and error are nan where the records cannot tell them, and then
        the interval is that of all numbers there are.
    within : ndarray, shape (cells,)
        By how much a mean can be off besides, because each interval is taken for its middle.
    totals, total_errors, total_lower, total_upper : ndarray, shape (cells,)
        Sums over the records of a cell.
    at : tuple of float
        The shares of the quantiles.
    quantiles, quantile_lower, quantile_upper : ndarray, shape (cells, len(at))
        Within an interval by a straight line; their limits are numbers that a category stands for, or ends of its
        interval, and need no such line.
    told : ndarray of bool, shape (cells, 2 + len(at))
        Whether the interval of the mean, that of the total and those of the quantiles leave anything out. An interval
        of all numbers there are says nothing, whatever stands beside it.
    records : int
    sampling : bool
        Whether errors are of the law that the records are a sample of, or of these records.
    confidence : float
        Of each interval by itself.

    Examples
    --------
    >>> import funnel, numpy as np
    >>> joint = funnel.Joint.from_counts([[300, 60], [100, 540]], inputs=["20", "40"])
    >>> protocol = funnel.fit("grr", joint, funnel.LIP(0.5))
    >>> print(funnel.estimate_numbers(np.array([430, 570]), protocol, "X", quantiles=[0.5]))
    ...                                                          # doctest: +ELLIPSIS
    of X             estimate  ...
    """

    column: str
    by: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    means: FloatArray
    mean_errors: FloatArray
    mean_lower: FloatArray
    mean_upper: FloatArray
    within: FloatArray
    totals: FloatArray
    total_errors: FloatArray
    total_lower: FloatArray
    total_upper: FloatArray
    at: tuple[float, ...]
    quantiles: FloatArray
    quantile_lower: FloatArray
    quantile_upper: FloatArray
    told: npt.NDArray[np.bool_]
    records: int
    sampling: bool
    confidence: float

    @property
    def about(self) -> str:
        """What errors are of, in one sentence."""
        randomness = (
            "errors are of the random answers and of drawing these records from a population"
            if self.sampling
            else "errors are of the random answers alone: the estimates are about these records"
        )
        off = float(np.nanmax(self.within, initial=0.0))
        middles = f"; intervals are taken for their middles, which changes a mean by at most {off:.4g}" if off else ""
        return f"{self.records:,} records; {randomness}; intervals at {self.confidence:.0%}{middles}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values; what cannot be told is None."""

        def told(value: float) -> float | None:
            return None if np.isnan(value) else float(value)

        def figure(name: str, place: int) -> dict[str, float | None]:
            value, error, low, up = self._figures(name)[:, place].tolist()
            return {"value": told(value), "error": told(error), "lower": low, "upper": up}

        return {
            "column": self.column,
            "by": list(self.by),
            "records": self.records,
            "sampling": self.sampling,
            "confidence": self.confidence,
            "cells": [
                {
                    "values": list(cell),
                    "mean": {**figure("mean", place), "within": told(self.within[place])},
                    "total": figure("total", place),
                    "quantiles": [
                        {"at": q, "value": told(value), "lower": float(low), "upper": float(up)}
                        for q, value, low, up in zip(
                            self.at,
                            self.quantiles[place],
                            self.quantile_lower[place],
                            self.quantile_upper[place],
                            strict=True,
                        )
                    ],
                }
                for place, cell in enumerate(self.cells)
            ],
        }

    def __str__(self) -> str:
        rows = [(*self.by, f"of {self.column}", "estimate", "error", "from", "to")]
        parts = [self._figures("mean"), self._figures("total")]
        none = np.full(len(self.cells), np.nan)
        parts += [
            np.array([self.quantiles[:, k], none, self.quantile_lower[:, k], self.quantile_upper[:, k]])
            for k in range(len(self.at))
        ]
        names = ["mean", "total", *(f"{q:.0%} are at most" for q in self.at)]
        for place, cell in enumerate(self.cells):
            if not self.told[place].any():
                rows.append((*cell, "nothing is told", *_row(np.nan, np.nan, *parts[0][2:, place])))
                continue
            for name, figures, told in zip(names, parts, self.told[place], strict=True):
                value, error, low, up = figures[:, place]
                rows.append((*cell, name, *_row(value if told else np.nan, error, low, up)))
        return table(rows, len(self.by) + 1, self.about)

    def _figures(self, name: str) -> FloatArray:
        """Of the mean or of the total: values, errors, and the limits of intervals; shape (4, cells)."""
        return np.array([getattr(self, f"{name}{part}") for part in ("s", "_errors", "_lower", "_upper")])


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def _row(value: float, error: float, low: float, up: float) -> tuple[str, ...]:
    # Quantiles have no errors, only intervals.
    said = ("–", "not told") if np.isnan(value) else (_short(value), "" if np.isnan(error) else _short(error))
    return (*said, _short(low), _short(up))


def estimate_numbers(
    released: Released,
    protocol: Protocol,
    of: str,
    by: str | Sequence[str] | None = None,
    *,
    numbers: StandFor | None = None,
    quantiles: Sequence[float] = QUARTILES,
    method: Method | None = None,
    sampling: bool = False,
    confidence: float = 0.95,
    at_most: AtMost | None = None,
    rounded: float = 0.0,
) -> NumberEstimate:
    """Estimate means, totals and quantiles of a column of numbers, from what was drawn for it.

    Parameters
    ----------
    released : pandas or pyarrow table, path of a parquet file, or ndarray of int, shape (b,)
        As of `funnel.estimate`.
    protocol : Protocol
    of : str
        The column of numbers, one that the protocol reads.
    by : str or sequence of str, optional
        Columns in every cell of which it is estimated: others of the protocol, or columns of the table.
    numbers : mapping of str to float, pair of float or None, optional
        What the categories stand for: a number, an interval by its least and largest number, or None for no number, as
        the missing ones. Categories that are not listed are the numbers that they are written as, and those that are
        written as none have none.
    quantiles : sequence of float
        Between 0 and 1.
    method, sampling, confidence, at_most, rounded
        As of `funnel.estimate`.

    Raises
    ------
    DataError
        If records and protocol do not belong together, or there are none.
    SpecError
        If a column or a setting is not known, no category has a number, or intervals overlap.
    SolverError
        If the likeliest shares are not found.

    Notes
    -----
    A mean is a ratio of two linear functions of the shares; its interval is Fieller's (1954), of all ratios that the
    difference from is not significant, so it holds where a cell has few records as well. A quantile is at most a number
    if a share is at least q: its interval has the numbers for which no one-sided test, each with half of what is left
    of the confidence and in order, rules that out (Woodruff 1952). Memory: cells × categories × b.

    Examples
    --------
    >>> import funnel, numpy as np
    >>> joint = funnel.Joint.from_counts([[300, 60, 40], [100, 300, 200]], inputs=["20", "40", "60"])
    >>> protocol = funnel.fit("grr", joint, funnel.LIP(0.5))
    >>> found = funnel.estimate_numbers(np.array([390, 365, 245]), protocol, of="X")
    >>> found.means.round(1).tolist(), found.mean_errors.round(1).tolist(), found.quantiles.tolist()
    ([35.4], [0.6], [[20.0, 40.0, 40.0]])
    """
    if not 0 < confidence < 1:
        raise SpecError("the confidence of an interval is between 0 and 1, such as 0.95")
    at = tuple(float(q) for q in quantiles)
    if not all(0 < q < 1 for q in at):
        raise SpecError("quantiles are asked for by shares between 0 and 1, such as 0.5")
    if of not in protocol.inputs.columns:
        raise SpecError(f"{of!r} is none of the protocol's columns, {', '.join(protocol.inputs.columns)}")
    columns, given, inner = named_columns(protocol, () if by is None else by, released)
    if of in columns:
        raise SpecError(f"{of!r} is what is estimated; take it out of by")
    method = method_for(protocol, given, method)
    if method == "count" and at_most:
        raise SpecError("plain counts need no rare values; leave at_most out")
    b, a = protocol.size
    if method != "count" and (protocol.is_sparse or float(a) * b * min(a, b) > MOST_WORK):
        raise too_many(a, b)
    place = protocol.inputs.columns.index(of)
    stands = Categories.of([symbol[place] for symbol in protocol.inputs.symbols], of, numbers)
    cells, cell_of = cells_of(protocol, inner)
    rare = None if method == "count" else RareValues.of(protocol, at_most, rounded)
    grouped = output_counts_by(released, protocol, given)
    records = sum(int(counts.sum()) for counts in grouped.values())
    aims = stands.aims(cell_of, len(cells))
    order = [(*given, *inner).index(column) for column in columns]
    names, parts = [], []
    for group, counts in grouped.items():
        n = int(counts.sum())
        if rare is None:
            aimed = PlainCounts(protocol, counts).aimed(aims, sampling)
        else:
            aimed = Fit(rare.in_part(n / records), np.arange(a), a, method).aimed(counts, aims, sampling)
        for place, cell in enumerate(cells):
            whole = (*group, *cell)
            names.append(tuple(whole[i] for i in order))
            here = aimed.part(slice(place * stands.size, (place + 1) * stands.size))
            parts.append(_Cell(here, stands, n, confidence).figures(at))
    figures: dict[str, Any] = {name: np.array([part[name] for part in parts]) for name in parts[0]}
    for name in ("quantiles", "quantile_lower", "quantile_upper"):
        figures[name] = figures[name].reshape(len(parts), len(at))
    return NumberEstimate(
        column=of,
        by=columns,
        cells=tuple(names),
        at=at,
        records=records,
        sampling=sampling,
        confidence=confidence,
        **figures,
    )


@dataclass(frozen=True, eq=False)
class Categories:
    """Categories of numbers in rising order: the intervals (k, 2) they stand for, and that of every input, or -1."""

    ends: FloatArray
    category: IntArray

    @classmethod
    def of(cls, values: Sequence[str], column: str, numbers: StandFor | None) -> Categories:
        """Of the values of a column that inputs have, in their order."""
        # Sources are read by what stands above estimates.
        from funnel.source.cells import number_in

        labels = tuple(dict.fromkeys(values))
        said = dict(numbers or {})
        for label in said:
            if label not in labels:
                raise SpecError(f"{label!r} is no value of {column!r} in this protocol")
        found: dict[str, tuple[float, float]] = {}
        for label in labels:
            one = said[label] if label in said else number_in(label)
            if one is not None:
                low, high = one if isinstance(one, tuple) else (one, one)
                if not (np.isfinite(low) and np.isfinite(high) and low <= high):
                    raise SpecError(f"{label!r} of {column!r} stands for no interval of finite numbers, least first")
                found[label] = (float(low), float(high))
        if not found:
            raise SpecError(
                f"no value of {column!r} stands for a number; say which do, as numbers={{{labels[0]!r}: 10}}, or with "
                f"--number '{labels[0]}=10' of funnel estimate"
            )
        rising = sorted(found, key=lambda label: found[label])
        ends = np.array([found[label] for label in rising])
        if (ends[1:, 0] < ends[:-1, 1]).any():
            raise SpecError(f"the intervals of {column!r} overlap, so that its values have no order; correct numbers")
        position = {label: k for k, label in enumerate(rising)}
        return cls(ends, np.array([position.get(value, -1) for value in values]))

    @property
    def middles(self) -> FloatArray:
        return np.asarray(self.ends.mean(axis=1))

    @property
    def size(self) -> int:
        """Linear functions for every cell: the sum of numbers, that of half widths, and shares up to each category."""
        return len(self.ends) + 2

    def aims(self, cell_of: IntArray, cells: int) -> FloatArray:
        """These functions, one cell after the other, as weights of the inputs (cells * size, a)."""
        aims = np.zeros((cells, self.size, len(cell_of)))
        (has,) = np.nonzero(self.category >= 0)
        cell, k = cell_of[has], self.category[has]
        half = (self.ends[:, 1] - self.ends[:, 0]) / 2
        aims[cell, 0, has], aims[cell, 1, has] = self.middles[k], half[k]
        for upto in range(len(self.ends)):
            inside = k <= upto
            aims[cell[inside], 2 + upto, has[inside]] = 1.0
        return aims.reshape(-1, len(cell_of))


class _Cell:
    """Figures of one cell out of its linear functions."""

    def __init__(self, aimed: Aimed, stands: Categories, n: int, confidence: float) -> None:
        self._aimed, self._stands, self._n = aimed, stands, n
        self._z = normal_quantile(confidence)

    def _row(self, *pairs: tuple[int, float]) -> FloatArray:
        row = np.zeros(len(self._aimed.told))
        for place, weight in pairs:
            row[place] += weight
        return row

    def figures(self, at: tuple[float, ...]) -> dict[str, Any]:
        """Every array of a `NumberEstimate`, of this cell."""
        fitted, told = self._aimed.fitted, self._aimed.told
        every = self._stands.size - 1
        mean, error, low, up = self._mean()
        total, total_error, total_low, total_up = self._total(fitted, bool(told[0]))
        there = fitted[every] > 0
        within = fitted[1] / fitted[every] if there and told[1] and told[every] else self._widest()
        numbers = [self._quantile(q, fitted, told) for q in at]
        limits = [(low, up, *self._means), (total_low, total_up, *self._totals)]
        limits += [(least, most, *self._numbers) for _, least, most in numbers]
        return {
            "means": mean,
            "mean_errors": error,
            "mean_lower": low,
            "mean_upper": up,
            "within": within,
            "totals": total,
            "total_errors": total_error,
            "total_lower": total_low,
            "total_upper": total_up,
            "quantiles": [value for value, _, _ in numbers],
            "quantile_lower": [low for _, low, _ in numbers],
            "quantile_upper": [up for _, _, up in numbers],
            # Where there is one number only, that is known.
            "told": [least == most or low > least or up < most for low, up, least, most in limits],
        }

    @property
    def _means(self) -> tuple[float, float]:
        """The least and the largest there can be; likewise of totals and of numbers."""
        middles = self._stands.middles
        return float(middles[0]), float(middles[-1])

    @property
    def _totals(self) -> tuple[float, float]:
        # Whoever has no number adds nothing.
        least, most = self._means
        return self._n * min(0.0, least), self._n * max(0.0, most)

    @property
    def _numbers(self) -> tuple[float, float]:
        ends = self._stands.ends
        return float(ends[0, 0]), float(ends[-1, 1])

    def _widest(self) -> float:
        return float((self._stands.ends[:, 1] - self._stands.ends[:, 0]).max() / 2)

    def _mean(self) -> Ratio:
        return ratio(self._aimed, 0, self._stands.size - 1, self._z, *self._means)

    def _total(self, fitted: FloatArray, told: bool) -> tuple[float, float, float, float]:
        row, (least, most) = self._row((0, 1.0)), self._totals
        if not told:
            return np.nan, np.nan, least, most
        total, error = self._n * float(fitted[0]), self._n * self._aimed.error(row)
        half = self._z * error + self._n * self._aimed.off(row) + 1e-12 * (most - least)
        around = self._n * float(row @ self._aimed.unbiased)
        low, up = min(around - half, total), max(around + half, total)
        return total, error, float(np.clip(low, least, most)), float(np.clip(up, least, most))

    def _quantile(self, q: float, fitted: FloatArray, told: Any) -> tuple[float, float, float]:
        ends, every = self._stands.ends, self._stands.size - 1
        low, up = self._numbers
        if not told[every] or fitted[every] <= 0:
            return np.nan, low, up
        upto = fitted[2:] / fitted[every]
        k = min(int(np.searchsorted(upto, q - 1e-12)), len(ends) - 1)
        before = float(upto[k - 1]) if k else 0.0
        part = (q - before) / (float(upto[k]) - before) if upto[k] > before else 1.0
        value = float(ends[k, 0] + min(1.0, part) * (ends[k, 1] - ends[k, 0]))
        if not (told[2 + k] and (k == 0 or told[1 + k])):
            value = np.nan
        # Share up to a category less q of all: negative where the quantile is above it.
        over, widths = [], []
        for j in range(len(ends)):
            row = self._row((2 + j, 1.0), (every, -q))
            over.append(float(row @ self._aimed.unbiased))
            widths.append(self._z * self._aimed.error(row) + self._aimed.off(row))
        for j in range(len(ends) - 1):
            if not told[2 + j]:
                continue
            if over[j] + widths[j] >= 0:
                break
            low = float(ends[j + 1, 0])
        for j in reversed(range(len(ends))):
            if j < len(ends) - 1 and not told[2 + j]:
                continue
            if over[j] - widths[j] < 0:
                break
            up = float(ends[j, 1])
        # A fit at the edge of the simplex can lie outside what the linear estimates say.
        return float(np.clip(value, low, up)), low, up
