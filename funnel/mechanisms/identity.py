"""Identity: publish the input as it is, where that already meets the guarantee."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from funnel.errors import InfeasibleGuarantee
from funnel.guarantees.base import Guarantee
from funnel.joint import Joint
from funnel.mechanisms.family import Fitted, Mechanism
from funnel.progress import Progress, quiet
from funnel.rounding import integer_weights, silence_unseen
from funnel.solver.budget import Budget
from funnel.solver.work import require_decision


class Identity(Mechanism):
    """Y = X; its level is the largest lift of any input symbol."""

    name: ClassVar[str] = "identity"
    summary: ClassVar[str] = "publish the columns unchanged"

    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """The identity channel.

        Raises
        ------
        InfeasibleGuarantee
            If publishing the input unchanged exceeds the guarantee.
        SpecError
            If to decide it would take longer than the budget.
        """
        require_decision(joint, guarantee, len(joint.inputs), budget)
        # An input that never occurs gets the marginal column, and so can only produce symbols that do occur.
        weights = silence_unseen(joint, integer_weights(np.eye(len(joint.inputs))))
        protocol = self.protocol(joint, guarantee, weights, joint.inputs)
        if not guarantee.holds(joint, protocol):
            level = guarantee.level(joint, protocol)
            raise InfeasibleGuarantee(
                f"releasing {', '.join(joint.inputs.columns)} unchanged has level {level.value:.6g}, above {guarantee}",
                level.value,
            )
        return Fitted(protocol)
