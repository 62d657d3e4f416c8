"""Odds ratios of two published columns, counted as usual, with the errors of the records that were changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from funnel.estimation.counted import Released, output_counts_by
from funnel.estimation.fit import normal_quantile
from funnel.estimation.layout import errors_of, json_cells, json_settings, table
from funnel.estimation.plain_counts import PlainCounts, indicators
from funnel.estimation.value_cells import published_columns
from funnel.estimation.variance_ratios import require_invariant
from funnel.joint import FloatArray
from funnel.protocol import Protocol


@dataclass(frozen=True, eq=False)
class OddsRatios:
    """Odds ratios of the values of two columns, each against the commonest value of its column.

    Attributes
    ----------
    columns : tuple of str
        Both.
    reference : tuple of str
        The commonest value of each.
    cells : tuple of tuple of str
        A value of each column, none of them a reference.
    odds : ndarray, shape (cells,)
        ``p(one, other) p(reference) / (p(one, reference) p(reference, other))``; nan where a count is zero.
    log_errors : ndarray, shape (cells,)
        Standard errors of the natural logarithms.
    lower, upper : ndarray, shape (cells,)
    r : ndarray, shape (cells,)
        Usual variances of the logarithms for the population are multiplied by 1 + r.
    records : int
    sampling : bool
        Whether errors are of the population that the records are a sample of, or of these records.
    confidence : float
        Of each interval by itself.

    Examples
    --------
    >>> import funnel, numpy as np
    >>> from funnel.estimation.odds import estimate_odds
    >>> cells = funnel.Alphabet(("sex", "job"), (("f", "a"), ("f", "b"), ("m", "a"), ("m", "b")))
    >>> same = np.eye(4, dtype=np.uint64) * np.uint64(2**63)
    >>> protocol = funnel.Protocol(same, same[0], cells, cells, "invariant")
    >>> found = estimate_odds(np.array([20, 30, 40, 10]), protocol, "sex", "job", sampling=True)
    >>> found.reference, found.cells, found.odds.round(2).tolist(), found.log_errors.round(2).tolist()
    (('f', 'a'), (('m', 'b'),), [0.17], [0.46])
    """

    columns: tuple[str, str]
    reference: tuple[str, str]
    cells: tuple[tuple[str, ...], ...]
    odds: FloatArray
    log_errors: FloatArray
    lower: FloatArray
    upper: FloatArray
    r: FloatArray
    records: int
    sampling: bool
    confidence: float

    @property
    def about(self) -> str:
        """What the figures are, in one sentence."""
        against = " and ".join(
            f"{value} of {column}" for value, column in zip(self.reference, self.columns, strict=True)
        )
        return (
            f"{self.records:,} records, counted as usual; odds ratios are against {against}, with errors of their "
            f"logarithms; {errors_of('changes', self.sampling)}; intervals at {self.confidence:.0%}; usual standard "
            "errors for the population are multiplied by √(1 + r)"
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values; what cannot be told is None."""

        figures = {"odds_ratio": self.odds, "log_error": self.log_errors, "lower": self.lower, "upper": self.upper}
        return {
            **json_settings(self, "columns", "reference", "records", "sampling", "confidence"),
            "cells": json_cells(self.cells, **figures, r=self.r),
        }

    def __repr__(self) -> str:
        rows = [(*self.columns, "odds ratio", "log error", "from", "to", "r")]
        for cell, odds, error, low, up, r in zip(
            self.cells, self.odds, self.log_errors, self.lower, self.upper, self.r, strict=True
        ):
            if np.isnan(odds):
                rows.append((*cell, "–", "not told", "0", "∞", "–"))
            else:
                rows.append((*cell, *(f"{value:.4g}" for value in (odds, error, low, up)), f"{r:.3f}"))
        return table(rows, 2, self.about)


def estimate_odds(
    released: Released,
    protocol: Protocol,
    one: str,
    other: str,
    *,
    sampling: bool = False,
    confidence: float = 0.95,
) -> OddsRatios:
    """Odds ratios of two columns of an invariant release, against the commonest value of each.

    Parameters
    ----------
    released : pandas or pyarrow table, path of a parquet file, or ndarray of int, shape (b,)
        As of `funnel.estimate`.
    protocol : Protocol
        An invariant one.
    one, other : str
        Columns that it publishes.
    sampling, confidence
        As of `funnel.estimate`.

    Raises
    ------
    SpecError
        If the protocol is not invariant, or these are not two of its columns.
    DataError
        If records and protocol do not belong together, or there are none.

    Notes
    -----
    Intervals are Wald's of the logarithm: with sampling its variance is ``(1 + r) Σ 1/n`` over four counts, and without
    ``r Σ 1/n``. Where a count is zero nothing is told.

    Examples
    --------
    >>> import funnel, numpy as np
    >>> from funnel.estimation.odds import estimate_odds
    >>> joint = funnel.Joint.from_counts([[300, 60], [100, 300]], secret=["ill", "well"], inputs=["low", "high"])
    >>> protocol = funnel.fit("invariant", joint.with_secret(), funnel.Attribute(1.0))
    >>> found = estimate_odds(np.array([290, 70, 110, 290]), protocol, "S", "X")
    >>> found.cells, found.odds.round(2).tolist(), found.r.round(1).tolist()
    ((('ill', 'high'),), [0.09], [0.9])
    """
    require_invariant(protocol)
    plain = PlainCounts.of(protocol, output_counts_by(released, protocol)[()])
    return plain_odds(plain, one, other, sampling=sampling, confidence=confidence)


def plain_odds(
    plain: PlainCounts, one: str, other: str, *, sampling: bool = False, confidence: float = 0.95
) -> OddsRatios:
    """`estimate_odds` of records that are counted; parameters as there.

    Raises
    ------
    SpecError
        If these are not two of their columns, or the confidence is none.
    """
    from scipy.sparse import diags_array

    published_columns(plain.values, one, other)
    (rows, row), (columns, column) = plain.cells((one,)), plain.cells((other,))
    width = len(columns)
    inside = indicators(row * width + column, len(rows) * width)
    shares = inside @ plain.shares
    i, j = (int(shares.reshape(-1, width).sum(axis=axis).argmax()) for axis in (1, 0))
    k, m = (places.ravel() for places in np.meshgrid(*map(np.arange, (len(rows), width)), indexing="ij"))
    k, m = (places[(k != i) & (m != j)] for places in (k, m))
    # Values, references, and how the logarithm goes with each of the four counts.
    corners, signs = (
        np.array([k * width + m, k * width + j, i * width + m, i * width + j + 0 * k]),
        (1.0, -1.0, -1.0, 1.0),
    )
    there = (shares[corners] > 0).all(axis=0)
    slopes = np.divide(np.array(signs)[:, np.newaxis], shares[corners], out=np.zeros(corners.shape), where=there)
    log_odds = np.array(signs) @ np.log(np.where(there, shares[corners], 1.0))
    influence = sum(diags_array(slope) @ inside[corner] for slope, corner in zip(slopes, corners, strict=True))
    r = np.where(there, plain.ratio(influence), np.nan)
    usual = np.abs(slopes).sum(axis=0) / plain.n
    errors = np.sqrt((1 + r if sampling else r) * usual)
    half = np.where(there, normal_quantile(confidence) * errors, np.inf)
    return OddsRatios(
        (one, other),
        (rows[i][0], columns[j][0]),
        tuple((*rows[a], *columns[b]) for a, b in zip(k, m, strict=True)),
        np.where(there, np.exp(log_odds), np.nan),
        errors,
        np.exp(log_odds - half),
        np.exp(log_odds + half),
        r,
        plain.n,
        sampling,
        confidence,
    )
