"""Part budgets: which observers of records between parts of classes a guarantee bounds, and by how much."""

from __future__ import annotations

import math
from dataclasses import dataclass

from funnel.errors import SpecError
from funnel.guarantees.attribute import Attribute
from funnel.guarantees.base import Guarantee
from funnel.guarantees.lip import LIP, RLIP
from funnel.guarantees.several import parts_of
from funnel.guarantees.srlip import SRLIP


@dataclass(frozen=True)
class Budgets:
    """What is bounded, nats; infinite where nothing is.

    Attributes
    ----------
    alone, knowing : float
        Of observers of no column, and of some.
    labels : float
        Of observers of all columns but a published secret.
    population : float
        Of observers of no column, however common secrets are in the population.
    alpha : float or None
        With which probability that may fail; None where it is not asked for.
    """

    alone: float
    knowing: float
    labels: float
    population: float = math.inf
    alpha: float | None = None


def budgets_of(guarantee: Guarantee) -> Budgets:
    """Of the observers that a guarantee is for. Those of srlip may know nothing.

    Raises
    ------
    SpecError
        If another bound is asked for, or one of 0.
    """
    parts = parts_of(guarantee)
    robust = [part for part in parts if isinstance(part, RLIP)]
    known = all(type(part) in (LIP, RLIP, SRLIP, Attribute) for part in parts)
    if guarantee.is_perfect or not known or len(robust) > 1:
        raise SpecError(
            f"{guarantee} cannot be kept between parts of classes; ask for lip or rlip, srlip or attribute above 0"
        )
    knowing, labels, population = (
        min((part.budget for part in parts if type(part) is kind), default=math.inf)
        for kind in (SRLIP, Attribute, RLIP)
    )
    alpha = robust[0].alpha if robust else None
    return Budgets(min(part.budget for part in parts), knowing, labels, population, alpha)
