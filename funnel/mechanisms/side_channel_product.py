"""Side-channel product: one protocol for every published column, calibrated to the exact level of them together."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import ClassVar

import numpy as np

from funnel.errors import InfeasibleGuarantee, SpecError
from funnel.guarantees.base import Guarantee, OutputGuarantee
from funnel.guarantees.exact import capped_exp
from funnel.joint import FloatArray, Joint
from funnel.measures.information import information_of
from funnel.mechanisms.family import Fitted, Mechanism
from funnel.mechanisms.instead import best_for
from funnel.mechanisms.memory import optimum_memory, table_memory
from funnel.progress import Progress, quiet
from funnel.rounding import proven_weights
from funnel.solver.budget import Budget
from funnel.solver.search import optimal_over_cone
from funnel.solver.work import events_known, levels_work

_GAP = 1e-4
# Budgets of a column that are tried, as shares of the largest; and how far the common scale is refined.
_GRID = 8
_HALVINGS = 22
_MAX_OUTPUTS = 4096
# The share of what is left of the budget that the protocol of one column and budget may take.
_SHARE = 0.05


class SideChannelProduct(Mechanism):
    """One protocol per column, each protected against the other columns as side channels (PF section VI).

    The protocol of column j is the best that keeps ``|ln P(y_j|s, x_J) / P(y_j|x_J)| <= ε_j`` for all sets J of other
    columns. PF theorem 4 says that the product then has SRLIP level Σ ε_j: **that is false** (METHOD section 6.1: two
    reports of correlated columns compound). So the budgets are searched, not fixed at ε/m, and the level of the
    product is computed exactly; it may as well be larger than the sum as smaller.

    The product publishes one value per column and needs no table of all combinations to be understood; the optimum over
    all combinations (``optimal``) is never worse.
    """

    name: ClassVar[str] = "side-channel-product"
    summary: ClassVar[str] = "one protocol per column, together within the bound"
    optimises: ClassVar[bool] = True

    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """The product of highest I(X;Y) that was found within the bound, verified exactly.

        Raises
        ------
        SpecError
            If one column is published, or the product has too many outputs.
        """
        columns = _columns(joint, guarantee, self.name)
        if not isinstance(guarantee, OutputGuarantee):
            raise SpecError(f"{self.name} checks outputs one by one, but {guarantee.title} is an average; use grr")
        search = _Search(joint, guarantee, columns, budget)
        budgets = search.best_on_grid()
        budgets = search.stretched(budgets)
        try:
            weights = proven_weights(joint, guarantee, search.product(budgets))
        except InfeasibleGuarantee:
            # Perfect privacy and the like: only saying nothing is exact.
            weights = proven_weights(joint, guarantee, np.ones((1, len(joint.inputs))))
        return Fitted(
            self.protocol(joint, guarantee, weights, joint.inputs), None, search.finished and not budget.expired
        )

    def memory(self, joint: Joint, guarantee: Guarantee) -> float:
        """A table of all products, or the optimisation of the column with most side channels."""
        sizes = [len({symbol[j] for symbol in joint.inputs.symbols}) for j in range(len(joint.inputs.columns))]
        if len(sizes) < 2 or prod(sizes) > _MAX_OUTPUTS:
            return 0.0
        conditions = 2 * len(joint.secret) * events_known(joint)
        return max(table_memory(prod(sizes), len(joint.inputs)), optimum_memory(conditions, max(sizes)))


def product_channel(joint: Joint, guarantee: OutputGuarantee, budgets: tuple[float, ...]) -> FloatArray:
    """The product of PF theorem 4: of every column the best channel within a budget of its own, (Π b_j, a).

    That theorem bounds its SRLIP level by the sum of the budgets, which is false: judge it as a whole.

    Parameters
    ----------
    joint : Joint
    guarantee : OutputGuarantee
        SRLIP; its own budget does not matter.
    budgets : tuple of float
        One for every published column, nats.

    Raises
    ------
    SpecError
        If one column is published, or the product has too many outputs.
    """
    columns = _columns(joint, guarantee, SideChannelProduct.name)
    return _Search(joint, guarantee, columns, Budget.of(None)).product(budgets)


@dataclass(frozen=True, eq=False)
class _Column:
    """One published column: which value each input has, and the cones of its protocols.

    Attributes
    ----------
    codes : ndarray of int, shape (a,)
    distribution : ndarray, shape (a_j,)
    part, whole : ndarray, shape (k, a_j)
        p(x_j | s, x_J) and p(x_j | x_J) of every comparison.
    """

    codes: np.ndarray[tuple[int], np.dtype[np.intp]]
    distribution: FloatArray
    part: FloatArray
    whole: FloatArray

    def channel(self, epsilon: float, budget: Budget) -> tuple[FloatArray, bool]:
        """The best channel (b_j, a_j) of this column within ε, up to numerical error, and whether it is the best."""
        factor = capped_exp(epsilon)
        rows = np.vstack([self.part - factor * self.whole, self.whole / factor - self.part])
        mixture = optimal_over_cone(rows, self.distribution, _GAP, budget)
        split = mixture.split
        matrix = split.posteriors * split.mass[:, None] / self.distribution
        return np.asarray(matrix / matrix.sum(axis=0)), mixture.finished

    @property
    def reach(self) -> float:
        """The budget (nats) that lets the column be published as it is; infinite if a value excludes a secret."""
        occurring = self.whole > 0
        with np.errstate(divide="ignore"):
            logs = np.abs(np.log(self.part[occurring] / self.whole[occurring]))
        return float(logs.max() + 1e-9)


def _columns(joint: Joint, guarantee: Guarantee, name: str) -> tuple[_Column, ...]:
    symbols = joint.inputs.symbols
    number = len(joint.inputs.columns)
    if number < 2:
        raise SpecError(
            f"{name} makes one protocol per published column, and there is one only; use {best_for(guarantee)}"
        )
    columns = []
    for j in range(number):
        values = list(dict.fromkeys(symbol[j] for symbol in symbols))
        codes = np.array([values.index(symbol[j]) for symbol in symbols])
        member = (codes == np.arange(len(values))[:, None]).astype(np.float64)
        seen = (member @ joint.p_input) > 0
        part, whole = _side_channels(joint, j, member[seen])
        columns.append(
            _Column(np.where(seen, np.cumsum(seen) - 1, 0)[codes], member[seen] @ joint.p_input, part, whole)
        )
    if np.prod([len(column.distribution) for column in columns]) > _MAX_OUTPUTS:
        raise SpecError(
            f"the product of {' and '.join(joint.inputs.columns)} has more than {_MAX_OUTPUTS:,} outputs; recode a "
            f"column to fewer values, or use {best_for(guarantee)}"
        )
    return tuple(columns)


def _side_channels(joint: Joint, j: int, member: FloatArray) -> tuple[FloatArray, FloatArray]:
    """p(x_j | s, x_J) and p(x_j | x_J) for all sets J of other columns and all (s, x_J) that occur, each (k, a_j)."""
    others = [k for k in range(len(joint.inputs.columns)) if k != j]
    part, whole = [], []
    for size in range(len(others) + 1):
        for known in itertools.combinations(others, size):
            groups: dict[tuple[str, ...], list[int]] = {}
            for x, symbol in enumerate(joint.inputs.symbols):
                groups.setdefault(tuple(symbol[k] for k in known), []).append(x)
            for members in groups.values():
                distribution = joint.p[:, members] @ member[:, members].T
                for s in np.flatnonzero(distribution.sum(axis=1) > 0):
                    part.append(distribution[s] / distribution[s].sum())
                    whole.append(distribution.sum(axis=0) / distribution.sum())
    return np.array(part), np.array(whole)


class _Search:
    """Budgets ε_j of the columns: tried on a grid, judged by the exact structure of the product, then stretched."""

    def __init__(self, joint: Joint, guarantee: OutputGuarantee, columns: tuple[_Column, ...], budget: Budget) -> None:
        self._joint, self._guarantee, self._columns, self._budget = joint, guarantee, columns, budget
        self.finished = True
        self._known: dict[tuple[int, float], FloatArray] = {}

    def product(self, budgets: tuple[float, ...]) -> FloatArray:
        """The channel (Π b_j, a) of all columns together."""
        factors = [
            self._channel(j, budget)[:, column.codes]
            for j, (column, budget) in enumerate(zip(self._columns, budgets, strict=True))
        ]
        return reduce(lambda one, other: (one[:, None, :] * other[None]).reshape(-1, one.shape[1]), factors)

    def best_on_grid(self) -> tuple[float, ...]:
        """The best feasible combination, by coordinate ascent from the even one where there are too many to try all."""
        grids = [self._grid(column) for column in self._columns]
        best, value = tuple(grid[0] for grid in grids), -1.0
        if len(self._columns) <= 2:
            for budgets in itertools.product(*grids):
                if self._budget.expired:
                    break
                found = self._value(budgets)
                if found > value:
                    best, value = budgets, found
            return best
        for _ in range(4):
            before = best
            for j, grid in enumerate(grids):
                for budget in grid:
                    budgets = (*best[:j], budget, *best[j + 1 :])
                    if budgets != best and not self._budget.expired and (found := self._value(budgets)) > value:
                        best, value = budgets, found
            # Pairs trade budget with each other: one step up, one step down.
            for (j, one), (k, other) in itertools.permutations(enumerate(grids), 2):
                up, down = one.index(best[j]) + 1, other.index(best[k]) - 1
                if up < len(one) and down >= 0 and not self._budget.expired:
                    budgets = tuple(one[up] if i == j else other[down] if i == k else b for i, b in enumerate(best))
                    if (found := self._value(budgets)) > value:
                        best, value = budgets, found
            if best == before:
                break
        return best

    def stretched(self, budgets: tuple[float, ...]) -> tuple[float, ...]:
        """The same proportions at the largest scale within the bound."""
        low, high = 1.0, 4.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if self._budget.expired:
                break
            if self._feasible(self.product(tuple(middle * budget for budget in budgets))):
                low = middle
            else:
                high = middle
        return tuple(low * budget for budget in budgets)

    def _grid(self, column: _Column) -> tuple[float, ...]:
        largest = min(column.reach, 2 * self._guarantee.budget)
        return tuple(float(largest * k / _GRID) for k in range(_GRID + 1)) if largest > 0 else (0.0,)

    def _value(self, budgets: tuple[float, ...]) -> float:
        matrix = self.product(budgets)
        return information_of((matrix * self._joint.p_input).T) if self._feasible(matrix) else -1.0

    def _feasible(self, matrix: FloatArray) -> bool:
        self._budget.spend(levels_work(self._joint, self._guarantee, len(matrix)))
        used = matrix @ self._joint.p_input > 0
        levels = self._guarantee.output_levels(self._joint, matrix[used])
        return bool(levels.max() <= self._guarantee.budget * (1 - 1e-9))

    def _channel(self, j: int, budget: float) -> FloatArray:
        key = (j, budget)
        if key not in self._known:
            column = self._columns[j]
            if budget == 0 or len(column.distribution) == 1:
                self._known[key] = np.ones((1, len(column.distribution)))
            elif budget >= column.reach > 0:
                self._known[key] = np.eye(len(column.distribution))
            else:
                self._known[key], complete = column.channel(budget, self._budget.part(_SHARE))
                self.finished &= complete
        return self._known[key]
