"""Programmes over cells of rows: bounds on what a posterior may gain, proven by their multipliers."""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.filling_cells import ENDS, Cell, Flags, Limits
from funnel.solver.lp import quiet_solver
from funnel.solver.narrowing import Left
from funnel.solver.region import DATA_ERROR

Places = npt.NDArray[np.intp]

# Nats that a posterior loses for what it lacks of a whole: far more than any may gain.
_LACK = 30.0
# Where tangents of the logarithm of the unit touch, in units of where it was best before, or of the least.
_TANGENTS = np.array([0.003, 0.1, 0.4, 0.7, 0.87, 0.95, 1.0, 1.05, 1.15, 1.4, 2.2, 6.0, 50.0])
_LEAST_UNIT = 1e-3
# Conditions that a point breaks by more are added, so many at once, and so often.
_BROKEN, _AT_ONCE, _ROUNDS = 1e-6, 20, 12
# No entry is looked at beyond so many times the upper threshold.
_FARTHEST = 1e4
# What a level must be worth, so that nothing of it is left in a proof.
_LEVEL = 1e-6
# Units of work: to make a programme, for each entry, to solve it, for an iteration, and for each entry in it.
_PROGRAMME, _ENTRY, _RUN, _STEP, _TOUCHED = 130 * CALL, 15.0, 50 * CALL, 3 * CALL, 0.4
_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class Solved:
    """What a programme over a cell gave.

    Attributes
    ----------
    bound : float
        No posterior of the cell has a larger ``g - λ·v``.
    left : Left or None
        What its multipliers leave of the cell, if they leave anything bounded.
    point : ndarray, shape (a + levels,)
        A posterior that meets the conditions, with levels.
    entries : ndarray, shape (n,)
        Its t/θ.
    unit : float
        Its θ, where the average entry is 1.
    ratio : float
        Its φ/θ.
    mixed : float
        How much of a mixture of both ends of the ratio it is, from 0 to 1.
    losses : ndarray, shape (n,)
        By how much chords of each entry exceed the utility, nats.
    tight : ndarray of int
        Conditions that hold with equality.
    basis : highspy.HighsBasis
    """

    bound: float
    left: Left | None
    point: FloatArray
    entries: FloatArray
    unit: float
    ratio: float
    mixed: float
    losses: FloatArray
    tight: Places
    basis: highspy.HighsBasis


@dataclass(frozen=True, eq=False)
class _Ends:
    """Both ends of the ratio of a cell together; columns are weights of ends, both units, levels.

    Attributes
    ----------
    entries, used : ndarray, shape (2, n, 4)
    masses : ndarray, shape (8 n,)
        What a weight adds to Σv.
    values : ndarray, shape (2, columns)
        hi and lo.
    """

    entries: FloatArray
    used: Flags
    masses: FloatArray
    values: FloatArray


class CellProgramme:
    """Bounds ``g - λ·v`` over cells of the rows that meet some conditions, by linear programmes.

    With thresholds θ and φ of a row T (see `Cell`) greedy filling gives ``hi = θ + Σ u (T - θ)⁺ - l (θ - T)⁺`` and
    ``lo = φ + Σ l (T - φ)⁺ - u (φ - T)⁺``. In units of θ these are sums over inputs, linear between 0, φ, θ and
    beyond, and so is a chord of t ln t; and with ``m = θ/q``

        g - λ·v  =  Σ_x m p_x t_x (ln t_x + ln p_x - λ_x) + ln m

    is concave in m. So an entry is a mixture of ends of what is known of it, with weights that sum to m; and φ/θ is one
    of both ends of its own, since the Lagrangian is convex in that ratio whatever the multipliers. No more than is free
    fits above θ and below φ, and no less at both and beyond: the more is left open, the fewer entries are elsewhere.

    Parameters
    ----------
    distribution : ndarray, shape (a,)
        p_X.
    conditions : ndarray, shape (k, 2 + a + levels)
        Each row G says ``G (hi, lo, v, levels) <= 0``, with levels from 0 to 1; not negative on hi, not positive on lo,
        of a largest entry of about 1.
    limits : Limits
        `ordered`, of a inputs or of one more for what is not told apart: that has the average entry q.
    budget : Budget
    least : float
        The least unit θ, where the average entry is 1, of the rows that are bounded.
    """

    def __init__(
        self, distribution: FloatArray, conditions: FloatArray, limits: Limits, budget: Budget, least: float = 0.0
    ) -> None:
        self._limits, self._budget, self._least = limits, budget, least
        self._conditions = conditions
        self._levels = conditions.shape[1] - 2 - len(distribution)
        self._solver = quiet_solver()
        self._inputs, self.entries = len(distribution), len(limits.lower)
        self._rest = self.entries > self._inputs
        self._distribution = np.append(distribution, 0.0)[: self.entries]
        on_entries = np.zeros((len(conditions), self.entries))
        on_entries[:, : self._inputs] = conditions[:, 2 : 2 + self._inputs]
        self._size = 2 * self.entries * ENDS
        self._on_ends = on_entries[:, np.tile(np.repeat(np.arange(self.entries), ENDS), 2)]
        self._sums = np.zeros((2 * self.entries, self._size + 2 + self._levels))
        self._sums[:, : self._size] = np.repeat(np.eye(2 * self.entries), ENDS, axis=1)
        self._sums[: self.entries, self._size] = self._sums[self.entries :, self._size + 1] = -1.0
        # The first rows are equations.
        self._equal = int(self._rest) + 2 * self.entries
        self._fixed = self._equal + 8

    def charge(self, budget: Budget) -> None:
        """Charge another budget from now on."""
        self._budget = budget

    def _at_ends(self, cell: Cell) -> tuple[_Ends, FloatArray]:
        """The ends, and the rows that every programme has but Σv = 1: equations, then how much room there is."""
        n, size = self.entries, self._size
        both = [cell.ends(ratio) for ratio in (cell.first, cell.last)]
        entries, used, raised, lowered = (
            np.stack([getattr(one, name) for one in both]) for name in ("entries", "used", "raised", "lowered")
        )
        ratios = np.array([cell.first, cell.last])
        lower, upper = self._limits.lower[:, None], self._limits.upper[:, None]
        values = np.zeros((2, size + 2 + self._levels))
        values[0, :size] = (np.where(raised, upper, lower) * (entries - 1)).reshape(size)
        values[1, :size] = (np.where(lowered, upper, lower) * (entries - ratios[:, None, None])).reshape(size)
        values[0, size : size + 2], values[1, size : size + 2] = 1.0, ratios
        masses = (self._distribution[:, None] * entries).reshape(size)
        rows = np.zeros((self._fixed, size + 2 + self._levels))
        if self._rest:
            # What is not told apart has the average entry.
            rows[0, :size] = -masses
            rows[0, :size].reshape(2, n, ENDS)[:, -1] += entries[:, -1]
        rows[int(self._rest) : self._equal] = self._sums
        room, free = self._limits.room[:, None], self._limits.free
        for i, one in enumerate(both):
            part = slice(i * n * ENDS, (i + 1) * n * ENDS)
            for k, (flags, sign) in enumerate(
                ((one.over, 1.0), (one.not_under, -1.0), (one.under, 1.0), (one.not_over, -1.0))
            ):
                rows[self._equal + 4 * i + k, part] = (sign * room * flags).reshape(-1)
                rows[self._equal + 4 * i + k, size + i] = -sign * free
        return _Ends(entries, used, masses, values), rows

    def _over_ends(self, chosen: Places, ends: _Ends) -> FloatArray:
        """Conditions as rows over the columns of a programme."""
        rows = self._conditions[chosen, :2] @ ends.values
        rows[:, : self._size] += self._on_ends[chosen] * ends.masses
        rows[:, self._size + 2 :] += self._conditions[chosen, 2 + self._inputs :]
        return np.asarray(rows)

    def _posterior(self, weights: FloatArray, ends: _Ends) -> FloatArray:
        return np.asarray((weights * ends.masses).reshape(2, self.entries, ENDS).sum(axis=(0, 2))[: self._inputs])

    def solve(self, cell: Cell, prices: FloatArray, parent: Solved | None = None) -> Solved | None:
        """Bound a cell; None where the solver fails.

        Parameters
        ----------
        cell : Cell
        prices : ndarray, shape (a,)
            λ.
        parent : Solved, optional
            What a cell gave that this is a part of.
        """
        n, size = self.entries, self._size
        ends, fixed = self._at_ends(cell)
        linear = np.zeros((n, 1))
        linear[: self._inputs, 0] = np.log(self._distribution[: self._inputs]) - prices
        curved = xlogy(ends.entries, ends.entries)
        gains = (self._distribution[:, None] * (curved + linear * ends.entries)).reshape(size)
        # Columns besides: what a whole and the unit lack, ln of the unit.
        columns = fixed.shape[1]
        cost = np.zeros(columns + 3)
        cost[:size], cost[-3:] = -gains, (_LACK, _LACK / max(self._least, _LEAST_UNIT), -1.0)
        least, most = np.zeros(columns + 3), np.full(columns + 3, highspy.kHighsInf)
        most[:size] = np.where(ends.used.reshape(size), highspy.kHighsInf, 0.0)
        most[size + 2 : columns], least[-1] = 1.0, -highspy.kHighsInf
        touching = _TANGENTS * (1.0 if parent is None else max(parent.unit, _LEAST_UNIT))
        t = len(touching)
        in_use, basis = (np.zeros(0, dtype=np.intp), None) if parent is None else (parent.tight, parent.basis)
        rows = np.vstack([fixed, self._over_ends(in_use, ends)])
        matrix = np.zeros((2 + t + len(rows), columns + 3))
        matrix[0, :size], matrix[0, -3] = ends.masses, 1.0
        matrix[1 : 1 + t, size : size + 2], matrix[1 : 1 + t, -1] = -1 / touching[:, None], 1.0
        matrix[1 + t, size : size + 2] = matrix[1 + t, -2] = -1.0
        matrix[2 + t :, :columns] = rows
        low, high = np.full(len(matrix), -highspy.kHighsInf), np.zeros(len(matrix))
        low[0] = high[0] = 1.0
        high[1 : 1 + t], high[1 + t] = np.log(touching) - 1, -self._least
        low[2 + t : 2 + t + self._equal] = 0.0
        self._pass(matrix, low, high, cost, least, most, basis)
        for last in range(_ROUNDS):
            if (answer := self._run(len(matrix))) is None:
                return None
            values, duals = answer
            told = np.concatenate(
                [ends.values @ values[:columns], self._posterior(values[:size], ends), values[size + 2 : columns]]
            )
            broken = self._conditions @ told
            broken[in_use] = -np.inf
            new = np.argsort(-broken, kind="stable")[:_AT_ONCE]
            new = new[broken[new] > _BROKEN]
            if not len(new) or last == _ROUNDS - 1:
                break
            in_use, added = np.append(in_use, new), self._over_ends(new, ends)
            rows = np.vstack([rows, added])
            self._add(added)
        multipliers = np.array(-duals[2 + t :])
        sizes = (self._distribution[:, None] * (np.abs(curved) + np.abs(linear) * ends.entries)).reshape(size)
        bound, left = self._proven(rows, in_use, multipliers, ends, gains, sizes, float(-duals[0]))
        tight, basis = _without_slack(self._solver.getBasis(), in_use)
        weights, units = values[:size], values[size : size + 2]
        unit = float(units.sum())
        if unit <= 0:
            nothing = np.zeros(n)
            return Solved(bound, left, told[2:], nothing + 1, 0.0, cell.last, 1.0, nothing, tight, basis)
        mean = (weights * ends.entries.reshape(size)).reshape(2, n, ENDS).sum(axis=(0, 2)) / unit
        chords = (weights * gains).reshape(2, n, ENDS).sum(axis=(0, 2))
        losses = chords - unit * self._distribution * (xlogy(mean, mean) + linear[:, 0] * mean)
        ratio = float(units @ (cell.first, cell.last)) / unit
        mixed = float(4 * units[0] * units[1] / unit**2)
        return Solved(bound, left, told[2:], mean, unit, ratio, mixed, losses, tight, basis)

    def _proven(
        self,
        rows: FloatArray,
        in_use: Places,
        multipliers: FloatArray,
        ends: _Ends,
        gains: FloatArray,
        sizes: FloatArray,
        price: float,
    ) -> tuple[float, Left | None]:
        """What the objective is at most over a cell, for any multipliers: of either sign for equations; and where.

        With the unit m the Lagrangian is at most ``z + m R + ln m`` plus what it leaves of levels, where z is the price
        of Σv and R the larger of what both ends of the ratio give: largest where m is ``-1/R``, or the least there is.
        """
        n, size = self.entries, self._size
        multipliers[self._equal :] = np.maximum(multipliers[self._equal :], 0.0)
        pulled, pulls = multipliers @ rows, np.abs(multipliers) @ np.abs(rows)
        left = (gains - price * ends.masses - pulled[:size]).reshape(2, n, ENDS)
        left = np.where(ends.used, left, -np.inf)
        slopes = left.max(axis=2).sum(axis=1) - pulled[size : size + 2]
        # A sum of k products is off by at most k unit roundoffs times the sum of their sizes, and an end by one.
        terms = sizes + abs(price) * ends.masses + pulls[:size]
        added = terms.reshape(2, n, ENDS).max(axis=2).sum(axis=1) + pulls[size : size + 2] + 8.0
        operations = 2 * (len(rows) + 4 * n + 32)
        slopes += operations * _UNIT * added
        slope = float(slopes.max())
        if not slope < 0:
            return np.inf, None
        levels = float(np.maximum(-pulled[size + 2 :], 0.0).sum())
        # Errors of the conditions themselves: Σv = 1, hi and lo are at most what one input can have, levels at most 1.
        conditions = multipliers[self._fixed :] @ np.abs(self._conditions[in_use]).max(axis=1, initial=0.0)
        data = DATA_ERROR * (3 + self._levels + 2 / float(self._distribution[: self._inputs].min())) * float(conditions)
        unit = max(-1 / slope, self._least)
        rounding = operations * _UNIT * (1 + abs(price) - unit * slope + abs(np.log(unit)))
        rounding += operations * _UNIT * float(pulls[size + 2 :].sum())
        constant = float(price + levels + data + rounding)
        return constant + unit * slope + float(np.log(unit)), Left(left, slopes, constant, self._least)

    def _pass(
        self,
        matrix: FloatArray,
        low: FloatArray,
        high: FloatArray,
        cost: FloatArray,
        least: FloatArray,
        most: FloatArray,
        basis: highspy.HighsBasis | None,
    ) -> None:
        """A programme to minimise, from a basis."""
        rows, columns = matrix.shape
        starts, index, value = _by_rows(matrix)
        wise, sense = int(highspy.MatrixFormat.kRowwise), int(highspy.ObjSense.kMinimize)
        real = np.zeros(columns, dtype=np.int32)
        self._solver.passModel(
            columns, rows, len(value), wise, sense, 0.0, cost, least, most, low, high, starts, index, value, real
        )
        if basis is not None:
            self._solver.setBasis(basis)
        self._budget.spend(_PROGRAMME + _ENTRY * matrix.size)

    def _add(self, rows: FloatArray) -> None:
        """Further conditions of a programme."""
        starts, index, value = _by_rows(rows)
        none = np.full(len(rows), -highspy.kHighsInf)
        self._solver.addRows(len(rows), none, np.zeros(len(rows)), len(value), starts, index, value)
        self._budget.spend(CALL + _ENTRY * rows.size)

    def _run(self, rows: int) -> tuple[FloatArray, FloatArray] | None:
        """Values and duals of rows; None where the solver has none."""
        self._solver.run()
        steps = max(0, int(self._solver.getInfo().simplex_iteration_count))
        self._budget.spend(_RUN + steps * (_STEP + _TOUCHED * rows * self._size))
        # Any multipliers prove a bound: where the solver stops a little early, it is a little larger.
        solution = self._solver.getSolution()
        if not solution.dual_valid:
            return None
        values, duals = np.array(solution.col_value), np.array(solution.row_dual)
        return (values, duals) if np.isfinite(values).all() and np.isfinite(duals).all() else None

    def highest(self) -> FloatArray:
        """What t/θ of each entry does not exceed, (n,); infinite where nothing is found."""
        return np.array([self._reach(x) for x in range(self.entries)])

    def _reach(self, x: int) -> float:
        """A number that t/θ of one entry does not exceed.

        Moved towards the average row, a row meets the conditions all the more, and its largest t/θ falls to 1 without
        a jump: where no row has one of `_FARTHEST` exactly, none has a larger one.
        """
        size = self._size
        ends, fixed = self._at_ends(Cell.whole(np.full(self.entries, _FARTHEST)))
        rows = np.vstack([fixed, self._over_ends(np.arange(len(self._conditions)), ends)])
        columns = rows.shape[1]
        if self._least > 0:
            # The average entry is not further above θ than this either.
            whole = np.zeros((1, columns))
            whole[0, :size], whole[0, size : size + 2] = ends.masses, -1 / self._least
            rows = np.vstack([rows, whole])
        gains = np.zeros((2, self.entries, ENDS))
        gains[:, x] = ends.entries[:, x]
        # The units sum to 1.
        matrix = np.vstack([np.zeros((1, columns)), rows])
        matrix[0, size : size + 2] = 1.0
        low, high = np.full(len(matrix), -highspy.kHighsInf), np.zeros(len(matrix))
        low[0] = high[0] = 1.0
        low[1 : 1 + self._equal] = 0.0
        # Levels that are worth something have multipliers that leave nothing of them.
        cost = np.full(columns, -_LEVEL)
        cost[:size], cost[size : size + 2] = -gains.reshape(size), 0.0
        most = np.full(columns, highspy.kHighsInf)
        most[:size] = np.where(ends.used.reshape(size), highspy.kHighsInf, 0.0)
        self._pass(matrix, low, high, cost, np.zeros(columns), most, None)
        answer = self._run(len(matrix))
        if answer is None:
            return np.inf
        multipliers = np.array(-answer[1][1:])
        multipliers[self._equal :] = np.maximum(multipliers[self._equal :], 0.0)
        pulled, pulls = multipliers @ rows, np.abs(multipliers) @ np.abs(rows)
        if (pulled[size + 2 :] <= 2.0**-40 * pulls[size + 2 :]).any():
            return np.inf
        left = np.where(ends.used.reshape(size), gains.reshape(size) - pulled[:size], -np.inf)
        slopes = left.reshape(2, self.entries, ENDS).max(axis=2).sum(axis=1) - pulled[size : size + 2]
        found = float(slopes.max()) + 2.0**-30 * (1 + float(pulls.max()))
        return found if found < _FARTHEST else np.inf


def _by_rows(matrix: FloatArray) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], FloatArray]:
    """Where each row starts, places and entries that are not zero."""
    places = np.nonzero(matrix)
    starts = np.searchsorted(places[0], np.arange(len(matrix)))
    return starts.astype(np.int32), places[1].astype(np.int32), matrix[places]


def _without_slack(basis: highspy.HighsBasis, rows: Places) -> tuple[Places, highspy.HighsBasis]:
    """Of conditions, the last ones of a basis, those that are tight, and the basis without the others."""
    status = list(basis.row_status)
    first = len(status) - len(rows)
    tight = np.array([one != highspy.HighsBasisStatus.kBasic for one in status[first:]], dtype=bool)
    smaller = highspy.HighsBasis()
    smaller.col_status = list(basis.col_status)
    smaller.row_status = status[:first] + [highspy.HighsBasisStatus.kUpper] * int(tight.sum())
    smaller.valid = True
    return rows[tight], smaller
