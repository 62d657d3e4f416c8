"""Which search finds a mixture of posteriors and its bound, by the size of the region and what is counted."""

from __future__ import annotations

from funnel.joint import FloatArray
from funnel.solver.budget import Budget
from funnel.solver.central import central_mixture
from funnel.solver.columns import ColumnGeneration
from funnel.solver.goal import ENTROPY
from funnel.solver.levels import LevelCone, LevelPricer
from funnel.solver.many import HUNDRED, mixture_of_many
from funnel.solver.mixture import Mixture, MixtureSearch, Trace
from funnel.solver.problem import Problem
from funnel.solver.region import Region
from funnel.solver.stabilised import StabilisedColumns

# Below these boxes of posteriors close their bounds soon, and levels, which price the parts apart, do not.
_MANY_PARTS, _MANY_INPUTS = 4, 16
# From so many inputs on a search starts from a mixture of neighbours; from so many on groups of inputs bound it, too.
_NEIGHBOURS, MANY = 24, 64
# The share of a budget for that start of fewer inputs.
_STARTING = 0.25


def search_of(region: Region, budget: Budget) -> MixtureSearch:
    """The search for the best mixture in a region whose pricing is by boxes of posteriors."""
    plain = region.inputs < HUNDRED or region.image is not None or region.goal is not ENTROPY
    return ColumnGeneration(region, budget) if plain else StabilisedColumns(region, budget)


def best_mixture(
    problem: Problem, starts: list[FloatArray], gap: float, budget: Budget, trace: Trace | None = None
) -> Mixture:
    """The best mixture that is found among the posteriors of a problem, and a bound.

    Parameters
    ----------
    problem : Problem
    starts : list of ndarray, shape (k, a)
        Posteriors of the region that are known.
    gap : float
        Requested bound - value, nats.
    budget : Budget
    trace : callable, optional
        Told (value, bound) as they improve.
    """
    plain = problem.region.goal is ENTROPY and not problem.reads_secret
    search = search_of(problem.priced, budget)
    if plain and len(problem.law) >= MANY:
        return mixture_of_many(problem, starts, gap, budget, search, trace)
    if plain and len(problem.law) >= _NEIGHBOURS:
        search.start_from(central_mixture(problem, budget.part(_STARTING), gap))
    for start in starts:
        search.start_from(start)
    return search.run(gap, trace)


def optimal_over_cone(
    rows: FloatArray,
    law: FloatArray,
    gap: float = 1e-6,
    time_limit: float | Budget | None = None,
    image: FloatArray | None = None,
    trace: Trace | None = None,
    levels: LevelCone | None = None,
) -> Mixture:
    """Maximise Σ_y P(y) g(image v_y) over all ways to write p_X as a mixture of posteriors v_y in a cone.

    Parameters
    ----------
    rows : ndarray, shape (m, a)
        The cone on rows T of a channel, ``rows T <= 0``, as `Guarantee.cone` gives it.
    law : ndarray, shape (a,)
        p_X > 0.
    gap : float
        Requested bound - value, nats.
    time_limit : float or Budget, optional
        Seconds, as work that is counted; or a part of somebody's budget.
    image : ndarray, shape (d, a), optional
        What the utility counts, in posterior coordinates (columns summing to 1): for a protocol that reads (s, x) and
        is judged by I(X;Y), the 0/1 matrix that sums v over s (METHOD section 3).
    trace : callable, optional
        Told (value, bound) as they improve.
    levels : LevelCone, optional
        The same cone, of PolyOpt: in more than a dozen dimensions its own pricing is faster by far.

    Raises
    ------
    SolverError
        If the law is outside the cone or a linear programme fails.
    """
    budget, region = Budget.of(time_limit), Region.of(rows / law, law, image)
    if levels is not None and image is None and len(levels.law) >= _MANY_PARTS and len(law) >= _MANY_INPUTS:
        return ColumnGeneration(region, budget, LevelPricer.of(levels, budget)).run(gap, trace)
    return search_of(region, budget).run(gap, trace)
