"""Pricing by thresholds: branch and bound over where greedy filling of one law stops, and over entries between."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.pricing import Priced, Pricer
from funnel.solver.region import Region
from funnel.solver.thresholds import ABOVE, ANY, BELOW, BETWEEN, HIGH, LOW, Cell, CellProgramme, Filling, Solved

# Cells bounded before what they came upon is tried as columns.
_ROUND = 32
# New prices would change the bound by about what the best column gains: until it is this share, go on.
_WORTHWHILE = 0.05
# An entry is not cut nearer to an end of its bounds than this share of them.
_END = 0.15
# Ratios of thresholds nearer than this are one, and losses (nats) below this are rounding.
_SAME, _NOTHING = 1e-9, 1e-12
# Units of work for a cell that is cut.
_BY_CELL = 60 * CALL


@dataclass(frozen=True, eq=False, order=False)
class _Open:
    """A cell that may have more than the target, with what its programme gave."""

    bound: float
    number: int
    cell: Cell
    solved: Solved

    def __lt__(self, other: _Open) -> bool:
        return (-self.bound, self.number) < (-other.bound, other.number)


class ThresholdPricer(Pricer):
    """A `Pricer` that bounds a region by cells of thresholds of a law that leaves much open.

    Few inputs fit above and below the thresholds then, and nearly all others are at one of them: what remains to be
    cut is little. `Pricer` cuts boxes of posteriors, where the threshold is anywhere.

    Parameters
    ----------
    region : Region
        Without an image.
    filling : Filling
        An `ordered` one.
    budget : Budget, optional
    """

    def __init__(self, region: Region, filling: Filling, budget: Budget | None = None) -> None:
        super().__init__(region, budget)
        self._cells = CellProgramme(region, filling, self._budget)

    def charge(self, budget: Budget) -> None:
        """Charge another budget from now on, and end with it."""
        super().charge(budget)
        self._cells.charge(budget)

    @property
    def programmes(self) -> int:
        """Linear programmes solved so far."""
        return super().programmes + self._cells.solved

    @cached_property
    def _highest(self) -> FloatArray:
        """What t/θ of each entry does not exceed."""
        return np.array([self._cells.reach(x) for x in range(self._cells.coordinates)])

    def search(self, prices: FloatArray, target: float, patience: int = 3) -> Priced:
        """Branch and bound on cells; see `Pricer.search`."""
        if not np.isfinite(self._highest).all():
            return super().search(prices, target, patience)
        n = self._cells.coordinates
        kind, low = np.full(n, ANY, dtype=np.int64), np.zeros(n)
        first = self._cells.solve(Cell(0.0, 1.0, kind, low, self._highest), prices)
        if first is None:
            return super().search(prices, target, patience)
        tree = [_Open(first.bound, 0, Cell(0.0, 1.0, kind, low, self._highest), first)]
        found, cells, rounds, since, best, closed = np.zeros((0, self.region.inputs)), 1, 0, 0, 0.0, target
        points = [first.point]
        while tree and tree[0].bound > closed:
            if self._budget.expired or (since > patience and best > _WORTHWHILE * tree[0].bound):
                return Priced(found, max(closed, tree[0].bound), cells)
            here = heapq.heappop(tree)
            self._budget.spend(_BY_CELL)
            parts = _cut(here.cell, here.solved)
            if not parts:
                closed = max(closed, here.bound)
            for part in parts:
                solved = self._cells.solve(part, prices, here.solved) or self._cells.solve(part, prices)
                cells += 1
                if solved is None:
                    solved = replace(here.solved, bound=np.inf)
                else:
                    points.append(solved.point)
                bound = min(solved.bound, here.bound)
                if bound > closed:
                    heapq.heappush(tree, _Open(bound, cells, part, solved))
            if len(points) < _ROUND and tree:
                continue
            rounds += 1
            new = self._promising(np.array(points), prices, target, everything=rounds & (rounds - 1) == 0)
            points = []
            since = since + 1 if len(found) else 0
            if len(new):
                best = max(best, float((self.gains(new) - new @ prices).max()))
                found = np.vstack([found, new])
        return Priced(found, closed, cells)


def _cut(cell: Cell, solved: Solved) -> list[Cell]:
    """Two parts of a cell, cut where chords are furthest from the utility; none where nothing is left to be cut."""
    width = cell.last - cell.first
    x = int(solved.losses.argmax())
    mixed = solved.spread * width**2 / max(cell.last, _SAME)
    if width > _SAME and mixed > solved.losses[x]:
        middle = (cell.first + cell.last) / 2
        return [replace(cell, last=middle), replace(cell, first=middle)]
    if solved.losses[x] <= _NOTHING:
        return []
    entry, ratio = float(solved.entries[x]), solved.ratio
    low, high = float(cell.low[x]), float(cell.high[x])
    kind = int(cell.kind[x])
    if kind == ANY:
        if entry >= ratio:
            return [_with(cell, x, LOW, 0.0, high), _with(cell, x, ABOVE, 1.0, high)]
        return [_with(cell, x, BELOW, 0.0, 1.0), _with(cell, x, HIGH, 0.0, high)]
    if kind == LOW:
        return [_with(cell, x, BELOW, 0.0, 1.0), _with(cell, x, BETWEEN, 0.0, 1.0)]
    if kind == HIGH:
        return [_with(cell, x, BETWEEN, 0.0, 1.0), _with(cell, x, ABOVE, 1.0, high)]
    if kind == BELOW:
        at = entry / max(ratio, _SAME)
    elif kind == BETWEEN:
        at = (1 - entry) / max(1 - ratio, _SAME)
    else:
        at = entry
    span = high - low
    at = min(max(at, low + _END * span), high - _END * span)
    return [_with(cell, x, kind, low, at), _with(cell, x, kind, at, high)]


def _with(cell: Cell, x: int, kind: int, low: float, high: float) -> Cell:
    kinds, lows, highs = cell.kind.copy(), cell.low.copy(), cell.high.copy()
    kinds[x], lows[x], highs[x] = kind, low, high
    return replace(cell, kind=kinds, low=lows, high=highs)
