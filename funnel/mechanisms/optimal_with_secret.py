"""The optimal protocol among those that read the secret as well, judged by what is published alone."""

from __future__ import annotations

from typing import ClassVar

from funnel.guarantees.base import Guarantee
from funnel.joint import Joint
from funnel.measures.utilities import INFORMATION, Utility
from funnel.mechanisms.family import Fitted, Mechanism
from funnel.mechanisms.instead import has_optimum
from funnel.mechanisms.memory import condition_number, optimum_memory, table_memory
from funnel.progress import Progress, quiet
from funnel.solver import optimal
from funnel.solver.budget import Budget

# In a space of c a dimensions the last digits of the certificate take most of the time.
_GAP = 1e-4


class OptimalWithSecret(Mechanism):
    """The protocol of highest I(X;Y) among all that read (S, X) and meet the guarantee (METHOD section 3).

    Knowing the secret, a protocol can blur just those records whose input would betray it: it dominates Conditional
    Reporting and every protocol that reads X alone.
    """

    name: ClassVar[str] = "optimal-with-secret"
    summary: ClassVar[str] = "the most informative protocol found that may look at the secret"
    reads_secret: ClassVar[bool] = True
    optimises: ClassVar[bool] = True

    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """Protocol and bound of `funnel.optimal` with ``reads_secret``, to a gap of 1e-4 nats."""
        return self.fitted_to(joint, guarantee, INFORMATION, budget, progress)

    def fitted_to(
        self, joint: Joint, guarantee: Guarantee, utility: Utility, budget: Budget, progress: Progress = quiet
    ) -> Fitted:
        """The same for any utility."""
        reads = self.reads_secret
        solution = optimal(
            joint, guarantee, _GAP, time_limit=budget, progress=progress, reads_secret=reads, utility=utility
        )
        return Fitted(self.renamed(solution.protocol), solution.bound, solution.finished)

    def memory(self, joint: Joint, guarantee: Guarantee) -> float:
        """A table over (S, X), or what column generation over it takes."""
        if not has_optimum(guarantee):
            return 0.0
        a, cells = len(joint.inputs), int((joint.counts > 0).sum())
        searched = optimum_memory(condition_number(joint, guarantee), cells, a)
        return max(table_memory(cells, len(joint.secret) * a), searched)
