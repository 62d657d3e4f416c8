"""The optimal protocol among those that read the secret as well, judged by what is published alone."""

from __future__ import annotations

from typing import ClassVar

from funnel.guarantees.base import Guarantee
from funnel.joint import Joint
from funnel.mechanisms.base import Fitted, Mechanism
from funnel.progress import Progress
from funnel.protocol import Protocol
from funnel.solver import optimal

# In a space of c a dimensions the last digits of the certificate take most of the time.
_GAP = 1e-4


class OptimalWithSecret(Mechanism):
    """The protocol of highest I(X;Y) among all that read (S, X) and meet the guarantee (METHOD section 3).

    Knowing the secret, a protocol can blur just those records whose input would betray it: it dominates Conditional
    Reporting and every protocol that reads X alone.
    """

    name: ClassVar[str] = "optimal-with-secret"
    summary: ClassVar[str] = "the most informative protocol that may look at the secret"
    reads_secret: ClassVar[bool] = True

    def fit(self, joint: Joint, guarantee: Guarantee, time_limit: float | None = None) -> Protocol:
        """Protocol of `funnel.optimal` with ``reads_secret``, to a gap of 1e-4 nats."""
        return self.fitted(joint, guarantee, time_limit).protocol

    def fitted(
        self, joint: Joint, guarantee: Guarantee, time_limit: float | None = None, progress: Progress | None = None
    ) -> Fitted:
        """Protocol and bound."""
        solution = optimal(
            joint, guarantee, gap=_GAP, time_limit=time_limit, progress=progress, reads_secret=self.reads_secret
        )
        return Fitted(self.renamed(solution.protocol), solution.bound, solution.finished)
