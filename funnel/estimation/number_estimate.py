"""NumberEstimate: means, totals and quantiles as they were estimated, as text and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.estimation.layout import errors_of, json_figure, json_settings, table
from funnel.joint import FloatArray


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
    method : "count", "em", "inverse" or "combined"
        The last is of records and noisy counts together.
    sampling : bool
        Whether errors are of the population that the records are a sample of, or of these records.
    confidence : float
        Of each interval by itself.
    r : ndarray, shape (cells,), or None
        Of plain counts and means: usual variances for the population are multiplied by 1 + r.

    Examples
    --------
    >>> import funnel, numpy as np
    >>> from funnel.estimation.means import estimate_numbers
    >>> joint = funnel.Joint.from_counts([[300, 60], [100, 540]], inputs=["20", "40"])
    >>> protocol = funnel.fit("grr", joint, funnel.LIP(0.5))
    >>> print(estimate_numbers(np.array([430, 570]), protocol, "X", quantiles=[0.5]))
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
    method: str
    sampling: bool
    confidence: float
    r: FloatArray | None = None

    @property
    def about(self) -> str:
        """What errors are of, in one sentence."""
        randomness = errors_of("changes" if self.method == "count" else "answers", self.sampling)
        off = float(np.nanmax(self.within, initial=0.0))
        middles = f"; intervals are taken for their middles, which changes a mean by at most {off:.4g}" if off else ""
        usual = (
            ""
            if self.r is None
            else "; the usual standard error of a mean for the population is multiplied by √(1 + r)"
        )
        return f"{self.records:,} records; {randomness}; intervals at {self.confidence:.0%}{usual}{middles}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values; what cannot be told is None."""

        def figure(name: str, place: int) -> dict[str, float | None]:
            value, error, low, up = self._figures(name)[:, place].tolist()
            return {"value": json_figure(value), "error": json_figure(error), "lower": low, "upper": up}

        def mean(place: int) -> dict[str, float | None]:
            of_mean = {**figure("mean", place), "within": json_figure(self.within[place])}
            return of_mean if self.r is None else {**of_mean, "r": json_figure(self.r[place])}

        return {
            **json_settings(self, "column", "by", "records", "method", "sampling", "confidence"),
            "cells": [
                {
                    "values": list(cell),
                    "mean": mean(place),
                    "total": figure("total", place),
                    "quantiles": [
                        {"at": q, "value": json_figure(value), "lower": float(low), "upper": float(up)}
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

    def __repr__(self) -> str:
        last = [] if self.r is None else ["r"]
        rows = [(*self.by, f"of {self.column}", "estimate", "error", "from", "to", *last)]
        parts = [self._figures("mean"), self._figures("total")]
        none = np.full(len(self.cells), np.nan)
        parts += [
            np.array([self.quantiles[:, k], none, self.quantile_lower[:, k], self.quantile_upper[:, k]])
            for k in range(len(self.at))
        ]
        names = ["mean", "total", *(f"{q:.0%} are at most" for q in self.at)]
        for place, cell in enumerate(self.cells):
            if not self.told[place].any():
                rows.append(
                    (*cell, "nothing is told", *_row(np.nan, np.nan, *parts[0][2:, place]), *([""] * len(last)))
                )
                continue
            for name, figures, told in zip(names, parts, self.told[place], strict=True):
                value, error, low, up = figures[:, place]
                r = [] if self.r is None else [f"{self.r[place]:.3f}" if name == "mean" and told else ""]
                rows.append((*cell, name, *_row(value if told else np.nan, error, low, up), *r))
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
