"""Weighted frequencies: shares of the population that survey weights stand for, from released classes of weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from funnel.errors import SpecError
from funnel.estimation.combined import NoisyShares, fit_of
from funnel.estimation.counted import Released, output_counts_by
from funnel.estimation.departed_shares import DepartedShares
from funnel.estimation.fit import normal_quantile, require_few
from funnel.estimation.layout import json_cells, json_settings, table
from funnel.estimation.plain_counts import CountNoise, PlainCounts
from funnel.estimation.rare import AtMost, RareValues
from funnel.estimation.ratio import ratio
from funnel.estimation.value_cells import cells_of
from funnel.joint import FloatArray
from funnel.protocol import Protocol

WeightClasses = Mapping[str, tuple[float, float, float]]
"""Of every class of weights its mean, and its least and its largest weight."""


@dataclass(frozen=True, eq=False)
class WeightedEstimate:
    """Estimated weighted shares of true values, ``Σ_k w_k f(x, k) / Σ_k w_k f(k)`` over the classes k of weights.

    Attributes
    ----------
    columns : tuple of str
        What is estimated; the column of weights is none of them.
    weight : str
        The column of weights.
    cells : tuple of tuple of str
        Their values.
    frequencies : ndarray, shape (cells,)
        Weighted shares; nan where the records cannot tell.
    errors : ndarray, shape (cells,)
        Standard errors by the delta method, for the means of the classes as they are given.
    lower, upper : ndarray, shape (cells,)
        Intervals for these means.
    least, largest : ndarray, shape (cells,)
        What the estimated shares become if the weights within each class are as unlike their mean as they can be: the
        one for a value's records, the other for all other records. No error of the estimate is in them.
    unweighted : ndarray, shape (cells,)
        Shares of the records.
    records : int
    sampling : bool
    confidence : float
        Of each interval by itself.
    design_effect : float
        By which the variance of drawing the records is multiplied.

    Examples
    --------
    >>> import funnel, numpy as np
    >>> from funnel.estimation.weighted import estimate_weighted
    >>> symbols = (("a", "low"), ("a", "high"), ("b", "low"), ("b", "high"))
    >>> inputs = funnel.Alphabet(("job", "weight"), symbols)
    >>> joint = funnel.Joint.from_counts([[300, 100, 100, 50], [100, 100, 100, 150]], inputs=inputs)
    >>> protocol = funnel.fit("grr", joint, funnel.LIP(2.0))
    >>> classes = {"low": (1, 0, 2), "high": (3, 2, 4)}
    >>> found = estimate_weighted(np.array([380, 210, 200, 210]), protocol, "weight", classes)
    >>> bool((found.least < found.frequencies).all()), bool((found.frequencies < found.largest).all())
    (True, True)
    """

    columns: tuple[str, ...]
    weight: str
    cells: tuple[tuple[str, ...], ...]
    frequencies: FloatArray
    errors: FloatArray
    lower: FloatArray
    upper: FloatArray
    least: FloatArray
    largest: FloatArray
    unweighted: FloatArray
    records: int
    sampling: bool
    confidence: float
    design_effect: float = 1.0

    @property
    def about(self) -> str:
        """What errors are of, and what is not in them."""
        randomness = (
            "errors are of the random answers and of drawing these records, with their weights"
            + (f" and a design effect of {self.design_effect:g}" if self.design_effect != 1 else "")
            if self.sampling
            else "errors are of the random answers alone: the estimates are about these records"
        )
        return (
            f"{self.records:,} records, weighted by {self.weight}; {randomness}; intervals at {self.confidence:.0%}; "
            "every class of weights stands for its mean: least and largest are what shares are if weights within the "
            "classes are as far from it as they can be"
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values; what cannot be told is None."""

        names = ("frequency", "error", "lower", "upper", "least", "largest", "unweighted")
        return {
            **json_settings(self, "columns", "weight", "records", "sampling", "design_effect", "confidence"),
            "cells": json_cells(self.cells, **dict(zip(names, self._figures, strict=True))),
        }

    @property
    def _figures(self) -> tuple[FloatArray, ...]:
        intervals = self.frequencies, self.errors, self.lower, self.upper
        return (*intervals, self.least, self.largest, self.unweighted)

    def __repr__(self) -> str:
        rows = [(*self.columns, "weighted", "error", "from", "to", "least", "largest", "of records")]
        for cell, figures in zip(self.cells, zip(*self._figures, strict=True), strict=True):
            rows.append((*cell, *("–" if np.isnan(one) else f"{one:.4f}" for one in figures)))
        return table(rows, len(self.columns), self.about)


def estimate_weighted(
    released: Released,
    protocol: Protocol,
    weight: str,
    classes: WeightClasses,
    by: str | Sequence[str] | None = None,
    *,
    sampling: bool = False,
    design_effect: float = 1.0,
    confidence: float = 0.95,
    at_most: AtMost | None = None,
    rounded: float = 0.0,
    beside: NoisyShares | None = None,
    departed: DepartedShares | None = None,
    noise: CountNoise | None = None,
) -> WeightedEstimate:
    """Estimate how common true values are in the population that survey weights stand for.

    The weights themselves are never published, since one that is nearly unique is a name; their classes are a published
    column like any other, under the bound. Every class stands for one number.

    Parameters
    ----------
    released : pandas or pyarrow table, path of a parquet file, or ndarray of int, shape (b,)
        As of `funnel.estimate`.
    protocol : Protocol
    weight : str
        The column of the classes, one that the protocol reads.
    classes : mapping of str to (mean, least, largest)
        Of the weights of every class, none below 0. A class that is not there, such as that of missing weights, counts
        nothing.
    by : str or sequence of str, optional
        Columns to estimate, crossed; by default all that the protocol reads but the weights.
    sampling, confidence, at_most, rounded, beside, departed
        As of `funnel.estimate`. With ``sampling`` records are taken to be drawn one by one, each with its weight;
        strata and clusters of a survey are not known here.
    design_effect : float
        By how much larger the variance of the sample is than that of records drawn one by one with these weights, as
        its publisher says: strata lower it, clusters raise it. The random answers do not depend on the design, and
        their variance is not multiplied. It goes with ``sampling``.
    noise : CountNoise, optional
        In the counts that an invariant protocol was made for.

    Returns
    -------
    WeightedEstimate

    Raises
    ------
    DataError
        If records and protocol do not belong together, or there are none.
    SpecError
        If a column or a class is not known, no class has a weight, there are too many values, or the design effect is
        not above 0 or without ``sampling``.

    Notes
    -----
    A weighted share is a ratio of two linear functions of the shares p of true values, ``Σ_j w_j 1[j in x] p_j`` over
    ``Σ_j w_j p_j``: its error is that of the delta method, its interval Fieller's (`funnel.estimation.ratio`).

    Examples
    --------
    >>> import funnel, numpy as np
    >>> from funnel.estimation.weighted import estimate_weighted
    >>> symbols = (("a", "low"), ("a", "high"), ("b", "low"), ("b", "high"))
    >>> inputs = funnel.Alphabet(("job", "weight"), symbols)
    >>> joint = funnel.Joint.from_counts([[300, 100, 100, 50], [100, 100, 100, 150]], inputs=inputs)
    >>> protocol = funnel.fit("grr", joint, funnel.LIP(2.0))
    >>> counts = np.array([380, 210, 200, 210])
    >>> found = estimate_weighted(counts, protocol, "weight", {"low": (1, 0, 2), "high": (3, 2, 4)})
    >>> found.cells, bool(abs(found.frequencies.sum() - 1) < 1e-9)
    ((('a',), ('b',)), True)
    """
    z = normal_quantile(confidence)
    inputs, columns = protocol.inputs, _weighted_columns(protocol, weight, by, sampling, design_effect)
    counts_as_usual = protocol.is_invariant
    if not counts_as_usual:
        require_few(protocol)
    of_class = [symbol[inputs.columns.index(weight)] for symbol in inputs.symbols]
    numbers = np.array(_numbers(classes, of_class)).T
    if not (heaviest := float(numbers.max())) > 0:
        raise SpecError(f"no class of {weight!r} that is given has a weight")
    means, low, high = numbers / heaviest
    cells, cell_of = cells_of(inputs, columns)
    c = len(cells)
    members = (cell_of == np.arange(c)[:, np.newaxis]).astype(float)
    counts = output_counts_by(released, protocol)[()]
    aims = np.concatenate([members * means, members, members * low, members * high, [means, low, high]])
    if counts_as_usual:
        aimed = partial(PlainCounts.of(protocol, counts, noise).aimed, aims)
    else:
        values = RareValues.of(protocol, at_most, rounded, departed)
        aimed = partial(fit_of(values, "em", beside).aimed, counts, aims)
    told = aimed(sampling)
    if design_effect != 1:
        answers = aimed(False).covariance
        told = replace(told, covariance=answers + design_effect * (told.covariance - answers))
    _, plain, light, most, (_, lightest, most_of_all) = np.split(told.fitted, np.arange(1, 5) * c)
    ratios = [ratio(told, x, 4 * c, z, 0.0, 1.0) for x in range(c)]
    shares, errors, lower, upper = np.array(ratios).T
    return WeightedEstimate(
        columns,
        weight,
        cells,
        shares,
        errors,
        lower,
        upper,
        _share(light, most_of_all - most) + 0 * shares,
        _share(most, lightest - light) + 0 * shares,
        np.where(told.told[c : 2 * c], plain, np.nan),
        int(counts.sum()),
        sampling,
        confidence,
        design_effect,
    )


def _weighted_columns(
    protocol: Protocol, weight: str, by: str | Sequence[str] | None, sampling: bool, design_effect: float
) -> tuple[str, ...]:
    """The columns that are asked for, if they can be weighted."""
    inputs = protocol.inputs
    if weight not in inputs.columns:
        raise SpecError(f"{weight!r} is no column that the protocol reads; these are {', '.join(inputs.columns)}")
    if not 0 < design_effect < np.inf or (design_effect != 1 and not sampling):
        raise SpecError(
            f"a design effect of {design_effect:g} multiplies the variance of the sample: give a number above 0, and "
            "ask for errors of the sample too (sampling)"
        )
    others = tuple(column for column in inputs.columns if column != weight)
    columns = others if by is None else (by,) if isinstance(by, str) else tuple(by)
    if not columns or len(set(columns)) != len(columns) or not set(columns) <= set(others):
        raise SpecError(f"name columns once each, of {', '.join(others)}; {weight!r} is what they are weighted by")
    return columns


def _numbers(classes: WeightClasses, of_class: Sequence[str]) -> list[tuple[float, float, float]]:
    """Mean, least and largest weight of every input."""
    if unknown := [label for label in classes if label not in of_class]:
        raise SpecError(f"{unknown[0]!r} is no class of weights that the protocol reads")
    for label, (mean, low, high) in classes.items():
        if not 0 <= low <= mean <= high < np.inf:
            raise SpecError(f"the weights of the class {label!r} are from {low} to {high}, with a mean of {mean}")
    return [classes.get(label, (0.0, 0.0, 0.0)) for label in of_class]


def _share(part: FloatArray, rest: FloatArray) -> FloatArray:
    """A part of the whole; all of it where there is no rest."""
    # Functions that were fitted may be a rounding below zero.
    part, rest = np.maximum(part, 0.0), np.maximum(rest, 0.0)
    whole = part + rest
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
