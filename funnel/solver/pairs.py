"""Pairs: for two secrets the optimum over posteriors in an interval, in closed form but for one linear programme.

Of two secrets a guarantee on the posterior says no more than ``low <= ρ <= high`` for ρ = P(s|y) = Σ_x r_x v_x, with
r_x = P(s|x). Vertices are inputs with r in the interval, alone, and pairs of inputs on both sides of an end. A pair
(i, j) at the end e has the shares ``a / (a + b)`` and ``b / (a + b)`` for a = 1 / (e - r_i) and b = 1 / (r_j - e), so
its price is known at once (METHOD section 9). How much of an input goes to which end, or is published alone, is a
linear programme over the distinct r, or over groups of them where they are many. Given that, the best pairs at an end
are known: for each unit of ``mass · |r - e|``, of which both sides of an end have the same, a pair gives
``φ(a) + φ(b) - φ(a + b)`` with φ(t) = t ln t convex, so the sum is largest where large a meet small b: the inputs of
both sides in one order, cut by the north-west corner rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np
from scipy.special import xlogy

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.interval import Interval, Places
from funnel.solver.lp import quiet_solver

# Groups of inputs that the linear programme tells apart at first, and at most.
_GROUPS, _MOST_GROUPS = 400, 1600
# Relative to an end: what rounding of r and of the cone can move it by, in a bound.
_WIDER = 2.0**-44
# What rounding can make of a price, in units of the last place of the sizes involved.
_ROUNDING = 64 * 2.0**-53
# A pair is left out where its part of both its inputs is no more than this: it says next to nothing.
_SLIVER = 1e-13
# A share of an input that the linear programme leaves at its own tolerance.
_DUST = 1e-9
# Columns wait until their price is this share of the largest.
_WORTHWHILE = 0.2
# Inputs of a block, whose pairs with another block are bounded at once; pairs that are priced at once.
_BLOCK, _CHUNK = 64, 2**20
# Units of work of a pair, and of a row and iteration of the programme.
_BY_PAIR, _BY_ROW = 30.0, 60.0
_ALONE = 0


@dataclass(frozen=True, eq=False)
class Shares:
    """The best way to publish inputs alone and in pairs, with its value and a bound on every such way's.

    Attributes
    ----------
    share : ndarray, shape (m, 3)
        How much of each input is published alone, in pairs at the low end, and in pairs at the high end; rows sum to 1.
    value, bound : float
        Σ P(y) Σ_x v_x ln v_x in nats; no way to write the distribution as a mixture of posteriors with ρ in the
        interval has a larger one than the bound.
    columns : int
        Columns of the last linear programme.
    finished : bool
        Whether more work would change nothing.
    """

    share: FloatArray
    value: float
    bound: float
    columns: int
    finished: bool


def best_shares(r: FloatArray, distribution: FloatArray, interval: Interval, gap: float, budget: Budget) -> Shares:
    """How much of each input (m,) to publish alone and at which end.

    Parameters
    ----------
    r : ndarray, shape (m,)
        P(s|x), rising, all different; of the rarer secret, for its digits.
    distribution : ndarray, shape (m,)
        P(x) > 0.
    interval : Interval
        Not a single point.
    gap : float
        Requested bound - value, nats.
    budget : Budget
        When it is spent, groups are not made finer.

    Raises
    ------
    SolverError
        If a linear programme fails.

    Notes
    -----
    A programme over at most 1,600 groups, and O(m²) prices in closed form for the bound at most, of which blocks of
    pairs that are far from gaining anything are left out.
    """
    m = len(r)
    number, start = _GROUPS, np.zeros((m, 3))
    value, bound, best, columns = -np.inf, 0.0, start, 0
    while True:
        group = _grouped(r, distribution, interval, number)
        mass = np.asarray(np.bincount(group, weights=distribution), dtype=np.float64)
        # Alone in its group, an input keeps its r to the last bit.
        centre = np.bincount(group, weights=distribution * r) / mass
        alone = np.bincount(group) == 1
        centre[alone] = r[np.searchsorted(group, np.flatnonzero(alone))]
        share, prices, columns = _Programme(centre, mass, interval, budget).run(
            gap / 4, _by_group(start, group, distribution)
        )
        start = balanced(r, distribution, share[group], interval)
        now = _value(r, distribution, start)
        if now > value:
            value, best = now, start
        fine = np.interp(r, centre, prices) if len(centre) < m else prices
        bound = min(bound, _bound(r, distribution, fine, interval, budget))
        finished = bound - value <= gap or len(centre) == m or number >= _MOST_GROUPS
        if finished or budget.expired:
            return Shares(best, value, bound, columns, finished)
        number *= 2


def _grouped(r: FloatArray, distribution: FloatArray, interval: Interval, number: int) -> Places:
    """Groups of about so many neighbours, the same number for each of them; never across an end of the interval."""
    if len(r) <= number:
        return np.arange(len(r))
    side = np.where(r < interval.low, 0, np.where(r > interval.high, 2, 1))
    group, first = np.zeros(len(r), dtype=np.intp), 0
    for here in (np.flatnonzero(side == k) for k in range(3)):
        if len(here):
            # Frequent inputs have groups of their own, and rare ones are not all together.
            weight = distribution[here] / distribution[here].sum() + 1 / len(here)
            upto = (np.cumsum(weight) - weight / 2) / weight.sum()
            parts = max(1, round(number * len(here) / len(r)))
            _, group[here] = np.unique((upto * parts).astype(np.intp), return_inverse=True)
            group[here] += first
            first = int(group[here].max()) + 1
    return group


def _by_group(share: FloatArray, group: Places, distribution: FloatArray) -> FloatArray:
    mass = np.bincount(group, weights=distribution)
    return np.stack([np.bincount(group, weights=distribution * column) / mass for column in share.T], axis=1)


def pair_prices(end: float, below: FloatArray, above: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The share of the input below in pairs at an end, and their g = Σ v ln v; for r of any shapes that fit."""
    near, far = end - below, above - end
    first, second = far / (near + far), near / (near + far)
    return first, np.asarray(xlogy(first, first) + xlogy(second, second), dtype=np.float64)


class _Programme:
    """max Σ α g with Σ α v = distribution, over inputs alone and in pairs; columns enter as their prices ask."""

    def __init__(self, r: FloatArray, distribution: FloatArray, interval: Interval, budget: Budget) -> None:
        self._r, self._distribution, self._interval, self._budget = r, distribution, interval, budget
        self._solver = quiet_solver()
        self._known: set[tuple[int, int, int]] = set()
        self._parts: list[tuple[Places, Places, FloatArray, int]] = []
        m = len(r)
        for _ in range(m):
            self._solver.addRow(1.0, 1.0, 0, np.zeros(0, dtype=np.int32), np.zeros(0))
        # What is in no column yet stays where it is, at a price that no mixture asks for.
        self._extend(-1e3 * distribution, np.arange(m + 1), np.arange(m), np.ones(m))
        here = np.flatnonzero(interval.inside(r))
        self._add(here, here, np.ones(len(here)), np.zeros(len(here)), _ALONE)

    def run(self, gap: float, start: FloatArray) -> tuple[FloatArray, FloatArray, int]:
        """Shares (m, 3), prices (m,) and the number of columns; no column gains more than the gap at these prices."""
        self._pair(start)
        while True:
            self._solver.run()
            iterations = max(0, int(self._solver.getInfo().simplex_iteration_count))
            rows = len(self._distribution)
            self._budget.spend(20 * CALL + _BY_ROW * (len(self._known) + iterations * rows))
            if self._solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                raise SolverError("the linear programme over pairs of inputs failed; change epsilon slightly")
            prices = -np.array(self._solver.getSolution().row_dual) / self._distribution
            share = self._shares()
            if not self._price(prices, gap) or self._budget.expired:
                return share, prices, len(self._known)
            self._pair(share)

    def _extend(self, gains: FloatArray, starts: Places, places: Places, values: FloatArray) -> None:
        number = len(gains)
        self._solver.addCols(
            number,
            -gains,
            np.zeros(number),
            np.full(number, highspy.kHighsInf),
            len(places),
            starts[:-1].astype(np.int32),
            places.astype(np.int32),
            values,
        )

    def _add(self, first: Places, second: Places, part: FloatArray, gains: FloatArray, end: int) -> bool:
        """Columns of which a part is the first input; alone it is the second as well. Whether any is new."""
        keys = [(i, j, end) for i, j in zip(first.tolist(), second.tolist(), strict=True)]
        new = [place for place, key in enumerate(keys) if key not in self._known]
        self._known.update(keys)
        first, second, part, gains = first[new], second[new], part[new], gains[new]
        alone = first == second
        starts = np.concatenate([[0], np.cumsum(np.where(alone, 1, 2))])
        places, values = np.zeros(starts[-1], dtype=np.intp), np.zeros(starts[-1])
        places[starts[:-1]], values[starts[:-1]] = first, part / self._distribution[first]
        others = starts[:-1][~alone] + 1
        places[others], values[others] = second[~alone], ((1 - part) / self._distribution[second])[~alone]
        self._extend(gains, starts, places, values)
        self._parts.append((first, second, part, end))
        return bool(new)

    def _shares(self) -> FloatArray:
        amounts = np.maximum(np.array(self._solver.getSolution().col_value), 0.0)[len(self._distribution) :]
        share, at = np.zeros((len(self._distribution), 3)), 0
        for first, second, part, end in self._parts:
            here = amounts[at : at + len(first)]
            np.add.at(share[:, end], first, here * part)
            np.add.at(share[:, end], second, here * (1 - part))
            at += len(first)
        share /= self._distribution[:, None]
        share[share < _DUST] = 0.0
        return np.asarray(share / np.maximum(share.sum(axis=1, keepdims=True), _DUST))

    def _price(self, prices: FloatArray, gap: float) -> bool:
        """Add the best pair of every input at either end, where it gains enough; whether there was one."""
        found = False
        for number, end in self._interval.ends:
            below, above = self._interval.sides(self._r, end)
            if not len(below) or not len(above):
                continue
            self._budget.spend(10 * CALL + _BY_PAIR * len(below) * len(above))
            part, gains = pair_prices(end, self._r[below, None], self._r[above])
            surplus = gains - part * prices[below, None] - (1 - part) * prices[above]
            i = np.concatenate([np.arange(len(below)), surplus.argmax(axis=0)])
            j = np.concatenate([surplus.argmax(axis=1), np.arange(len(above))])
            good = surplus[i, j] > max(gap, _WORTHWHILE * float(surplus.max()))
            i, j = np.unique(np.stack([i[good], j[good]]), axis=1)
            found |= self._add(below[i], above[j], part[i, j], gains[i, j], number)
        return found

    def _pair(self, share: FloatArray) -> None:
        """Add the best pairs for shares that are known, which takes no prices."""
        for number, end in self._interval.ends:
            used = np.flatnonzero(share[:, number] > 0)
            if len(used) < 2:
                continue
            first, second, _, _ = paired(self._r[used], share[used, number] * self._distribution[used])
            i, j = used[first], used[second]
            across = (self._r[i] < end) & (self._r[j] > end)
            i, j = np.unique(np.stack([i[across], j[across]]), axis=1)
            part, gains = pair_prices(end, self._r[i], self._r[j])
            self._add(i, j, part, gains, number)


def balanced(r: FloatArray, distribution: FloatArray, share: FloatArray, interval: Interval) -> FloatArray:
    """The same shares with ρ of the pairs at an end exactly there: by those inputs that are in more than one place.

    The linear programme has its own tolerance, and what is dealt out among the members of a group its rounding.
    """
    split = np.flatnonzero((share > 0).sum(axis=1) > 1)
    output, place = np.nonzero(share[split] > 0)
    if not len(split):
        return share
    # One equation for every input that is split, and one for either end; by changes relative to the shares.
    size = share[split[output], place]
    equations = np.zeros((len(split) + 2, len(output)))
    equations[output, np.arange(len(output))] = size
    missing = np.zeros(len(split) + 2)
    for number, end in interval.ends:
        lever = distribution * (r - end)
        at = place == number
        scale = float(np.abs(lever * share[:, number]).sum())
        if scale == 0:
            continue
        equations[len(split) + number - 1, at] = (lever[split[output]] * size)[at] / scale
        missing[len(split) + number - 1] = -float((lever * share[:, number]).sum()) / scale
    change, *_ = np.linalg.lstsq(equations, missing, rcond=None)
    if (change <= -1).any() or np.abs(equations @ change - missing).max() > _SLIVER * 10:
        return share
    moved = share.copy()
    moved[split[output], place] = size * (1 + change)
    return np.asarray(moved / moved.sum(axis=1, keepdims=True))


def paired(r: FloatArray, mass: FloatArray) -> tuple[Places, Places, FloatArray, FloatArray]:
    """Pairs of inputs that all have the same ρ, the mean of all: the north-west corner rule on ``mass · |r - ρ|``.

    Parameters
    ----------
    r : ndarray, shape (k,)
        Rising; the same for several inputs, perhaps.
    mass : ndarray, shape (k,)
        P(x, in one of these pairs) > 0.

    Returns
    -------
    first, second : ndarray of int, shape (b,)
        Places of the inputs of each output, the same twice for an input that is an output alone.
    of_first, of_second : ndarray, shape (b,)
        What of their masses is there; 0 of the second where it is the first. b < k.
    """
    wide = mass.astype(np.longdouble)
    distance = r.astype(np.longdouble) - (wide * r).sum() / wide.sum()
    below, above, alone = np.flatnonzero(distance < 0), np.flatnonzero(distance > 0), np.flatnonzero(distance == 0)
    if not len(below) or not len(above):
        every = np.arange(len(r))
        return every, every, mass, np.zeros(len(r))
    ours, theirs = -wide[below] * distance[below], wide[above] * distance[above]
    # The sums of both sides are one, but for rounding.
    upto, until = np.cumsum(ours) / ours.sum(), np.cumsum(theirs) / theirs.sum()
    upto[-1] = until[-1] = 1
    ends = np.sort(np.concatenate([upto, until]))
    length = np.diff(ends, prepend=np.longdouble(0))
    middle = ends - length / 2
    i = np.minimum(np.searchsorted(upto, middle), len(below) - 1)
    j = np.minimum(np.searchsorted(until, middle), len(above) - 1)
    lever = length * ours.sum()
    there = (lever > _SLIVER * ours[i]) | (lever > _SLIVER * theirs[j])
    i, j, lever = i[there], j[there], lever[there]
    return (
        np.concatenate([below[i], alone]),
        np.concatenate([above[j], alone]),
        np.concatenate([(-lever / distance[below[i]]).astype(np.float64), mass[alone]]),
        np.concatenate([(lever / distance[above[j]]).astype(np.float64), np.zeros(len(alone))]),
    )


def _value(r: FloatArray, distribution: FloatArray, share: FloatArray) -> float:
    """Σ P(y) Σ_x v_x ln v_x of the best pairs for these shares."""
    value = 0.0
    for number in (1, 2):
        used = share[:, number] > 0
        if used.any():
            _, _, one, two = paired(r[used], share[used, number] * distribution[used])
            whole = one + two
            value += float((xlogy(one, one) + xlogy(two, two) - xlogy(whole, whole)).sum())
    return value


def _bound(r: FloatArray, distribution: FloatArray, prices: FloatArray, interval: Interval, budget: Budget) -> float:
    """A number that no mixture exceeds, from any prices: these are raised until no vertex gains anything.

    For any λ the value is at most ``λ·p_X + max (g - λ·v)``. Raising the price of the input that has the larger share
    of a vertex that gains h by at most 2 h takes its gain away, and costs that input's mass times as much: far less
    than h where few inputs are concerned. Bounds of blocks of pairs, by the ends of their r and their smallest prices,
    tell where no vertex gains; g is convex in the share, so both ends of its range are looked at.
    """
    wide = Interval(interval.low * (1 - _WIDER), min(1.0, interval.high * (1 + _WIDER)))
    inside = wide.inside(r)
    raised = np.where(inside, np.maximum(prices, 0.0), prices)
    margin = _ROUNDING * (float(np.abs(raised).max()) + 2.0)
    for _, end in wide.ends:
        below, above = wide.sides(r, end)
        for i, j in _blocks(r, raised, below, above, end, margin, budget):
            part, gains = pair_prices(end, r[i][:, :, None], r[j][:, None, :])
            surplus = gains - part * raised[i][:, :, None] - (1 - part) * raised[j][:, None, :] + margin
            for rows, axis, of in ((i, 2, part), (j, 1, 1 - part)):
                more = np.zeros(len(r))
                np.maximum.at(more, rows, np.where(of >= 0.5, surplus / np.maximum(of, 0.5), 0.0).max(axis=axis))
                raised = raised + np.maximum(more, 0.0)
    return float(raised @ distribution) + _ROUNDING * len(r) * (float(np.abs(raised) @ distribution) + 1.0)


def _blocks(
    r: FloatArray, prices: FloatArray, below: Places, above: Places, end: float, margin: float, budget: Budget
) -> list[tuple[Places, Places]]:
    """Pairs of blocks (k, 64) of inputs below and above an end, of which some vertex may gain something."""
    if not len(below) or not len(above):
        return []
    ours, theirs = _in_blocks(below), _in_blocks(above)
    low, high = (pick(r[ours], axis=1)[:, None] for pick in (np.min, np.max))
    from_, upto = (pick(r[theirs], axis=1) for pick in (np.min, np.max))
    # The share of the input below rises with both r.
    least, _ = pair_prices(end, low, from_)
    most, _ = pair_prices(end, high, upto)
    cheapest, other = prices[ours].min(axis=1)[:, None], prices[theirs].min(axis=1)
    gain = np.max([xlogy(v, v) + xlogy(1 - v, 1 - v) - v * cheapest - (1 - v) * other for v in (least, most)], axis=0)
    i, j = np.nonzero(gain > -2 * margin)
    step = max(1, _CHUNK // _BLOCK**2)
    budget.spend(_BY_PAIR * (gain.size + len(i) * _BLOCK**2) + len(i) / step * 20 * CALL)
    return [(ours[i[at : at + step]], theirs[j[at : at + step]]) for at in range(0, len(i), step)]


def _in_blocks(places: Places) -> Places:
    """The same places, 64 in a row; the last one again where they do not suffice."""
    size = min(_BLOCK, len(places))
    short = -len(places) % size
    return np.concatenate([places, np.repeat(places[-1:], short)]).reshape(-1, size)
