"""estimate: true frequencies from released records, with errors, and what cannot be told said so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from funnel.errors import SpecError
from funnel.estimation.counted import Released, output_counts
from funnel.estimation.left import intervals_left
from funnel.estimation.likelihood import likeliest_shares, on_simplex
from funnel.estimation.linear import LinearEstimate, variances
from funnel.joint import FloatArray, IntArray
from funnel.protocol import Protocol

METHODS = ("em", "inverse")
# Of a log-likelihood in nats: far less than what an error of a hundredth of a standard error changes.
_GAP = 1e-5
# How much of every value the reference has in which is decided what can be told.
_ALIKE = 0.5
_ROUNDING = 1e-12
# An output has at least so much of a record where the fit says it never comes.
_LEAST = 0.1


@dataclass(frozen=True, eq=False)
class Together:
    """Cells whose shares are told only in sum.

    Attributes
    ----------
    cells : tuple of tuple of str
    frequency, error, lower, upper : float
        Of their sum.
    """

    cells: tuple[tuple[str, ...], ...]
    frequency: float
    error: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated shares of true values, or of cells of them.

    Attributes
    ----------
    columns : tuple of str
        What is estimated: all columns the protocol reads, or those asked for.
    cells : tuple of tuple of str
        Their values; by default in the order of ``protocol.inputs``.
    frequencies : ndarray, shape (cells,)
        Shares of all records, nan where the records cannot tell.
    errors : ndarray, shape (cells,)
        Standard errors, nan where the records cannot tell.
    lower, upper : ndarray, shape (cells,)
        Intervals; of a share that cannot be told, what is left of it.
    together : tuple of Together
        Cells that are told only in sum.
    records : int
    method : "em" or "inverse"
    sampling : bool
        Whether errors are of the law that the records are a sample of, or of these records.
    confidence : float
        Of each interval by itself.

    Examples
    --------
    >>> import funnel, numpy as np
    >>> joint = funnel.Joint.from_counts([[300, 100], [100, 500]], inputs=["u", "v"])
    >>> print(funnel.estimate(np.array([430, 570]), funnel.fit("grr", joint, funnel.LIP(0.5)), sampling=True))
    ...                                                          # doctest: +ELLIPSIS
    X   share   error    from      to
    u  0.3...
    """

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    frequencies: FloatArray
    errors: FloatArray
    lower: FloatArray
    upper: FloatArray
    together: tuple[Together, ...]
    records: int
    method: str
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
        return f"{self.records:,} records; {randomness}; intervals at {self.confidence:.0%}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values; what cannot be told is None."""

        def told(value: float) -> float | None:
            return None if np.isnan(value) else float(value)

        figures = zip(self.cells, self.frequencies, self.errors, self.lower, self.upper, strict=True)
        return {
            "columns": list(self.columns),
            "records": self.records,
            "method": self.method,
            "sampling": self.sampling,
            "confidence": self.confidence,
            "cells": [
                {"values": list(cell), "frequency": told(f), "error": told(e), "lower": float(low), "upper": float(up)}
                for cell, f, e, low, up in figures
            ],
            "together": [
                {
                    "values": [list(cell) for cell in group.cells],
                    "frequency": group.frequency,
                    "error": group.error,
                    "lower": group.lower,
                    "upper": group.upper,
                }
                for group in self.together
            ],
        }

    def __str__(self) -> str:
        rows = [(*self.columns, "share", "error", "from", "to")]
        for cell, share, error, low, up in zip(
            self.cells, self.frequencies, self.errors, self.lower, self.upper, strict=True
        ):
            rows.append((*cell, *_told(share, error), f"{low:.4f}", f"{up:.4f}"))
        for group in self.together:
            label = " + ".join(" · ".join(cell) for cell in group.cells)
            blank = ("",) * (len(self.columns) - 1)
            figures = f"{group.lower:.4f}", f"{group.upper:.4f}"
            rows.append((label, *blank, *_told(group.frequency, group.error), *figures))
        k = len(self.columns)
        widths = [min(60, max(len(row[i]) for row in rows)) for i in range(k + 4)]
        lines = [
            "  ".join(
                text.ljust(width) if i < k else text.rjust(width)
                for i, (text, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        return "\n".join([*lines, self.about])


def _told(share: float, error: float) -> tuple[str, str]:
    return ("–", "not told") if np.isnan(share) else (f"{share:.4f}", f"{error:.4f}")


def estimate(
    released: Released,
    protocol: Protocol,
    by: str | Sequence[str] | None = None,
    *,
    method: Literal["em", "inverse"] = "em",
    sampling: bool = False,
    confidence: float = 0.95,
    bootstrap: int | None = None,
    seed: int | None = None,
) -> Estimate:
    """Estimate how common true values are, from what was drawn for them.

    Parameters
    ----------
    released : pandas or pyarrow table, path of a parquet file, or ndarray of int, shape (b,)
        The released records, or counts of the protocol's outputs, in their order.
    protocol : Protocol
        Of their release: ``funnel.Protocol.from_json(text of protocol.json)``.
    by : str or sequence of str, optional
        Columns to estimate, crossed; by default all, in the order of ``protocol.inputs``.
    method : "em" or "inverse"
        Maximum likelihood, by accelerated expectation maximisation; or the unbiased least squares inverse, moved to the
        nearest law.
    sampling : bool
        Whether the errors are also those of a sample: then estimates are of the population it is from. By default they
        are of these records, and only the random answers err.
    confidence : float
        Of the intervals, each by itself.
    bootstrap : int, optional
        So many releases are simulated for errors and intervals, at least 100; by default both are computed.
    seed : int, optional
        Of the simulation.

    Returns
    -------
    Estimate
        Intervals are around the linear estimate that is efficient at the fit, and cut at 0 and 1: unlike the fit, that
        estimate has no bias where a share is near zero.

    Raises
    ------
    DataError
        If records and protocol do not belong together, or there are none.
    SpecError
        If a column or a setting is not known, or there are too many values.

    Notes
    -----
    O(rows) in one pass for the counts; then O(a b min(a, b)) and O(a b) a step of the likelihood.

    Examples
    --------
    >>> import funnel, numpy as np
    >>> joint = funnel.Joint.from_counts([[300, 100], [100, 500]])
    >>> protocol = funnel.fit("grr", joint, funnel.LIP(0.5))
    >>> found = funnel.estimate(np.array([430, 570]), protocol)
    >>> bool(abs(found.frequencies.sum() - 1) < 1e-9), bool((found.lower <= found.upper).all())
    (True, True)
    """
    if method not in METHODS:
        raise SpecError(f"unknown method {method!r} of estimation; choose one of {', '.join(METHODS)}")
    if not 0 < confidence < 1:
        raise SpecError("the confidence of an interval is between 0 and 1, such as 0.95")
    if bootstrap is not None and bootstrap < 100:
        raise SpecError("a bootstrap needs at least 100 simulated releases; leave it out for computed errors")
    columns, cells, cell_of = _cells(protocol, by)
    counts = output_counts(released, protocol)
    fit = _Fit(protocol.matrix / protocol.matrix.sum(axis=0), cell_of, len(cells), method)
    shares, raw, linear = fit.of(counts)
    n = int(counts.sum())
    # That all shares together are one is no news.
    sums = [group for group in linear.sums if len(group) < len(cells)]
    groups = [[place] for place in range(len(cells))] + [list(group) for group in sums]
    members = np.zeros((len(groups), len(cells)))
    for row, group in enumerate(groups):
        members[row, group] = 1.0
    at = members @ np.bincount(cell_of, shares, len(cells))
    if bootstrap is None:
        errors = np.sqrt(variances(members @ linear.weights, fit.channel, shares, n, sampling))
        half = _quantile(confidence) * errors
        lower, upper = members @ raw - half, members @ raw + half
    else:
        simulated = fit.simulated(shares, n, bootstrap, sampling, np.random.default_rng(seed))
        around = members @ simulated - at[:, np.newaxis]
        errors = around.std(axis=1, ddof=1)
        tail = 100 * (1 - confidence) / 2
        lower = members @ raw - np.percentile(around, 100 - tail, axis=1)
        upper = members @ raw - np.percentile(around, tail, axis=1)
    # Where nothing is drawn the interval is a point, which rounding must not miss.
    lower, upper = np.clip(lower - _ROUNDING, 0.0, 1.0), np.clip(upper + _ROUNDING, 0.0, 1.0)
    single, told = slice(0, len(cells)), linear.told
    low, up = lower[single].copy(), upper[single].copy()
    if not told.all():
        aims = np.zeros((len(cells), len(cell_of)))
        aims[cell_of, np.arange(len(cell_of))] = 1.0
        low[~told], up[~told] = intervals_left(fit.channel, counts, shares, aims[~told], confidence)
    together = tuple(
        Together(
            tuple(cells[place] for place in group),
            *(float(figures[len(cells) + row]) for figures in (at, errors, lower, upper)),
        )
        for row, group in enumerate(sums)
    )
    return Estimate(
        columns,
        cells,
        np.where(told, at[single], np.nan),
        np.where(told, errors[single], np.nan),
        low,
        up,
        together,
        n,
        method,
        sampling,
        confidence,
    )


class _Fit:
    """Estimates by one method from counts of outputs of one channel."""

    def __init__(self, channel: FloatArray, cell_of: IntArray, cells: int, method: str) -> None:
        self.channel, self._cell_of, self._cells, self._method = channel, cell_of, cells, method

    def of(self, counts: IntArray, start: FloatArray | None = None) -> tuple[FloatArray, FloatArray, LinearEstimate]:
        """Shares (a,), unbiased shares of cells (cells,), and how these are made."""
        n, a = int(counts.sum()), self.channel.shape[1]
        seen = counts / n
        if self._method == "inverse":
            # The same weights whatever was drawn, so that nothing is biased.
            alike = np.full(a, 1 / a)
            linear = self._linear(self.channel @ alike, alike, self._cell_of, self._cells)
            every = self._linear(self.channel @ alike, alike, np.arange(a), a)
            return on_simplex(every.weights @ seen), linear.weights @ seen, linear
        shares = likeliest_shares(self.channel, seen, _GAP / n, start).shares
        reference = (1 - _ALIKE) * shares + _ALIKE / a
        # Of an output that the fit never gives, nothing may weigh without limit.
        outputs = np.maximum(self.channel @ shares, np.minimum(self.channel @ reference, _LEAST / n))
        linear = self._linear(outputs, reference, self._cell_of, self._cells)
        return shares, linear.weights @ seen, linear

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

    def _linear(self, outputs: FloatArray, reference: FloatArray, cell_of: IntArray, cells: int) -> LinearEstimate:
        seen = outputs > 0
        linear = LinearEstimate.of(self.channel[seen], outputs[seen], reference, cell_of, cells)
        if linear is None:
            a, b = self.channel.shape[1], self.channel.shape[0]
            raise SpecError(f"{a:,} values and {b:,} outputs are too many to estimate from at once; publish fewer")
        weights = np.zeros((cells, len(outputs)))
        weights[:, seen] = linear.weights
        return LinearEstimate(weights, linear.told, linear.sums)


def _cells(
    protocol: Protocol, by: str | Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], IntArray]:
    """Columns, cells, and the cell of every input."""
    inputs = protocol.inputs
    columns = inputs.columns if by is None else (by,) if isinstance(by, str) else tuple(by)
    unknown = [column for column in columns if column not in inputs.columns]
    if unknown or not columns or len(set(columns)) != len(columns):
        what = f"{unknown[0]!r} is no column" if unknown else "name columns once each"
        raise SpecError(f"{what}; the protocol is about {', '.join(inputs.columns)}")
    if columns == inputs.columns:
        return columns, inputs.symbols, np.arange(len(inputs))
    places = [inputs.columns.index(column) for column in columns]
    known: dict[tuple[str, ...], int] = {}
    of = [known.setdefault(tuple(symbol[place] for place in places), len(known)) for symbol in inputs.symbols]
    return columns, tuple(known), np.array(of, dtype=np.int64)


def _whole(shares: FloatArray, n: int) -> IntArray:
    """Whole numbers in proportion to shares that sum to n, by largest remainders."""
    counts = np.floor(shares * n).astype(np.int64)
    order = np.argsort(counts - shares * n, kind="stable")
    counts[order[: n - int(counts.sum())]] += 1
    return counts


def _quantile(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))
