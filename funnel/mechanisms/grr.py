"""Generalised randomised response: tell the truth with one probability, every lie with another."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from funnel.guarantees.base import Guarantee
from funnel.joint import FloatArray, Joint
from funnel.mechanisms.family import Fitted, Mechanism, strongest
from funnel.progress import Progress, quiet
from funnel.rounding import integer_weights
from funnel.solver.budget import Budget


def grr_matrix(size: int, alpha: float) -> FloatArray:
    """``Q[y, x] = (1 + (e^α - 1)[x = y]) / (e^α + a - 1)``, shape (a, a) (PF equation (25), RLDP (10))."""
    lie = np.exp(-alpha)
    return np.asarray((lie + (1 - lie) * np.eye(size)) / (1 + (size - 1) * lie))


class GRR(Mechanism):
    """GRR(α) with the largest α whose exact level meets the guarantee."""

    name: ClassVar[str] = "grr"
    summary: ClassVar[str] = "randomised response on the published columns"

    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """Calibrated GRR; always feasible, since α = 0 is pure noise."""
        size = len(joint.inputs)
        found = strongest(lambda alpha: integer_weights(grr_matrix(size, alpha)), joint, guarantee, budget)
        return Fitted(self.protocol(joint, guarantee, found.weights, joint.inputs), None, found.finished)
