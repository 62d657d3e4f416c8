"""Weighted frequencies from a release of groups: by the effective channel of a column beside the classes of weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np

from funnel.errors import SpecError
from funnel.estimation.affine import AffineEstimates, shortest
from funnel.estimation.counted import Released
from funnel.estimation.grouped import counted, estimate_grouped, half_length, rounded_errors
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
    that few records have are one input of which nothing is known but how many they are: it counts as the mean of all
    such pairs, and R is in the interval whatever they are.

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
    every = tuple(product(channels.values(by[0]), channels.values(weight)))
    counts = counted(released, channels, told)
    found = of_counts(counts, told, every, classes, sampling=sampling, confidence=confidence)
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


def of_counts(
    counts: IntArray,
    told: ToldChannel,
    every: Iterable[tuple[str, str]],
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
    every : iterable of (value, class)
        All pairs that there can be.
    classes, sampling, confidence
        As of `funnel.estimate_weighted`.

    Raises
    ------
    SpecError
        If no class has a weight.
    """
    if not (heaviest := max((most for _, _, most in classes.values()), default=0.0)) > 0:
        raise SpecError(f"no class of {told.columns[1]!r} that is given has a weight")
    values = tuple(dict.fromkeys(value for value, _ in told.inputs if value != FEW))
    untold = sorted({*every} - {*told.inputs})
    pairs = _Pairs.of(told.inputs, untold, values, classes, heaviest)
    known = np.array([value != FEW for value, _ in told.inputs])
    few = float((told.shares + told.step / 2)[~known].sum()) + told.left_out
    published = pairs.published(told)
    own, whole = pairs.own[0] @ published, max(float(pairs.whole[0] @ published), _ROUNDING)
    both = np.concatenate([pairs.own[0], pairs.whole[:1]])
    both[:-1] -= np.outer(own / whole, both[-1])
    # What is left of all records are those that are no input.
    beyond, aims = both[:, -1], both[:, :-1] - both[:, -1:]
    seen = counts / counts.sum()
    figures = [
        _Weighted(
            told, two, aims[[x, -1]], beyond[[x, -1]], own[x] / whole, seen, few, pairs.unsure(x), sampling, confidence
        ).figures
        for x, two in enumerate(_pairs(told, aims))
    ]
    frequencies, errors, lower, upper = np.array(figures).reshape(len(values), 4).T
    return WeightedFigures(
        values, frequencies, errors, lower, upper, *pairs.spread(frequencies, published), few if untold else 0.0
    )


@dataclass(frozen=True, eq=False)
class _Pairs:
    """What pairs of a value and a class weigh: by their mean, the least and the largest of their class.

    Attributes
    ----------
    own : ndarray, shape (3, k, a + 1)
        Of every input what counts for each of k values; of the input of pairs that few records have the mean of these,
        as of the last one, which is none: the records that no input is told of.
    whole : ndarray, shape (3, a + 1)
        What counts in all.
    untold : ndarray, shape (k + 1, pairs)
        By their mean, of every pair that few records have; in all in the last row.
    """

    own: FloatArray
    whole: FloatArray
    untold: FloatArray

    @classmethod
    def of(
        cls,
        inputs: Sequence[tuple[str, ...]],
        untold: Sequence[tuple[str, str]],
        values: Sequence[str],
        classes: WeightClasses,
        heaviest: float,
    ) -> _Pairs:
        """Weights as parts of the heaviest."""

        def weights(pairs: Sequence[tuple[str, ...]]) -> tuple[FloatArray, FloatArray]:
            whole = np.array([classes.get(pair[1], (0.0, 0.0, 0.0)) for pair in pairs]).reshape(-1, 3).T / heaviest
            members = np.array([[pair[0] == value for pair in pairs] for value in values], dtype=np.float64)
            return whole[:, np.newaxis] * members.reshape(len(values), len(pairs)), whole

        (own, whole), (few_own, few_whole) = weights([*inputs, (FEW, FEW)]), weights(untold)
        if untold:
            few = np.array([*(pair[0] == FEW for pair in inputs), True])
            own[..., few] = few_own.mean(axis=-1, keepdims=True)
            whole[:, few] = few_whole.mean(axis=-1, keepdims=True)
        return cls(own, whole, np.concatenate([few_own[0], few_whole[:1]]))

    def published(self, told: ToldChannel) -> FloatArray:
        """Shares of the inputs (a + 1,) that lead to what is told, and of the records that no input is told of."""
        left = max(0.0, 1.0 - float(told.shares.sum())) if told.left_out else 0.0
        shares = np.append(told.shares, left)
        return np.asarray(shares / shares.sum())

    def unsure(self, x: int) -> tuple[FloatArray, FloatArray]:
        """What a record with each of these pairs adds to what counts for a value, and in all, beyond the mean."""
        some = self.untold[[x, -1]] if self.untold.shape[1] else np.zeros((2, 1))
        own, whole = some - some.mean(axis=1, keepdims=True)
        return own, whole

    def spread(self, shares: FloatArray, published: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What shares become if weights within classes are as unlike their means as they can be.

        By the factors that the odds of a value change by, with the classes that its records, and all others, are
        published to have.
        """
        own, whole = self.own @ published, self.whole @ published
        rest = np.maximum(whole[:, np.newaxis] - own, _ROUNDING)
        odds = np.maximum(own[0] / rest[0], _ROUNDING)
        least, largest = shares * (own[1] / rest[2] / odds), shares * (own[2] / rest[1] / odds)
        left = 1 - shares
        return least / np.maximum(least + left, _ROUNDING), largest / np.maximum(largest + left, _ROUNDING)


def _pairs(told: ToldChannel, aims: FloatArray) -> list[AffineEstimates]:
    """Of every aim but the last one its estimate, and that of the last."""
    named, prior = told.matrix[:-1], told.shares / told.shares.sum()
    found = shortest(named, named @ prior, told.slack, aims, told.records, told.left_out, told.beyond)
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
        Less what records add that are no input.
    beyond : ndarray, shape (2,)
        What these add.
    at : float
    seen : ndarray, shape (b + 1,)
        Shares of the outputs.
    few : float
        The largest share of records with pairs that are not told one by one.
    unsure : pair of ndarray, shape (pairs,)
        What each of these records may add to the numerator and the denominator of R beyond what is taken.
    sampling : bool
    confidence : float
    """

    told: ToldChannel
    found: AffineEstimates
    aims: FloatArray
    beyond: FloatArray
    at: float
    seen: FloatArray
    few: float
    unsure: tuple[FloatArray, FloatArray]
    sampling: bool
    confidence: float

    @property
    def figures(self) -> tuple[float, float, float, float]:
        """The share, its standard error, and an interval."""
        untold = np.nan, np.nan, 0.0, 1.0
        differs, weight = self.beyond + self.found.constants + self.found.weights @ self.seen[:-1]
        if not self.found.told.all() or weight <= 0:
            return untold
        share = float(np.clip(self.at + differs / weight, 0.0, 1.0))
        _, errors, _ = self._tried(np.array([share]))
        tried = np.unique(np.append(np.linspace(0.0, 1.0, _TRIED), share))
        inside = np.flatnonzero(self._inside(tried))
        if not len(inside):
            return share, float(errors[0] / weight), share, share
        lower = self._end(tried[max(inside[0] - 1, 0)], tried[inside[0]])
        upper = self._end(tried[min(inside[-1] + 1, len(tried) - 1)], tried[inside[-1]])
        return untold if upper - lower >= 1 else (share, float(errors[0] / weight), lower, upper)

    def _tried(self, shares: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """If R is one of some shares (m,): what is estimated to be zero, its errors, and how far it may be off."""
        mix = np.column_stack([np.ones(len(shares)), self.at - shares])
        found = AffineEstimates(
            mix @ self.found.constants, mix @ self.found.weights, np.ones(len(shares), dtype=np.bool_)
        )
        prior, n = self.told.shares / self.told.shares.sum(), self.told.records
        errors, off = rounded_errors(found, self.told, prior, n, mix @ self.aims if self.sampling else None)
        return mix @ self.beyond + found.constants + found.weights @ self.seen[:-1], errors, off

    def _inside(self, shares: FloatArray) -> FloatArray:
        """Whether R could be each of some shares."""
        values, errors, off = self._tried(shares)
        half = half_length(errors, off, self.confidence) + _ROUNDING
        # All records of few may have the pair that moves the sum most, to either side.
        own, whole = self.unsure
        more = own - np.outer(shares, whole)
        least, most = -self.few * np.maximum(more.max(axis=1), 0), -self.few * np.minimum(more.min(axis=1), 0)
        return np.asarray((values >= least - half) & (values <= most + half))

    def _end(self, outside: float, inside: float) -> float:
        """The last share on the way from one that R can be to one that it cannot be."""
        for _ in range(_TIMES):
            tried = np.linspace(outside, inside, _BETWEEN)
            first = int(np.flatnonzero(self._inside(tried))[0])
            outside, inside = float(tried[max(first - 1, 0)]), float(tried[first])
        return inside
