"""Exchange: the linear programme of an invariant channel, over the pairs of values that exchange records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
import numpy.typing as npt

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.lp import quiet_solver

Places = npt.NDArray[np.intp]

_INFINITY = highspy.kHighsInf
_PRIMAL = 4
# Units of work of a programme, of an iteration, and of a row or a column that an iteration looks at.
_PROGRAMME, _ITERATION, _ROW, _COLUMN = 40 * CALL, 3 * CALL, 60.0, 2.0
# Steps of the simplex method in a round, for every row, after which it is left where there are few values.
_STEPS, _MANY_STEPS, FEW = 2, 2**30, 200
# What breaking a condition costs at first, as a multiple of what the value of the output is worth.
_FIRST_PRICE = 3.0
# The least share of a condition that is broken by publishing its value as it is, for this price.
_SHARE = 0.05


@dataclass(frozen=True, eq=False)
class Exchanged:
    """A solution of the programme over the pairs and conditions that it has so far.

    Attributes
    ----------
    flows : ndarray, shape (n, n)
        ``P(x, y)`` at [y, x]: what moves from value x to output y, what stays on the diagonal.
    value : float
        Weighted share of records unchanged.
    broken : float
        By how much conditions are broken, in all.
    balance : ndarray, shape (n,)
        Prices of the balance of every output.
    conditions : array, sparse or not, shape (n, K)
        Prices, not negative, of every condition for every output.
    taken : ndarray, shape (n, n)
        What other conditions take at their prices, as a half-space for each output.
    """

    flows: FloatArray
    value: float
    broken: float
    balance: FloatArray
    conditions: Any
    taken: FloatArray


def proven_bound(distribution: FloatArray, worth: FloatArray, asked: FloatArray, balance: FloatArray) -> float:
    """What no channel exceeds at these prices: see `funnel.solver.invariant.invariant_optimum`.

    Parameters
    ----------
    distribution, worth : ndarray, shape (n,)
    asked : ndarray, shape (n, n)
        Of every output, by value: what its conditions and its balance take, of mass.
    balance : ndarray, shape (n,)
        Prices of the balance.
    """
    gains = -asked * (distribution / distribution[:, None])
    gains[np.arange(len(distribution)), np.arange(len(distribution))] += worth
    best = gains.max(axis=0)
    # Sums of floats are below the true ones by less than this: a bound is rounded up.
    rounding = (len(best) + 8) * np.finfo(np.float64).eps * (np.abs(balance).sum() + np.abs(best).sum())
    return float(balance.sum() + best.sum() + rounding)


class ExchangeProgramme:
    """Which records exchange their values so that most stay, all outputs meet their conditions, and balance holds.

    Variables are the masses ``z[y, x]`` that move from x to y ≠ x, for the pairs that were added, the share of every
    value that moves, and a share θ of records that draw from the marginal, which meets everything. Balance is ``Σ_x
    z[y, x] = Σ_x z[x, y]``; a condition h of output y is ``Σ_x h_x P(x, y) <= 0``, and may be broken for a price.

    Parameters
    ----------
    distribution : ndarray, shape (n,)
        Probabilities of the values, > 0.
    worth : ndarray, shape (n,)
        What a value is worth that stays as it is, summing to 1.
    budget : Budget
        Charged for every iteration.
    """

    def __init__(self, distribution: FloatArray, worth: FloatArray, budget: Budget) -> None:
        self._distribution, self._worth, self._budget = distribution, worth, budget
        n = len(distribution)
        self._spaces = np.zeros((0, n))
        self._solver = quiet_solver()
        # Columns are added to a solution and rows come with a variable that breaks them: it stays a solution.
        self._solver.setOptionValue("simplex_strategy", _PRIMAL)
        self._solver.addRows(2 * n, np.zeros(2 * n), np.zeros(2 * n), 0, _ints([]), _ints([]), np.zeros(0))
        every = np.arange(n)
        ends = np.column_stack([every, n + every]).ravel()
        self._solver.addCols(
            n, worth, np.zeros(n), np.ones(n), 2 * n, _ints(2 * every), _ints(ends), np.full(2 * n, -1.0)
        )
        drawn = np.concatenate([1 - distribution, 1 - distribution])
        self._solver.addCol(0.0, 0.0, 1.0, 2 * n, _ints(np.arange(2 * n)), drawn)
        self._columns = n + 1
        self._out, self._into, self._of_pair = _ints([]), _ints([]), _ints([])
        self._is_pair = np.eye(n, dtype=bool)
        self._output, self._space, self._breaking = _ints([]), _ints([]), _ints([])
        self._price = _FIRST_PRICE

    @property
    def size(self) -> tuple[int, int]:
        """Numbers of pairs and of conditions."""
        return len(self._out), len(self._output)

    def know(self, spaces: FloatArray) -> None:
        """Further half-spaces (k, n)."""
        self._spaces = np.vstack([self._spaces, spaces])

    def add_pairs(self, into: Places, out: Places) -> int:
        """Let values move from ``out`` to ``into``; how many of these pairs are new."""
        n = len(self._distribution)
        flat = np.unique(into * n + out)
        flat = flat[~self._is_pair.ravel()[flat]]
        if not len(flat):
            return 0
        into, out = np.divmod(flat, n)
        self._is_pair[into, out] = True
        unit = np.minimum(self._distribution[into], self._distribution[out])
        rows, values = [out, n + into], [unit / self._distribution[out], unit / self._distribution[into]]
        sizes = np.full(len(flat), 2)
        owner = [np.arange(len(flat)), np.arange(len(flat))]
        by_output: dict[int, list[int]] = {}
        for row, y in enumerate(self._output.tolist()):
            by_output.setdefault(y, []).append(row)
        for y in np.unique(into).tolist():
            of = np.array(by_output.get(y, []), dtype=np.intp)
            mine = np.flatnonzero(into == y)
            if len(of):
                spaces = self._spaces[self._space[of]]
                entries = (spaces[:, out[mine]] - spaces[:, [y]]) * (unit[mine] / self._distribution[y])
                place, column = np.nonzero(entries)
                rows.append(2 * n + of[place])
                values.append(entries[place, column])
                owner.append(mine[column])
                sizes[mine] += np.bincount(column, minlength=len(mine))
        order = np.argsort(np.concatenate(owner), kind="stable")
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        nothing, most = np.zeros(len(flat)), np.full(len(flat), _INFINITY)
        where, by = np.concatenate(rows)[order], np.concatenate(values)[order]
        self._solver.addCols(len(flat), nothing, nothing, most, len(where), _ints(starts), _ints(where), by)
        self._of_pair = np.concatenate([self._of_pair, _ints(self._columns + np.arange(len(flat)))])
        self._out, self._into = np.concatenate([self._out, _ints(out)]), np.concatenate([self._into, _ints(into)])
        self._columns += len(flat)
        self._budget.spend(CALL * 20 + 50.0 * len(where))
        return len(flat)

    def add_conditions(self, outputs: Places, spaces: Places) -> None:
        """Conditions of these outputs (k,), by the places (k,) of their half-spaces; none that is there already."""
        n = len(self._distribution)
        by_output: dict[int, list[int]] = {}
        for pair, y in enumerate(self._into.tolist()):
            by_output.setdefault(y, []).append(pair)
        means = self._spaces[spaces] @ self._distribution
        starts, rows, values = [], [], []
        edge = 0
        for y, space, mean in zip(outputs.tolist(), spaces.tolist(), means.tolist(), strict=True):
            h = self._spaces[space]
            pairs = np.array(by_output.get(y, []), dtype=np.intp)
            out = self._out[pairs]
            unit = np.minimum(self._distribution[y], self._distribution[out])
            entries = (h[out] - h[y]) * unit / self._distribution[y]
            kept = entries != 0
            rows.append(np.concatenate([[n], self._of_pair[pairs[kept]]]))
            values.append(np.concatenate([[mean - h[y]], entries[kept]]))
            starts.append(edge)
            edge += len(values[-1])
        if not starts:
            return
        first = 2 * n + len(self._output)
        own = self._spaces[spaces, outputs]
        least = np.full(len(outputs), -_INFINITY)
        self._solver.addRows(
            len(outputs), least, -own, edge, _ints(starts), _ints(np.concatenate(rows)), np.concatenate(values)
        )
        number = len(outputs)
        self._output = np.concatenate([self._output, _ints(outputs)])
        self._space = np.concatenate([self._space, _ints(spaces)])
        self._solver.addCols(
            number,
            self._prices(first - 2 * n),
            np.zeros(number),
            np.full(number, _INFINITY),
            number,
            _ints(np.arange(number)),
            _ints(first + np.arange(number)),
            np.full(number, -1.0),
        )
        self._breaking = np.concatenate([self._breaking, _ints(self._columns + np.arange(number))])
        self._columns += number
        self._budget.spend(CALL * 20 + 50.0 * edge)

    def _prices(self, first: int) -> FloatArray:
        outputs, spaces = self._output[first:], self._space[first:]
        own = np.maximum(self._spaces[spaces, outputs], _SHARE)
        return np.asarray(self._price * self._worth[outputs] / own)

    def raise_prices(self) -> None:
        """Make broken conditions three times as dear."""
        self._price *= 3
        costs = self._prices(0)
        self._solver.changeColsCost(len(costs), self._breaking, costs)

    def solve(self, patiently: bool = False) -> Exchanged | None:
        """The best solution of what it has; None where the simplex method takes too many steps that gain nothing.

        Parameters
        ----------
        patiently : bool
            Take as many steps as it needs.

        Raises
        ------
        SolverError
            If the linear programme fails.
        """
        n = len(self._distribution)
        rows = 2 * n + len(self._output)
        self._solver.setOptionValue("simplex_iteration_limit", _MANY_STEPS if patiently else _STEPS * rows)
        for _ in range(2):
            self._solver.run()
            done = max(0, int(self._solver.getInfo().simplex_iteration_count))
            self._budget.spend(_PROGRAMME + done * (_ITERATION + _ROW * rows + _COLUMN * self._columns))
            status = self._solver.getModelStatus()
            if status == highspy.HighsModelStatus.kOptimal:
                return self._solution(n)
            if status == highspy.HighsModelStatus.kIterationLimit and n <= FEW and not patiently:
                return None
            self._solver.clearSolver()
            self._solver.setOptionValue("simplex_iteration_limit", _MANY_STEPS)
        raise SolverError("the linear programme of the invariant channel failed; change epsilon slightly")

    def _solution(self, n: int) -> Exchanged:
        import scipy.sparse as sp

        solution = self._solver.getSolution()
        amounts, duals = np.maximum(np.array(solution.col_value), 0.0), np.array(solution.row_dual)
        flows = amounts[n] * np.outer(self._distribution, self._distribution)
        flows[self._into, self._out] += amounts[self._of_pair] * np.minimum(
            self._distribution[self._into], self._distribution[self._out]
        )
        np.fill_diagonal(flows, 0.0)
        np.fill_diagonal(flows, np.maximum(self._distribution - flows.sum(axis=0), 0.0))
        priced = np.maximum(-duals[2 * n :], 0.0)
        used = np.flatnonzero(priced)
        prices = sp.csr_array((priced[used], (self._output[used], self._space[used])), shape=(n, len(self._spaces)))
        own = (prices @ self._spaces)[np.arange(n), np.arange(n)] if len(used) else np.zeros(n)
        value = float(self._worth @ (np.diagonal(flows) / self._distribution))
        return Exchanged(
            flows, value, float(amounts[self._breaking].sum()), -duals[n : 2 * n] - own, prices, np.zeros((n, n))
        )

    def has_condition(self) -> npt.NDArray[np.bool_]:
        """Which half-spaces are conditions of which outputs, shape (n, K)."""
        there = np.zeros((len(self._distribution), len(self._spaces)), dtype=bool)
        there[self._output, self._space] = True
        return there


def _ints(values: npt.ArrayLike) -> npt.NDArray[np.int32]:
    return np.asarray(values, dtype=np.int32)
