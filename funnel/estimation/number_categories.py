"""Numbers that categories stand for, and the figures of one cell out of linear functions of their shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from funnel.errors import SpecError
from funnel.estimation.fit import normal_quantile
from funnel.estimation.linear import Aimed
from funnel.estimation.ratio import Ratio, ratio
from funnel.joint import FloatArray, IntArray

StandFor = Mapping[str, float | tuple[float, float] | None]
"""What categories stand for: a number, an interval of numbers, or none."""


@dataclass(frozen=True, eq=False)
class Categories:
    """Categories of numbers in rising order: the intervals (k, 2) they stand for, and that of every input, or -1."""

    ends: FloatArray
    category: IntArray

    @classmethod
    def of(cls, values: Sequence[str], column: str, numbers: StandFor | None) -> Categories:
        """Of the values of a column that inputs have, in their order."""
        # Sources are read by what stands above estimates.
        from funnel.readers.cells import number_in

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

    def aims(self, places: IntArray) -> FloatArray:
        """These functions of one cell, as weights of the inputs (m,) that are in it, shape (size, m)."""
        k = self.category[places]
        half = (self.ends[:, 1] - self.ends[:, 0]) / 2
        upto = k <= np.arange(len(self.ends))[:, np.newaxis]
        return np.where(k >= 0, np.concatenate([[self.middles[k], half[k]], upto]), 0.0)


class NumbersOfCell:
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
