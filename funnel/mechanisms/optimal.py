"""The optimal protocols under a guarantee, without the secret and with it, as mechanisms beside the explicit ones."""

from __future__ import annotations

from typing import ClassVar

from funnel.guarantees.base import Guarantee
from funnel.joint import Joint
from funnel.measures.utilities import INFORMATION, Utility
from funnel.mechanisms.family import Fitted, Mechanism
from funnel.mechanisms.instead import has_optimum
from funnel.mechanisms.memory import (
    condition_number,
    distinct_inputs,
    optimum_memory,
    sparse_memory,
    table_memory,
)
from funnel.progress import Progress, quiet
from funnel.solver.budget import Budget
from funnel.solver.optimum import optimal
from funnel.solver.wide import is_binary, is_wide, needs_no_table


class Optimal(Mechanism):
    """The protocol of highest I(X;Y) among all that read X and meet the guarantee."""

    name: ClassVar[str] = "optimal"
    summary: ClassVar[str] = "the most informative protocol found that meets the guarantee"
    optimises: ClassVar[bool] = True
    # Nats that it may be below the optimum.
    gap: ClassVar[float] = 1e-6

    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """Protocol and bound of `funnel.optimal`."""
        return self.fitted_to(joint, guarantee, INFORMATION, budget, progress)

    def fitted_to(
        self, joint: Joint, guarantee: Guarantee, utility: Utility, budget: Budget, progress: Progress = quiet
    ) -> Fitted:
        """The same for any utility."""
        reads = self.reads_secret
        found = optimal(joint, guarantee, self.gap, budget, "auto", progress, reads_secret=reads, utility=utility)
        return Fitted(self.renamed(found.protocol), found.bound, found.finished)

    def memory(self, joint: Joint, guarantee: Guarantee) -> float:
        """What column generation over the inputs that are told apart takes; a table, but for wide ones."""
        if not has_optimum(guarantee):
            return 0.0
        a = len(joint.inputs)
        if is_wide(joint, guarantee) and needs_no_table(joint):
            entries = sparse_memory(a, len(joint.secret))
            if is_binary(joint):
                return entries
            told_apart = distinct_inputs(joint, guarantee)
            searched = optimum_memory(condition_number(joint, guarantee), told_apart)
            return entries + max(table_memory(told_apart, told_apart), searched)
        searched = optimum_memory(condition_number(joint, guarantee), distinct_inputs(joint, guarantee))
        return max(table_memory(a, a), searched)


class OptimalWithSecret(Optimal):
    """The protocol of highest I(X;Y) among all that read (S, X) and meet the guarantee (METHOD section 3).

    Knowing the secret, a protocol can blur just those records whose input would betray it: it dominates Conditional
    Reporting and every protocol that reads X alone.
    """

    name: ClassVar[str] = "optimal-with-secret"
    summary: ClassVar[str] = "the most informative protocol found that may look at the secret"
    reads_secret: ClassVar[bool] = True
    # In a space of c a dimensions the last digits of the certificate take most of the time.
    gap: ClassVar[float] = 1e-4

    def memory(self, joint: Joint, guarantee: Guarantee) -> float:
        """A table over (S, X), or what column generation over it takes."""
        if not has_optimum(guarantee):
            return 0.0
        a, cells = len(joint.inputs), int((joint.counts > 0).sum())
        searched = optimum_memory(condition_number(joint, guarantee), cells, a)
        return max(table_memory(cells, len(joint.secret) * a), searched)
