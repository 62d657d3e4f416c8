"""Pricing by thresholds: branch and bound over where greedy filling of a distribution stops, and entries between."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.cell_programme import CellProgramme, Solved
from funnel.solver.filling_cells import Cell, Limits
from funnel.solver.pricing import Priced, Pricer
from funnel.solver.region import Region

# Points of cells before they are tried as columns.
_ROUND = 32
# New prices would change the bound by about what the best column gains: until it is this share, go on.
_WORTHWHILE = 0.5
# Nats by which a bound must fall for a cell to be solved once more.
_GAINED = 1e-9
# Units of work for a cell that is cut.
_BY_CELL = 60 * CALL
# Rows of a lower unit than cells have are those of so many sets of inputs at most. They have their turn whenever cells
# have spent that share of what is left of a budget.
_SETS, _CELLS = 2000, 0.6


@dataclass(frozen=True, eq=False)
class _Open:
    """A cell that may have more than the target, with what its programme gave; the one of largest bound comes first."""

    bound: float
    number: int
    cell: Cell
    solved: Solved

    def __lt__(self, other: _Open) -> bool:
        return (-self.bound, self.number) < (-other.bound, other.number)


@dataclass(eq=False)
class _Tree:
    """Open cells, as a heap.

    Attributes
    ----------
    closed : float
        Cells that cannot be cut any further are left as they are; what is not above them does not matter any more.
    cells : list of _Open
    number : int
        Of cells so far.
    """

    closed: float
    cells: list[_Open] = field(default_factory=list)
    number: int = 0

    @property
    def bound(self) -> float:
        """Of all cells, open or closed."""
        return max(self.closed, self.cells[0].bound) if self.cells else self.closed

    def put(self, bound: float, cell: Cell, solved: Solved) -> None:
        """Open a cell, unless nothing in it is above what is closed."""
        if bound > self.closed:
            heapq.heappush(self.cells, _Open(bound, self.number, cell, solved))


class ThresholdPricer(Pricer):
    """A `Pricer` whose search cuts cells of thresholds of a distribution that leaves much open.

    Few inputs fit above the upper threshold and below the lower one then, and nearly all others are at one of them:
    little is left to be cut. Boxes of posteriors are cut one by one for wherever the thresholds may be.

    Parameters
    ----------
    region : Region
        Without an image.
    conditions : ndarray, shape (k, 2 + a + levels)
        What `CellProgramme` takes: bounds are of rows that meet these, columns of rows in the region, which is larger
        where it knows some distributions only.
    limits : Limits
        `ordered`.
    budget : Budget, optional
    least : float
        The least upper threshold, where the average entry is 1, that cells are about. Where it is lower, nearly nobody
        is published as this but the few inputs above it: boxes of posteriors for each set of them.
    """

    def __init__(
        self,
        region: Region,
        conditions: FloatArray,
        limits: Limits,
        budget: Budget | None = None,
        least: float = 0.0,
    ) -> None:
        super().__init__(region, budget)
        self._cells = CellProgramme(region.distribution, conditions, limits, self._budget, least)
        self._limits, self._least = limits, least

    def charge(self, budget: Budget) -> None:
        """Charge another budget from now on, and end with it."""
        super().charge(budget)
        self._cells.charge(budget)

    @cached_property
    def _widest_cell(self) -> Cell:
        return Cell.whole(self._cells.highest())

    def search(self, prices: FloatArray, target: float) -> Priced:
        """Branch and bound on cells, or on boxes where entries have no limit; see `Pricer.search`."""
        if self._low is None:
            return super().search(prices, target)
        if not len(self._low):
            return self._search_cells(prices, target, _Tree(target))
        budget, tree, rest = self._budget, _Tree(target), np.inf
        columns, number = np.zeros((0, self.region.inputs)), 0
        while True:
            most = budget.part(_CELLS)
            self.charge(most)
            cells = self._search_cells(prices, target, tree)
            self.charge(budget)
            if not tree.number:
                return cells
            # The rest needs no proof below what is left open in cells, and cells none far below what it leaves open.
            aim = max(target, cells.bound)
            low = self._search_boxes(prices, aim, np.zeros_like(self._low), self._low)
            rest = min(rest, low.bound)
            columns, number = np.vstack([columns, cells.columns, low.columns]), number + cells.boxes + low.boxes
            if low.bound > aim or not most.expired or budget.expired:
                best = np.argsort(columns @ prices - self.gains(columns), kind="stable")
                return Priced(columns[best], max(aim, rest), number)

    @cached_property
    def _low(self) -> FloatArray | None:
        """Boxes from 0 to these (k, a) have all rows of a lower unit than cells have; None where they are too many."""
        if not self._least:
            return np.zeros((0, self.region.inputs))
        sets = self._limits.above(self.region.inputs, _SETS)
        if sets is None:
            return None
        return np.where(sets, self.reach, np.minimum(self._least * self.region.distribution, self.reach))

    def _search_cells(self, prices: FloatArray, target: float, tree: _Tree) -> Priced:
        """Branch and bound on the cells of a tree, or on all of them where it has none yet."""
        before, points = tree.number, []
        if not tree.number:
            whole = self._widest_cell
            first = self._cells.solve(whole, prices) if np.isfinite(whole.high).all() else None
            if first is None:
                return super().search(prices, target)
            tree.put(first.bound, whole, first)
            tree.number, points = 1, [first.point]
        tree.closed = max(tree.closed, target)
        found, rounds, since, best = np.zeros((0, self.region.inputs)), 1, 0, 0.0
        while tree.bound > tree.closed:
            if self._budget.expired or (since > self.patience and best > _WORTHWHILE * tree.bound):
                break
            self._budget.spend(_BY_CELL)
            points.extend(self._cut(tree, prices))
            if len(points) < _ROUND and tree.cells:
                continue
            rounds += 1
            # Points below the target mostly climb to columns that are known: try them less and less often.
            new = self._promising(np.array(points), prices, target, everything=rounds & (rounds - 1) == 0)
            points = []
            since = since + 1 if len(found) else 0
            if len(new):
                best = max(best, float((self.gains(new) - new @ prices).max()))
                found = np.vstack([found, new])
        return Priced(found, tree.bound, tree.number - before)

    def _cut(self, tree: _Tree, prices: FloatArray) -> list[FloatArray]:
        """Cut the cell of the largest bound in two; the points of both parts."""
        here, points = heapq.heappop(tree.cells), []
        solved = here.solved
        cell = here.cell if solved.left is None else solved.left.of(here.cell, tree.closed)
        parts = cell.cut(solved.entries, solved.ratio, solved.losses, solved.mixed)
        if not parts:
            # Chords are the utility: what may be left is how far tangents are from the logarithm of the unit.
            again = self._cells.solve(cell, prices, solved)
            if again is not None and again.bound < here.bound - _GAINED:
                tree.put(again.bound, cell, again)
            else:
                tree.closed = max(tree.closed, here.bound)
        for part in parts:
            tree.number += 1
            # A programme that fails once may be solved from the beginning; where it is not, what it is part of says
            # how to go on.
            answer = self._cells.solve(part, prices, solved) or self._cells.solve(part, prices)
            if answer is not None:
                points.append(answer.point)
            bound = here.bound if answer is None else min(answer.bound, here.bound)
            tree.put(bound, part, answer or replace(solved, bound=bound, left=None))
        return points
