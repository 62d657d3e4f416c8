"""Pricing over the χ² set by two levels: what rows of any protocol that reads the secret are worth at most."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from funnel.guarantees.exact import capped_exp
from funnel.guarantees.worst_case import Neighbourhood
from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.secret_part import SecretPart

# The least ln ρ of a part, in units of ε: parts of less are taken to be as large.
_LEAST = 0.12
# Steps of ln m and of multipliers, the range of these, and the intervals of ln r to begin with.
_STEP, _FROM, _TO, _INTERVALS = 0.1, -2.5, 4.5, 12
# A multiplier is sought among so many, in so many rounds each of which is finer by half as much.
_TRIED, _ZOOMS, _HALVINGS = 9, 3, 50
# Mixtures are made of the boxes whose bounds are at most so far (nats) below the largest, and of so many.
_DEEP, _MIXED = 0.3, 16
# More than the rounding of corners, relative to the sizes of multipliers and prices.
_ROUNDING = 1e-7
_BY_TERM = 2.0


@dataclass(frozen=True)
class Box:
    """Rows whose least level has its logarithm in [low, high], at s*, and the others' in [first, second] above it."""

    bound: float
    secret: int
    first: float
    second: float
    low: float
    high: float
    multiplier: float


@dataclass(frozen=True, eq=False)
class RobustPriced:
    """Outcome of a search.

    Attributes
    ----------
    bound : float
        No row is worth more.
    mixtures : ndarray, shape (k, a)
        Of two choices of corners whose average total is 1.
    worth : ndarray, shape (k,)
        The same average of their g.
    posteriors : ndarray, shape (l, a)
        These choices, each scaled to a total of 1: near the region, mostly outside.
    """

    bound: float
    mixtures: FloatArray
    worth: FloatArray
    posteriors: FloatArray


class RobustPricer:
    """Bounds ``g(v) - λ·v`` over rows that are robust over F, by the levels of two secrets.

    For every share θ the distributions in which s deviates by θ and t by 1 - θ are in F. So with hi_s the largest
    P(y|s) over the ball of θ, and lo_t the least P(y|t) over that of 1 - θ, ``hi_s <= e^ε lo_t`` for all s ≠ t. One θ
    is a relaxation, and a bound on it is one on all. Let s* have the least lo, m, and let r m be that of the others.
    Then

        ``T_s* = m τ,  lo(τ) >= 1,  hi(τ) <= e^ε r``   and   ``T_s = m τ_s,  lo(τ_s) >= r,  hi(τ_s) <= e^ε``, s ≠ s*

    with ``1 <= r <= e^ε`` and ``e^-2ε <= m <= 1`` where ``Σ p T = 1``. Given s*, r, m and a multiplier ν of this sum,
    the secrets separate, and the maximum is at a corner of each part. Over an interval of r the parts are largest at
    its ends; over one of m nothing need be widened: for any choice of τ the value is ``ν + m A + m ln m M``, convex in
    m. So what remains is a search over s*, r and m, whatever the size of the table.

    Inputs that never occurred may have any entry here, where a protocol gives them the average: a relaxation too. The
    multiplier mixes corners whose totals differ, which leaves a gap that prices make small but not nothing.

    Parameters
    ----------
    near : Neighbourhood
    epsilon : float
        > 0.
    share : float
        θ.
    budget : Budget
    """

    def __init__(self, near: Neighbourhood, epsilon: float, share: float, budget: Budget) -> None:
        self._budget, self._span = budget, epsilon
        least, most = capped_exp(_LEAST * epsilon), capped_exp(2 * epsilon) * (1 + 1e-9)
        self._parts = [SecretPart(near, s, share, least, most, budget) for s in range(len(near.distribution))]
        sizes = np.cumsum([part.size for part in self._parts])
        self._places = np.split(np.arange(sizes[-1]), sizes[:-1])
        self._steps = max(4, int(np.ceil(2 * epsilon / _STEP)))
        step = 2 * epsilon / self._steps
        self._levels = -2 * epsilon + step * np.arange(self._steps + 1)
        self._multipliers = _FROM + step * np.arange(int((_TO - _FROM) / step) + 1)
        self._step = step
        self._reduced: dict[tuple[int, float], FloatArray] = {}
        self._tables: dict[tuple[int, float, float], FloatArray] = {}

    def search(self, prices: FloatArray, splits: int) -> RobustPriced:
        """Bound rows at prices λ (a,), and find what attains the bounds nearly.

        Parameters
        ----------
        prices : ndarray, shape (a,)
            For inputs that occur. Those near which no row is worth much more or less than nothing are bounded best.
        splits : int
            Boxes that are cut in two at most.
        """
        self._prices, self._reduced, self._tables = prices, {}, {}
        edges = np.linspace(0.0, self._span, _INTERVALS + 1)
        boxes = [box for first, second in itertools.pairwise(edges.tolist()) for box in self._boxes(first, second)]
        boxes.sort(key=lambda box: -box.bound)
        for _ in range(splits):
            if self._budget.expired:
                break
            boxes[:1] = self._split(boxes[0])
            boxes.sort(key=lambda box: -box.bound)
        bound = boxes[0].bound + _ROUNDING * (2 * abs(_FROM) + abs(_TO) + float(np.abs(prices).max()))
        return self._found(bound, boxes)

    def cut(self, posteriors: FloatArray) -> int:
        """Add half-spaces of the worst distributions for these (k, a) to the parts; how many changed."""
        changed = 0
        for posterior in posteriors:
            for part, places in zip(self._parts, self._places, strict=True):
                masses = posterior[places]
                if masses.any():
                    changed += part.cut(part.row(masses))
        return changed

    def _reduced_gain(self, secret: int, ratio: float) -> FloatArray:
        """``Σ m ln m - λ·m`` of all corners of a part for ln ρ = ratio."""
        key = (secret, ratio)
        if key not in self._reduced:
            corners = self._parts[secret].corners(float(np.exp(ratio)))
            self._reduced[key] = corners.gain - corners.masses @ self._prices[self._places[secret]]
            self._budget.spend(10 * CALL + 2.0 * corners.masses.size)
        return self._reduced[key]

    def _table(self, secret: int, ratio: float, offset: float) -> FloatArray:
        """The most a part is worth, in units of its least level exp(offset) m; shape (levels, multipliers)."""
        key = (secret, ratio, offset)
        if key not in self._tables:
            reduced = self._reduced_gain(secret, ratio)
            mass = self._parts[secret].corners(float(np.exp(ratio))).mass
            number = len(self._multipliers)
            # ν - ln(level), on the common grid of both.
            slopes = _FROM - offset + self._step * np.arange(number + self._steps)
            self._budget.spend(10 * CALL + _BY_TERM * len(mass) * len(slopes))
            best = (reduced[:, None] - np.outer(mass, slopes)).max(axis=0)
            places = np.arange(number)[None] + self._steps - np.arange(self._steps + 1)[:, None]
            self._tables[key] = best[places]
        return self._tables[key]

    def _boxes(self, first: float, second: float) -> list[Box]:
        """A box for every s* and interval of ln m, where ln r is in an interval."""
        level = np.exp(self._levels)[:, None]
        secrets = range(len(self._parts))
        others = [np.exp(first) * level * self._table(s, self._span - first, first) for s in secrets]
        total = np.sum(others, axis=0)
        boxes = []
        for s in secrets:
            value = self._multipliers + total - others[s] + level * self._table(s, self._span + second, 0.0)
            larger = np.maximum(value[:-1], value[1:])
            best = larger.argmin(axis=1)
            for k, place in enumerate(best.tolist()):
                low, high = float(self._levels[k]), float(self._levels[k + 1])
                multiplier = float(self._multipliers[place])
                boxes.append(Box(float(larger[k, place]), s, first, second, low, high, multiplier))
        return boxes

    def _terms(self, box: Box, level: float) -> tuple[list[FloatArray], list[FloatArray]]:
        """Worth and mass of all corners of every part where ln m = level."""
        terms, masses = [], []
        for s in range(len(self._parts)):
            own = s == box.secret
            ratio, scale = (self._span + box.second, level) if own else (self._span - box.first, level + box.first)
            mass = self._parts[s].corners(float(np.exp(ratio))).mass
            terms.append(np.exp(scale) * (self._reduced_gain(s, ratio) + scale * mass))
            masses.append(np.exp(scale) * mass)
        self._budget.spend(len(self._parts) * 15 * CALL + 6.0 * sum(len(mass) for mass in masses))
        return terms, masses

    def _split(self, box: Box) -> list[Box]:
        """Two boxes for one: cut where it is widest."""
        if box.second - box.first > box.high - box.low:
            middle = (box.first + box.second) / 2
            parts = [(box.first, middle, box.low, box.high), (middle, box.second, box.low, box.high)]
        else:
            middle = (box.low + box.high) / 2
            parts = [(box.first, box.second, box.low, middle), (box.first, box.second, middle, box.high)]
        return [self._bounded(Box(box.bound, box.secret, *ends, box.multiplier)) for ends in parts]

    def _bounded(self, box: Box) -> Box:
        """The same box with a bound at the best multiplier: any gives one."""
        sides = [self._terms(box, level) for level in (box.low, box.high)]
        number = sum(len(term) for terms, _ in sides for term in terms)
        best, at, width = box.bound, box.multiplier, 2 * self._step
        for _ in range(_ZOOMS):
            tried = at + width * np.linspace(-1.0, 1.0, _TRIED)
            values = np.max(
                [
                    tried
                    + sum((term[:, None] - np.outer(mass, tried)).max(axis=0) for term, mass in zip(*side, strict=True))
                    for side in sides
                ],
                axis=0,
            )
            self._budget.spend(len(self._parts) * 12 * CALL + _BY_TERM * number * _TRIED)
            place = int(values.argmin())
            at, best = float(tried[place]), min(best, float(values[place]))
            width *= 2 / (_TRIED - 1)
        return Box(best, box.secret, box.first, box.second, box.low, box.high, at)

    def _found(self, bound: float, boxes: list[Box]) -> RobustPriced:
        mixtures, worth, posteriors = [], [], []
        seen: set[tuple[int, float, int]] = set()
        for box in boxes:
            if len(seen) >= _MIXED or box.bound < bound - _DEEP:
                break
            for level in (box.low, box.high):
                key = (box.secret, round(box.first / self._span, 1), round(level / self._step))
                if key in seen:
                    continue
                seen.add(key)
                one, two = self._sides(box, level)
                total, other = float(one.sum()), float(two.sum())
                share = 1.0 if abs(total - other) < 1e-9 else (1 - other) / (total - other)
                if 0 <= share <= 1 and total > 0 and other > 0:
                    mixtures.append(share * one + (1 - share) * two)
                    worth.append(share * float(xlogy(one, one).sum()) + (1 - share) * float(xlogy(two, two).sum()))
                    posteriors.extend([one / total, two / other])
        empty = np.zeros((0, len(self._prices)))
        return RobustPriced(
            bound,
            np.array(mixtures) if mixtures else empty,
            np.array(worth),
            np.array(posteriors) if posteriors else empty,
        )

    def _sides(self, box: Box, level: float) -> tuple[FloatArray, FloatArray]:
        """The best corners at multipliers just below and just above where their total is 1; both (a,)."""
        terms, masses = self._terms(box, level)
        self._budget.spend(_HALVINGS * (len(self._parts) * 6 * CALL + 2.0 * sum(len(mass) for mass in masses)))

        def chosen(multiplier: float) -> list[int]:
            return [int((term - multiplier * mass).argmax()) for term, mass in zip(terms, masses, strict=True)]

        low, high = -40.0, 40.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            total = sum(float(mass[k]) for mass, k in zip(masses, chosen(middle), strict=True))
            low, high = (middle, high) if total > 1 else (low, middle)
        return self._posterior(box, level, chosen(low)), self._posterior(box, level, chosen(high))

    def _posterior(self, box: Box, level: float, corners: list[int]) -> FloatArray:
        found = np.zeros(len(self._prices))
        for s, (part, places, corner) in enumerate(zip(self._parts, self._places, corners, strict=True)):
            own = s == box.secret
            ratio, scale = (self._span + box.second, level) if own else (self._span - box.first, level + box.first)
            found[places] = np.exp(scale) * part.corners(float(np.exp(ratio))).masses[corner]
        return found
