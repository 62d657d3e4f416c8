"""The protocol for estimates: an optimal design over the cone of a guarantee, in proven integer weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from funnel.errors import FunnelError, SolverError
from funnel.estimation.estimation_utility import certain, wanted_shares
from funnel.guarantees.base import ConeGuarantee, Guarantee
from funnel.guarantees.over_distributions import SetGuarantee
from funnel.guarantees.rldp import RLDP
from funnel.guarantees.sided import over_set
from funnel.joint import FloatArray, Joint
from funnel.measures.utilities import INFORMATION
from funnel.protocol import WeightArray
from funnel.rounding import LARGEST_REPAIR, proven_weights
from funnel.solver.budget import Budget
from funnel.solver.cuts import PlainCuts, SetProblem
from funnel.solver.design import Design, Trace, optimal_design
from funnel.solver.problem import Problem
from funnel.solver.request import Request, Solution
from funnel.solver.search import chosen_method
from funnel.solver.split import channel_of
from funnel.solver.vertices import enumerate_vertices

# The least gap, as a share of the records, and the share of the budget that the design may take.
_LEAST_GAP, _DESIGNING = 1e-3, 0.9
# So far inside of the bound that rounding to integers does not leave it, relatively.
_INSIDE = 1e-9
# A design is a mixture of about three outputs for each input, whose information is a square matrix: beyond this many
# inputs a round takes minutes.
_LARGEST = 400
# Rounds of cuts over a set of distributions, and what may be mixed in of the marginal where rows still break some of
# them.
_ROUNDS, _REPAIRED = 12, 0.25


@dataclass(frozen=True, eq=False)
class Designed:
    """Weights that meet a guarantee, and what any protocol could be worth.

    Attributes
    ----------
    weights : ndarray of uint64, shape (b, a)
    bound : float
        No protocol that reads X and meets the guarantee is worth more, as a share of the records; 1 where nothing is
        proven.
    finished : bool
    """

    weights: WeightArray
    bound: float
    finished: bool


def design_optimum(request: Request, otherwise: Callable[[Request], Solution]) -> Solution:
    """The best for estimates: a design over the rows of a cone, or else the most informative protocol.

    Parameters
    ----------
    request : Request
    otherwise : callable
        What finds the most informative one.
    """
    joint, budget = request.joint, request.budget
    request = replace(request, gap=max(request.gap, _LEAST_GAP))
    designing = budget.part(_DESIGNING)

    def trace(worth: float, bound: float) -> None:
        if request.progress is not None:
            request.progress(f"worth {worth:.4f} of the records, at most {bound:.4f}", 0, None)

    found = None if request.reads_secret else best_design(joint, request.guarantee, request.gap, designing, trace)
    if found is not None:
        protocol, bound, finished = request.protocol(found.weights), found.bound, found.finished
    else:
        informative = otherwise(replace(request, method="auto", progress=None, utility=INFORMATION))
        protocol, bound, finished = informative.protocol, 1.0, informative.finished
    ended = None if finished else budget.ended_by or designing.ended_by
    size = len(protocol.outputs)
    return request.answer(protocol, request.utility_of(protocol), bound, size, "design", finished, ended)


def best_design(
    joint: Joint, guarantee: Guarantee, gap: float, budget: Budget, trace: Callable[[float, float], None]
) -> Designed | None:
    """The protocol that reads X whose records are worth most for estimates.

    That worth is `funnel.estimation.estimation_utility.utility_of_estimates`.

    Parameters
    ----------
    joint : Joint
    guarantee : Guarantee
    gap : float
        Requested, as a share of the records.
    budget : Budget
    trace : callable
        Told the worth and its bound after each round.

    Returns
    -------
    Designed or None
        None where the guarantee is no cone and over no set of distributions, or asks for equalities, or there are too
        many inputs, or the budget ends before there is any: then there is no better way than to compare what was made
        for information.
    """
    distribution = joint.p_input[joint.p_input > 0]
    over = None if isinstance(guarantee, RLDP) else over_set(guarantee, joint)
    cone = over is None and isinstance(guarantee, ConeGuarantee) and not isinstance(guarantee, RLDP)
    if not 1 < len(distribution) <= _LARGEST or not (cone or over is not None) or guarantee.is_perfect:
        return None
    wanted, known = wanted_shares(joint.inputs, joint.p_input), certain(joint.inputs, joint.p_input)

    def utility_of(value: float | None) -> float:
        return 1.0 if value is None or value <= 1 else (1 - known) / (value - known)

    def report(value: float, bound: float | None) -> None:
        trace(utility_of(value), utility_of(bound))

    try:
        if over is not None:
            found = _over_set(joint, over, wanted, gap, budget, report)
        else:
            found = _over_cone(joint, guarantee, wanted, gap, budget, report)
        channel = channel_of(found.posteriors, found.mass, distribution, joint.p_input > 0)
        weights = proven_weights(joint, guarantee, channel, LARGEST_REPAIR if cone else _REPAIRED)
    except (FunnelError, np.linalg.LinAlgError):
        # A region without room on all sides of p, or as good as none.
        return None
    return Designed(weights, utility_of(found.bound), found.finished)


def _over_cone(
    joint: Joint, guarantee: Guarantee, wanted: FloatArray, gap: float, budget: Budget, trace: Trace
) -> Design:
    if not isinstance(guarantee, ConeGuarantee):
        raise SolverError("a design needs a cone")
    region = Problem.of(joint, guarantee.tightened(_INSIDE), False, presolve=False).region
    return optimal_design(region, wanted, gap, budget, _vertices(joint, guarantee, budget), trace)


def _over_set(
    joint: Joint, guarantee: SetGuarantee, wanted: FloatArray, gap: float, budget: Budget, trace: Trace
) -> Design:
    """A design over half-spaces, more of which are added as its rows break the guarantee; nothing is proven of it."""
    cuts = PlainCuts(SetProblem.of(joint, guarantee))
    for left in range(_ROUNDS, 0, -1):
        found = optimal_design(cuts.region, wanted, gap, budget.part(1 / left), None, trace)
        if budget.expired or not cuts.add(found.posteriors * found.mass[:, np.newaxis] / cuts.problem.distribution):
            break
    return found


def _vertices(joint: Joint, guarantee: ConeGuarantee, budget: Budget) -> FloatArray | None:
    """All vertices of the cone as it is, where they are few enough to be listed."""
    problem = Problem.of(joint, guarantee, False, presolve=False)
    if chosen_method("auto", problem.merged.joint, guarantee, problem.region, budget) != "vertices":
        return None
    try:
        return enumerate_vertices(problem.merged.joint, guarantee, budget, problem.rows)
    except FunnelError:
        return None
