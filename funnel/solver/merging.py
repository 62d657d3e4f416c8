"""Merging: a protocol that takes milliseconds, what every search starts from and never falls below."""

from __future__ import annotations

import numpy as np

from funnel.joint import FloatArray
from funnel.solver.bounds import negative_entropy
from funnel.solver.budget import CALL, Budget
from funnel.solver.region import Region
from funnel.solver.split import Split

# A class this close to the boundary counts as outside: the exact decision afterwards must not fail.
_HAIR = 1e-11


def merged_split(region: Region, budget: Budget) -> Split:
    """Publish the class that an input is in: inputs outside the region are merged until their classes are inside.

    As in ALIP algorithm 1, but on the conditions of any cone: every input outside begins a class, the one that is
    furthest outside first, and takes in the one that leaves it least outside until it is inside. The last class, which
    may not be, takes in other classes, then inputs that are inside alone.

    Parameters
    ----------
    region : Region
    budget : Budget
        When it is spent, what is left to merge is one class.

    Returns
    -------
    Split
        Its bound is that of g, 0.

    Notes
    -----
    O(a² m) for m conditions.
    """
    merging = _Merging(region, budget)
    law = region.law
    classes = merging.classes()
    mass = np.array([law[group].sum() for group in classes])
    posteriors = np.zeros((len(classes), len(law)))
    for row, group, whole in zip(posteriors, classes, mass, strict=True):
        row[group] = law[group] / whole
    value = float(negative_entropy(region.counts(posteriors)) @ mass)
    return Split(posteriors, mass, value, 0.0)


class _Merging:
    """How far sets of inputs are outside the region: their conditions add up."""

    def __init__(self, region: Region, budget: Budget) -> None:
        self._law = region.law
        # G v <= 0 and, where that is a condition, least Σv - G v <= 0; as sums over the inputs of a class.
        bounded = region.least > region.rows.min(axis=1, initial=0.0)
        both = np.vstack([region.rows, region.least[bounded, None] - region.rows[bounded]])
        self._terms = both * region.law
        self._budget = budget

    def classes(self) -> list[list[int]]:
        """A partition of the inputs into classes inside the region; one class where there is no other."""
        every = list(range(len(self._law)))
        outside = self._outside(np.zeros(len(self._terms)), 0.0, every)
        low = [x for x in every if outside[x] <= -_HAIR]
        # The one furthest outside comes first.
        rest = sorted((x for x in every if outside[x] > -_HAIR), key=lambda x: (-outside[x], x))
        found: list[list[int]] = []
        while rest:
            group, sums, mass = self._enlarged([], rest)
            found.append(group)
            if self._budget.expired and not self._inside(sums, mass):
                return [every]
        while len(found) > 1 and not self._meets(found[-1]):
            last = found.pop()
            least = int(np.argmin([self._distance(last + other) for other in found]))
            # What took in another class is the last one now: it is what may be outside.
            found.append(last + found.pop(least))
        if found and not self._meets(found[-1]):
            found[-1], _, _ = self._enlarged(found[-1], low)
            if not self._meets(found[-1]):
                return [every]
        return [*([x] for x in low), *found]

    def _enlarged(self, group: list[int], others: list[int]) -> tuple[list[int], FloatArray, float]:
        """A class that takes in others (which it removes) until it is inside or none is left."""
        group = [*group, others.pop(0)] if not group else list(group)
        sums, mass = self._terms[:, group].sum(axis=1), float(self._law[group].sum())
        while others and not self._inside(sums, mass):
            if self._budget.expired:
                group, others[:] = group + others, []
            else:
                group.append(others.pop(int(self._outside(sums, mass, others).argmin())))
            sums, mass = self._terms[:, group].sum(axis=1), float(self._law[group].sum())
        return group, sums, mass

    def _outside(self, sums: FloatArray, mass: float, others: list[int]) -> FloatArray:
        """How far a class would be outside with each of these inputs besides."""
        self._budget.spend(6 * CALL + 4.0 * len(self._terms) * len(others))
        if not len(self._terms):
            return np.full(len(others), -1.0)
        joined = (sums[:, None] + self._terms[:, others]) / (mass + self._law[others])
        return np.asarray(joined.max(axis=0))

    def _distance(self, group: list[int]) -> float:
        self._budget.spend(6 * CALL + 2.0 * len(self._terms) * len(group))
        return float((self._terms[:, group].sum(axis=1) / self._law[group].sum()).max(initial=-1.0))

    def _meets(self, group: list[int]) -> bool:
        return self._distance(group) <= -_HAIR

    @staticmethod
    def _inside(sums: FloatArray, mass: float) -> bool:
        return bool((sums / mass).max(initial=-1.0) <= -_HAIR)
