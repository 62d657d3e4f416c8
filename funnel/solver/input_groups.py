"""Input groups: a bound for hundreds of inputs from the optimum over groups of them, each as harmless as its best.

Let an output tell which member of a group it is for nothing, and let the group count in every condition like that one
of its members that breaks it least. Whatever met the conditions still does, and tells no less: with W_C the sum of v
over group C, ``Σ v ln v <= Σ W ln W``, and ``G v`` is at least the sum of W_C times the least entry of G in C. So the
optimum over groups, and any bound on it, bounds that over inputs. Boxes of posteriors close it for a hundred groups in
seconds, where they do not for hundreds of inputs.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.columns import ColumnGeneration
from funnel.solver.pricing import Pricer
from funnel.solver.region import DATA_ERROR, Region
from funnel.solver.split import Split

Places = npt.NDArray[np.intp]

# Groups at first, and how many times as many each time.
_GROUPS, _FINER = 40, 1.4
# What each condition counts at least when inputs are grouped, as a share of what all of them do.
_SOME = 0.01
# Inputs whose pairs are too many to be kept.
_MOST = 4000
# Units of work of a pair of inputs and a condition, and of a group less.
_BY_PAIR, _BY_MERGE = 12.0, 80 * CALL


class GroupedBound:
    """A bound over groups of inputs that are cut finer as long as that helps.

    Parameters
    ----------
    region : Region
        What an output may be; its goal is the entropy, and it counts v itself.

    Attributes
    ----------
    bound : float
        No mixture of posteriors of the region has a larger Σ P(y) g(v_y), nats.
    groups : int
        Of the last search that came to its end; 0 before it.
    boxes : int
        Boxes bounded, of all of them.
    """

    def __init__(self, region: Region) -> None:
        self._distribution, self._levels, self._goal = region.distribution, region.levels, region.goal
        if region.image is not None:
            raise SolverError("inputs are grouped where the utility counts them as they are")
        rows = region.one_sided()
        sizes = np.abs(rows[:, : region.inputs]) @ region.distribution
        self._rows, self._sizes = rows[sizes > 0], sizes[sizes > 0]
        # Before anything is known, every condition counts the same, in terms of what it sums.
        self._worth = 1.0 / self._sizes
        self.bound = region.goal.most(region.counts(region.distribution))
        self.groups = self.boxes = 0

    @property
    def finest(self) -> bool:
        """Whether there is nothing to cut finer."""
        return self.groups >= len(self._distribution)

    def refine(self, left: float, budget: Budget, known: Split | None = None) -> bool:
        """Bound over more groups than before; False if the budget ended that.

        Parameters
        ----------
        left : float
            Nats by which the bound may be above the optimum over groups.
        budget : Budget
            Ends the search with what it has proven so far.
        known : Split, optional
            A mixture over the inputs. Summed over groups its posteriors are columns to start from.
        """
        number = min(len(self._distribution), math.ceil(_FINER * self.groups) if self.groups else _GROUPS)
        work = _BY_PAIR * len(self._rows) * float(len(self._distribution)) ** 2 + _BY_MERGE * len(self._distribution)
        if len(self._distribution) > _MOST or not budget.allows(work):
            return False
        budget.spend(work)
        group = grouped(self._rows[:, : len(self._distribution)], self._distribution, self._worth, number)
        region, asked, largest = self._over(group)
        pricer = Pricer(region, budget)
        search = ColumnGeneration(region, budget, pricer)
        if known is not None:
            summed = np.zeros((len(known.posteriors), number))
            np.add.at(summed.T, group, known.posteriors.T)
            search.start_from(summed)
        found = search.run(left)
        # A weight of a group is the sum of many.
        size = float(np.abs(search.prices).max(initial=0.0))
        self.bound = min(self.bound, found.split.bound + 2.0**-50 * len(self._distribution) * (1.0 + size))
        self.boxes += found.boxes
        if budget.expired:
            # The same groups are looked at again.
            return False
        self.groups = number
        worth = np.zeros(len(self._rows))
        worth[asked] = pricer.multipliers(found.split.posteriors, found.split.mass, search.prices) / largest
        least = _SOME * float(worth @ self._sizes) / self._sizes
        if (worth > 0).any():
            self._worth = np.maximum(worth, least)
        return found.finished

    def _over(self, group: Places) -> tuple[Region, Places, FloatArray]:
        """The region of groups, which conditions say something there, and the largest entries it scales them by."""
        a = len(self._distribution)
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(group.max() + 1))
        rows = np.minimum.reduceat(self._rows[:, :a][:, order], starts, axis=1)
        # Rows are known up to a share of their largest entry, which may be in no group any more.
        rows -= DATA_ERROR * np.abs(self._rows[:, :a]).max(axis=1, keepdims=True)
        distribution = np.array([math.fsum(part) for part in np.split(self._distribution[order], starts[1:])])
        asked = np.flatnonzero((rows > 0).any(axis=1) | (self._rows[:, a:] > 0).any(axis=1))
        conditions = np.hstack([rows, self._rows[:, a:]])[asked]
        return (
            Region.with_levels(conditions, distribution, self._levels),
            asked,
            np.abs(conditions).max(axis=1, initial=0.0),
        )


def grouped(rows: FloatArray, distribution: FloatArray, worth: FloatArray, number: int) -> Places:
    """Which of so many groups each input (a,) is in: merged two at a time, where that moves what is worth least.

    A group of mass P whose smallest entry in a condition is g, and whose mean is h, counts P (h - g) less there than
    its members do. That is weighed by what the condition is worth.

    Parameters
    ----------
    rows : ndarray, shape (m, a)
        Conditions ``rows v <= 0``.
    distribution : ndarray, shape (a,)
    worth : ndarray, shape (m,)
        Nats by which the optimum rises for each unit of a condition.
    number : int
        Of groups, >= 1.

    Notes
    -----
    O(a² m).
    """
    a = len(distribution)
    least = (rows * worth[:, None]).T.copy()
    total, mass, costs = (least @ np.ones(len(rows))) * distribution, distribution.copy(), np.zeros(a)
    there = np.ones(a, dtype=np.bool_)
    place = np.arange(a)

    def more(one: int, others: Places) -> FloatArray:
        both = np.minimum(least[one], least[others]).sum(axis=1)
        spread = total[one] + total[others] - both * (mass[one] + mass[others])
        return np.asarray(spread - costs[one] - costs[others])

    rise = np.full((a, a), np.inf)
    for one in range(a - 1):
        rise[one, one + 1 :] = more(one, np.arange(one + 1, a))
    rise = np.minimum(rise, rise.T)
    best = rise.argmin(axis=1)
    for _ in range(a - number):
        first = int(rise[np.arange(a), best].argmin())
        one, other = sorted((first, int(best[first])))
        costs[one] += costs[other] + rise[one, other]
        least[one] = np.minimum(least[one], least[other])
        total[one] += total[other]
        mass[one] += mass[other]
        place[place == other] = one
        there[other] = False
        rise[other], rise[:, other] = np.inf, np.inf
        left = np.flatnonzero(there)
        left = left[left != one]
        rise[one, left] = rise[left, one] = more(one, left)
        # Who would have merged with one of them looks again; the others only at the new group.
        again = np.flatnonzero(there & ((best == one) | (best == other)))
        best[again] = rise[again].argmin(axis=1)
        closer = left[rise[left, one] < rise[left, best[left]]]
        best[closer] = one
        best[one] = int(rise[one].argmin())
    return np.asarray(np.unique(place, return_inverse=True)[1])
