"""Weighted frequencies from a release of groups: by the effective channel of a column beside the classes of weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np

from funnel.errors import SpecError
from funnel.estimation.affine import AffineEstimates
from funnel.estimation.counted import Released
from funnel.estimation.grouped import counted, estimate_grouped
from funnel.estimation.rounded_errors import RoundedErrors
from funnel.estimation.told_channel import FEW, EffectiveChannels, ToldChannel
from funnel.estimation.weighted import WeightClasses, WeightedEstimate
from funnel.joint import FloatArray, IntArray

# Shares that are tried for the ends of an interval: so many, and then so many between the last two, twice.
_TRIED, _BETWEEN, _TIMES = 257, 33, 2
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class GroupedWeightedEstimate(WeightedEstimate):
    """Weighted shares from a release of groups.

    Attributes
    ----------
    left_out : float
        The largest share of records whose value and class few records have together. Intervals have room for them,
        whatever these are.
    """

    left_out: float = field(kw_only=True)

    @property
    def about(self) -> str:
        """What errors are of, and what is not in them."""
        room = "intervals have room for the rounding of the published probabilities"
        few = f", and for the at most {self.left_out:.2%} of records that are told of together" if self.left_out else ""
        return f"{super().about}; {room}{few}"


def estimate_weighted_grouped(
    released: Released,
    channels: EffectiveChannels,
    weight: str,
    classes: WeightClasses,
    by: tuple[str, ...] | None,
    *,
    sampling: bool,
    confidence: float,
) -> GroupedWeightedEstimate:
    """`funnel.estimate_weighted` of the records of a release of groups: of one column.

    A weighted share R solves ``Σ_j (1[j in x] - R) w_j p_j = 0`` over the pairs j of a value and a class. For every R
    the sum has an affine estimate that is off by no more than the rounding of the channel allows
    (`funnel.estimation.affine`), and the interval is all R for which it is not significantly off zero (Fieller 1954).
    The weights of the estimate are chosen for the R that the published shares lead to, and not by the records. Pairs
    that few records have are not told one by one: how many of them have a value, and how many a class, is what the
    published shares of these leave, and R is in the interval whatever they are.

    Parameters
    ----------
    released, weight, classes, sampling, confidence
        As of `funnel.estimate_weighted`.
    channels : EffectiveChannels
    by : tuple of str, or None

    Raises
    ------
    DataError
        If the records are not those of the release.
    SpecError
        If it is not one published column beside the weights, or nothing is told of both.

    Notes
    -----
    O(rows) in two passes, then O(k a² b) for k values.
    """
    others = [column for column in channels.columns if column != weight]
    if weight not in channels.columns:
        raise SpecError(f"{weight!r} is no published column; these are {', '.join(channels.columns)}")
    if by is None or len(by) != 1 or by[0] not in others:
        raise SpecError(
            "columns that were published in groups are weighted one at a time, since nothing is told of three "
            f"together: name one with --by, of {', '.join(others)}"
        )
    if unknown := [label for label in classes if label not in channels.values(weight)]:
        raise SpecError(f"{unknown[0]!r} is no class of weights of this release")
    told = channels.of((*by, weight))
    margins = _margin(channels, by[0]), _margin(channels, weight)
    counts = counted(released, channels, told)
    found = of_counts(counts, told, margins, classes, sampling=sampling, confidence=confidence)
    alone = estimate_grouped(
        released, channels, by, method="inverse", sampling=sampling, confidence=confidence, simultaneous=False
    )
    of_records = dict(zip(alone.cells, alone.frequencies.tolist(), strict=True))
    cells = tuple((value,) for value in found.values)
    return GroupedWeightedEstimate(
        by,
        weight,
        cells,
        *(found.frequencies, found.errors, found.lower, found.upper, found.least, found.largest),
        np.array([of_records.get(cell, np.nan) for cell in cells]),
        told.records,
        sampling,
        confidence,
        left_out=found.few,
    )


class WeightedFigures(NamedTuple):
    """Weighted shares of k values, as of `WeightedEstimate`; ``few`` of the records are told of together at most."""

    values: tuple[str, ...]
    frequencies: FloatArray
    errors: FloatArray
    lower: FloatArray
    upper: FloatArray
    least: FloatArray
    largest: FloatArray
    few: float


Limits = dict[str, tuple[float, float]]
"""Between which the share of every value of a column is, as it is published."""


def of_counts(
    counts: IntArray,
    told: ToldChannel,
    margins: tuple[Limits, Limits],
    classes: WeightClasses,
    *,
    sampling: bool = False,
    confidence: float = 0.95,
) -> WeightedFigures:
    """As `estimate_weighted_grouped`, from counts (b + 1,) of the outputs of the channel of a column and its weights.

    Parameters
    ----------
    counts : ndarray of int, shape (b + 1,)
    told : ToldChannel
    margins : pair of mappings
        Of all values of the column, and of all classes, between which their shares are.
    classes, sampling, confidence
        As of `funnel.estimate_weighted`.

    Raises
    ------
    SpecError
        If no class has a weight.
    """
    if not (heaviest := max((most for _, _, most in classes.values()), default=0.0)) > 0:
        raise SpecError(f"no class of {told.columns[1]!r} that is given has a weight")
    weights = {label: np.array(classes.get(label, (0.0, 0.0, 0.0))) / heaviest for label in margins[1]}
    values = tuple(dict.fromkeys(value for value, _ in told.inputs if value != FEW))
    whole = np.array([weights.get(of_class, np.zeros(3)) for _, of_class in told.inputs]).reshape(-1, 3).T
    members = np.array([[value == one for value, _ in told.inputs] for one in values], dtype=np.float64)
    own = whole[:, np.newaxis] * members.reshape(len(values), len(told.inputs))
    few = _Few.of(told, margins, weights, values)
    shares = told.shares
    sums = own @ shares + few.own, np.maximum(whole @ shares + few.whole, _ROUNDING)
    at = sums[0][0] / sums[1][0]
    aims = np.concatenate([own[0] - np.outer(at, whole[0]), whole[:1]])
    seen = counts / counts.sum()
    figures = [
        _Weighted(told, two, aims[[x, -1]], float(at[x]), seen, few.of_value(x), sampling, confidence)
        for x, two in enumerate(_pairs(told, aims))
    ]
    frequencies, errors, lower, upper = np.array([one.figures for one in figures]).reshape(len(values), 4).T
    least, largest = _spread(frequencies, *sums)
    return WeightedFigures(values, frequencies, errors, lower, upper, least, largest, few.share)


def _margin(channels: EffectiveChannels, column: str) -> Limits:
    """Between which the share of every value of a column is, as it is published by itself."""
    rare = min(1.0, channels.fewest / channels.records)
    found = dict.fromkeys(channels.values(column), (0.0, rare))
    try:
        told = channels.of((column,))
    except SpecError:
        # None of its values has enough records.
        return found
    return {**found, **{value: limits for (value,), limits in _limits(told).items() if value != FEW}}


def _limits(told: ToldChannel) -> dict[tuple[str, ...], tuple[float, float]]:
    """Between which the share of every input is: a step is also told of what is less."""
    limits = [
        (share - told.step / 2 if share > 1.5 * told.step else 0.0, share + told.step / 2)
        for share in told.shares.tolist()
    ]
    return dict(zip(told.inputs, limits, strict=True))


@dataclass(frozen=True, eq=False)
class _Few:
    """What pairs of a value and a class count that few records have, which are not told of one by one.

    How many records of a value, or of a class, have such pairs is what its own published share leaves.

    Attributes
    ----------
    own : ndarray, shape (3, k)
        What is taken for k values, by the mean, the least and the largest weight of classes.
    whole : ndarray, shape (3,)
        In all.
    of_own : ndarray, shape (2, k)
        By the mean, at least and at most.
    of_whole : ndarray, shape (2,)
    share : float
        Of the records, at most.
    """

    own: FloatArray
    whole: FloatArray
    of_own: FloatArray
    of_whole: FloatArray
    share: float

    @classmethod
    def of(
        cls,
        told: ToldChannel,
        margins: tuple[Limits, Limits],
        weights: Mapping[str, FloatArray],
        values: Sequence[str],
    ) -> _Few:
        """From the shares that are published, which are right to half a step."""
        limits = _limits(told)
        untold = [pair for pair in product(*margins) if pair not in limits]
        share = sum(most for (value, _), (_, most) in limits.items() if value == FEW) + told.left_out
        share = min(1.0, share) if untold else 0.0

        def left(place: int, label: str) -> FloatArray:
            """Between which the share of records is that have this value, or class, in such a pair."""
            if all(pair[place] != label for pair in untold):
                return np.zeros(2)
            least, most = (sum(ends[end] for pair, ends in limits.items() if pair[place] == label) for end in (0, 1))
            low, high = margins[place][label]
            return np.array([min(share, max(0.0, low - most)), min(share, max(0.0, high - least))])

        of_class = {label: left(1, label) for label in margins[1]}
        parts = np.array([weights[label][:, np.newaxis] * of_class[label] for label in of_class])
        ends = parts.sum(axis=0)
        heaviest = max((weights[label][0] for _, label in untold), default=0.0)
        of_whole = np.minimum(ends[0], heaviest * share)
        own, of_own = np.zeros((3, len(values))), np.zeros((2, len(values)))
        for x, value in enumerate(values):
            classes = [label for one, label in untold if one == value]
            if not classes:
                continue
            known = np.array([weights[label] for label in classes])
            common = np.array([of_class[label].mean() for label in classes]) + _ROUNDING
            records = left(0, value)
            of_own[:, x] = records[0] * known[:, 0].min(), records[1] * known[:, 0].max()
            own[:, x] = records.mean() * (common @ known) / common.sum()
        return cls(own, ends.mean(axis=1), of_own, of_whole, share)

    def of_value(self, x: int) -> FloatArray:
        """What is taken for a value and in all, (2, 3): itself, at least and at most."""
        own = [self.own[0, x], *self.of_own[:, x]]
        whole = [min(self.whole[0], self.of_whole[1]), *self.of_whole]
        return np.array([own, whole])


def _spread(shares: FloatArray, own: FloatArray, whole: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What shares become if weights within classes are as unlike their means as they can be.

    By the factors that the odds of a value change by, with the classes that its records, and all others, are published
    to have.
    """
    rest = np.maximum(whole[:, np.newaxis] - own, _ROUNDING)
    odds = np.maximum(own[0] / rest[0], _ROUNDING)
    least, largest = shares * (own[1] / rest[2] / odds), shares * (own[2] / rest[1] / odds)
    left = 1 - shares
    return least / np.maximum(least + left, _ROUNDING), largest / np.maximum(largest + left, _ROUNDING)


def _pairs(told: ToldChannel, aims: FloatArray) -> list[AffineEstimates]:
    """Of every aim but the last one its estimate, and that of the last."""
    found = told.estimates_of(aims)
    places = [np.array([x, len(aims) - 1]) for x in range(len(aims) - 1)]
    return [AffineEstimates(found.constants[some], found.weights[some], found.told[some]) for some in places]


@dataclass(frozen=True, eq=False)
class _Weighted:
    """One weighted share R, from estimates of ``Σ (1[j in x] - at) w_j p_j`` and of ``Σ w_j p_j``.

    Attributes
    ----------
    told : ToldChannel
    found : AffineEstimates
        The two.
    aims : ndarray, shape (2, a)
    at : float
    seen : ndarray, shape (b + 1,)
        Shares of the outputs.
    few : ndarray, shape (2, 3)
        What pairs that few records have add to the value, and in all: what is taken, at least and at most.
    sampling : bool
    confidence : float
    """

    told: ToldChannel
    found: AffineEstimates
    aims: FloatArray
    at: float
    seen: FloatArray
    few: FloatArray
    sampling: bool
    confidence: float

    @property
    def figures(self) -> tuple[float, float, float, float]:
        """The share, its standard error, and an interval."""
        untold = np.nan, np.nan, 0.0, 1.0
        differs, weight = self.found.constants + self.found.weights @ self.seen[:-1] + self._taken
        if not self.found.told.all() or weight <= 0:
            return untold
        share = float(np.clip(self.at + differs / weight, 0.0, 1.0))
        error = float(self._tried(np.array([share]))[1].errors[0] / weight)
        tried = np.unique(np.append(np.linspace(0.0, 1.0, _TRIED), share))
        inside = np.flatnonzero(self._inside(tried))
        if not len(inside):
            return share, error, share, share
        lower = self._end(tried[max(inside[0] - 1, 0)], tried[inside[0]])
        upper = self._end(tried[min(inside[-1] + 1, len(tried) - 1)], tried[inside[-1]])
        return untold if upper - lower >= 1 else (share, error, lower, upper)

    def _tried(self, shares: FloatArray) -> tuple[FloatArray, RoundedErrors]:
        """If R is one of some shares (m,): what is estimated to be zero, and how exactly."""
        mix = np.column_stack([np.ones(len(shares)), self.at - shares])
        found = AffineEstimates(
            mix @ self.found.constants, mix @ self.found.weights, np.ones(len(shares), dtype=np.bool_)
        )
        prior, aims = self.told.shares / self.told.shares.sum(), mix @ self.aims if self.sampling else None
        errors = RoundedErrors.of(found, self.told, prior, self.told.records, aims)
        return mix @ self._taken + found.constants + found.weights @ self.seen[:-1], errors

    @property
    def _taken(self) -> FloatArray:
        """What pairs that few records have are taken to add to both estimates."""
        own, whole = self.few[:, 0]
        return np.array([own - self.at * whole, whole])

    def _inside(self, shares: FloatArray) -> FloatArray:
        """Whether R could be each of some shares."""
        values, known = self._tried(shares)
        half = known.half_lengths(self.confidence) + _ROUNDING
        (own, own_least, own_most), (whole, least, most) = self.few
        below = own_least - own - shares * (most - whole)
        above = own_most - own - shares * (least - whole)
        return np.asarray((values >= -half - above) & (values <= half - below))

    def _end(self, outside: float, inside: float) -> float:
        """The last share on the way from one that R can be to one that it cannot be."""
        for _ in range(_TIMES):
            tried = np.linspace(outside, inside, _BETWEEN)
            first = int(np.flatnonzero(self._inside(tried))[0])
            outside, inside = float(tried[max(first - 1, 0)]), float(tried[first])
        return inside
