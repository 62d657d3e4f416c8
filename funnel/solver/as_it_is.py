"""As it is: whether X may be published as it is, before anything is searched for."""

from __future__ import annotations

import numpy as np

from funnel.guarantees.base import ConeGuarantee, Guarantee
from funnel.joint import Joint
from funnel.protocol import WeightArray
from funnel.rounding import LARGEST_REPAIR, marginal_weights, mix, proven_weights, rounded_weights
from funnel.solver.budget import UNITS_A_SECOND, Budget
from funnel.solver.request import Request, Solution, rounding_of
from funnel.solver.work import decided_work

# What rounding takes off a condition at most, in posterior coordinates.
_HAIR = 1e-9


def unchanged_optimum(request: Request) -> Solution | None:
    """X as it is, where that meets the guarantee and is as useful as was asked for; else None.

    It is no optimum where a protocol that reads the secret is to tell it too.
    """
    if request.counts_all:
        return None
    weights = unchanged_weights(request.joint, request.guarantee, request.budget)
    if weights is None:
        return None
    protocol = request.protocol(weights, request.joint)
    utility = request.utility_of(protocol)
    # Shares of a variance, or of records, are 1 whatever rounding does; entropies are sums.
    bound = request.most + (rounding_of(len(request.joint.inputs), request.most) if request.informs else 0.0)
    if bound - utility > request.gap:
        return None
    return request.answer(protocol, utility, bound, len(weights), "identity")


def unchanged_weights(joint: Joint, guarantee: Guarantee, budget: Budget) -> WeightArray | None:
    """Weights that publish X as it is, where that meets the guarantee or misses it by a hair; else None.

    None as well where to decide it would take longer than a second and more than the budget.

    For a large ε the hair is all that is lost, while vertices lie too close together for floating point.
    """
    if isinstance(guarantee, ConeGuarantee) and _far_outside(joint, guarantee):
        return None
    if (work := decided_work(joint, guarantee, len(joint.inputs))) > UNITS_A_SECOND:
        if not budget.allows(work):
            return None
        budget.spend(work)
    seen = joint.p_input > 0
    identity = np.eye(len(seen))[seen]
    identity[:, ~seen] = joint.p_input[seen, None]
    weights = rounded_weights(joint, identity)
    if guarantee.holds_for(joint, weights):
        return weights
    hair = mix(weights, marginal_weights(joint, weights), LARGEST_REPAIR)
    if not isinstance(guarantee, ConeGuarantee) or not guarantee.holds_for(joint, hair):
        return None
    return proven_weights(joint, guarantee, identity)


def _far_outside(joint: Joint, guarantee: ConeGuarantee) -> bool:
    """Whether some input breaks the guarantee even after the largest repair, by more than rounding: O(m a) floats."""
    cone, distribution = guarantee.cone(joint), joint.p_input
    seen = distribution > 0
    # In posterior coordinates the terms of conditions are of order one.
    repaired = (1 - LARGEST_REPAIR) * cone[:, seen] / distribution[seen] + LARGEST_REPAIR * cone.sum(
        axis=1, keepdims=True
    )
    return bool((repaired > _HAIR).any())
