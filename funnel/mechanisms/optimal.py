"""The optimal protocol under a guarantee, as a mechanism beside the explicit ones."""

from __future__ import annotations

from typing import ClassVar

from funnel.guarantees.base import Guarantee
from funnel.joint import Joint
from funnel.mechanisms.base import Fitted, Mechanism
from funnel.progress import Progress
from funnel.protocol import Protocol
from funnel.solver import optimal


class Optimal(Mechanism):
    """The protocol of highest I(X;Y) among all that read X and meet the guarantee."""

    name: ClassVar[str] = "optimal"
    summary: ClassVar[str] = "the most informative protocol the guarantee allows"

    def fit(self, joint: Joint, guarantee: Guarantee, time_limit: float | None = None) -> Protocol:
        """Protocol of `funnel.optimal`."""
        return self.fitted(joint, guarantee, time_limit).protocol

    def fitted(
        self, joint: Joint, guarantee: Guarantee, time_limit: float | None = None, progress: Progress | None = None
    ) -> Fitted:
        """Protocol and bound of `funnel.optimal`."""
        solution = optimal(joint, guarantee, time_limit=time_limit, progress=progress)
        return Fitted(solution.protocol, solution.bound, solution.finished)
