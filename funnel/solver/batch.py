"""Many small linear programmes at once: the dual simplex method on stacks of condensed tableaux."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import cast

import numpy as np
import numpy.typing as npt

from funnel.joint import FloatArray
from funnel.solver.budget import CALL, UNITS_A_SECOND, Budget
from funnel.solver.region import Region

Places = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

_PIVOT = 1e-8
_FEASIBLE = 1e-10
# Compiled code takes a process a second to load. That is worth it for tableaux of so many numbers, once a run has done
# so many units of work and may come to so many: what ends before is as fast without, in the first call and every other.
_LARGE, _BEGUN, _LONG = 200, UNITS_A_SECOND, 2 * UNITS_A_SECOND
# Stacks of so many numbers are worth starting threads for.
_LARGE_STACK = 2**17
# Units of work of an exchange: for an entry of the tableau and for a variable, and array operations a round.
_CODE_ENTRY, _CODE_VARIABLE = 0.5, 10.0
_BY_ARRAY, _BY_ROW, _CALLS = 3.0, 100.0, 20.0


@dataclass(frozen=True, eq=False)
class Bases:
    """Bases of N programmes: ``basic = table · nonbasic`` as an identity in the variables and the activities of rows.

    Attributes
    ----------
    table : ndarray, shape (N, m, n)
    basic : ndarray of int, shape (N, m)
        Numbers below n are variables, n + k is the activity of row k.
    nonbasic : ndarray of int, shape (N, n)
    """

    table: FloatArray
    basic: Places
    nonbasic: Places

    def __getitem__(self, chosen: npt.NDArray[np.intp] | Flags) -> Bases:
        return Bases(self.table[chosen], self.basic[chosen], self.nonbasic[chosen])


@dataclass(frozen=True, eq=False)
class Answers:
    """Outcome of N programmes; every claim is to be checked by `bounds`, none is trusted.

    Attributes
    ----------
    bases : Bases
    points : ndarray, shape (N, n)
        Values of the variables.
    duals : ndarray, shape (N, m)
        Multipliers of the rows; where `empty`, a ray that should prove the box empty.
    solved, empty : ndarray of bool, shape (N,)
        Whether the point is optimal; whether the box seems empty. Neither: cut off or out of steps.
    """

    bases: Bases
    points: FloatArray
    duals: FloatArray
    solved: Flags
    empty: Flags


class BatchProgramme:
    """max cost·x subject to ``floor <= A x <= ceiling`` and a box, for many costs and boxes at once.

    All variables and rows have two finite bounds, so every basis is dual feasible once its nonbasic variables sit at
    the end their reduced cost prefers: the dual simplex method starts from any basis, its value is an upper bound at
    every step, and a programme may be left as soon as that is low enough. Ratio tests take long steps: what they
    pass changes ends. A step over N programmes of m rows and n variables costs O(N m n) array work, so the overhead
    of the interpreter is shared by all of them.

    Parameters
    ----------
    region : Region
    budget : Budget, optional
        Charged for every exchange; programmes end when it is spent, and say that they are not solved.
    """

    def __init__(self, region: Region, budget: Budget | None = None) -> None:
        self._budget = Budget.of(budget)
        self._matrix = region.system
        self._rows, self._size = self._matrix.shape
        self._floor, self._ceiling = region.floor, region.ceiling
        self._pool: ThreadPoolExecutor | None = None

    def charge(self, budget: Budget) -> None:
        """Charge another budget from now on."""
        self._budget = budget

    def slack_basis(self) -> Bases:
        """The basis in which every row's activity is basic; shape N = 1."""
        n, m = self._size, self._rows
        return Bases(
            self._matrix[None].copy(),
            np.arange(n, n + m, dtype=np.int32)[None],
            np.arange(n, dtype=np.int32)[None],
        )

    def maximise(
        self,
        costs: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        start: Bases,
        cutoff: float | FloatArray = -np.inf,
        steps: int = 120,
    ) -> Answers:
        """Solve N programmes.

        Parameters
        ----------
        costs, lower, upper : ndarray, shape (N, n)
        start : Bases
            N bases; they are not changed.
        cutoff : float or ndarray, shape (N,)
            A programme whose value is proven to be below this is left.
        steps : int
            Exchanges per programme at most.
        """
        number, n, m = len(costs), self._size, self._rows
        spent = self._budget.spent
        worthwhile = spent >= _BEGUN and spent + self._budget.remaining >= _LONG
        compiled = _compiled() if worthwhile and self._matrix.size >= _LARGE else None
        by_exchange = self._by_exchange(compiled is not None)
        steps = max(1, int(min(steps, self._budget.remaining / (number * by_exchange))))
        low, high, priced = (np.zeros((number, n + m)) for _ in range(3))
        low[:, :n], low[:, n:] = lower, self._floor
        high[:, :n], high[:, n:] = upper, self._ceiling
        priced[:, :n] = costs
        cut = np.empty(number)
        cut[:] = cutoff
        bases = Bases(start.table.copy(), start.basic.copy(), start.nonbasic.copy())
        given = _Given(bases, priced, low, high, cut)
        found = _Found(
            np.zeros((number, n + m)),
            np.zeros((number, n + m)),
            np.zeros((number, n + m)),
            np.zeros(number, dtype=bool),
            np.zeros(number, dtype=bool),
            np.zeros(number, dtype=np.int64),
        )
        # Every exchange touches the whole tableau, and so does finding out that there is none to make.
        if compiled is None:
            _by_arrays(given, steps, found)
            self._budget.spend(_CALLS * CALL * float(found.exchanges.max(initial=0) + 1))
        else:
            self._side_by_side(compiled, given, steps, found)
            self._budget.spend(CALL)
        self._budget.spend(float(found.exchanges.sum() + number) * by_exchange)
        multipliers = np.where(found.empty[:, None], found.rays[:, n:], found.duals[:, n:])
        return Answers(bases, found.values[:, :n], multipliers, found.solved, found.empty)

    def _by_exchange(self, compiled: bool) -> float:
        """Units of work of an exchange."""
        if compiled:
            return float(_CODE_ENTRY * self._matrix.size + _CODE_VARIABLE * self._size)
        return float(_BY_ARRAY * self._matrix.size + _BY_ROW * self._size)

    def _side_by_side(self, solve_stack: Callable[..., None], given: _Given, steps: int, found: _Found) -> None:
        """Solve all programmes one by one in compiled code; large stacks in a thread for every processor."""
        number, threads, bases = len(given.priced), os.cpu_count() or 1, given.bases
        inputs = (bases.table, bases.basic, bases.nonbasic, given.priced, given.low, given.high, given.cut)
        outputs = (found.values, found.duals, found.rays, found.solved, found.empty, found.exchanges)

        def solve(part: slice) -> None:
            taken, made = (tuple(array[part] for array in arrays) for arrays in (inputs, outputs))
            solve_stack(*taken, steps, _PIVOT, _FEASIBLE, *made)

        if threads == 1 or bases.table.size < _LARGE_STACK:
            solve(slice(0, number))
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(threads)
        # Every programme is solved by itself, so the answers do not depend on the number of threads.
        edges = np.linspace(0, number, min(4 * threads, number) + 1).astype(int).tolist()
        list(self._pool.map(solve, (slice(start, stop) for start, stop in pairwise(edges))))


@dataclass(frozen=True, eq=False)
class _Given:
    """N programmes: where they start, and over all n + m places their costs and both ends; what is low enough, (N,)."""

    bases: Bases
    priced: FloatArray
    low: FloatArray
    high: FloatArray
    cut: FloatArray


@dataclass(frozen=True, eq=False)
class _Found:
    """Outputs to be filled in, over all n + m places."""

    values: FloatArray
    duals: FloatArray
    rays: FloatArray
    solved: Flags
    empty: Flags
    exchanges: npt.NDArray[np.int64]


@cache
def _compiled() -> Callable[..., None] | None:
    """The same method as compiled code where numba is installed (the extra ``fast``), else None."""
    if find_spec("numba") is None:
        return None
    try:
        from funnel.solver.compiled import solve_stack
    except RuntimeError:
        # No folder to keep compiled code in can be written: compiling anew in every process costs more than it saves.
        return None
    return cast("Callable[..., None]", solve_stack)


def _by_arrays(given: _Given, steps: int, found: _Found) -> None:
    """Solve all programmes step by step together, in array operations."""
    table, basic, nonbasic = given.bases.table, given.bases.basic, given.bases.nonbasic
    number, m, n = table.shape
    low, high, priced = given.low.ravel(), given.high.ravel(), given.priced.ravel()
    values, duals, solved, empty = found.values, found.duals, found.solved, found.empty
    # The programmes still at work, compacted as others finish; B and N are places in the flat arrays of bounds.
    work, T = np.arange(number), table
    offset = (np.arange(number) * (n + m))[:, None]
    B, N = basic + offset, nonbasic + offset
    d = priced[N] + np.matmul(priced[B][:, None, :], T)[:, 0]
    low_n, high_n, low_b, high_b = low[N], high[N], low[B], high[B]
    every = np.arange(number)
    for step in range(steps + 1):
        rising = d > 0
        x = np.where(rising, high_n, low_n)
        beta = np.matmul(T, x[:, :, None])[:, :, 0]
        short = low_b - beta
        violation = np.maximum(short, beta - high_b)
        leave = violation.argmax(axis=1)
        worst = violation[every, leave]
        row = T[every, leave]
        # How much moving a nonbasic variable to its other end repairs the row.
        repair = row * np.where(rising, -1.0, 1.0)
        direction = np.where(short[every, leave] > 0, 1.0, -1.0)
        repair *= direction[:, None]
        helpful = repair > _PIVOT
        size = np.where(helpful, repair, 1.0)
        ratio = np.where(helpful, np.abs(d) / size, np.inf)
        order = ratio.argsort(axis=1)
        reach = np.where(helpful, repair * (high_n - low_n), 0.0)[every[:, None], order].cumsum(axis=1)
        needed = worst - _FEASIBLE
        is_solved = needed <= 0
        is_empty = (reach[:, -1] < needed) & ~is_solved
        enter = order[every, (reach >= needed[:, None]).argmax(axis=1)]
        # Cut off, out of steps, or no pivot of usable size: the value so far is a bound all the same.
        is_left = ((d * x).sum(axis=1) <= given.cut[work]) | ~helpful[every, enter]
        stop = is_solved | is_empty | is_left | (step == steps)
        pivot = row[every, enter]
        if stop.any():
            place = np.flatnonzero(stop)
            ended = work[place]
            shift = offset[ended]
            table[ended], basic[ended], nonbasic[ended] = T[place], B[place] - shift, N[place] - shift
            solved[ended], empty[ended], found.exchanges[ended] = is_solved[place], is_empty[place], step
            values.ravel()[B[place]], values.ravel()[N[place]] = beta[place], x[place]
            duals.ravel()[N[place]] = d[place]
            # The row that cannot be repaired, as multipliers: its basic variable against its nonbasic ones.
            sign = direction[place]
            ray = np.zeros((len(ended), n + m))
            np.put_along_axis(ray, N[place] - shift, row[place] * sign[:, None], 1)
            ray[np.arange(len(ended)), (B[place] - shift)[np.arange(len(ended)), leave[place]]] = -sign
            found.rays[ended] = ray
            keep = np.flatnonzero(~stop)
            if len(keep) == 0:
                break
            work, T, B, N, d = work[keep], T[keep], B[keep], N[keep], d[keep]
            low_n, high_n, low_b, high_b = low_n[keep], high_n[keep], low_b[keep], high_b[keep]
            row, pivot, enter, leave, direction = row[keep], pivot[keep], enter[keep], leave[keep], direction[keep]
            every = np.arange(len(work))
        elif step == 0:
            T = T.copy()
        scaled = row / pivot[:, None]
        column = T[every, :, enter]
        T -= column[:, :, None] * scaled[:, None, :]
        T[every, :, enter] = column / pivot[:, None]
        T[every, leave] = -scaled
        T[every, leave, enter] = 1.0 / pivot
        entering = d[every, enter]
        d -= entering[:, None] * scaled
        # What leaves goes to the end it was beyond, also where its reduced cost is the rounding of zero.
        d[every, enter] = -direction * np.maximum(np.abs(entering / pivot), 1e-300)
        for at_basic, at_nonbasic in ((B, N), (low_b, low_n), (high_b, high_n)):
            at_basic[every, leave], at_nonbasic[every, enter] = at_nonbasic[every, enter], at_basic[every, leave]
