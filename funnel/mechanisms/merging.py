"""Watchdogs and subset merging: what a guarantee lets through is published as it is, and the rest is not told apart."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from funnel.errors import InfeasibleGuarantee, SpecError
from funnel.guarantees.base import Guarantee, OutputGuarantee
from funnel.joint import Joint
from funnel.mechanisms.family import Fitted, Mechanism
from funnel.mechanisms.instead import merging_for
from funnel.progress import Progress, quiet
from funnel.protocol import DENOMINATOR, WeightArray
from funnel.rounding import silence_unseen
from funnel.solver.budget import Budget
from funnel.solver.greedy import Subsets, partition_weights
from funnel.solver.merging import SymbolRisks, merged_subsets


def symbol_risks(joint: Joint, guarantee: Guarantee, mechanism: str, budget: Budget) -> SymbolRisks:
    """The risks of symbols under a guarantee that judges outputs one by one.

    Raises
    ------
    SpecError
        If it does not.
    """
    if not isinstance(guarantee, OutputGuarantee):
        raise SpecError(
            f"{mechanism} checks symbols one by one, but {guarantee.title} is a bound on their average; use "
            f"{merging_for(guarantee)} or grr"
        )
    return SymbolRisks(joint, guarantee, budget)


def merged_weights(joint: Joint, guarantee: Guarantee, subsets: Subsets) -> WeightArray:
    """Weights (number of subsets, a) of the channel that publishes the subset an input is in, verified exactly.

    Raises
    ------
    InfeasibleGuarantee
        If it does not meet the guarantee: only where floats cannot tell equality from nearly so (a budget of 0).
    """
    return verified(joint, guarantee, partition_weights(joint, subsets))


def verified(joint: Joint, guarantee: Guarantee, weights: WeightArray) -> WeightArray:
    """The same weights, after the exact decision that they meet the guarantee.

    Raises
    ------
    InfeasibleGuarantee
        If they do not, with the level they have.
    """
    if not guarantee.holds_for(joint, weights):
        level = guarantee.level_for(joint, weights).value
        raise InfeasibleGuarantee(f"the merged protocol reaches level {level:.9g}, not {guarantee}", level)
    return weights


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
