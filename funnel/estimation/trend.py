"""estimate_trend: how shares change from version to version, with errors and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from funnel.errors import SpecError
from funnel.estimation.layout import json_figure, json_settings, shown, table
from funnel.estimation.share_estimate import Estimate
from funnel.joint import FloatArray


@dataclass(frozen=True, eq=False)
class Change:
    """A weighted sum of the shares of versions, for every cell; nan where a version cannot tell the share.

    Attributes
    ----------
    values, errors, lower, upper : ndarray, shape (cells,)
    """

    values: FloatArray
    errors: FloatArray
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class Trend:
    """Shares of cells over versions, and their changes.

    Attributes
    ----------
    columns : tuple of str
    cells : tuple of tuple of str
        Those that all versions have.
    versions : tuple of str
    times : ndarray, shape (versions,)
    shares, errors : ndarray, shape (versions, cells)
    changes : tuple of Change
        Of every version but the first, since the one before.
    whole : Change
        From the first to the last.
    slope : Change
        Of the straight line of least squares through the shares, a unit of time.
    same_people : bool
        Whether versions may be about the same people, so that nothing is known of how their answers go together.
    confidence : float
        Of each interval by itself.

    Examples
    --------
    >>> import funnel, numpy as np
    >>> from funnel.estimation.trend import estimate_trend
    >>> protocol = funnel.fit("grr", funnel.Joint.from_counts([[300, 100], [100, 500]]), funnel.LIP(0.5))
    >>> years = [funnel.estimate(np.array(counts), protocol) for counts in ([430, 570], [480, 520])]
    >>> trend = estimate_trend(years, versions=["2020", "2021"])
    >>> trend.cells, bool(trend.whole.values[0] > 0)
    ((('X0',), ('X1',)), True)
    """

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    versions: tuple[str, ...]
    times: FloatArray
    shares: FloatArray
    errors: FloatArray
    changes: tuple[Change, ...]
    whole: Change
    slope: Change
    same_people: bool
    confidence: float

    @property
    def about(self) -> str:
        """What intervals allow for, in one sentence."""
        people = (
            "intervals allow for any dependence of answers of the same people"
            if self.same_people
            else "answers of different versions are independent"
        )
        return f"{len(self.versions)} versions; {people}; intervals at {self.confidence:.0%}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values; what cannot be told is None."""

        def change(of: Change, place: int) -> dict[str, float | None]:
            return {
                "value": json_figure(of.values[place]),
                "error": json_figure(of.errors[place]),
                "lower": float(of.lower[place]),
                "upper": float(of.upper[place]),
            }

        return {
            **json_settings(self, "columns", "versions"),
            "times": self.times.tolist(),
            **json_settings(self, "same_people", "confidence"),
            "cells": [
                {
                    "values": list(cell),
                    "frequencies": [json_figure(value) for value in self.shares[:, place]],
                    "errors": [json_figure(value) for value in self.errors[:, place]],
                    "changes": [change(one, place) for one in self.changes],
                    "whole": change(self.whole, place),
                    "slope": change(self.slope, place),
                }
                for place, cell in enumerate(self.cells)
            ],
        }

    def __repr__(self) -> str:
        rows = [(*self.columns, *self.versions, "change", "error", "from", "to")]
        for place, cell in enumerate(self.cells):
            value, error = self.whole.values[place], self.whole.errors[place]
            limits = f"{self.whole.lower[place]:+.4f}", f"{self.whole.upper[place]:+.4f}"
            shares = ("–" if np.isnan(share) else f"{share:.4f}" for share in self.shares[:, place])
            rows.append((*cell, *shares, *shown(value, error, "+.4f"), *limits))
        return table(rows, len(self.columns), self.about)


def estimate_trend(
    estimates: Sequence[Estimate],
    *,
    same_people: bool = True,
    versions: Sequence[str] | None = None,
    times: Sequence[float] | None = None,
) -> Trend:
    """How shares change over versions that were estimated one by one.

    Parameters
    ----------
    estimates : sequence of Estimate
        One of each version, in order, of the same columns and with the same settings, each by the effective channel of
        its version, which is the one in its ``protocol.json``.
    same_people : bool
        Whether the same people may be in several of them. What somebody is answered then depends on what they were
        answered before, and the released rows do not tell how; intervals are wide enough for any dependence. If false,
        everybody vouches for it that nobody is in two of them.
    versions : sequence of str, optional
        Their names, by default 1, 2, ….
    times : sequence of float, optional
        When they were, rising; by default 0, 1, 2, ….

    Raises
    ------
    SpecError
        If there are fewer than two, they are not of the same columns or settings, or share no cell.

    Notes
    -----
    The interval of ``Σ w_t p_t`` joins those of the p_t: by the root of the sum of the squared distances of their ends
    if versions are independent (Zou and Donner 2008), and by the sum of these distances otherwise, which holds for any
    correlation of normal errors, since none makes the error of a sum larger than the sum of the errors.

    Examples
    --------
    >>> import funnel, numpy as np
    >>> from funnel.estimation.trend import estimate_trend
    >>> joint = funnel.Joint.from_counts([[300, 100], [100, 500]])
    >>> protocol = funnel.fit("grr", joint, funnel.LIP(0.5))
    >>> years = [funnel.estimate(np.array(counts), protocol) for counts in ([430, 570], [4800, 5200])]
    >>> trend = estimate_trend(years, same_people=False)
    >>> bool(trend.whole.lower[0] < trend.whole.values[0] < trend.whole.upper[0])
    True
    """
    if len(estimates) < 2:
        raise SpecError("a trend needs the estimates of at least two versions")
    first = estimates[0]
    for other in estimates[1:]:
        if (other.columns, other.given) != (first.columns, first.given):
            raise SpecError(
                f"the versions are estimated by different columns, {', '.join(first.columns)} and "
                f"{', '.join(other.columns)}; estimate all by the same"
            )
        if (other.confidence, other.sampling, other.simultaneous) != (
            first.confidence,
            first.sampling,
            first.simultaneous,
        ):
            raise SpecError("the versions are estimated with different settings; estimate all with the same")
    places = [{cell: place for place, cell in enumerate(one.cells)} for one in estimates]
    cells = tuple(cell for cell in first.cells if all(cell in of for of in places))
    if not cells:
        raise SpecError(f"the versions have no value of {' and '.join(first.columns)} in common")
    when = np.arange(len(estimates), dtype=np.float64) if times is None else np.array(times, dtype=np.float64)
    names = tuple(map(str, range(1, len(estimates) + 1))) if versions is None else tuple(versions)
    if when.shape != (len(estimates),) or not (np.diff(when) > 0).all() or len(names) != len(estimates):
        raise SpecError(f"there are {len(estimates)} versions; give as many names, and as many rising times")

    def over(name: str) -> FloatArray:
        return np.array([getattr(one, name)[[of[c] for c in cells]] for one, of in zip(estimates, places, strict=True)])

    shares, errors, lower, upper = map(over, ("frequencies", "errors", "lower", "upper"))

    def change(weights: FloatArray) -> Change:
        return _change(weights[:, np.newaxis], shares, errors, lower, upper, same_people)

    steps = np.eye(len(estimates))
    around = when - when.mean()
    return Trend(
        first.columns,
        cells,
        names,
        when,
        shares,
        errors,
        tuple(change(steps[t] - steps[t - 1]) for t in range(1, len(estimates))),
        change(steps[-1] - steps[0]),
        change(around / (around**2).sum()),
        same_people,
        first.confidence,
    )


def _change(
    weights: FloatArray, shares: FloatArray, errors: FloatArray, lower: FloatArray, upper: FloatArray, same_people: bool
) -> Change:
    """Of weights (versions, 1) and figures (versions, cells)."""
    used = weights[:, 0] != 0
    w, p, e, low, up = weights[used], shares[used], errors[used], lower[used], upper[used]
    values = (w * p).sum(axis=0)
    ends = np.minimum(w * low, w * up), np.maximum(w * low, w * up)
    outer = ends[0].sum(axis=0), ends[1].sum(axis=0)
    if same_people:
        return Change(values, np.abs(w * e).sum(axis=0), *outer)
    below, above = (np.sqrt(((w * p - end) ** 2).sum(axis=0)) for end in ends)
    # Of what a version cannot tell there is only a range.
    untold = np.isnan(values)
    return Change(
        values,
        np.sqrt(((w * e) ** 2).sum(axis=0)),
        np.where(untold, outer[0], values - below),
        np.where(untold, outer[1], values + above),
    )
