"""The optimum under a guarantee over a set of distributions: boxes, the χ² set, or every table that noise allows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.known_inputs import limited
from funnel.guarantees.over_distributions import SetGuarantee
from funnel.guarantees.rldp import RLDP
from funnel.guarantees.sided import over_set
from funnel.joint import FloatArray, Joint
from funnel.protocol import WeightArray
from funnel.solver.cuts import Flags, SetProblem
from funnel.solver.cutting import bound_over_distributions, optimum_over_distributions
from funnel.solver.floors import Best, propose_columns, set_aside
from funnel.solver.goal import goal_of
from funnel.solver.greedy import greedy_weights
from funnel.solver.over_cone import BLIND
from funnel.solver.request import Request, Solution, rounding_of
from funnel.solver.robust import robust_weights

# Inputs that noise may have made up are not told apart if they are more than so many, and of all records at most such
# a share.
_FEW_MADE_UP, _MADE_UP = 8, 0.05
# Of what is set aside for merging, the greedy way; columns as they are have the rest.
_GREEDY = 0.8
# Of a budget, what finding a protocol may take that gives some inputs the marginal, the rest being for a bound on all;
# and the gap, as a share of the requested one, of that bound.
_FINDING, _PROVING = 0.6, 0.5


def set_optimum(request: Request) -> Solution:
    """The best protocol that holds for every distribution of a set, by cutting planes or a search by levels.

    Raises
    ------
    SpecError
        If the guarantee is over no set of distributions.
    SolverError
        If a linear programme fails.
    """
    joint, read, guarantee = request.joint, request.read, request.guarantee
    gap, budget = request.gap, request.budget
    entropy = request.most

    seen = None if request.reads_secret or not request.informs else _expected(joint)
    # Of the information: what the protocol leaves to the other inputs is in the bound alone.
    share, kept = (1.0, entropy) if seen is None else (float(joint.p_input[seen].sum()), _entropy_of(joint, seen))
    # What Σ P(y) g(v_y) lies below the utility: of entropies all there is, of squared means nothing.
    apart = kept if request.informs else 0.0

    def most_with(bound: float) -> float:
        # What the inputs that are not told apart could add, to X at most: who has one, and which.
        return share * min(kept, apart + bound) + (0.0 if seen is None else entropy - share * kept)

    def trace(value: float, bound: float) -> None:
        request.report(share * (apart + value), most_with(bound))

    floor = set_aside(budget, len(joint.inputs))
    over = over_set(guarantee, read)
    told_apart = read.p_input > 0 if seen is None else seen
    blind: WeightArray | None = None
    finding = budget
    if over is not None:
        if request.reads_secret:
            # Protocols that read X alone are among those that read the secret too, and found sooner.
            without = replace(request, budget=budget.part(BLIND), progress=None, reads_secret=False, counts="inputs")
            # Combinations that never occurred may occur under some distribution: they too get what their input gets.
            lifted = np.tile(set_optimum(without).protocol.weights, len(read.secret))
            blind = lifted if over.holds_for(read, lifted) else None
        problem = _problem(request, over, told_apart)
        asked = limited(over, read, told_apart)
        if asked is over:
            found = optimum_over_distributions(problem, gap / share, budget, trace, blind)
        else:
            # The best of those protocols that give the other inputs the marginal; then what no protocol exceeds.
            finding = budget.part(_FINDING)
            found = optimum_over_distributions(
                problem, gap / share, finding, lambda value, _: trace(value, np.inf), blind
            )
            most, finished = np.inf, found.finished
            if asked is not None:
                most, proven = bound_over_distributions(
                    replace(problem, guarantee=asked), _PROVING * gap / share, budget, found.weights
                )
                finished = finished and proven
            found = replace(found, bound=most, finished=finished)
    elif isinstance(guarantee, RLDP):
        found = robust_weights(_problem(request, guarantee, told_apart), gap, budget, trace)
    else:
        raise SpecError(f"{guarantee.title} is no guarantee over a set of distributions")
    best = Best(request, found.weights)
    if blind is not None:
        best.propose(blind)
    bound = most_with(found.bound)
    if bound - best.utility > gap:
        best.propose(greedy_weights(joint, read, guarantee, floor.part(_GREEDY)))
        propose_columns(request, best, floor)
    ended = None if found.finished else budget.ended_by or finding.ended_by
    if found.finished and found.fell_short:
        ended = "work"
    bound += rounding_of(len(read.p_input), entropy)
    return request.answer(best.protocol, best.utility, bound, found.cuts, "cutting planes", found.finished, ended)


def _problem(request: Request, guarantee: SetGuarantee, told_apart: Flags) -> SetProblem:
    """What is maximised: of a channel that reads the secret, what it tells of X, unless the utility counts all."""
    joint, places = request.joint, np.flatnonzero(told_apart)
    distribution, inputs = request.read.p_input[places], places % joint.counts.shape[1]
    image: FloatArray | None = None
    if request.reads_secret and not request.counts_all and request.informs:
        seen = np.flatnonzero(joint.counts.any(axis=0))
        image = np.asarray(seen[:, None] == inputs, dtype=np.float64)
    goal = goal_of(request.utility, joint, inputs, distribution / distribution.sum())
    return SetProblem(request.read, guarantee, told_apart, image, goal)


def _expected(joint: Joint) -> Flags | None:
    """The inputs, shape (a,), that some people have whatever the noise was; None where all are told apart.

    Noise makes people up: of combinations that nobody has, about half seem to have some. To tell them apart helps
    nobody, and a search over hundreds of them does not end. Where they are few, or more than a few of all records,
    they are told apart nevertheless. The bound holds for protocols that tell them apart too.
    """
    if joint.bounds is None:
        return None
    seen = np.asarray(joint.bounds.lower.any(axis=0) & joint.counts.any(axis=0))
    made_up = int(joint.counts[:, ~seen].sum())
    others = int((joint.counts.any(axis=0) & ~seen).sum())
    return seen if others > _FEW_MADE_UP and made_up <= _MADE_UP * joint.n and seen.any() else None


def _entropy_of(joint: Joint, seen: Flags) -> float:
    """H(X) given that X is one of these, nats."""
    distribution = joint.p_input[seen] / joint.p_input[seen].sum()
    return float(-(distribution * np.log(distribution)).sum())
