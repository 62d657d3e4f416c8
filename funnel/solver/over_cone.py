"""The optimum under a guarantee that is a cone: a search for a mixture of posteriors, in proven integer weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from funnel.errors import SolverError, SpecError
from funnel.guarantees.base import ConeGuarantee, PosteriorGuarantee
from funnel.guarantees.perfect import PerfectPrivacy
from funnel.guarantees.published import check_every_pair
from funnel.joint import FloatArray
from funnel.solver.budget import Budget, Ended
from funnel.solver.floors import Best, greedy_start, propose_known, propose_merged, set_aside
from funnel.solver.goal import ENTROPY
from funnel.solver.integers import integers_near
from funnel.solver.problem import Problem
from funnel.solver.request import Request, Solution, rounding_of
from funnel.solver.search import best_mixture, chosen_method
from funnel.solver.split import Split, best_split
from funnel.solver.vertices import enumerate_vertices
from funnel.solver.work import decision_work

# The share of the requested gap left to moving inside and integer weights.
_ROUNDING_SHARE = 0.05
# Shares of a budget: set aside for integer weights, on a lattice or not; for the search, the rest being for perfect
# privacy.
_FINISHING, _LATTICE, _SEARCHING = 0.05, 0.5, 0.95
# The same, before a search over protocols that read the secret, for the optimum without.
BLIND = 0.3
# Of the utility, what an optimum may lack of merging and of columns as they are.
_UNNOTICED = 1e-6


def cone_optimum(request: Request, floor: Budget | None = None) -> Solution:
    """The best of what a search finds and of what is known without one.

    Parameters
    ----------
    request : Request
        For a `ConeGuarantee`.
    floor : Budget, optional
        What merging may take; by default it is set aside here.

    Raises
    ------
    SpecError
        If the guarantee is no cone.
    SolverError
        If vertices that were asked for cannot be enumerated, or a linear programme fails.
    """
    joint, guarantee, budget = request.joint, request.guarantee, request.budget
    if not isinstance(guarantee, ConeGuarantee):
        raise SpecError(
            f"{guarantee.title} is no polyhedral cone, so no optimum can be certified; use grr or another explicit "
            "mechanism"
        )
    check_every_pair(guarantee, request.read)
    reads, counts_all = request.reads_secret, request.counts_all
    problem = Problem.of(joint, guarantee, reads, utility=request.utility, counts_all=counts_all)
    # Σ P(y) g(v_y) of a protocol, and of the best one at most, lie this much below its utility.
    goal, most = problem.region.goal, request.most
    apart = most if goal is ENTROPY else -float(problem.region.gains(problem.distribution))
    best, finishing = Best(request), budget.reserve(_LATTICE if guarantee.is_perfect else _FINISHING)
    if floor is None:
        floor = set_aside(budget, len(joint.inputs))
    split: Split | None = None
    ended: Ended | None = None
    finished = True
    chosen = "columns"
    if not request.reads_secret:
        chosen = chosen_method(request.method, problem.merged.joint, guarantee, problem.region, budget)
    if chosen == "vertices":
        try:
            split, size = _over_vertices(problem, budget)
            slack = goal.slack
        except SolverError:
            # Double description in floats fails on thin regions; what was not asked for by name need not be used.
            if request.method != "auto":
                raise
            chosen = "columns"
    if split is None:
        if request.reads_secret:
            starts = _starts_with_secret(request, problem, best, floor)
        else:
            starts = greedy_start(request, problem, best, floor)
        starts += propose_known(request, problem, best)
        searching, asked = budget.part(_SEARCHING), (1 - _ROUNDING_SHARE) * request.gap
        mixture = best_mixture(
            problem,
            starts,
            asked,
            searching,
            lambda value, bound: request.report(apart + value, min(most, apart + bound)),
        )
        split, size, slack = mixture.split, mixture.columns, 0.0
        finished = mixture.finished
        ended = None if finished else searching.ended_by
    # I(X;Y) = H(X) - Σ P(y) H(v_y), and splitting merged inputs again leaves every H(v_y) as it is.
    bound = min(most, apart + split.bound + slack) + rounding_of(len(problem.read.p_input), most)
    for weights in integers_near(problem, split, finishing):
        best.propose(weights)
    if bound - best.utility > min(request.gap, _UNNOTICED) and not request.reads_secret:
        propose_merged(request, problem, best, floor)
    if bound - best.utility > request.gap and not budget.expired:
        _propose_perfect(request, problem, best, finishing if guarantee.is_perfect else budget)
    if finished and finishing.fell_short:
        ended = "work"
    return request.answer(best.protocol, best.utility, bound, size, chosen, finished, ended)


def _over_vertices(problem: Problem, budget: Budget) -> tuple[Split, int]:
    vertices = enumerate_vertices(problem.merged.joint, problem.guarantee, budget, problem.rows)
    return best_split(vertices, problem.distribution, budget, problem.region.goal), len(vertices)


def _starts_with_secret(request: Request, problem: Problem, best: Best, floor: Budget) -> list[FloatArray]:
    """Columns for a search over protocols that read the secret; proposes the best one that does not."""
    budget = request.budget
    without = replace(
        request, budget=budget.part(BLIND), method="auto", progress=None, reads_secret=False, counts="inputs"
    )
    lifted = problem.lifted(cone_optimum(without, floor).protocol.weights)
    budget.spend(decision_work(problem.read, problem.guarantee, len(lifted)))
    best.propose_proven(lifted)
    return [problem.posteriors(lifted)]


def _propose_perfect(request: Request, problem: Problem, best: Best, budget: Budget) -> None:
    """Propose what perfect privacy allows, which every guarantee allows: near ε = 0 doubles may find less."""
    guarantee = problem.guarantee
    if guarantee.is_perfect:
        # Members of merged inputs can be told apart in any case, and on a lattice that has shorter vectors.
        distribution = problem.distribution
        alone = Split(distribution[None], np.ones(1), float(problem.region.gains(distribution[None])[0]), 0.0)
        for weights in integers_near(problem, alone, budget):
            best.propose(weights)
        return
    perfect = PerfectPrivacy() if isinstance(guarantee, PosteriorGuarantee) else guarantee.with_budget(0.0)
    found = cone_optimum(replace(request, guarantee=perfect, budget=budget, method="auto", progress=None))
    best.propose_proven(found.protocol.weights)
