"""Peeling: a good mixture of posteriors for hundreds of inputs and several secrets, taken off p_X in layers.

Column generation that starts from p_X alone finds nothing there: until columns add up to p_X exactly none of them is of
any use, and prices say nothing. So p_X need not be met at first: what is missing or too much of an input has a price, a
little off the price it was thought to have. One programme then makes what was found a mixture, with one more posterior
for the rest; and the rest is split in the same way.
"""

from __future__ import annotations

import highspy
import numpy as np

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.bounds import negative_entropy
from funnel.solver.budget import CALL, Budget
from funnel.solver.lp import quiet_solver
from funnel.solver.polish import repaired
from funnel.solver.pricing import Pricer
from funnel.solver.region import Region
from funnel.solver.split import Split

# How far prices may be from what they are thought to be, in nats; when a round of climbing gains so little, these are
# thought anew.
_OFF, _LITTLE = 0.5, 1e-3
# Rounds of climbing in the first layer and in the others; layers; starts of a climb besides the columns in use.
_ROUNDS, _FEWER, _LAYERS, _STARTS = 24, 16, 6, 64
# A rest of so little mass, or of so few inputs, stays as it is.
_REST, _FEW = 0.01, 10
_UNUSED = 1e-9
# How far a posterior may be outside the region, of the size of the terms of a condition.
_OUTSIDE = 1e-8
# Units of work of an iteration of the programme, by its rows and columns.
_BY_ENTRY = 2.0


def peeled(rows: FloatArray, law: FloatArray, budget: Budget) -> FloatArray:
    """Posteriors (k, a) of a region that p_X is a mixture of, good ones to start from.

    Parameters
    ----------
    rows : ndarray, shape (m, a)
        The cone in posterior coordinates.
    law : ndarray, shape (a,)
        p_X > 0, in the cone.
    budget : Budget
        When it is spent, what is left of p_X is one posterior.
    """
    found: list[FloatArray] = []
    rest, left = law, 1.0
    for layer in range(_LAYERS):
        support = np.flatnonzero(rest > 0)
        if left < _REST or len(support) < _FEW or budget.expired:
            break
        part = rest[support] / rest[support].sum()
        try:
            split = _layer(rows[:, support], part, _FEWER if layer else _ROUNDS, budget)
        except SolverError:
            break
        if split is not None:
            split = _without_dust(split, rows[:, support])
        if split is None or len(split.mass) < 2:
            break
        whole = np.zeros((len(split.mass), len(law)))
        whole[:, support] = split.posteriors
        last = int(np.count_nonzero(split.posteriors > _UNUSED, axis=1).argmax())
        found += [row for y, row in enumerate(whole) if y != last]
        rest, left = whole[last], left * float(split.mass[last])
    return np.array([*found, rest])


def _without_dust(split: Split, rows: FloatArray) -> Split:
    """The same split without outputs of no mass to speak of, whose posteriors a programme's tolerance leaves anywhere.

    A column generation that took one from outside the region could give it any mass.
    """
    sizes = np.maximum(split.posteriors @ np.abs(rows).T, 1e-300)
    outside = (split.posteriors @ rows.T > _OUTSIDE * sizes).any(axis=1)
    kept = (split.mass > _UNUSED) & ~outside
    return Split(split.posteriors[kept], split.mass[kept], split.value, split.bound)


def _layer(rows: FloatArray, law: FloatArray, rounds: int, budget: Budget) -> Split | None:
    region = Region.of(rows, law)
    pricer = Pricer(region, budget)
    master = _Master(region, np.log(np.maximum(pricer.reach, 1e-300)), budget)
    master.add(np.vstack([law, pricer.corners]))
    # Only where to start looking: the same in every run.
    random = np.random.default_rng(0)
    mass, prices, open_ = master.solve()
    for _ in range(rounds):
        if budget.expired:
            break
        used = master.posteriors[mass > _UNUSED]
        one, two = random.integers(len(used), size=(2, _STARTS))
        few = pricer.corners[random.integers(len(pricer.corners), size=_STARTS)] if len(pricer.corners) else used[:0]
        climbed, values = pricer.climb(np.vstack([used, (used[one] + used[two]) / 2, few]), prices)
        _, places = np.unique(np.round(values, 9), return_index=True)
        master.add(climbed[places][values[places] > 1e-6])
        if values.max() < _LITTLE:
            if open_ < _UNUSED:
                break
            master.think(prices)
        mass, prices, open_ = master.solve()
    kept = mass > _UNUSED
    # The rest has all inputs; how much of it there is follows.
    masses = np.append(mass[kept], 1e-3)
    posteriors = np.vstack([master.posteriors[: len(mass)][kept], law])
    return repaired(Split(posteriors, masses / masses.sum(), 0.0, 0.0), law, rows, None, budget)


class _Master:
    """max Σ α g over mixtures that need not be p_X, at a price."""

    def __init__(self, region: Region, prices: FloatArray, budget: Budget) -> None:
        self._law, self._budget, self._solver = region.law, budget, quiet_solver()
        a = region.inputs
        for _ in range(a):
            self._solver.addRow(1.0, 1.0, 0, np.zeros(0, dtype=np.int32), np.zeros(0))
        places = np.arange(a, dtype=np.int32)
        for sign in (1.0, -1.0):
            self._solver.addCols(
                a, np.zeros(a), np.zeros(a), np.full(a, highspy.kHighsInf), a, places, places, np.full(a, sign)
            )
        self.think(prices)
        self.posteriors = np.zeros((0, a))

    def think(self, prices: FloatArray) -> None:
        """What is missing costs a little less than these prices, and what is too much a little more."""
        costs = np.concatenate([-(prices - _OFF) * self._law, (prices + _OFF) * self._law])
        self._solver.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs)

    def add(self, posteriors: FloatArray) -> None:
        """Further columns (k, a)."""
        for posterior, gain in zip(posteriors, negative_entropy(posteriors), strict=True):
            used = np.flatnonzero(posterior).astype(np.int32)
            self._solver.addCol(-gain, 0.0, highspy.kHighsInf, len(used), used, posterior[used] / self._law[used])
        self.posteriors = np.vstack([self.posteriors, posteriors])
        self._budget.spend(4 * CALL * len(posteriors))

    def solve(self) -> tuple[FloatArray, FloatArray, float]:
        """Masses α, prices, and how much of p_X is missing or too much."""
        self._solver.run()
        iterations = max(0, int(self._solver.getInfo().simplex_iteration_count))
        a = len(self._law)
        self._budget.spend(20 * CALL + iterations * (3 * CALL + _BY_ENTRY * (len(self.posteriors) + a**2)))
        if self._solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise SolverError("the linear programme of a layer failed")
        solution = self._solver.getSolution()
        amounts = np.maximum(np.array(solution.col_value), 0.0)
        wrong = float((amounts[:a] + amounts[a : 2 * a]) @ self._law)
        return amounts[2 * a :], -np.array(solution.row_dual) / self._law, wrong
