"""Which method and which search find a mixture of posteriors and its bound, by the size of the region."""

from __future__ import annotations

from math import comb

from funnel.guarantees.base import ConeGuarantee, PosteriorGuarantee
from funnel.joint import FloatArray, Joint
from funnel.solver.budget import Budget
from funnel.solver.central import central_mixture
from funnel.solver.columns import ColumnGeneration
from funnel.solver.goal import ENTROPY
from funnel.solver.levels import LevelCone, LevelPricer
from funnel.solver.many import mixture_of_many
from funnel.solver.problem import Problem
from funnel.solver.region import Region
from funnel.solver.split import Mixture, Trace

# Below these boxes of posteriors close their bounds soon, and levels, which price the parts apart, do not.
_MANY_PARTS, _MANY_INPUTS = 4, 16
# From so many inputs on a search starts from a mixture of neighbours; from so many on groups of inputs bound it, too.
_NEIGHBOURS, MANY = 24, 64
# The share of a budget for that start of fewer inputs.
_STARTING = 0.25


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
    search = ColumnGeneration(problem.priced, budget)
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
    return ColumnGeneration(region, budget).run(gap, trace)


METHODS = ("auto", "vertices", "columns")
# Double description takes about as long for so many vertices as column generation takes to get going.
_FEW_VERTICES = 4000
# Two secrets: vertices are listed as an array of (vertices, a) numbers; beyond this columns need less memory.
_LARGEST_LIST = 2**25
# Units of work of listing them and of the programme over them, for the number of inputs cubed.
_BY_LISTED = 200.0


def chosen_method(method: str, joint: Joint, guarantee: ConeGuarantee, region: Region, budget: Budget) -> str:
    """``"vertices"`` or ``"columns"``; what the caller asked for unless that is ``"auto"``.

    Parameters
    ----------
    method : str
    joint : Joint
        After presolve.
    guarantee : ConeGuarantee
    region : Region
    budget : Budget
        A list that takes more is not begun: columns can be stopped.
    """
    if method != "auto":
        return method
    a = region.inputs
    if len(region.rows) == 0 or a == 1:
        return "vertices"
    if is_listed(joint, guarantee):
        affordable = a**3 / 2 <= _LARGEST_LIST and a**3 * _BY_LISTED <= budget.remaining
        return "vertices" if affordable else "columns"
    return "vertices" if has_few_vertices(region) else "columns"


def is_listed(joint: Joint, guarantee: ConeGuarantee) -> bool:
    """Whether vertices have at most two non-zeros and can be listed directly."""
    return len(joint.secret) == 2 and isinstance(guarantee, PosteriorGuarantee)


def has_few_vertices(region: Region) -> bool:
    """Whether double description takes no longer than column generation needs to get going."""
    return vertices_at_most(region.inputs, len(region.rows)) <= _FEW_VERTICES


def vertices_at_most(a: int, rows: int) -> int:
    """A crude bound on the number of vertices: a support of k inputs, and k - 1 rows at one of their two ends."""
    return sum(comb(a, k) * comb(rows, k - 1) * 2 ** (k - 1) for k in range(1, min(a, rows + 1) + 1))
