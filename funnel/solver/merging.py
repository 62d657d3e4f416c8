"""Merging: a protocol that takes milliseconds, which no search that was stopped falls below."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.region import Region
from funnel.solver.split import Split

# A class this close to the boundary counts as outside: the exact decision afterwards must not fail.
_HAIR = 1e-11

# Rows T of a channel, shape (k, a), to how much each tells, shape (k,).
Risks = Callable[[FloatArray], FloatArray]


def merged_split(region: Region, budget: Budget, risks: Risks | None = None) -> Split:
    """Publish the class that an input is in: inputs outside the region are merged until their classes are inside.

    ALIP algorithm 1 on the conditions of any cone: of the inputs outside the riskiest begins a class, which takes in
    the one that leaves it least risky until it is inside. The last class, which may not be, takes in other classes,
    then inputs that are inside alone.

    Parameters
    ----------
    region : Region
    budget : Budget
        When it is spent, what is left to merge is one class.
    risks : callable, optional
        What riskiest means; by default, how far outside the region.

    Returns
    -------
    Split
        Its bound is that of g.

    Notes
    -----
    O(a²) risks, each O(m) for m conditions by default.
    """
    law = region.law
    classes = _Merging(region, budget, risks).classes()
    mass = np.array([law[group].sum() for group in classes])
    posteriors = np.zeros((len(classes), len(law)))
    for row, group, whole in zip(posteriors, classes, mass, strict=True):
        row[group] = law[group] / whole
    value = float(region.gains(posteriors) @ mass)
    return Split(posteriors, mass, value, region.goal.most(region.counts(law)))


class _Merging:
    """Classes of inputs, and how far they are outside the region: their conditions add up."""

    def __init__(self, region: Region, budget: Budget, risks: Risks | None) -> None:
        self._law = region.law
        # G v <= 0 and, where that is a condition, least Σv - G v <= 0; as sums over the inputs of a class.
        bounded = region.least > region.rows.min(axis=1, initial=0.0)
        both = np.vstack([region.rows, region.least[bounded, None] - region.rows[bounded]])
        self._terms = both * region.law
        self._budget = budget
        self._risks = risks

    def classes(self) -> list[list[int]]:
        """A partition of the inputs into classes inside the region; one class where there is no other."""
        every = list(range(len(self._law)))
        low = [x for x in every if self._inside([x])]
        rest = [x for x in every if x not in set(low)]
        found: list[list[int]] = []
        while rest:
            riskiest = rest.pop(int(self._order([], [[x] for x in rest]).argmax()))
            found.append(self._enlarged([riskiest], rest))
            if self._budget.expired and not self._inside(found[-1]):
                return [every]
        while len(found) > 1 and not self._inside(found[-1]):
            last = found.pop()
            least = int(np.argmin([self._order(last, [other])[0] for other in found]))
            # What took in another class is the last one now: it is what may be outside.
            found.append(last + found.pop(least))
        if found:
            found[-1] = self._enlarged(found[-1], low)
            if not self._inside(found[-1]):
                return [every]
        return [*([x] for x in low), *found]

    def _enlarged(self, group: list[int], others: list[int]) -> list[int]:
        """A class that takes in others (which it removes) until it is inside or none is left."""
        while others and not self._inside(group):
            if self._budget.expired:
                group, others[:] = group + others, []
            else:
                group = [*group, others.pop(int(self._order(group, [[x] for x in others]).argmin()))]
        return group

    def _order(self, group: list[int], others: list[list[int]]) -> FloatArray:
        """How risky a class would be with each of these classes besides."""
        if self._risks is None:
            sums = self._terms[:, group].sum(axis=1, keepdims=True)
            mass = float(self._law[group].sum())
            places = np.fromiter((x for other in others for x in other), dtype=np.intp)
            self._budget.spend(12 * CALL + len(self._terms) * (20.0 * len(group) + 20.0 * len(places)))
            starts = np.cumsum([0, *(len(other) for other in others[:-1])])
            more = np.add.reduceat(self._terms[:, places], starts, axis=1)
            heavier = np.add.reduceat(self._law[places], starts)
            return np.asarray(((sums + more) / (mass + heavier)).max(axis=0, initial=-1.0))
        rows = np.zeros((len(others), len(self._law)))
        rows[:, group] = 1.0
        for row, other in zip(rows, others, strict=True):
            row[other] = 1.0
        self._budget.spend(40 * CALL + 0.3 * CALL * len(others) + 20.0 * rows.size)
        return self._risks(rows)

    def _inside(self, group: list[int]) -> bool:
        self._budget.spend(4 * CALL + 2.0 * len(self._terms) * len(group))
        distance = self._terms[:, group].sum(axis=1) / self._law[group].sum()
        return bool(distance.max(initial=-1.0) <= -_HAIR)
