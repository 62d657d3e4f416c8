"""Subset random response: the optimum inside each merged subset, for alphabets too large for the whole optimum."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from funnel.errors import InfeasibleGuarantee, SolverError, SpecError
from funnel.guarantees.base import ConeGuarantee, Guarantee
from funnel.guarantees.robust_guarantee import Robust
from funnel.guarantees.sided import over_set
from funnel.joint import FloatArray, Joint
from funnel.measures.information import information_of
from funnel.mechanisms.false_position import parameter_at
from funnel.mechanisms.family import Fitted, Mechanism
from funnel.mechanisms.instead import merging_for
from funnel.mechanisms.memory import condition_number, optimum_memory, table_memory
from funnel.mechanisms.merging import merged_weights, symbol_risks
from funnel.progress import Progress, quiet
from funnel.protocol import DENOMINATOR, WeightArray
from funnel.rounding import proven_weights, silence_unseen
from funnel.solver.budget import Budget
from funnel.solver.greedy import Subsets
from funnel.solver.merging import merged_subsets
from funnel.solver.repair import repaired
from funnel.solver.search import optimal_over_cone
from funnel.solver.split import Split
from funnel.solver.work import decision_work

# Each subset is an optimisation of its own: to a hair of what is lost by splitting at all.
_GAP = 1e-6
# How far inside the cone its protocols are moved, relatively to the budget.
_MARGINS = (1e-8, 1e-7, 1e-6)
# Over a set of distributions: how closely the budget for one distribution is found, in how many steps, each with what
# share of the rest.
_CLOSE, _TRIED, _STEP = 1e-3, 12, 0.3
# The share of the budget that finding the subsets may take.
_MERGING = 0.5


class SubsetRandomResponse(Mechanism):
    """SRR (ALIP section 5, algorithm 2): for every subset of subset merging, the best protocol that stays within it.

    A subset that meets the guarantee as one symbol has a feasible protocol of its own, so the unions that algorithm 2
    makes where a polytope is empty are never needed. Utility lies between subset merging and the optimum.
    """

    name: ClassVar[str] = "subset-random-response"
    summary: ClassVar[str] = "the best protocol inside each small group of risky values"
    optimises: ClassVar[bool] = True

    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """The block channel of all subsets, verified exactly; never less than the subsets themselves keep.

        Raises
        ------
        SpecError
            If the guarantee is no polyhedral cone, nor one over boxes of distributions.
        """
        nominal = _nominal(guarantee)
        if nominal is None:
            raise SpecError(
                f"{self.name} optimises over a polyhedral cone, but {guarantee.title} is none; use "
                f"{merging_for(guarantee)}"
            )
        merging = budget.part(_MERGING)
        subsets = merged_subsets(symbol_risks(joint, guarantee, self.name, merging))
        finished = not merging.expired
        weights = merged_weights(joint, guarantee, subsets)
        try:
            if over_set(guarantee, joint) is None:
                found, complete = _weights(joint, nominal, subsets, budget)
            else:
                found, complete = _calibrated(joint, guarantee, nominal, subsets, budget)
            finished &= complete
        except (InfeasibleGuarantee, SolverError):
            # Budgets so small that floats cannot tell the region from a point: what is merged holds all the same.
            found = weights
        if _kept(joint, found) > _kept(joint, weights):
            weights = found
        return Fitted(self.protocol(joint, guarantee, weights, joint.inputs), None, finished)

    def memory(self, joint: Joint, guarantee: Guarantee) -> float:
        """A table, or what column generation over all inputs takes, if they are one subset."""
        nominal = _nominal(guarantee)
        a = 0 if nominal is None else len(joint.inputs)
        return max(table_memory(a, a), optimum_memory(condition_number(joint, nominal or guarantee), a))


def _nominal(guarantee: Guarantee) -> ConeGuarantee | None:
    """The cone that is optimised over: that of one distribution, also for a guarantee over boxes of them."""
    if isinstance(guarantee, Robust) and guarantee.over_boxes:
        return guarantee.nominal
    return guarantee if isinstance(guarantee, ConeGuarantee) else None


def _calibrated(
    joint: Joint, guarantee: Guarantee, nominal: ConeGuarantee, subsets: Subsets, budget: Budget
) -> tuple[WeightArray, bool]:
    """The block channel for one distribution at the largest budget for which it holds over the set, found by its level.

    Raises
    ------
    InfeasibleGuarantee
        If none was found.
    """
    published = joint.as_published
    found: list[tuple[float, WeightArray, bool]] = []

    def level_at(parameter: float) -> float:
        try:
            weights, finished = _weights(published, nominal.with_budget(parameter), subsets, budget.part(_STEP))
        except (InfeasibleGuarantee, SolverError):
            # Some subset breaks so small a budget even as one symbol.
            return 0.0
        weights = silence_unseen(joint, weights)
        budget.spend(decision_work(joint, guarantee, len(weights)))
        if guarantee.holds_for(joint, weights):
            found.append((_kept(joint, weights), weights, finished))
        return guarantee.level_for(joint, weights).value

    parameter_at(level_at, guarantee.budget, _CLOSE, 0.9 * guarantee.budget, _TRIED, budget)
    if not found:
        raise InfeasibleGuarantee(f"no block channel for one distribution meets {guarantee}")
    _, best, complete = max(found, key=lambda one: one[0])
    return best, complete and not budget.expired


def _kept(joint: Joint, weights: WeightArray) -> float:
    """I(X;Y), nats."""
    return information_of((weights / np.float64(DENOMINATOR) * joint.p_input).T)


def _weights(joint: Joint, guarantee: ConeGuarantee, subsets: Subsets, budget: Budget) -> tuple[WeightArray, bool]:
    """Verified weights of the best block channel, and whether every block is the best there is."""
    splits, finished = [], True
    cone = guarantee.cone(joint)
    several = sum(len(subset) > 1 for subset in subsets)
    for subset in subsets:
        # What is left of the budget, shared by what is left to do; the smallest there is still gives a protocol.
        split, complete = _best_within(joint, cone, subset, budget.part(1 / max(1, several)))
        splits.append(split)
        finished &= complete
        several -= len(subset) > 1
    for margin in _MARGINS:
        tighter = guarantee.tightened(margin).cone(joint)
        moved = [_moved(joint, tighter, subset, split) for subset, split in zip(subsets, splits, strict=True)]
        matrix = _blocks(joint, subsets, moved)
        budget.spend(4 * decision_work(joint, guarantee, len(matrix)))
        weights = proven_weights(joint, guarantee, matrix)
        if (weights > 0).sum() <= (matrix > 0).sum() or margin == _MARGINS[-1]:
            break
    return weights, finished


def _best_within(joint: Joint, cone: FloatArray, subset: tuple[int, ...], budget: Budget) -> tuple[Split, bool]:
    """The best split of p(x | subset) into posteriors on the subset, all within the cone (ALIP equation (26))."""
    distribution = joint.p_input[list(subset)] / joint.p_input[list(subset)].sum()
    if len(subset) == 1:
        return Split(np.ones((1, 1)), np.ones(1), 0.0, 0.0), True
    mixture = optimal_over_cone(cone[:, list(subset)], distribution, _GAP, budget)
    return mixture.split, mixture.finished


def _moved(joint: Joint, tighter: FloatArray, subset: tuple[int, ...], split: Split) -> Split:
    columns = list(subset)
    distribution = joint.p_input[columns] / joint.p_input[columns].sum()
    return split if len(split.mass) == 1 else repaired(split, distribution, tighter[:, columns] / distribution) or split


def _blocks(joint: Joint, subsets: Subsets, splits: list[Split]) -> FloatArray:
    """The channel (b, a) with one block for every subset."""
    matrix = np.zeros((sum(len(split.mass) for split in splits), joint.counts.shape[1]))
    row = 0
    for subset, split in zip(subsets, splits, strict=True):
        distribution = joint.p_input[list(subset)] / joint.p_input[list(subset)].sum()
        block = split.posteriors * split.mass[:, None] / distribution
        matrix[row : row + len(block), list(subset)] = block / block.sum(axis=0)
        row += len(block)
    unseen = joint.counts.sum(axis=0) == 0
    matrix[0, unseen] = 1.0
    return matrix
