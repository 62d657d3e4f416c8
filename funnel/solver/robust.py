"""The optimum over the χ² set: a search by levels where it is suited, cutting planes else and for what it leaves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from funnel.guarantees.reading import reads_secret
from funnel.protocol import WeightArray
from funnel.solver.budget import Budget
from funnel.solver.cuts import SetProblem
from funnel.solver.cutting import RobustOptimum, decided_weights, optimum_over_distributions
from funnel.solver.goal import Entropy
from funnel.solver.robust_ascent import Kept, RobustCone, best_mixture, nothing_disclosed
from funnel.solver.robust_search import searchable, searched
from funnel.solver.split import Split, Trace

# The share of the budget for moving inside, and of the gap that a search is asked for; the rest is for shares of the
# deviation between those it looks at.
_FINISHING, _SEARCHED = 0.15, 0.8


def robust_weights(problem: SetProblem, gap: float, budget: Budget, trace: Trace | None = None) -> RobustOptimum:
    """Maximise the utility over all channels that are RLDP over F, F itself and not a polytope around it.

    A channel that reads secrets of few values is searched for by levels (`robust_search`). Cutting planes do the rest,
    as over boxes: F gives every row of a channel a half-space for each of its distributions (METHOD section 5).

    Parameters
    ----------
    problem : SetProblem
        Over F, telling all inputs apart that occur.
    gap : float
        Requested bound - value, nats.
    budget : Budget
        Ends the search; a part is set aside for moving the protocol inside.
    trace : callable, optional
        Told (value, bound) as they improve.

    Raises
    ------
    SolverError
        If a linear programme fails.
    """
    told_apart = reads_secret(problem.read) and problem.image is None and isinstance(problem.goal, Entropy)
    if not told_apart or not searchable(problem.near, problem.guarantee.budget):
        return optimum_over_distributions(problem, gap, budget, trace)
    finishing = budget.reserve(_FINISHING)
    found = searched(problem, _SEARCHED * gap, budget, trace)
    weights = _proven(RobustCone(problem, finishing), found.kept)
    if not found.finished or found.bound - found.kept.value <= gap:
        return RobustOptimum(weights, found.bound, found.finished, finishing.fell_short, found.cuts)
    # Where the search came to its end without the gap, cutting planes may bound closer what levels cannot.
    further = optimum_over_distributions(problem, gap, budget, trace, weights)
    return replace(further, bound=min(found.bound, further.bound))


def _proven(cone: RobustCone, kept: Kept) -> WeightArray:
    """Integer weights of a mixture inside, for which the exact worst case agrees; the cone's budget is charged."""
    inner = np.vstack([cone.inside(kept.posteriors, True), cone.distribution])
    found = best_mixture(cone, inner, cone.gains(inner)) or nothing_disclosed(cone)
    return decided_weights(cone.problem, Split(found.posteriors, found.mass, found.value, np.inf), cone.budget)
