"""Boxes of counts: every table that the noise on published counts leaves possible, and what a channel tells at most."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from funnel.bounds import Bounds
from funnel.guarantees.greedy import Filled, Places, along, exact_sum, filled, ranked
from funnel.guarantees.possible_distributions import DistributionSet, Extreme
from funnel.guarantees.reading import by_secret, reads_secret
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import WeightArray

# Parts into which blocks of numbers of records with a secret are divided; the same of many rows at once, and numbers
# that are worked on together then.
_PARTS, _PARTS_OF_MANY, _AT_ONCE = 8, 64, 2**22
# Numbers of records among which the one that a half-space is taken from is sought at a time.
_TRIED = 17
_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class CountBox(DistributionSet):
    """All tables of counts n with ``lower <= n <= upper`` and ``least <= Σ_x n[s, x] <= most`` for every secret s.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (c, u)
    least, most : ndarray of int64, shape (c,)
        Made to agree with the cells: ``Σ lower <= least <= most <= Σ upper``.

    Notes
    -----
    *P(y|s)* is a linear fraction ``Σ n T / Σ n``. Fill cells in decreasing order of T up to the least total; to go on
    raises the average for as long as the next entry is above it, and lowers it ever after: the best of all ends of
    cells is the largest value, over whole numbers. O(u log u).

    *Lifts.* With ``A = Σ n T`` and N of the secret s, and C and M the same sums over the other secrets, the lift is
    ``μ (N + M) / (μ N + C)``, μ = A/N. It rises in μ; where it exceeds 1 it falls in N. So for each N only the largest
    μ(N) matters, and of all N only those up to the one where μ(N) is largest: from there on both get worse. Mostly
    that is the least N alone. For given N and μ what is left is a linear fraction in the counts of the other secrets:
    a ratio above r is possible if and only if ``Σ n (μ - r T) > (r - 1) μ N``, for each of the others greedy by the
    threshold ``T < μ/r``; each r found is that of a table, and is raised until nothing exceeds it (Dinkelbach
    1967), after finitely many thresholds. Inverse lifts ``(μ N + C) / (μ (N + M))`` likewise, with the least μ(N) and
    the threshold ``T > r μ``. A block of numbers N is at most what its least N has with its best μ: blocks are divided
    where the largest lift may be, until they are single numbers.
    """

    lower: IntArray
    upper: IntArray
    least: IntArray
    most: IntArray

    @property
    def possible(self) -> npt.NDArray[np.bool_]:
        """Secrets that some table has."""
        return np.asarray(self.most > 0)

    def without(self, entries: npt.NDArray[np.bool_]) -> Self | None:
        """With none in them, in totals that the other cells can have."""
        upper = np.where(entries, 0, self.upper)
        most = np.minimum(self.most, upper.sum(axis=1))
        if (self.lower > upper).any() or (most < self.least).any() or not most.any():
            return None
        return replace(self, upper=upper, most=most)

    def restricted(self, inside: npt.NDArray[np.bool_]) -> CountBox:
        """All tables of the entries (u,) inside, as parts of the tables of this box.

        Totals of the rest range over ``Σ lower … Σ upper`` of it, so that a part is one of these if and only if it is
        within its own cells and within what that leaves of the totals.
        """
        lower, upper = self.lower[:, inside], self.upper[:, inside]
        least = np.maximum(self.least - self.upper[:, ~inside].sum(axis=1), lower.sum(axis=1))
        most = np.minimum(self.most - self.lower[:, ~inside].sum(axis=1), upper.sum(axis=1))
        return CountBox(lower, upper, least, most)

    @cached_property
    def _occurring(self) -> IntArray:
        """The least numbers of records (c,) of secrets that do occur."""
        return np.minimum(np.maximum(self.least, 1), np.maximum(self.most, self.least))

    def given(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Thresholds; O(b c u log u)."""
        high = self._sums(rows, self._occurring, downwards=True)
        low = self._sums(rows, self._occurring, downwards=False)
        return high.averages.max(axis=-1), low.averages.min(axis=-1)

    def _sums(self, rows: FloatArray, least: IntArray, downwards: bool) -> _Sums:
        order = ranked(rows, downwards)
        parts = filled(order, self.lower, self.upper, least, self.most)
        return _Sums.of(parts, along(rows, order), np.broadcast_to(least, parts.required.shape[:-1]))

    def lifts(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Upper bounds, from the least number of records and the extreme P(y|s) at once; see `exact_lift`."""
        rising, falling = (self._sums(rows, self._occurring, downwards=side) for side in (True, False))
        most, least = (self._sums(rows, self.least, downwards=side) for side in (True, False))
        high, low = rising.averages.max(axis=-1), falling.averages.min(axis=-1)
        secrets = np.broadcast_to(np.arange(self.shape[0]), high.shape)
        number = np.broadcast_to(self._occurring, high.shape)
        up, _ = _most_apart(high, number, secrets, least, upward=True)
        down, _ = _most_apart(low, number, secrets, most, upward=False)
        never = ~(high > 0).any(axis=-1)
        for side in (up, down):
            side[never] = np.nan
            side[:, ~self.possible] = np.nan
        return up, down

    def given_distributions(
        self, rows: FloatArray, secrets: Places, upward: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Those of the tables with the extreme averages; others with as many records."""
        own = _own(rows, secrets)
        order = ranked(own, upward)
        parts = filled(order, self.lower[secrets], self.upper[secrets], self._occurring[secrets], self.most[secrets])
        averages = _Sums.of(parts, along(own, order), self._occurring[secrets]).averages
        table = parts.table(averages.argmax(axis=-1) if upward else averages.argmin(axis=-1))
        number = table.sum(axis=-1, keepdims=True)
        return table / number, self.lower[secrets] / number, self.upper[secrets] / number

    def lift_distributions(self, rows: FloatArray, secrets: Places, upward: bool) -> Extreme:
        """Those of tables in the box that come close to the largest lift, by numbers of records ever closer to it."""
        every, own = np.arange(len(rows)), _own(rows, secrets)
        order = ranked(own, upward)
        first, last = self._numbers_that_matter(rows, secrets, upward, order)
        others = self._sums(rows, self.least, downwards=not upward)
        wide = True
        while wide:
            wide = bool((last - first >= _TRIED).any())
            number = first[:, None] + (last - first)[:, None] * np.arange(_TRIED) // (_TRIED - 1)
            mine = self._tables_of(secrets, order, number)
            mean = (mine * own[:, None]).sum(axis=-1) / number
            ratio, taken = _most_apart(mean, number, np.repeat(secrets[:, None], _TRIED, axis=1), others, upward)
            best = np.where(np.isnan(ratio), -1.0, ratio).argmax(axis=1)
            tables = others.parts.table(taken[every, :, best])
            tables[every, secrets] = mine[every, best]
            first, last = number[every, np.maximum(best - 1, 0)], number[every, np.minimum(best + 1, _TRIED - 1)]
        number = tables.sum(axis=-1)
        some = np.maximum(number, 1)[..., None]
        prior = number / number.sum(axis=-1, keepdims=True)
        return Extreme(tables / some, prior, self.lower / some, self.upper / some)

    def exact_given(self, row: WeightArray) -> list[tuple[Fraction, Fraction] | None]:
        """Thresholds, in whole numbers."""
        return [
            (self._exact_extreme(row, s, True)[0], self._exact_extreme(row, s, False)[0]) if self.most[s] else None
            for s in range(self.shape[0])
        ]

    def _exact_extreme(self, row: WeightArray, secret: int, largest: bool) -> tuple[Fraction, int]:
        """The extreme ``Σ n w / Σ n`` of a secret, and the number of records where it is first attained."""
        own = row[secret if len(row) > 1 else 0]
        least, most = int(self._occurring[secret]), int(self.most[secret])
        order = ranked(own, largest)
        parts = filled(order, self.lower[secret], self.upper[secret], least, most)
        mass, number = exact_sum(parts.table(0), own), least
        # Only entries beyond the average move it further.
        for place, more in zip(order.tolist(), parts.optional.tolist(), strict=True):
            weight = int(own[place])
            if not more:
                continue
            if (weight * number <= mass) if largest else (weight * number >= mass):
                break
            mass, number = mass + weight * more, number + more
        return Fraction(mass, number), number

    def exact_lift(self, row: WeightArray, secret: int, upward: bool) -> Fraction | None:
        """The best of all numbers of records that matter, by blocks of them: exact."""
        found = self._exact_lifts(row, secret, upward)
        return None if None in found else max(ratio for ratio in found if ratio is not None)

    def may_exceed(self, rows: FloatArray, secrets: Places, upward: bool, limit: float) -> npt.NDArray[np.bool_]:
        """As declared: of many rows at once, by blocks of numbers of records as in `_near`."""
        size = max(1, _AT_ONCE // (_PARTS_OF_MANY * self.lower.size))
        parts = [slice(start, start + size) for start in range(0, len(rows), size)]
        found = [self._may_exceed(rows[part], secrets[part], upward, limit * (1 - _CLOSE)) for part in parts]
        return np.concatenate([np.zeros(0, dtype=np.bool_), *found])

    def _may_exceed(self, rows: FloatArray, secrets: Places, upward: bool, limit: float) -> npt.NDArray[np.bool_]:
        order = ranked(_own(rows, secrets), upward)
        first, last = self._numbers_that_matter(rows, secrets, upward, order)
        may, asked = np.ones(len(rows), dtype=np.bool_), np.arange(len(rows))
        while len(asked):
            some, of = rows[asked], secrets[asked]
            edges = first[:, None] + (last + 1 - first)[:, None] * np.arange(_PARTS_OF_MANY + 1) // _PARTS_OF_MANY
            begin, end = edges[:, :-1], np.maximum(edges[:, 1:] - 1, edges[:, :-1])
            mean = (self._tables_of(of, order[asked], end) * _own(some, of)[:, None]).sum(axis=-1) / end
            others = self._sums(some, self.least, downwards=not upward)
            ratio, _ = _most_apart(mean, begin, np.broadcast_to(of[:, None], end.shape), others, upward)
            above = np.nan_to_num(ratio, posinf=np.inf) >= limit
            may[asked] = above.any(axis=1)
            # What is left of each is divided again for as long as that leaves less.
            every = np.arange(len(asked))
            now, then = begin[every, above.argmax(axis=1)], end[every, -1 - above[:, ::-1].argmax(axis=1)]
            again = may[asked] & ((now > first) | (then < last))
            asked, first, last = asked[again], now[again], then[again]
        return may

    def _numbers_that_matter(
        self, rows: FloatArray, secrets: Places, upward: bool, order: Places
    ) -> tuple[IntArray, IntArray]:
        """For each of k rows the least number of records with its secret, and that of the extreme average."""
        least, most = self._occurring[secrets], self.most[secrets]
        parts = filled(order, self.lower[secrets], self.upper[secrets], least, most)
        sums = _Sums.of(parts, along(_own(rows, secrets), order), least)
        place = sums.averages.argmax(axis=-1) if upward else sums.averages.argmin(axis=-1)
        return least, sums.number[np.arange(len(rows)), place].astype(np.int64)

    def _tables_of(self, secrets: Places, order: Places, numbers: IntArray) -> IntArray:
        """The records (k, q, u) with each secret that are filled along its order (k, u), in so many (k, q)."""
        lower, upper = self.lower[secrets][:, None], self.upper[secrets][:, None]
        return filled(order[:, None], lower, upper, numbers, numbers).table(0)

    def exceeds(self, row: WeightArray, secret: int, upward: bool, limit: Fraction) -> bool:
        """As declared, of the numbers of records alone that may be above the limit."""
        found = self._exact_lifts(row, secret, upward, float(limit))
        return any(ratio is None or ratio > limit for ratio in found)

    def _exact_lifts(self, row: WeightArray, secret: int, upward: bool, limit: float = 0.0) -> list[Fraction | None]:
        """Of the numbers of records that may have the largest lift, or one above a limit where there is one."""
        least = int(self._occurring[secret])
        _, last = self._exact_extreme(row, secret, upward)
        own = row[secret if len(row) > 1 else 0]
        order = ranked(own, upward)
        numbers = self._near(row, secret, upward, order, (least, last), limit) if last > least else [least]
        others = _ExactOthers(self, row, secret, upward)
        found = []
        for number in numbers:
            mine = filled(order, self.lower[secret], self.upper[secret], number, number).table(0)
            found.append(others.ratio(Fraction(exact_sum(mine, own), number), number))
        return found

    def _near(
        self, row: WeightArray, secret: int, upward: bool, order: Places, within: tuple[int, int], limit: float
    ) -> list[int]:
        """Numbers of records within two that may have the largest lift, as far as floats tell.

        A block of numbers has at most the ratio of its least number with the average of its last, and that of its last
        at least: blocks below the best of these are left out, and others divided, until every block is one number. So
        are blocks that stay below a limit; and one number that is clearly above it is enough.
        """
        least, last = within
        own = row[secret if len(row) > 1 else 0].astype(np.float64)
        sums = self._sums(row[None].astype(np.float64), self.least, downwards=not upward)
        first, end = np.array([least]), np.array([last])
        while (first < end).any():
            edges = first[:, None] + (end + 1 - first)[:, None] * np.arange(_PARTS + 1) // _PARTS
            some = edges[:, :-1] < edges[:, 1:]
            first, end = edges[:, :-1][some], edges[:, 1:][some] - 1
            tables = filled(order, self.lower[secret], self.upper[secret], end, end).table(0)
            mean = ((tables * own).sum(axis=1) / end)[None]
            secrets = np.full(mean.shape, secret)
            above, there = (
                np.nan_to_num(_most_apart(mean, number[None], secrets, sums, upward)[0][0], posinf=np.inf)
                for number in (first, end)
            )
            if np.isinf(there).any() or there.max() > limit * (1 + _CLOSE) > 0:
                return [int(end[there.argmax()])]
            # Below 1 lifts are none that matter, and bounds none.
            kept = above >= max(limit, min(there.max(), above.max())) * (1 - _CLOSE)
            first, end = first[kept], end[kept]
        return [int(number) for number in first]


@dataclass(frozen=True, eq=False)
class _Sums:
    """Numbers N and masses ``Σ n T`` of one order, with the first k of the optional parts, k = 0 … u: (b, c, u + 1)."""

    parts: Filled
    entries: FloatArray
    number: FloatArray
    mass: FloatArray

    @classmethod
    def of(cls, parts: Filled, entries: FloatArray, least: npt.ArrayLike) -> _Sums:
        more, first = np.cumsum(parts.optional, axis=-1), np.asarray(least, dtype=np.float64)[..., None]
        start = (parts.required * entries).sum(axis=-1, keepdims=True)
        mass = np.concatenate([start, start + np.cumsum(parts.optional * entries, axis=-1)], axis=-1)
        return cls(parts, entries, np.concatenate([np.broadcast_to(first, start.shape), first + more], axis=-1), mass)

    @property
    def averages(self) -> FloatArray:
        """``Σ n T / N``; nan for a secret that no table has."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.mass / self.number)

    def beyond(self, threshold: FloatArray, below: bool) -> Places:
        """How many entries come before a threshold (b, q) in the order: shape (b, c or 1, q)."""
        b, c, u = self.entries.shape
        sign = 1.0 if below else -1.0
        sought = np.broadcast_to(sign * threshold[:, None, :], (b, c, threshold.shape[1]))
        # Bisection of all at once; whatever is no number comes last.
        low, high = np.zeros(sought.shape, dtype=np.intp), np.full(sought.shape, u)
        for _ in range(u.bit_length()):
            middle = (low + high) // 2
            entries = _along_last(self.entries, np.minimum(middle, u - 1))
            before = (middle < high) & ~(sign * entries >= sought)
            low, high = np.where(before, middle + 1, low), np.where(before, high, middle)
        return low


def _most_apart(
    mean: FloatArray, number: npt.NDArray[np.int64], secrets: Places, others: _Sums, upward: bool
) -> tuple[FloatArray, Places]:
    """The largest lift, or inverse lift, of secrets (b, q) with these averages and numbers, and how the others are.

    Returns
    -------
    ratios : ndarray, shape (b, q)
    taken : ndarray of int, shape (b, c, q)
        How many entries of each secret's order are filled to their optional part.
    """
    b, c, _ = others.number.shape
    ratio = np.ones(mean.shape)
    own = np.arange(c)[None, :, None] != secrets[:, None, :]
    taken = np.zeros((b, c, mean.shape[1]), dtype=np.intp)
    while True:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            threshold = mean / ratio if upward else mean * ratio
            places = np.broadcast_to(others.beyond(threshold, upward), taken.shape)
            total = number + (_along_last(others.number, places) * own).sum(axis=1)
            mass = mean * number + (_along_last(others.mass, places) * own).sum(axis=1)
            found = mean * total / mass if upward else mass / (mean * total)
            # An output that the secret never has is no likelier for it; and none at all has no lift.
            found = np.where(mass > 0, found, 0.0 if upward else np.nan)
        better = (found > ratio * (1 + 2.0**-50)) & np.isfinite(ratio)
        taken = np.where(better[:, None, :] | (ratio == 1.0)[:, None, :], places, taken)
        if not better.any():
            return np.where(np.isnan(found), np.nan, np.where(ratio == 1.0, np.minimum(found, 1.0), ratio)), taken
        ratio = np.where(better, found, ratio)


def _along_last(table: FloatArray, places: Places) -> FloatArray:
    """Entries (..., q) of a table (..., u) at places (..., q): `numpy.take_along_axis`, in a third of the time."""
    first = np.arange(0, table.size, table.shape[-1]).reshape(*table.shape[:-1], 1)
    return np.asarray(table.ravel()[first + places])


class _ExactOthers:
    """The counts of all secrets but one, for exact lifts of one row."""

    def __init__(self, box: CountBox, row: WeightArray, secret: int, upward: bool) -> None:
        self._upward = upward
        self._sides: list[tuple[list[int], list[int], list[int]]] = []
        for t in range(box.shape[0]):
            if t == secret:
                continue
            own = row[t if len(row) > 1 else 0]
            order = ranked(own, not upward)
            parts = filled(order, box.lower[t], box.upper[t], box.least[t], box.most[t])
            number, mass = [int(box.least[t])], [exact_sum(parts.table(0), own)]
            weights = [int(own[place]) for place in order]
            for weight, more in zip(weights, parts.optional.tolist(), strict=True):
                number.append(number[-1] + more)
                mass.append(mass[-1] + weight * more)
            self._sides.append((weights if upward else [-weight for weight in weights], number, mass))

    def ratio(self, mean: Fraction, number: int) -> Fraction | None:
        """The largest ratio for an average ``2^63 P(y|s)`` of a number of records; None where it is infinite."""
        best = Fraction(1)
        while True:
            total, mass = number, mean * number
            threshold = mean / best if self._upward else -mean * best
            for entries, numbers, masses in self._sides:
                place = bisect_left(entries, threshold)
                total, mass = total + numbers[place], mass + masses[place]
            if self._upward and mean == 0:
                return Fraction(0)
            if not self._upward and mean == 0:
                return None if mass else Fraction(0)
            found = mean * total / mass if self._upward else mass / (mean * total)
            if found <= best:
                return max(found, best)
            best = found


def _own(rows: FloatArray, secrets: Places) -> FloatArray:
    """The row (k, u) of each task's own secret."""
    return np.asarray(rows[np.arange(len(rows)), secrets if rows.shape[1] > 1 else 0])


def count_box(joint: Joint) -> CountBox:
    """The tables within the bounds of the joint distribution a channel reads; without bounds its own."""
    exact = joint.counts.sum(axis=1)
    bounds = joint.bounds or Bounds(joint.counts, joint.counts, np.stack([exact, exact], axis=1), 0.0)
    lower, upper = bounds.lower, bounds.upper
    if reads_secret(joint):
        lower, upper = by_secret(lower), by_secret(upper)
    least = np.maximum(bounds.totals[:, 0], lower.sum(axis=1))
    most = np.minimum(bounds.totals[:, 1], upper.sum(axis=1))
    return CountBox(lower, upper, least, most)
