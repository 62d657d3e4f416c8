"""From flows to a channel in whole numbers that keeps balance and meets a guarantee, verified exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from funnel.errors import SolverError
from funnel.guarantees.base import ConeGuarantee, Guarantee
from funnel.joint import FloatArray, Joint
from funnel.protocol import DENOMINATOR, WeightArray
from funnel.rounding import integer_weights, marginal_weights, mix, output_masses
from funnel.solver.conditions import drawn_as
from funnel.solver.lattice import exact_rows

#: How far the distribution of the output may be from that of the input, in every value.
IMBALANCE = Fraction(1, 10**12)

# The share of the marginal that is mixed in first where that is not enough, its growth, and halvings at the end.
_FIRST_SHARE, _GROWTH, _HALVINGS = 1e-10, 8.0, 5
# How many times what an entry gives up it has to have.
_UNNOTICED = 4.0


def imbalance(joint: Joint, weights: WeightArray) -> Fraction:
    """The largest ``|Σ_x p_x W(y|x) - p_y|`` over all outputs y of integer weights (a, a), exactly."""
    masses, counts = output_masses(joint, weights)
    worst = max(abs(mass - number * DENOMINATOR) for mass, number in zip(masses, counts, strict=True))
    return Fraction(worst, sum(counts) * DENOMINATOR)


def proven_weights(joint: Joint, guarantee: Guarantee, channel: FloatArray) -> WeightArray:
    """Integer weights (a, a) near a channel T (n, n) between the values that occur, verified exactly.

    Raises
    ------
    SolverError
        If there are none, which is a defect: the constant channel meets every guarantee.
    """
    weights = _whole(joint, integer_weights(channel))
    marginal = marginal_weights(joint, weights)

    def meets(candidate: WeightArray) -> bool:
        return guarantee.holds_for(joint, candidate) and imbalance(joint, candidate) <= IMBALANCE

    if meets(weights):
        return weights
    if guarantee.is_perfect and isinstance(guarantee, ConeGuarantee):
        # Mixing comes closer to equations for ever, and never arrives.
        rows = exact_rows(joint, guarantee, channel)
        if rows is not None and meets(exact := _whole(joint, rows)):
            return exact
    below, share = 0.0, _FIRST_SHARE
    while not meets(found := mix(weights, marginal, share)):
        if share == 1.0:
            raise SolverError(
                f"no invariant channel was found that meets {guarantee}; this is a defect, please report it"
            )
        below, share = share, min(1.0, share * _GROWTH)
    for _ in range(_HALVINGS):
        middle = (below + share) / 2
        if meets(closer := mix(weights, marginal, middle)):
            found, share = closer, middle
        else:
            below = middle
    return found


def in_balance(flows: FloatArray, distribution: FloatArray) -> FloatArray:
    """A channel T (n, n) from flows that keep balance up to a solver's tolerance: in balance exactly.

    What an output receives too much goes to outputs that receive too little, from values that both may come from alike,
    in proportion to their probability: as a constant row would.
    """
    flows = flows / flows.sum(axis=0) * distribution
    excess = flows.sum(axis=1) - distribution
    order = np.argsort(excess)
    low, high = 0, len(distribution) - 1
    while low < high:
        y, o = int(order[low]), int(order[high])
        amount = min(-excess[y], excess[o])
        if amount > 0:
            # Entries that could give their part and not notice.
            giving = flows[o] > _UNNOTICED * amount * distribution / distribution[o]
            part = np.where(giving, distribution, 0.0)
            if not giving.any() or (part * amount > flows[o] * part.sum()).any():
                # Far from balance all give the same share.
                part = flows[o].copy()
            part *= amount / part.sum()
            flows[o] -= part
            flows[y] += part
        excess[y] += amount
        excess[o] -= amount
        if excess[y] >= 0:
            low += 1
        if excess[o] <= 0:
            high -= 1
    return np.asarray(flows / distribution)


def _whole(joint: Joint, weights: WeightArray) -> WeightArray:
    """Weights (n, n) of the values that occur as weights (a, a) over all."""
    seen = np.flatnonzero(joint.p_input > 0)
    source = drawn_as(joint)
    columns = np.column_stack([weights, marginal_weights(joint.occurring, weights)])
    whole = np.zeros((len(source), len(source)), dtype=np.uint64)
    whole[seen] = columns[:, source]
    return whole
