"""Subset merging: high-risk symbols are merged in several small subsets instead of one large one."""

from __future__ import annotations

from typing import ClassVar

from funnel.guarantees.base import Guarantee
from funnel.joint import Joint
from funnel.mechanisms.family import Fitted, Mechanism
from funnel.mechanisms.merging import merged_weights, symbol_risks
from funnel.progress import Progress, quiet
from funnel.solver.budget import Budget
from funnel.solver.merging import merged_subsets


class SubsetMerging(Mechanism):
    """The watchdog with subset merging (ALIP section 4, algorithm 1), under any guarantee that judges outputs alone."""

    name: ClassVar[str] = "subset-merging"
    summary: ClassVar[str] = "merge risky values in small groups, without any randomness"

    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """The partition of `merged_subsets` as a protocol.

        Raises
        ------
        SpecError
            If the guarantee does not judge outputs one by one.
        """
        subsets = merged_subsets(symbol_risks(joint, guarantee, self.name, budget))
        weights = merged_weights(joint, guarantee, subsets)
        return Fitted(self.protocol(joint, guarantee, weights, joint.inputs), None, not budget.expired)
