"""Thresholds: programmes over rows of a channel where it is known at which entries greedy filling of one law stops."""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.lp import quiet_solver
from funnel.solver.region import DATA_ERROR, Region

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]

# What is known of an entry t: nothing; t <= θ; t >= φ; t <= φ; φ <= t <= θ; t >= θ.
ANY, LOW, HIGH, BELOW, BETWEEN, ABOVE = range(6)
# Ends of what an entry may be: four for each input, of which some are not used.
_ENDS = 4
# Nats that a posterior loses for what it lacks of a whole: far more than any may gain.
_LACK = 30.0
# Where tangents of the logarithm of the unit touch, in units of where it was best before.
_TANGENTS = np.array([0.003, 0.1, 0.4, 0.7, 0.87, 0.96, 1.04, 1.14, 1.4, 2.2, 6.0, 50.0])
_LEAST_UNIT = 1e-3
# Conditions that a point breaks by more are added, so many at once, and so often.
_BROKEN, _AT_ONCE, _ROUNDS = 1e-6, 6, 12
# No entry is looked at beyond so many times the upper threshold.
_FARTHEST = 1e4
# What a level must be worth, so that nothing of it is left in a proof.
_LEVEL = 1e-6
# Units of work: of making a programme, for each of its entries, and for each entry that an iteration touches.
_PROGRAMME, _ENTRY, _RUN, _STEP, _TOUCHED = 100 * CALL, 12.0, 40 * CALL, 2 * CALL, 0.3
_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class Filling:
    """The law of one secret, of which limits are known, and the conditions on the most and least it gives an output.

    Attributes
    ----------
    lower, upper : ndarray, shape (a + 1,)
        Limits of p(x|s), in whole units of 2^-32; the last are those of all inputs together that are not told apart.
    most : ndarray, shape (k, 1 + a + levels)
        Conditions ``m[0] hi + m[1:] (v, levels) <= 0``, with m[0] > 0.
    least : ndarray, shape (k, 1 + a + levels)
        Conditions ``-m[0] lo + m[1:] (v, levels) <= 0``, with m[0] > 0.
    """

    lower: FloatArray
    upper: FloatArray
    most: FloatArray
    least: FloatArray

    @property
    def free(self) -> float:
        """What of the law the lower limits leave open."""
        return float(1 - self.lower.sum())

    @property
    def room(self) -> FloatArray:
        """How much of that each input may get."""
        return self.upper - self.lower

    @property
    def ordered(self) -> bool:
        """Whether the threshold of hi is never below that of lo."""
        return bool(self.room.sum() >= 2 * self.free > 0)


@dataclass(frozen=True, eq=False)
class Cell:
    """Rows whose ratio of thresholds and whose entries are within bounds.

    Attributes
    ----------
    first, last : float
        φ/θ is between.
    kind : ndarray of int64, shape (n,)
        What is known of each entry.
    low, high : ndarray, shape (n,)
        Bounds: of t/φ below φ; of (θ - t)/(θ - φ) between; of t/θ above θ, and high wherever there is no other.
    """

    first: float
    last: float
    kind: npt.NDArray[np.int64]
    low: FloatArray
    high: FloatArray

    def ends(self, ratio: float) -> tuple[FloatArray, Flags, FloatArray]:
        """Entries t/θ (n, 4) at the ends of what they may be, which are used, and of which of four kinds (4, n, 4).

        The kinds: above θ, at least θ, below φ, at most φ.
        """
        kind, low, high = self.kind, self.low, self.high
        n = len(kind)
        below, between, above = kind == BELOW, kind == BETWEEN, kind == ABOVE
        under = (kind == ANY) | (kind == LOW)
        over = (kind == ANY) | (kind == HIGH)
        middle = under | over
        entries, used = np.zeros((n, _ENDS)), np.zeros((n, _ENDS), dtype=bool)
        # How far from θ to φ the two ends in the middle are.
        near = np.where(between, low, 0.0)
        far = np.where(between, high, 1.0)
        entries[:, 0] = np.where(below, low * ratio, 0.0)
        entries[:, 1] = np.where(below, high * ratio, 1 - far * (1 - ratio))
        entries[:, 2] = np.where(above, low, 1 - near * (1 - ratio))
        entries[:, 3] = high
        used[:, 0] = under | below
        used[:, 1] = middle | below | between
        used[:, 2] = middle | between | above
        used[:, 3] = over | above
        same = ratio == 1.0
        kinds = np.zeros((4, n, _ENDS))
        kinds[0, :, 2] = above & (low > 1)
        kinds[0, :, 3] = 1
        kinds[1, :, 1] = np.where(below, same & (high == 1), (far == 0) | same)
        kinds[1, :, 2] = above | (near == 0) | same
        kinds[1, :, 3] = 1
        kinds[2, :, 0] = 1
        kinds[2, :, 1] = below & (high < 1)
        kinds[3, :, 0] = 1
        kinds[3, :, 1] = below | (far == 1) | same
        kinds[3, :, 2] = np.where(above, same & (low == 1), (near == 1) | same)
        return entries, used, kinds


@dataclass(frozen=True, eq=False)
class Solved:
    """What a programme over a cell gave.

    Attributes
    ----------
    bound : float
        No posterior of the cell has a larger ``g - λ·v``.
    point : ndarray, shape (a + levels,)
        A posterior that meets the conditions, with levels.
    entries : ndarray, shape (n,)
        Its t/θ.
    unit : float
        Its θ, where the average entry is 1.
    ratio : float
        Its φ/θ.
    spread : float
        How much of a mixture of both ends of φ/θ it is, from 0 to 1.
    losses : ndarray, shape (n,)
        By how much chords of each entry exceed the utility, nats.
    tight : ndarray of int
        Conditions of the region that hold with equality there.
    basis : highspy.HighsBasis
    """

    bound: float
    point: FloatArray
    entries: FloatArray
    unit: float
    ratio: float
    spread: float
    losses: FloatArray
    tight: Places
    basis: highspy.HighsBasis


class CellProgramme:
    """Bounds ``g - λ·v`` over cells of rows in a region, by linear programmes whose multipliers prove the bound.

    Let θ be the largest entry of a row T with as much room at and above it as the lower limits leave open, and φ the
    least entry with as much at and below it. Then hi = θ + Σ u (T - θ)⁺ - l (θ - T)⁺ and lo = φ + Σ l (T - φ)⁺ - u
    (φ - T)⁺: greedy filling stops there. In units of θ these are sums over inputs, linear between 0, φ and θ, and so is
    a chord of t ln t; and with m = θ/q, ``g - λ·v = m Σ p t (ln t + ln p - λ) + ln m`` is concave in m. So entries
    are mixtures of ends of what is known of them, and the ratio φ/θ is one of both ends of its own: for any
    multipliers the Lagrangian is convex in that ratio.

    Parameters
    ----------
    region : Region
        Without an image.
    filling : Filling
    budget : Budget
    """

    def __init__(self, region: Region, filling: Filling, budget: Budget) -> None:
        self._region, self._filling, self._budget = region, filling, budget
        self._solver = quiet_solver()
        a, levels = region.inputs, region.levels
        rest = filling.upper[-1] > 0
        self.coordinates = a + int(rest)
        self._lower, self._upper = filling.lower[: self.coordinates], filling.upper[: self.coordinates]
        self._law = np.append(region.law, 0.0)[: self.coordinates]
        self._rest = rest
        self._fixed = 1 + int(rest) + 2 * self.coordinates + len(filling.most) + len(filling.least) + 8
        self._columns = 2 * self.coordinates * _ENDS + 2 + levels
        self.solved = 0

    def charge(self, budget: Budget) -> None:
        """Charge another budget from now on."""
        self._budget = budget

    def _conditions(self, cell: Cell, rows_in_use: Places) -> tuple[FloatArray, FloatArray, Flags]:
        """All conditions but Σv = 1 and tangents, as rows over (weights of ends, two units, levels); t and used.

        First equations: what is not told apart is like the average, weights of ends sum to the unit. Then inequalities.
        """
        region, filling, n = self._region, self._filling, self.coordinates
        a, levels, size = region.inputs, region.levels, 2 * n * _ENDS
        per = [cell.ends(ratio) for ratio in (cell.first, cell.last)]
        entries = np.stack([one[0] for one in per])
        used = np.stack([one[1] for one in per])
        ratios = np.array([cell.first, cell.last])[:, None, None]
        below = np.zeros(_ENDS, dtype=bool)
        below[0] = True
        is_below = (cell.kind == BELOW)[:, None] & (np.arange(_ENDS) == 1) | below
        is_above = np.arange(_ENDS) == 3
        is_above = is_above | ((cell.kind == ABOVE)[:, None] & (np.arange(_ENDS) == 2))
        lower, upper = self._lower[:, None], self._upper[:, None]
        most = np.where(is_above, upper, lower) * (entries - 1)
        least = np.where(is_below, upper, lower) * (entries - ratios)
        masses = (self._law[:, None] * entries).reshape(size)
        rows = np.zeros((self._fixed - 1 + len(rows_in_use), self._columns))
        k = 0
        if self._rest:
            rows[k, :size] = -masses
            rows[k, :size].reshape(2, n, _ENDS)[:, -1] += entries[:, -1]
            k += 1
        for i in range(2):
            for x in range(n):
                first = (i * n + x) * _ENDS
                rows[k, first : first + _ENDS] = 1
                rows[k, size + i] = -1
                k += 1
        inputs = np.tile(np.repeat(np.arange(n), _ENDS), 2)
        units = (np.ones(2), np.array([cell.first, cell.last]))
        for conditions, values, unit, sign in (
            (filling.most, most, units[0], 1.0),
            (filling.least, least, units[1], -1.0),
        ):
            for condition in conditions:
                padded = np.append(condition[1 : 1 + a], 0.0)
                rows[k, :size] = sign * condition[0] * values.reshape(size) + padded[inputs] * masses
                rows[k, size : size + 2] = sign * condition[0] * unit
                rows[k, size + 2 :] = condition[1 + a :]
                k += 1
        room, free = filling.room[:n, None], filling.free
        for i in range(2):
            part = slice(i * n * _ENDS, (i + 1) * n * _ENDS)
            for kind, sign in enumerate((1.0, -1.0, 1.0, -1.0)):
                rows[k, part] = (sign * room * per[i][2][kind]).reshape(-1)
                rows[k, size + i] = -sign * free
                k += 1
        active = region.rows[rows_in_use]
        padded = np.hstack([active[:, :a], np.zeros((len(active), 1))])
        rows[k:, :size] = padded[:, inputs] * masses
        rows[k:, size + 2 :] = active[:, a:]
        return rows, entries, used

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
        n, region = self.coordinates, self._region
        a, levels, size = region.inputs, region.levels, 2 * self.coordinates * _ENDS
        linear = np.append(np.log(region.law) - prices, 0.0)[:n, None]
        touching = _TANGENTS * (max(parent.unit, _LEAST_UNIT) if parent is not None else 1.0)
        t = len(touching)
        # Conditions of the region that were tight; what the point breaks is added.
        tight, basis = (np.zeros(0, dtype=np.intp), None) if parent is None else (parent.tight, parent.basis)
        fixed, entries, used = self._conditions(cell, tight[:0])
        gains = (self._law[:, None] * (xlogy(entries, entries) + linear * entries)).reshape(size)
        masses = (self._law[:, None] * entries).reshape(size)
        inputs = np.tile(np.repeat(np.arange(n), _ENDS), 2)
        every = np.hstack([region.rows[:, :a], np.zeros((len(region.rows), 1))])
        # Columns: weights, units, levels, what is lacking, ln of the unit.
        count = self._columns + 2
        equal = int(self._rest) + 2 * n
        cost = np.zeros(count)
        cost[:size], cost[-2], cost[-1] = gains, -_LACK, 1.0
        least, most = np.zeros(count), np.full(count, highspy.kHighsInf)
        least[-1] = -highspy.kHighsInf
        most[:size] = np.where(used.reshape(size), highspy.kHighsInf, 0.0)
        most[size + 2 : size + 2 + levels] = 1.0

        def over_ends(chosen: Places) -> FloatArray:
            return np.hstack([every[chosen][:, inputs] * masses, np.zeros((len(chosen), 2)), region.rows[chosen, a:]])

        conditions = np.vstack([fixed, over_ends(tight)])
        matrix = np.zeros((1 + t + len(conditions), count))
        matrix[0, :size], matrix[0, -2] = masses, 1.0
        matrix[1 : 1 + t, -1] = 1.0
        matrix[1 : 1 + t, size : size + 2] = -1 / touching[:, None]
        matrix[1 + t :, : self._columns] = conditions
        low = np.full(len(matrix), -highspy.kHighsInf)
        high = np.zeros(len(matrix))
        low[0] = high[0] = 1.0
        high[1 : 1 + t] = np.log(touching) - 1
        low[1 + t : 1 + t + equal] = 0.0
        self._pass(matrix, low, high, -cost, least, most, basis)
        for last in range(_ROUNDS):
            answer = self._run(len(conditions))
            if answer is None:
                return None
            values, duals = answer
            weights, units = values[:size], values[size : size + 2]
            total = float(units.sum())
            posterior = (weights * masses).reshape(2, n, _ENDS).sum(axis=(0, 2))[:a]
            point = np.append(posterior, values[size + 2 : size + 2 + levels])
            activity = region.rows @ point
            activity[tight] = -np.inf
            new = np.argsort(-activity, kind="stable")[:_AT_ONCE]
            new = new[activity[new] > _BROKEN]
            if not len(new) or last == _ROUNDS - 1:
                break
            tight = np.append(tight, new)
            added = over_ends(new)
            conditions = np.vstack([conditions, added])
            self._add(added)
        basis = self._solver.getBasis()
        multipliers, price = np.array(-duals[1 + t :]), float(-duals[0])
        multipliers[equal:] = np.maximum(multipliers[equal:], 0.0)
        bound = self._proven(conditions, used, multipliers, gains, masses, price)
        tight, basis = _without_slack(basis, tight)
        if total <= 0:
            return Solved(bound, point, np.ones(n), 0.0, cell.last, 0.0, np.zeros(n), tight, basis)
        mean = (weights * entries.reshape(size)).reshape(2, n, _ENDS).sum(axis=(0, 2)) / total
        chords = (weights * gains).reshape(2, n, _ENDS).sum(axis=(0, 2))
        losses = chords - total * self._law * (xlogy(mean, mean) + linear[:, 0] * mean)
        ratio = float(units @ (cell.first, cell.last)) / total
        spread = float(4 * units[0] * units[1] / total**2)
        return Solved(bound, point, mean, total, ratio, spread, losses, tight, basis)

    def _proven(
        self,
        conditions: FloatArray,
        used: Flags,
        multipliers: FloatArray,
        gains: FloatArray,
        masses: FloatArray,
        price: float,
    ) -> float:
        """What the objective is at most over a cell, for any multipliers: of either sign for equations.

        With the unit m the Lagrangian is ``z + m R + ln m``, plus levels, where R is the larger one of both ends of the
        ratio: at most ``z - 1 - ln(-R)``.
        """
        size, n = len(gains), self.coordinates
        pulled = multipliers @ conditions
        residual = np.where(used.reshape(size), gains - price * masses - pulled[:size], -np.inf)
        by_end = residual.reshape(2, n, _ENDS).max(axis=2).sum(axis=1) - pulled[size : size + 2]
        sizes = np.abs(multipliers) @ np.abs(conditions)
        terms = (np.abs(gains) * 8 + abs(price) * masses + sizes[:size]).reshape(2, n, _ENDS).max(axis=2).sum(axis=1)
        terms += sizes[size : size + 2]
        operations = 2 * (len(conditions) + 4 * n + 16)
        slope = float((by_end + operations * _UNIT * terms).max())
        if not np.isfinite(slope) or slope >= 0:
            return np.inf
        levels = np.maximum(-pulled[size + 2 :], 0.0).sum()
        # Errors of the conditions themselves, each as a share of its largest entry.
        own = np.abs(self._filling.most[:, 1:]).max(axis=1, initial=0.0).tolist()
        own += np.abs(self._filling.least[:, 1:]).max(axis=1, initial=0.0).tolist()
        inequalities = multipliers[int(self._rest) + 2 * n :]
        scale = np.concatenate([own, np.zeros(8), np.ones(len(inequalities) - len(own) - 8)])
        data = DATA_ERROR * (1 + self._region.levels) * float(scale @ np.abs(inequalities))
        rounding = operations * _UNIT * (1 + abs(price) + abs(np.log(-slope)) + float(sizes[size + 2 :].sum()))
        return float(price - 1 - np.log(-slope) + levels + data + rounding)

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
        free = np.zeros(columns, dtype=np.int32)
        self._solver.passModel(
            columns, rows, len(value), wise, sense, 0.0, cost, least, most, low, high, starts, index, value, free
        )
        if basis is not None:
            self._solver.setBasis(basis)
        self._budget.spend(_PROGRAMME + _ENTRY * matrix.size)

    def _add(self, rows: FloatArray) -> None:
        """Further conditions of the region."""
        starts, index, value = _by_rows(rows)
        none, zero = np.full(len(rows), -highspy.kHighsInf), np.zeros(len(rows))
        self._solver.addRows(len(rows), none, zero, len(value), starts, index, value)
        self._budget.spend(CALL + _ENTRY * rows.size)

    def _run(self, rows: int) -> tuple[FloatArray, FloatArray] | None:
        """Values and duals of rows; None where the solver finds no optimum."""
        self._solver.run()
        self.solved += 1
        steps = max(0, int(self._solver.getInfo().simplex_iteration_count))
        self._budget.spend(_RUN + steps * (_STEP + _TOUCHED * rows * self._columns))
        # Any multipliers prove a bound: where the solver stops a little early, it is a little larger.
        solution = self._solver.getSolution()
        if not solution.dual_valid:
            return None
        values, duals = np.array(solution.col_value), np.array(solution.row_dual)
        return (values, duals) if np.isfinite(values).all() and np.isfinite(duals).all() else None

    def reach(self, x: int) -> float:
        """A number that t/θ of an input does not exceed in the region; infinite where none is found.

        Moved towards the average row, a row stays in the region, and its largest t/θ falls to 1 without a jump: where
        no row has one of `_FARTHEST` exactly, none has a larger one.
        """
        n, levels, size = self.coordinates, self._region.levels, 2 * self.coordinates * _ENDS
        cell = Cell(0.0, 1.0, np.full(n, ANY), np.zeros(n), np.full(n, _FARTHEST))
        conditions, entries, used = self._conditions(cell, np.arange(len(self._region.rows)))
        equal = int(self._rest) + 2 * n
        gains = np.zeros((2, n, _ENDS))
        gains[:, x] = entries[:, x]
        matrix = np.zeros((1 + len(conditions), self._columns))
        matrix[0, size : size + 2] = 1.0
        matrix[1:] = conditions
        low, high = np.full(len(matrix), -highspy.kHighsInf), np.zeros(len(matrix))
        low[0] = high[0] = 1.0
        low[1 : 1 + equal] = 0.0
        cost = np.zeros(self._columns)
        cost[:size] = gains.reshape(size)
        # Levels that are worth something have multipliers that leave nothing of them.
        cost[size + 2 :] = _LEVEL
        most = np.full(self._columns, highspy.kHighsInf)
        most[:size] = np.where(used.reshape(size), highspy.kHighsInf, 0.0)
        self._pass(matrix, low, high, -cost, np.zeros(self._columns), most, None)
        answer = self._run(len(matrix))
        if answer is None:
            return np.inf
        _, duals = answer
        multipliers = np.array(-duals[1:])
        multipliers[equal:] = np.maximum(multipliers[equal:], 0.0)
        pulled = multipliers @ conditions
        sizes = np.abs(multipliers) @ np.abs(conditions)
        if levels and pulled[size + 2 :].min() <= 2.0**-40 * sizes[size + 2 :].max():
            return np.inf
        residual = np.where(used.reshape(size), gains.reshape(size) - pulled[:size], -np.inf)
        by_end = residual.reshape(2, n, _ENDS).max(axis=2).sum(axis=1) - pulled[size : size + 2]
        found = float(by_end.max()) + 2.0**-30 * float(sizes.max())
        return found if found < _FARTHEST else np.inf


def _by_rows(matrix: FloatArray) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], FloatArray]:
    """Where each row starts, places and entries that are not zero."""
    places = np.nonzero(matrix)
    starts = np.searchsorted(places[0], np.arange(len(matrix)))
    return starts.astype(np.int32), places[1].astype(np.int32), matrix[places]


def _without_slack(basis: highspy.HighsBasis, rows: Places) -> tuple[Places, highspy.HighsBasis]:
    """Of conditions, the last ones of a basis, those that are tight, and the basis without the others."""
    first = len(basis.row_status) - len(rows)
    status = list(basis.row_status)
    tight = np.array([one != highspy.HighsBasisStatus.kBasic for one in status[first:]], dtype=bool)
    smaller = highspy.HighsBasis()
    smaller.col_status = list(basis.col_status)
    smaller.row_status = status[:first] + [highspy.HighsBasisStatus.kUpper] * int(tight.sum())
    smaller.valid = True
    return rows[tight], smaller
