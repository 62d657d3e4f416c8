"""What a mechanism that does not apply says to use instead: something that does."""

from __future__ import annotations

from funnel.guarantees.base import ConeGuarantee, Guarantee, OutputGuarantee
from funnel.guarantees.rldp import RLDP


def has_optimum(guarantee: Guarantee) -> bool:
    """Whether ``optimal`` can be certified under it."""
    return isinstance(guarantee, (ConeGuarantee, RLDP))


def best_for(guarantee: Guarantee) -> str:
    """The mechanism that keeps most under a guarantee, of those that read the input alone."""
    return "optimal" if has_optimum(guarantee) else merging_for(guarantee)


def merging_for(guarantee: Guarantee) -> str:
    """A mechanism that merges values under a guarantee."""
    return "subset-merging" if isinstance(guarantee, OutputGuarantee) else "agglomeration"
