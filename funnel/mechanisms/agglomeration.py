"""Greedy agglomeration: merge published values, two at a time, until the guarantee holds."""

from __future__ import annotations

from typing import ClassVar

from funnel.guarantees.base import Guarantee
from funnel.joint import Joint
from funnel.mechanisms.family import Fitted, Mechanism
from funnel.mechanisms.merging import merged_weights
from funnel.progress import Progress, quiet
from funnel.solver.budget import Budget
from funnel.solver.greedy import Subsets, greedy_partition, partition_weights
from funnel.solver.work import decision_work


class Agglomeration(Mechanism):
    """Greedy agglomeration for I(S;Y) <= M, the original Privacy Funnel (PF problem 1), and for any other guarantee.

    Starts from the input as it is and merges, again and again, the two outputs whose merging lowers I(S;Y) most for
    each nat of I(X;Y) it costs, until the guarantee holds exactly. One output tells nothing, so there is an end. For
    guarantees on every output, subset merging looks at what they bound; this looks at the average.

    Notes
    -----
    The way does not depend on the guarantee, and merging never raises a level, so the first place on it where the
    guarantee holds is found by bisection: O(a² c) for the way where it is plain, log a exact decisions.
    """

    name: ClassVar[str] = "agglomeration"
    summary: ClassVar[str] = "merge values pair by pair, where that hides most for what it costs"

    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """The finest partition on the greedy way that meets the guarantee."""

        def holds(subsets: Subsets) -> bool:
            budget.spend(decision_work(joint, guarantee, len(subsets)))
            return guarantee.holds_for(joint, partition_weights(joint, subsets))

        subsets, finished = greedy_partition(joint, holds, budget)
        weights = merged_weights(joint, guarantee, subsets)
        return Fitted(self.protocol(joint, guarantee, weights, joint.inputs), None, finished)
