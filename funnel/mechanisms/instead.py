"""What a mechanism that does not apply says to use instead: something that does."""

from __future__ import annotations

from funnel.errors import SpecError
from funnel.guarantees.base import ConeGuarantee, Guarantee, OutputGuarantee
from funnel.guarantees.over_distributions import SetGuarantee
from funnel.guarantees.rldp import RLDP


def has_optimum(guarantee: Guarantee) -> bool:
    """Whether ``optimal`` can be certified under it."""
    return isinstance(guarantee, (ConeGuarantee, SetGuarantee))


def best_for(guarantee: Guarantee) -> str:
    """The mechanism that keeps most under a guarantee, of those that read the input alone."""
    return "optimal" if has_optimum(guarantee) else merging_for(guarantee)


def merging_for(guarantee: Guarantee) -> str:
    """A mechanism that merges values under a guarantee."""
    return "subset-merging" if isinstance(guarantee, OutputGuarantee) else "agglomeration"


def of_the_paper(name: str, guarantee: Guarantee, otherwise: str) -> RLDP:
    """The guarantee of a mechanism that is made for RLDP over the χ² set of its paper.

    Raises
    ------
    SpecError
        If it is another one.
    """
    if not isinstance(guarantee, RLDP):
        raise SpecError(f"{name} is made for rldp; use {otherwise} under {guarantee.name}")
    if guarantee.over_boxes:
        chi2 = RLDP(guarantee.epsilon, guarantee.alpha, "chi2")
        raise SpecError(
            f"{name} is made for rldp over the χ² set of its paper, not over boxes; use {otherwise}, or write {chi2}"
        )
    return guarantee
