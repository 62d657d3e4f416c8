"""Watchdog: symbols within the bound are published as they are, the others are not told apart."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from funnel.guarantees.base import Guarantee
from funnel.joint import Joint
from funnel.mechanisms.family import Fitted, Mechanism
from funnel.mechanisms.merging import merged_weights, symbol_risks, verified
from funnel.progress import Progress, quiet
from funnel.protocol import DENOMINATOR
from funnel.rounding import silence_unseen
from funnel.solver.budget import Budget


class Watchdog(Mechanism):
    """The watchdog with complete merging (ALIP section 3.1.1, equation (8)): one symbol for all high-risk inputs.

    X-invariant randomisation leaks least of all ways to treat the high-risk inputs (ALIP theorem 1), but that can
    still be too much: then low-risk inputs are merged in as well until the bound holds (METHOD section 4).
    """

    name: ClassVar[str] = "watchdog"
    summary: ClassVar[str] = "publish what is within the bound, merge everything else into one value"

    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """The coarsest part as small as it can be.

        Raises
        ------
        SpecError
            If the guarantee does not judge outputs one by one.
        """
        risks = symbol_risks(joint, guarantee, self.name, budget)
        low, high = risks.high_risk()
        high, low = risks.enlarged(high, low)
        subsets = tuple((x,) for x in low) + ((tuple(sorted(high)),) if high else ())
        weights = merged_weights(joint, guarantee, subsets)
        return Fitted(self.protocol(joint, guarantee, weights, joint.inputs), None, not budget.expired)


class UniformWatchdog(Mechanism):
    """The watchdog with uniform X-invariant randomisation: a high-risk input becomes any of them, with equal chance.

    It leaks and tells exactly what complete merging does, but keeps the published alphabet that of the input: who uses
    the data must know the protocol to see which values say nothing.
    """

    name: ClassVar[str] = "watchdog-uniform"
    summary: ClassVar[str] = "publish what is within the bound, replace everything else by one of it at random"

    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """The randomised part as small as it can be.

        Raises
        ------
        SpecError
            If the guarantee does not judge outputs one by one.
        """
        risks = symbol_risks(joint, guarantee, self.name, budget)
        low, high = risks.high_risk()
        high, low = risks.enlarged(high, low)
        weights = np.zeros((len(risks.seen), joint.counts.shape[1]), dtype=np.uint64)
        for row, x in enumerate((*low, *high)):
            columns = [x] if row < len(low) else list(high)
            # What the division leaves goes to the first, for all inputs alike.
            share = DENOMINATOR // len(columns) + (DENOMINATOR % len(columns) if row == len(low) else 0)
            weights[row, columns] = DENOMINATOR if row < len(low) else share
        weights[0, joint.counts.sum(axis=0) == 0] = DENOMINATOR
        weights = verified(joint, guarantee, silence_unseen(joint, weights))
        return Fitted(self.protocol(joint, guarantee, weights, joint.inputs), None, not budget.expired)
