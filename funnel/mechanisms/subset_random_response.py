"""Subset random response: the optimum inside each merged subset, for alphabets too large for the whole optimum."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.base import ConeGuarantee, Guarantee
from funnel.joint import FloatArray, Joint
from funnel.mechanisms.base import Mechanism
from funnel.mechanisms.merging import Subsets, merged_subsets, symbol_risks
from funnel.protocol import Protocol
from funnel.rounding import proven_weights
from funnel.solver import optimal_over_cone
from funnel.solver.polish import polish
from funnel.solver.split import Split

# Each subset is an optimisation of its own: to a hair of what is lost by splitting at all.
_GAP = 1e-6


class SubsetRandomResponse(Mechanism):
    """SRR (ALIP section 5, algorithm 2): for every subset of subset merging, the best protocol that stays within it.

    A subset that meets the guarantee as one symbol has a feasible protocol of its own, so the unions that algorithm 2
    makes where a polytope is empty are never needed. Utility lies between subset merging and the optimum.
    """

    name: ClassVar[str] = "subset-random-response"
    summary: ClassVar[str] = "the best protocol inside each small group of risky values"

    def fit(self, joint: Joint, guarantee: Guarantee, time_limit: float | None = None) -> Protocol:
        """The block channel of all subsets, verified exactly.

        Raises
        ------
        SpecError
            If the guarantee is no polyhedral cone.
        SolverError
            If an optimisation fails.
        """
        if not isinstance(guarantee, ConeGuarantee):
            raise SpecError(
                f"{self.name} optimises over a polyhedral cone, but {guarantee.title} is none; use subset-merging"
            )
        subsets = merged_subsets(symbol_risks(joint, guarantee, self.name))
        deadline = None if time_limit is None else time.perf_counter() + time_limit
        splits = []
        cone = guarantee.cone(joint)
        for place, subset in enumerate(subsets):
            # What is left of the time, shared by what is left to do; the smallest there is still gives a protocol.
            left = None if deadline is None else max(1e-3, deadline - time.perf_counter()) / (len(subsets) - place)
            splits.append(_best_within(joint, cone, subset, left))
        for margin in (1e-11, 1e-9, 1e-7):
            tighter = guarantee.tightened(margin).cone(joint)
            polished = [
                _polished(joint, cone, tighter, subset, split) for subset, split in zip(subsets, splits, strict=True)
            ]
            matrix = _blocks(joint, subsets, polished)
            weights = proven_weights(joint, guarantee, matrix)
            if (weights > 0).sum() <= (matrix > 0).sum() or margin == 1e-7:
                break
        return self.protocol(joint, guarantee, weights, joint.inputs)


def _best_within(joint: Joint, cone: FloatArray, subset: tuple[int, ...], time_limit: float | None) -> Split:
    """The best split of p(x | subset) into posteriors on the subset, all within the cone (ALIP equation (26))."""
    law = joint.p_input[list(subset)] / joint.p_input[list(subset)].sum()
    if len(subset) == 1:
        return Split(np.ones((1, 1)), np.ones(1), 0.0, 0.0)
    return optimal_over_cone(cone[:, list(subset)], law, _GAP, time_limit).split


def _polished(joint: Joint, cone: FloatArray, tighter: FloatArray, subset: tuple[int, ...], split: Split) -> Split:
    columns = list(subset)
    law = joint.p_input[columns] / joint.p_input[columns].sum()
    if len(split.mass) == 1:
        return split
    return polish(split, law, cone[:, columns] / law, tighter[:, columns] / law) or split


def _blocks(joint: Joint, subsets: Subsets, splits: list[Split]) -> FloatArray:
    """The channel (b, a) with one block for every subset."""
    matrix = np.zeros((sum(len(split.mass) for split in splits), joint.counts.shape[1]))
    row = 0
    for subset, split in zip(subsets, splits, strict=True):
        law = joint.p_input[list(subset)] / joint.p_input[list(subset)].sum()
        block = split.posteriors * split.mass[:, None] / law
        matrix[row : row + len(block), list(subset)] = block / block.sum(axis=0)
        row += len(block)
    unseen = joint.counts.sum(axis=0) == 0
    matrix[0, unseen] = 1.0
    return matrix
