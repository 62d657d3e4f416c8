"""Means, totals and quantiles of a column of numbers in a release of groups, in all or in parts of another column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from funnel.errors import SpecError
from funnel.estimation.counted import Released
from funnel.estimation.grouped import counted, likeliest
from funnel.estimation.grouped_parts import Linear, Means, means
from funnel.estimation.numbers import Categories, NumberEstimate, StandFor
from funnel.estimation.rounded_errors import half_length
from funnel.estimation.told_channel import FEW, EffectiveChannels
from funnel.joint import FloatArray

_LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class GroupedNumberEstimate(NumberEstimate):
    """Numbers of a release of groups, whose intervals have room for rounding and for values of few records.

    Attributes
    ----------
    left : ndarray, shape (cells,)
        The share of the records of each cell whose number nothing is told of; intervals allow for all that it may be.
    """

    left: FloatArray = field(kw_only=True)

    @property
    def about(self) -> str:
        """What errors are of, in one sentence."""
        said = f"{super().about}, with room for the rounding of the published probabilities"
        most = float(self.left.max(initial=0.0))
        return f"{said}; values that few records have may be any others, at most {most:.2%} of a cell" if most else said


def estimate_grouped_numbers(
    released: Released,
    channels: EffectiveChannels,
    of: str,
    by: tuple[str, ...],
    *,
    numbers: StandFor | None,
    at: tuple[float, ...],
    method: str,
    sampling: bool,
    confidence: float,
) -> GroupedNumberEstimate:
    """`funnel.estimate_numbers` of the records of a release of groups.

    Cells that few records have are not told of one by one, so their numbers are known within limits alone. Lower limits
    are those of estimates with the least numbers there, upper ones with the largest.

    Parameters
    ----------
    released, of, numbers, method, sampling, confidence
        As of `funnel.estimate_numbers`.
    channels : EffectiveChannels
    by : tuple of str
        One column at most.
    at : tuple of float
        Shares of quantiles.

    Raises
    ------
    DataError
        If the records are not those of the release.
    SpecError
        If more is asked for than pairs tell, nothing is told of these columns together, or no value has a number.
    """
    if len(by) > 1:
        raise SpecError(
            "of columns in groups nothing is told of three together: estimate numbers in the cells of one other column"
        )
    told = channels.of((of, *by))
    categories = tuple(sorted(frozenset[str]().union(*channels.meant[of].values())))
    stands = Categories.of(categories, of, numbers)
    counts = counted(released, channels, told)
    n, fit = int(counts.sum()), likeliest(told, counts)
    if by:
        column = channels.of(by)
        alone = counted(released, channels, column)
        cells = [value for value in column.inputs if value[0] != FEW and any(x[1] == value[0] for x in told.inputs)]
        if not cells:
            raise SpecError(f"nothing is told of {of} by {by[0]}: too few records have any of their values together")
        at_cells = [column.inputs.index(cell) for cell in cells]
        parts = Linear.of(column, alone[:-1] / n, likeliest(column, alone), np.eye(len(column.inputs))).at(at_cells)
    else:
        cells, parts = [()], Linear.certain(np.ones(1))
    found = [
        _Cell(
            stands,
            categories,
            {value[0]: x for x, value in enumerate(told.inputs) if value[1:] == cell and value[0] != FEW},
            len(told.inputs),
        )
        for cell in cells
    ]
    aims = np.vstack([one.aims for one in found])
    linear, size = Linear.of(told, counts[:-1] / n, fit, aims), len(found[0].aims)
    each = [
        _figures(one, linear.at(range(k * size, (k + 1) * size)), parts.at([k]), fit, n, at, confidence, sampling)
        for k, one in enumerate(found)
    ]
    figures: dict[str, Any] = {name: np.array([one[name] for one in each], dtype=np.float64) for name in each[0]}
    ends = found[0].ends
    limits = [
        (*(stands.middles[[0, -1]]), figures["mean_lower"], figures["mean_upper"]),
        (*_totals(stands.middles, n), figures["total_lower"], figures["total_upper"]),
    ]
    limits += [
        (ends[0, 0], ends[-1, 1], figures["quantile_lower"][:, j], figures["quantile_upper"][:, j])
        for j in range(len(at))
    ]
    # Where there is one number only, that is known.
    rules = [(least == most) | (low > least + _LEAST) | (up < most - _LEAST) for least, most, low, up in limits]
    figures["told"] = np.array(rules, dtype=np.bool_).T
    return GroupedNumberEstimate(
        column=of, by=by, cells=tuple(cells), at=at, records=n, sampling=sampling, confidence=confidence, **figures
    )


class _Cell:
    """The linear functions of the pair that figures of one cell are made of."""

    def __init__(self, stands: Categories, categories: tuple[str, ...], inside: Mapping[str, int], inputs: int) -> None:
        self.ends = stands.ends
        middles = stands.middles
        self.base, self.range = float(middles[0]), max(float(middles[-1] - middles[0]), 1e-300)
        of = dict(zip(categories, stands.category.tolist(), strict=True))
        self.told = {of[one]: x for one, x in inside.items() if of[one] >= 0}
        others = [of[one] for one in categories if one not in inside]
        #: Places of numbers that nothing is told of; whether what has no number is among that, too.
        self.unknown, self.maybe_none = sorted(k for k in others if k >= 0), any(k < 0 for k in others)
        self.scaled = (middles - self.base) / self.range
        self.without, self.of = np.zeros(inputs), np.zeros((len(middles), inputs))
        for one, x in inside.items():
            if of[one] >= 0:
                self.of[of[one], x] = 1.0
            else:
                self.without[x] = 1.0
        k = len(middles)
        numbers = [self._above(self.scaled, left) for left in self.left]
        steps = [
            self._above((np.arange(k) <= j).astype(np.float64), left) for j in range(k) for left in self.left_of(j)
        ]
        totals = [self._total(left) for left in self.left_of_total]
        self.aims: FloatArray = np.array([self.without, *numbers, *totals, *steps])

    def _above(self, numbers: FloatArray, left: float) -> FloatArray:
        return np.asarray((numbers - left) @ self.of - left * self.without)

    def _total(self, left: float) -> FloatArray:
        return np.asarray((self.scaled - left) @ self.of + (self._zero - left) * self.without)

    @property
    def _zero(self) -> float:
        """What a record without a number adds to a total, in the units of numbers here: nothing."""
        return -self.base / self.range

    @property
    def left(self) -> tuple[float, float]:
        """The least and the largest number, in units of their range, of what is not told of."""
        if self.maybe_none:
            return 0.0, 1.0
        return (self.scaled[self.unknown[0]], self.scaled[self.unknown[-1]]) if self.unknown else (0.0, 0.0)

    @property
    def left_of_total(self) -> tuple[float, float]:
        """The same, where what has no number adds nothing."""
        values = [*self.scaled[self.unknown], *([self._zero] if self.maybe_none else [])]
        return (min(values), max(values)) if values else (0.0, 0.0)

    def left_of(self, upto: int) -> tuple[float, float]:
        """Whether what is not told of is surely at most a category, and whether it may be."""
        if self.maybe_none:
            return 0.0, 1.0
        inside = [k <= upto for k in self.unknown]
        return float(bool(inside) and all(inside)), float(any(inside))


def _figures(
    cell: _Cell,
    linear: Linear,
    part: Linear,
    fit: FloatArray,
    n: int,
    at: tuple[float, ...],
    confidence: float,
    sampling: bool,
) -> dict[str, object]:
    """Every array of a `NumberEstimate`, of one cell."""
    k, sample = len(cell.ends), n if sampling else None
    left = np.array([*cell.left, *(value for j in range(k) for value in cell.left_of(j))])
    places = [1, 2, *range(5, 5 + 2 * k)]
    same = [0] * len(places)
    found = means(linear.at(places), linear.at([0] * len(places)), part.at(same), left, confidence, sample)
    share = float(np.clip(part.middle[0], 0.0, 1.0))
    told = float(sum(fit[x] for x in cell.told.values()) + cell.without @ fit)
    open_ = max(0.0, share - told) if cell.unknown or cell.maybe_none else 0.0
    half = (cell.ends[:, 1] - cell.ends[:, 0]) / 2
    number = max(share - float(cell.without @ fit), 1e-12)
    most = float(half.max()) if cell.maybe_none else float(half[cell.unknown].max(initial=0.0))
    within = min(float(half.max()), (float(half @ (cell.of @ fit)) + open_ * most) / number)
    mean = cell.base + cell.range * float(found.values[:2].mean())
    return {
        "means": mean,
        "mean_errors": cell.range * float(found.errors[:2].max()) if not np.isnan(mean) else np.nan,
        "mean_lower": cell.base + cell.range * float(found.lower[0]),
        "mean_upper": cell.base + cell.range * float(found.upper[1]),
        "within": within,
        "left": min(1.0, open_ / max(share, 1e-12)),
        **_total(cell, linear.at([3, 4]), part, fit, n, confidence, sampling, open_),
        **_quantiles(cell, found, at),
    }


def _total(
    cell: _Cell, linear: Linear, part: Linear, fit: FloatArray, n: int, confidence: float, sampling: bool, open_: float
) -> dict[str, object]:
    """The sum of the numbers of a part: in units of the range above the base, as many as there are records."""
    left = np.array(cell.left_of_total)
    middle = linear.middle + (left + cell.base / cell.range) * part.middle
    weight = np.abs(left + cell.base / cell.range)
    errors, off = linear.errors + weight * part.errors, linear.off + weight * part.off
    if sampling:
        square = float((cell.scaled + cell.base / cell.range) ** 2 @ (cell.of @ fit)) + open_ * float(weight.max() ** 2)
        errors = np.sqrt(errors**2 + square / n)
    unit, ends = n * cell.range, cell.ends.mean(axis=1)
    least, most = _totals(ends, n)
    if not np.isfinite(errors).all():
        return {"totals": np.nan, "total_errors": np.nan, "total_lower": least, "total_upper": most}
    room = half_length(errors, off, confidence)
    low, up = float(unit * (middle - room)[0]), float(unit * (middle + room)[1])
    low, up = float(np.clip(low, least, most)), float(np.clip(up, least, most))
    return {
        "totals": float(np.clip(unit * middle.mean(), low, up)),
        "total_errors": float(unit * errors.max()),
        "total_lower": low,
        "total_upper": up,
    }


def _totals(middles: FloatArray, n: int) -> tuple[float, float]:
    """The least and the largest total there can be: whoever has no number adds nothing."""
    return n * min(0.0, float(middles[0])), n * max(0.0, float(middles[-1]))


def _quantiles(cell: _Cell, found: Means, at: Sequence[float]) -> dict[str, object]:
    """Of each share the number that so many are at most, by tests in order (Woodruff 1952)."""
    ends, k = cell.ends, len(cell.ends)
    surely, maybe = found.lower[2::2], found.upper[3::2]
    likely = (found.values[2::2] + found.values[3::2]) / 2
    values, lower, upper = [], [], []
    for q in at:
        # All are at most the largest.
        above = next((j for j in range(k) if j == k - 1 or maybe[j] >= q), k - 1)
        below = next((j for j in reversed(range(k)) if j == 0 or surely[j - 1] < q), 0)
        low, up = float(ends[above, 0]), float(ends[max(above, below), 1])
        lower.append(low)
        upper.append(up)
        if np.isnan(likely[: k - 1]).any():
            values.append(np.nan)
            continue
        rising = np.append(np.maximum.accumulate(likely[: k - 1]), 1.0)
        j = int(np.searchsorted(rising, q))
        before = float(rising[j - 1]) if j else 0.0
        part = (q - before) / (float(rising[j]) - before) if rising[j] > before else 1.0
        values.append(float(np.clip(ends[j, 0] + part * (ends[j, 1] - ends[j, 0]), low, up)))
    return {"quantiles": values, "quantile_lower": lower, "quantile_upper": upper}
