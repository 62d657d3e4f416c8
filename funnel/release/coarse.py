"""A protocol on a coarse grid: weights of few bits tell less of the counts they were computed from.

Weights that are multiples of 2^(63-k) are integers that sum to 2^63 like any others, so the guarantee is decided on
them exactly as before, and nothing is drawn or proven otherwise.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from funnel.errors import FunnelError
from funnel.guarantees import Guarantee
from funnel.guarantees.base import ConeGuarantee
from funnel.joint import FloatArray, Joint
from funnel.measures import mutual_information
from funnel.measures.utilities import INFORMATION, Utility
from funnel.naming import name_outputs
from funnel.protocol import DENOMINATOR, WORD_BITS, Protocol, WeightArray
from funnel.release.inside import COARSEST_BITS, far_inside, is_near, moved_inside, on_grid, weights_of_steps
from funnel.release.public.rounding import public_shares, share_step

# The grids that are tried, coarsest first.
BITS = (COARSEST_BITS, 10, 12, 14, 16, 18, 20, 24, 28)
# What a grid may cost, as a share of I(X;Y).
LARGEST_COST = 1e-3
# By how much less of I(X;Y) may be said to be kept than is, as a share of it, for a grid that tells less of people.
LARGEST_UNDERSTATEMENT = 1e-2
# How far a weight may move, in steps of the grid.
_REACH = 2
# Relative to the largest coefficient of a condition: above the tolerance of the integer programme.
_MARGIN = 1e-7
# Of mutual information in floats, nats.
_NOISE = 1e-12
# Parts of a step from which weights are rounded up.
_PARTS, _HALF = 16, 8
# A share of 2^-10 is less than the largest cost.
_MIXED = np.uint64(10)
# Branches of the integer programme, and its largest size in coefficients: counted, so that the same protocol comes
# out on every machine.
_NODES = 200
_LARGEST = 500_000


def coarsened(joint: Joint, guarantee: Guarantee, protocol: Protocol, utility: Utility = INFORMATION) -> Protocol:
    """The protocol on the coarsest grid on which the guarantee holds exactly and utility falls by at most 0.1 %.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a).
    guarantee : Guarantee
    protocol : Protocol
        Meets the guarantee.
    utility : Utility
        What may fall by so little.

    Returns
    -------
    Protocol
        With weights and marginal that are multiples of 2^(63-k). The marginal is that of the *public* shares of the
        inputs, so it tells nothing that the weights and they do not. Zero weights stay zero. The protocol itself where
        no grid does: perfect privacy is a lattice of its own, which another grid does not meet. A wide table is made
        from exact counts, which an observer who knows everybody else has, and its weights are as exact as they. So are
        those of an invariant protocol, whose balance no grid keeps: they give the distribution that it is balanced for.

    Notes
    -----
    On each grid an integer programme looks for weights within two steps of those there are, inside the cone of the
    guarantee, that lose least by the tangent of I(X;Y). Where the guarantee is no cone, or the programme would be too
    large, weights that are not zero are mixed with the marginal and rounded, which takes finer grids. Either way the
    guarantee is decided on the integers, in exact arithmetic.

    A column of the coarse marginal r is drawn from by records outside the alphabet. Whatever r is, the output of such a
    record is independent of its secret. That its presence does not change what the *others'* outputs say is exact for
    r = q, and for r = q(1 + η) true up to 2η times the share of such records, in nats (decision 0026); a release has
    none.
    """
    if guarantee.is_perfect or protocol.is_sparse or protocol.is_invariant:
        return protocol
    read = joint.read_by(protocol.inputs.columns)
    if read.inputs != protocol.inputs:
        return protocol
    least = (1 - LARGEST_COST) * utility.told(joint, protocol)
    shares = public_shares(read.p_input, share_step(read.n))
    shares, seen = shares / shares.sum(), read.p_input > 0
    for bits in BITS:
        for weights in (_programmed(read, guarantee, protocol.matrix, bits), _mixed(read, protocol.matrix, bits)):
            if weights is None:
                continue
            known = weights / np.float64(DENOMINATOR)
            marginal = on_grid((known[:, seen] @ shares[seen])[:, np.newaxis], bits)[:, 0]
            weights[:, ~seen] = marginal[:, np.newaxis]
            coarse = replace(protocol, weights=weights, marginal=marginal)
            if utility.told(joint, coarse) >= least and guarantee.holds_for(read, weights):
                return _named_alike(protocol, coarse)
    return protocol


def _named_alike(protocol: Protocol, coarse: Protocol) -> Protocol:
    """The coarse one with outputs named by its own weights, where those of the other were named by theirs."""
    columns = protocol.outputs.columns
    if protocol.outputs != name_outputs(protocol.weights, protocol.inputs, columns):
        return coarse
    return replace(coarse, outputs=name_outputs(coarse.weights, coarse.inputs, columns))


def rounded_channel(joint: Joint, guarantee: Guarantee, channel: Protocol) -> Protocol:
    """An effective channel as it is published: rounded to a grid no finer than public shares, where that keeps it true.

    Its exact weights are shares of people with each history, which single people can be read from. Unlike a protocol
    that is about to be drawn from (`coarsened`) it is nobody's choice any more: all weights but the largest of a column
    are rounded, and that one has what is left. It is never told to keep more than it does; where weights rounded to the
    nearest would, they are rounded up, which mixes. What is possible stays possible, and zero weights stay zero. An
    output at the bound is within it or not by the way its weights happen to be rounded, so where all of these ways
    fail the channel is moved inside (`funnel.release.inside`), where every rounding keeps the bound: to the nearest
    channel of the same support, on the first grid on which it is as near as a rounding would be, or, where no such
    support is deep enough, towards a constant one, which always ends. `funnel.recount.rounded` holds what is published
    to this.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a).
    guarantee : Guarantee
    channel : Protocol
        Meets the guarantee, and reads the inputs of ``joint``.

    Returns
    -------
    Protocol
        On the first of ever finer grids on which the guarantee holds exactly and I(X;Y) is not more than it is, and
        less by 1 % at most, or by a step of public shares; where the guarantee leaves no room for rounding,
        mixed with a thousandth of the distribution of its output before, or moved inside. The channel itself where
        there is none, as under perfect privacy.

    Notes
    -----
    O(a b) and three decisions of the guarantee for each of some 10 grids; where they all say no, a linear programme for
    each of some 20, the coarsest first.
    """
    utility = mutual_information(joint, channel)
    slack = max(LARGEST_UNDERSTATEMENT * utility, share_step(joint.n) * joint.entropy)
    shares = public_shares(joint.p_input, share_step(joint.n))
    shares = shares / shares.sum()
    first = max(BITS[0], math.ceil(-math.log2(share_step(joint.n))))
    exact, mixed = channel.weights, _slightly_mixed(joint, channel)

    def published(weights: WeightArray | None, bits: int) -> Protocol | None:
        """With its marginal, if the bound holds and as much is told as may be."""
        if weights is None or not guarantee.holds_for(joint, weights):
            return None
        distribution = weights / np.float64(DENOMINATOR) @ shares
        rounded = replace(channel, weights=weights, marginal=on_grid(distribution[:, np.newaxis], bits)[:, 0])
        fits = utility - slack <= mutual_information(joint, rounded) <= utility + _NOISE
        return rounded if fits else None

    for bits in range(first, BITS[-1] + 1, 2):
        for one, part in ((exact, _HALF), (exact, _PARTS), (mixed, _PARTS)):
            if (found := published(_rounded(one, bits, part), bits)) is not None:
                return found
    if guarantee.is_perfect or not isinstance(guarantee, ConeGuarantee):
        return channel
    for bits in range(first, BITS[-1] + 1):
        found = published(moved_inside(joint, guarantee, exact, bits), bits)
        if found is not None and is_near(found.weights, exact):
            return found
    for doublings in range(BITS[-1]):
        far = far_inside(joint, guarantee, exact, BITS[-1], 2**doublings)
        if (found := published(far, BITS[-1])) is not None:
            return found
        if far is None:
            break
    return channel


def _rounded(exact: WeightArray, bits: int, part: int) -> WeightArray | None:
    """Weights on a grid, one step at least; the first largest of a column has what is left, None if that is nothing.

    What a weight has beyond whole steps is one more where it is more than ``1 - part / 16`` of a step: 16 rounds up,
    and 8 to the nearest.
    """
    columns, largest = np.arange(exact.shape[1]), exact.argmax(axis=0)
    unit = np.uint64(2 ** (WORD_BITS - bits))
    steps = (exact + min(unit // np.uint64(_PARTS) * np.uint64(part), unit - np.uint64(1))) // unit
    steps = np.maximum(steps, (exact > 0).astype(np.uint64))
    others = steps.sum(axis=0) - steps[largest, columns]
    if (others >= 2**bits).any():
        return None
    steps[largest, columns] = np.uint64(2**bits) - others
    return np.asarray(steps * unit)


def _slightly_mixed(joint: Joint, channel: Protocol) -> WeightArray:
    """Weights with a share 2^-10 of the output distribution where they are not zero; sums of columns are near 2^63."""
    n = joint.counts.sum(axis=0).astype(object)
    distribution = ((channel.weights.astype(object) * n).sum(axis=1) // int(joint.n)).astype(np.uint64)
    mixed = channel.weights - (channel.weights >> _MIXED) + (distribution >> _MIXED)[:, np.newaxis]
    return np.where(channel.weights > 0, mixed, np.uint64(0))


def _mixed(read: Joint, matrix: FloatArray, bits: int) -> WeightArray | None:
    """Weights mixed with so much of the marginal that a step of the grid hardly matters; None where that is much.

    What is impossible stays so: names of outputs rest on it.
    """
    marginal = matrix @ read.p_input
    rarest = float(marginal[marginal > 0].min())
    share = min(1.0, 2.0 ** (4 - bits) / rarest)
    if share > LARGEST_COST:
        return None
    mixed = np.where(matrix > 0, (1 - share) * matrix + share * marginal[:, np.newaxis], 0.0)
    return on_grid(mixed / mixed.sum(axis=0), bits)


def _programmed(read: Joint, guarantee: Guarantee, matrix: FloatArray, bits: int) -> WeightArray | None:
    """Weights on a grid inside the cone of a guarantee; None if there are none so near, or it is no cone."""
    if not isinstance(guarantee, ConeGuarantee):
        return None
    try:
        cone = guarantee.cone(read)
    except FunnelError:
        cone = np.empty((0, 0))
    b, a = matrix.shape
    if not cone.size or b * cone.size > _LARGEST:
        return None
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import block_diag, csr_array, hstack, identity

    whole = 2.0**bits
    possible = matrix > 0
    lower = np.where(possible, np.maximum(0.0, np.floor(matrix * whole) - _REACH), 0.0)
    upper = np.where(possible, np.minimum(whole, np.ceil(matrix * whole) + _REACH), 0.0)
    marginal = matrix @ read.p_input
    common = np.broadcast_to(marginal[:, np.newaxis], matrix.shape)
    ratio = np.divide(matrix, common, out=np.ones_like(matrix), where=possible & (common > 0))
    gain = read.p_input * np.log(ratio)
    scaled = cone / np.maximum(np.abs(cone).max(axis=1, keepdims=True), np.finfo(float).tiny)
    inside = LinearConstraint(block_diag([csr_array(scaled)] * b, format="csr"), -np.inf, -_MARGIN)
    sums = LinearConstraint(hstack([identity(a)] * b, format="csr"), whole, whole)
    found = milp(
        -gain.ravel(),
        integrality=np.ones(a * b),
        bounds=Bounds(lower.ravel(), upper.ravel()),
        constraints=[inside, sums],
        options={"node_limit": _NODES, "mip_rel_gap": 1e-4},
    )
    if found.x is None:
        return None
    steps = np.round(found.x).reshape(b, a)
    return weights_of_steps(steps, bits) if (steps.sum(axis=0) == whole).all() and (steps >= 0).all() else None
