"""The protocol of highest utility under a guarantee, with an upper bound on what any protocol could reach."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from funnel.errors import SolverError, SpecError
from funnel.guarantees.base import Guarantee
from funnel.joint import FloatArray, Joint
from funnel.measures import mutual_information
from funnel.naming import name_outputs
from funnel.protocol import Protocol, WeightArray
from funnel.rounding import LARGEST_REPAIR, marginal_weights, mix, proven_weights, rounded_weights
from funnel.solver.master import Split, best_split
from funnel.solver.polish import polish
from funnel.solver.presolve import MergedInputs, merge_equal_posteriors, split_rows
from funnel.solver.vertices import enumerate_vertices

METHODS = ("auto", "vertices")
# How far inside the cone the polished vertices sit: far above rounding (1e-15), far below any gap that matters.
_MARGINS = (1e-11, 1e-9, 1e-7)
# What the bound is raised by: vertices are known to about 1e-11, and v ln v is steep near zero.
_SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Solution:
    """An optimised protocol with its certificate; utility <= optimum <= bound.

    Attributes
    ----------
    protocol : Protocol
        Verified integer weights.
    utility : float
        I(X;Y) of that protocol, in nats.
    bound : float
        Upper bound on I(X;Y) of every protocol that meets the guarantee, in nats.
    status : str
        ``"optimal"`` if ``gap`` is at most the requested one, else ``"gap above request"``.
    seconds : float
        Time taken.
    vertices : int
        Number of vertices enumerated.
    """

    protocol: Protocol
    utility: float
    bound: float
    status: str
    seconds: float
    vertices: int

    @property
    def gap(self) -> float:
        """bound - utility, in nats."""
        return self.bound - self.utility


def optimal(
    joint: Joint, guarantee: Guarantee, gap: float = 1e-6, time_limit: float | None = None, method: str = "auto"
) -> Solution:
    """Maximise I(X;Y) over all protocols that read X and meet the guarantee (PF problem 2, theorem 3; METHOD 3).

    Works in dimension a-1 for every guarantee that is a cone on posteriors, LDP included: its optimum needs no more
    than LIP's, instead of the a(a-1) dimensions of PF theorem 2.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a).
    guarantee : Guarantee
    gap : float
        Requested ``bound - utility``, in nats.
    time_limit : float, optional
        Seconds allowed for the vertex enumeration.
    method : str
        ``"auto"`` or ``"vertices"``.

    Returns
    -------
    Solution
        Its protocol has at most a outputs and meets the guarantee exactly, on its integer weights.

    Raises
    ------
    SpecError
        If the method is unknown or the gap or time limit is not positive.
    SolverError
        If enumeration fails or does not finish in time.

    Notes
    -----
    Exponential in min(a, c) in the worst case (vertex enumeration); O(a²) vertices for two secrets.
    """
    started = time.perf_counter()
    if method not in METHODS:
        raise SpecError(f"unknown method {method!r} for the optimum; choose one of {', '.join(METHODS)}")
    if not gap > 0 or (time_limit is not None and not time_limit > 0):
        raise SpecError("gap (nats) and time limit (seconds) of the optimum must be positive")
    merged = merge_equal_posteriors(joint)
    unchanged = _unchanged(joint, guarantee)
    if unchanged is not None:
        protocol = _protocol(joint, guarantee, unchanged)
        utility = mutual_information(joint, protocol)
        if joint.entropy - utility <= gap:
            bound = max(joint.entropy, utility)
            return Solution(protocol, utility, bound, "optimal", time.perf_counter() - started, len(merged.members))
    vertices = enumerate_vertices(merged.joint, guarantee, time_limit)
    split = best_split(vertices, merged.joint.p_input)
    protocol = _protocol(joint, guarantee, _weights(joint, guarantee, merged, split))
    utility = mutual_information(joint, protocol)
    # I(X;Y) = H(X) - Σ P(y) H(v_y), and splitting merged inputs again leaves every H(v_y) as it is.
    bound = max(utility, min(joint.entropy, joint.entropy + split.bound + _SLACK))
    status = "optimal" if bound - utility <= gap else "gap above request"
    return Solution(protocol, utility, bound, status, time.perf_counter() - started, len(vertices))


def _unchanged(joint: Joint, guarantee: Guarantee) -> WeightArray | None:
    """Weights that publish X as it is, where that meets the guarantee or misses it by a hair; else None.

    For a large ε the hair is all that is lost, while vertices lie too close together for floating point.
    """
    seen = joint.p_input > 0
    identity = np.eye(len(seen))[seen]
    identity[:, ~seen] = joint.p_input[seen, None]
    weights = rounded_weights(joint, identity)
    if guarantee.holds_for(joint, weights):
        return weights
    if not guarantee.holds_for(joint, mix(weights, marginal_weights(joint, weights), LARGEST_REPAIR)):
        return None
    return proven_weights(joint, guarantee, identity)


def _weights(joint: Joint, guarantee: Guarantee, merged: MergedInputs, split: Split) -> WeightArray:
    law = merged.joint.p_input
    rows = guarantee.cone(merged.joint) / law
    for margin in _MARGINS if guarantee.epsilon > 0 else ():
        polished = polish(split, law, rows, guarantee.tightened(margin).cone(merged.joint) / law)
        if polished is not None:
            weights = rounded_weights(joint, _matrix(joint, merged, polished))
            if guarantee.holds_for(joint, weights):
                return weights
    # Some protocol meets every guarantee, so what the repair costs is shown as a gap instead of refusing.
    return proven_weights(joint, guarantee, _matrix(joint, merged, split), largest_repair=1.0)


def _protocol(joint: Joint, guarantee: Guarantee, weights: WeightArray) -> Protocol:
    # Outputs in the order of the inputs they stand for: reports and successive releases read alike.
    order = np.lexsort((-weights.max(axis=1).astype(np.float64), weights.argmax(axis=1)))
    weights = weights[order]
    return Protocol(
        weights,
        marginal_weights(joint, weights),
        joint.inputs,
        name_outputs(weights, joint.inputs, joint.inputs.columns),
        "optimal",
        str(guarantee),
    )


def _matrix(joint: Joint, merged: MergedInputs, split: Split) -> FloatArray:
    """The channel (b, a) of a split over merged inputs, with at most a outputs."""
    posteriors, mass = split_rows(merged, split.posteriors, split.mass)
    seen = joint.p_input > 0
    if len(mass) > seen.sum():
        basic = best_split(posteriors[:, seen], joint.p_input[seen])
        posteriors = np.zeros((len(basic.mass), len(seen)))
        posteriors[:, seen], mass = basic.posteriors, basic.mass
    matrix = np.zeros_like(posteriors)
    np.divide(posteriors * mass[:, None], joint.p_input, out=matrix, where=seen)
    # Inputs that never occur get the marginal; the rounding makes that exact.
    matrix[:, ~seen] = (mass / mass.sum())[:, None]
    sums = matrix.sum(axis=0)
    if np.abs(sums - 1).max() > 1e-6:
        raise SolverError("the optimiser's split of the input law does not add up; change epsilon slightly")
    return np.asarray(matrix / sums)
