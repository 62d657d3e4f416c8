"""Merging: which inputs a guarantee lets through as they are, and how the others are merged until it lets them too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.guarantees.base import OutputGuarantee
from funnel.joint import FloatArray, Joint
from funnel.solver.budget import Budget
from funnel.solver.greedy import Subsets
from funnel.solver.work import levels_work

# Float levels this close to the budget count as above it: the exact decision afterwards must not fail.
_HAIR = 1e-12


@dataclass(frozen=True, eq=False)
class SymbolRisks:
    """The inputs of a joint distribution as a guarantee sees subsets of them published as one symbol.

    Parameters
    ----------
    joint : Joint
    guarantee : OutputGuarantee
    budget : Budget
        Charged for every subset that is looked at.
    """

    joint: Joint
    guarantee: OutputGuarantee
    budget: Budget

    @property
    def seen(self) -> tuple[int, ...]:
        """Inputs that occur."""
        return tuple(int(x) for x in np.flatnonzero(self.joint.counts.any(axis=0)))

    def meets(self, subset: tuple[int, ...]) -> bool:
        """Whether a subset, published as one symbol, meets the guarantee for certain."""
        return bool(self._levels(self._rows((subset,)))[0] <= self._limit)

    def riskiest(self, inputs: tuple[int, ...]) -> int:
        """The place of the input with the largest risk ω by itself (ALIP algorithm 1)."""
        return int(self._risks(self._joined((), inputs)).argmax())

    def least_risky(self, subset: tuple[int, ...], others: tuple[int, ...]) -> int:
        """The place of the input that leaves the smallest risk ω once it is merged into the subset."""
        return int(self._risks(self._joined(subset, others)).argmin())

    def least_risky_union(self, subset: tuple[int, ...], others: Subsets) -> int:
        """The place of the subset that leaves the smallest risk ω once it is merged with the given one."""
        return int(self._risks(self._rows(tuple(subset + other for other in others))).argmin())

    def high_risk(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Inputs that may be published as they are, and those that may not (ALIP equations (6), (7) and (37))."""
        seen = self.seen
        meets = self._levels(self._joined((), seen)) <= self._limit
        low = tuple(x for x, fine in zip(seen, meets, strict=True) if fine)
        return low, tuple(x for x, fine in zip(seen, meets, strict=True) if not fine)

    def enlarged(self, subset: tuple[int, ...], low: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """A subset that meets the guarantee, with as many low-risk inputs merged into it as that takes.

        The merged high-risk inputs can still break the bound (METHOD section 4, watchdog). Each step merges the input
        that leaves the smallest level; all inputs together tell nothing, so there is an end. When the budget is spent,
        twice as many are merged each time, as they come.
        """
        number = 1
        while subset and low and not self.meets(subset):
            if self.budget.expired:
                subset, low, number = subset + low[:number], low[number:], 2 * number
                continue
            best = int(self._levels(self._joined(subset, low)).argmin())
            subset, low = (*subset, low[best]), low[:best] + low[best + 1 :]
        return subset, low

    @property
    def _limit(self) -> float:
        return self.guarantee.budget * (1 - _HAIR)

    def _levels(self, rows: FloatArray) -> FloatArray:
        self.budget.spend(levels_work(self.joint, self.guarantee, len(rows)))
        return self.guarantee.output_levels(self.joint, rows)

    def _risks(self, rows: FloatArray) -> FloatArray:
        self.budget.spend(levels_work(self.joint, self.guarantee, len(rows)))
        return self.guarantee.risks(self.joint, rows)

    def _rows(self, subsets: Subsets) -> FloatArray:
        """The row of a channel for each subset, as `partition_weights` makes it."""
        rows = np.zeros((len(subsets), self.joint.counts.shape[1]))
        for row, subset in zip(rows, subsets, strict=True):
            row[list(subset)] = 1.0
        return self._with_unseen(rows)

    def _joined(self, subset: tuple[int, ...], others: tuple[int, ...]) -> FloatArray:
        """A row for each input that is merged into the subset."""
        rows = np.repeat(self._rows((subset,)), len(others), axis=0)
        rows[np.arange(len(others)), list(others)] = 1.0
        return self._with_unseen(rows)

    def _with_unseen(self, rows: FloatArray) -> FloatArray:
        """Rows with the marginal for inputs that never occurred: over a set of distributions somebody may have them."""
        unseen = self.joint.counts.sum(axis=0) == 0
        rows[:, unseen] = (rows @ self.joint.p_input)[:, None]
        return rows


def merged_subsets(risks: SymbolRisks) -> Subsets:
    """A partition of the inputs that occur, low-risk ones alone, each part of which meets the guarantee.

    ALIP algorithm 1 in the reading that reproduces the paper (METHOD section 4): every high-risk input is put into
    some subset, each begun with the riskiest input left and enlarged by the one that leaves the smallest risk until it
    meets the bound; the last one, which may not, takes in other subsets. What the paper leaves out: if all high-risk
    inputs together still break the bound, low-risk ones are merged in.

    When the budget is spent, whatever is left to merge becomes one subset, which takes in as many others as it needs,
    twice as many each time.
    """
    low, rest = risks.high_risk()
    subsets: list[tuple[int, ...]] = []
    while rest:
        riskiest = risks.riskiest(rest)
        subset: tuple[int, ...] = (rest[riskiest],)
        rest = rest[:riskiest] + rest[riskiest + 1 :]
        while rest and not risks.meets(subset):
            if risks.budget.expired:
                subset, rest = subset + rest, ()
                break
            best = risks.least_risky(subset, rest)
            subset, rest = (*subset, rest[best]), rest[:best] + rest[best + 1 :]
        subsets.append(subset)
    number = 1
    while len(subsets) > 1 and not risks.meets(subsets[-1]):
        if risks.budget.expired:
            together = tuple(x for subset in subsets[-1 - number :] for x in subset)
            subsets, number = [*subsets[: -1 - number], together], 2 * number
            continue
        last = subsets.pop()
        best = risks.least_risky_union(last, tuple(subsets))
        # What took in another subset is the last one now: it is what may break the bound.
        subsets.append(last + subsets.pop(best))
    if subsets:
        subsets[-1], low = risks.enlarged(subsets[-1], low)
    return tuple(sorted(((x,) for x in low), key=min)) + tuple(tuple(sorted(subset)) for subset in subsets)
