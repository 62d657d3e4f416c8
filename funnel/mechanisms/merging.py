"""What watchdog and merging share: the guarantees they are for, and the exact decision at the end."""

from __future__ import annotations

from funnel.errors import InfeasibleGuarantee, SpecError
from funnel.guarantees.base import Guarantee, OutputGuarantee
from funnel.joint import Joint
from funnel.mechanisms.instead import merging_for
from funnel.protocol import WeightArray
from funnel.solver.budget import Budget
from funnel.solver.greedy import Subsets, partition_weights
from funnel.solver.merging import SymbolRisks


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
