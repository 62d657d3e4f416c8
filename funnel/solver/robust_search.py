"""Search over the χ² set for protocols that read the secret: bounds by levels, ascents from what attains them."""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np

from funnel.errors import SolverError
from funnel.guarantees.worst_case import Neighbourhood
from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.columns import ColumnGeneration
from funnel.solver.cuts import PlainCuts, SetProblem
from funnel.solver.goal import ENTROPY
from funnel.solver.lp import quiet_solver
from funnel.solver.robust_ascent import Kept, RobustCone, ascended, crossed, nothing_disclosed
from funnel.solver.robust_pricing import RobustPricer
from funnel.solver.split import Trace

# Values of one secret beyond which corners are too many, and budgets (nats) beyond which they are known too roughly.
_LARGEST_PART, _LARGEST_SPAN = 5, 3.0
# Of fewer inputs cutting planes are faster, and all their bounds are close.
_LEAST_INPUTS = 13
# The share of the deviation that goes to the secret that is likelier, where the deviation is more than so much of the
# rarest secret, and where it is less. Any proves its bounds; these are closest of .25, .35 and .5 for 1,000 and 10,000.
_SHARE, _WIDE, _SHARE_OF_LITTLE = 0.35, 0.05, 0.5
# Prices to begin with: such a share of ln p; where the deviation is less than so much of the rarest secret, those of
# the optimum under the estimate, which is climbed to until it gains as few nats.
_FIRST = (0.35, 0.5, 0.65, 0.8, 0.95)
_NEARLY_NONE, _CLIMBED = 0.01, 0.01
# How far prices may move at first, also from those of the estimate, at most and at least; what that grows by where they
# did so and gained, or falls by.
_WIDTH, _WIDTH_OF_ESTIMATE, _WIDEST, _NARROWEST, _GROW, _FALL = 0.4, 0.1, 1.0, 0.01, 1.3, 0.85
# Cuts in two of a search: at first, and when prices hardly change the bound; more where the deviation is little, since
# corners are few there, and the first time in the round after the first prices, which are good ones.
_SPLITS, _CLOSELY, _CLOSELY_OF_LITTLE, _CLOSE_AT_ONCE = 30, 120, 300, 2
# Rounds without a gain of this share of the gap before bounds are closer, and before the search ends.
_STILL, _UNCHANGED, _END = 3, 0.1, 14
# Rounds whose posteriors an ascent starts from, the rounds after which there is one, those after which what
# they found is crossed evenly, and the posteriors of a round for which parts are cut.
_RECENT, _ASCENTS, _EVENLY, _CUT = (8, 24), (2, 6, *range(12, 500, 6)), tuple(range(18, 500, 12)), 24
_FAR = 0.99
# Shares of the deviation that ascents look at: with 13, moving inside costs a quarter of a point for 1,000 records.
_ANGLES = 37
_PROGRAMME, _ENTRY = 60 * CALL, 2.0


def searchable(near: Neighbourhood, epsilon: float) -> bool:
    """Whether there are more inputs than cutting planes are for, and parts of secrets small enough for all corners."""
    sizes = (near.distribution > 0).sum(axis=1)
    small = bool((sizes <= _LARGEST_PART).all()) and 0 < epsilon <= _LARGEST_SPAN
    return small and len(sizes) > 1 and int(sizes.sum()) >= _LEAST_INPUTS and near.radius > 0


@dataclass(frozen=True, eq=False)
class Searched:
    """What a search found.

    Attributes
    ----------
    kept : Kept
        The best mixture inside.
    bound : float
        Of every mixture, nats.
    finished : bool
        Whether the gap was reached or nothing moved any more.
    cuts : int
    """

    kept: Kept
    bound: float
    finished: bool
    cuts: int


def searched(problem: SetProblem, gap: float, budget: Budget, trace: Trace | None = None) -> Searched:
    """Maximise what is told of (S, X) over protocols that are robust over F, with a bound.

    What is done, and in which order, does not depend on the budget, only how much of it: a larger one never finds less.

    Parameters
    ----------
    problem : SetProblem
        Over F and (S, X), counting both, for which `searchable`.
    gap : float
        Requested bound - value, nats.
    budget : Budget
    trace : callable, optional
        Told (value, bound) as they improve.
    """
    distribution, near, epsilon = problem.distribution, problem.near, problem.guarantee.budget
    cone = RobustCone(problem, budget, _ANGLES)
    wide = near.deviation > _WIDE * float(near.prior.min())
    closely = _CLOSELY if wide else _CLOSELY_OF_LITTLE
    pricer = RobustPricer(near, epsilon, _SHARE if wide else _SHARE_OF_LITTLE, budget)
    programme = _Prices(distribution, budget)
    best = nothing = nothing_disclosed(cone)
    recent: list[FloatArray] = []
    ascents: list[Kept] = []
    if near.deviation > _NEARLY_NONE * float(near.prior.min()):
        width, splits, at_once, first = _WIDTH, 0, 0, [share * np.log(distribution) for share in _FIRST]
    else:
        # Without a deviation prices of the estimate would be the best ones, and its outputs nearly what can be told.
        estimated = ColumnGeneration(PlainCuts(problem).region, budget)
        recent.append(estimated.run(_CLIMBED, proving=False).split.posteriors)
        ascents.append(ascended(cone, recent[0], nothing, budget))
        best = max(best, ascents[0], key=lambda one: one.value)
        width, splits, at_once, first = _WIDTH_OF_ESTIMATE, _SPLITS, _CLOSE_AT_ONCE, [estimated.prices]
    # At prices of nothing a row is worth nothing at most.
    bound, rounds, cuts, still = 0.0, 0, 0, 0
    prices = centre = np.zeros(len(distribution))
    while not budget.expired:
        if not rounds:
            tried = [(prices, pricer.search(prices, splits)) for prices in first]
            prices, priced = min(tried, key=lambda one: float(one[0] @ distribution) + one[1].bound)
        else:
            priced = pricer.search(prices, closely if still >= _STILL or rounds == at_once else _SPLITS)
        programme.add(priced.mixtures, priced.worth)
        rounds += 1
        found = float(prices @ distribution) + priced.bound
        still = 0 if found < bound - _UNCHANGED * gap else still + 1
        if found < bound:
            far = rounds > 1 and float(np.abs(prices - centre).max()) > _FAR * width
            width = min(_WIDEST, _GROW * width) if far else width
            # Where no row is worth more than nothing, multipliers are near 1.
            bound, centre = found, prices + priced.bound
        else:
            width = max(_NARROWEST, _FALL * width)
        recent = [*recent[1 - max(_RECENT) :], priced.posteriors]
        changed = pricer.cut(priced.posteriors[:_CUT])
        cuts += changed
        ended = bound - best.value <= gap or (still > _END and not changed)
        if rounds in _ASCENTS or ended:
            ascents += [ascended(cone, np.vstack(recent[-number:]), nothing, budget) for number in _RECENT]
            best = max(best, *ascents[-len(_RECENT) :], key=lambda one: one.value)
            best = crossed(cone, ascents, best, budget, False)
        if rounds in _EVENLY or ended:
            best = crossed(cone, ascents, best, budget, True)
        if trace is not None:
            trace(best.value, bound)
        if bound - best.value <= gap or ended:
            return Searched(best, bound, True, cuts)
        prices = programme.solve(centre, width)
    return Searched(best, bound, False, cuts)


class _Prices:
    """The prices in a box at which all mixtures found so far are bounded best.

    The dual of ``max Σ α_i g_i`` over ``Σ α_i v_i + missing = p_X``, ``Σ α_i = 1``, where what is missing, or too much,
    of an input costs what the ends of the box say. So prices never leave what is known to be good by far.
    """

    def __init__(self, distribution: FloatArray, budget: Budget) -> None:
        self._distribution, self._budget, self._solver = distribution, budget, quiet_solver()
        self._rows = np.arange(len(distribution) + 1, dtype=np.int32)
        self._columns = 0
        for _ in self._rows:
            self._solver.addRow(1.0, 1.0, 0, np.zeros(0, dtype=np.int32), np.zeros(0))
        for sign in (1.0, -1.0):
            for x in self._rows[:-1]:
                self._solver.addCol(0.0, 0.0, highspy.kHighsInf, 1, np.array([x], dtype=np.int32), np.array([sign]))
        self.add(distribution[None], ENTROPY.gains(distribution[None]))

    def add(self, mixtures: FloatArray, worth: FloatArray) -> None:
        """Mixtures (k, a) with their g (k,)."""
        for mixture, gain in zip(mixtures, worth, strict=True):
            entries = np.append(mixture / self._distribution, 1.0)
            self._solver.addCol(-float(gain), 0.0, highspy.kHighsInf, len(entries), self._rows, entries)
        self._columns += len(worth)
        self._budget.spend(4 * CALL * len(worth))

    def solve(self, centre: FloatArray, width: float) -> FloatArray:
        """Prices (a,) no further than a width from a centre.

        Raises
        ------
        SolverError
            If the programme fails.
        """
        number = len(self._distribution)
        costs = np.concatenate([-(centre - width) * self._distribution, (centre + width) * self._distribution])
        self._solver.changeColsCost(2 * number, np.arange(2 * number, dtype=np.int32), costs)
        self._solver.run()
        if self._solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            self._solver.clearSolver()
            self._solver.run()
        iterations = max(0, int(self._solver.getInfo().simplex_iteration_count))
        each = 3 * CALL + _ENTRY * (self._columns + number**2)
        self._budget.spend(_PROGRAMME + _ENTRY * self._columns * number + iterations * each)
        if self._solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise SolverError(f"the linear programme over {self._columns} mixtures failed")
        return -np.array(self._solver.getSolution().row_dual)[:number] / self._distribution
