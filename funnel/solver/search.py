"""Search: which method and which search find a mixture of posteriors and its bound, by the size of the region."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from funnel.errors import SolverError
from funnel.guarantees.base import ConeGuarantee, PosteriorGuarantee
from funnel.joint import FloatArray, Joint
from funnel.solver.budget import Budget
from funnel.solver.central import central_mixture
from funnel.solver.columns import ColumnGeneration
from funnel.solver.goal import ENTROPY
from funnel.solver.input_groups import GroupedBound
from funnel.solver.levels import LevelCone, LevelPricer
from funnel.solver.problem import Problem
from funnel.solver.region import Region
from funnel.solver.split import Mixture, Split, Trace, best_split
from funnel.solver.vertices import vertices_at_most

# The share of a budget for a bound by a few groups, and of what is left then for the mixture.
_BEGINNING, _MIXING = 0.25, 0.6
# Of what is left after it, for finer groups before all inputs: of a hundred, and of fewer, which boxes close.
_FINER, _FINER_OF_FEW, _HUNDRED = 0.9, 0.25, 100
# What a bound over groups may leave: of the requested gap at least, of H(X) and of what is open at most.
_LEFT, _LEFT_OF_ALL, _LEFT_OPEN = 0.15, 0.01, 0.25
# A mixture that rises by less than this share of the gap in a few rounds is at its end.
_WORTHWHILE = 0.02


def mixture_of_many(
    problem: Problem,
    starts: list[FloatArray],
    gap: float,
    budget: Budget,
    search: ColumnGeneration,
    trace: Trace | None = None,
) -> Mixture:
    """`best_mixture` for many inputs, by a goal that is the entropy and protocols that read X alone.

    Groups of inputs bound it; only what they leave open is searched for over all inputs, by the given search.
    """
    grouped, distribution = GroupedBound(problem.priced), problem.distribution
    entropy = -float(problem.region.gains(distribution[None])[0])
    grouped.refine(max(_LEFT * gap, _LEFT_OF_ALL * entropy), budget.part(_BEGINNING))
    found = central_mixture(problem, budget.part(_MIXING), _WORTHWHILE * gap)
    try:
        split = best_split(np.vstack([distribution, found, *starts]), distribution, budget)
    except SolverError:
        # Nearly parallel columns: p_X alone is a mixture that says nothing.
        split = Split(distribution[None], np.ones(1), -entropy, grouped.bound)
    refining = budget.part(_FINER if len(problem.distribution) >= _HUNDRED else _FINER_OF_FEW)
    while True:
        if trace is not None:
            trace(split.value, grouped.bound)
        if grouped.bound - split.value <= gap:
            return Mixture(replace(split, bound=grouped.bound), True, len(found), grouped.boxes)
        left = max(_LEFT * gap, min(_LEFT_OF_ALL * entropy, _LEFT_OPEN * (grouped.bound - split.value)))
        if grouped.finest or not grouped.refine(left, refining, split):
            break
    # What is left: all inputs, as where they are few.
    search.start_from(split.posteriors)
    mixture = search.run(gap, trace)
    # A search that was ended at once falls below what it started from.
    last = max(split, mixture.split, key=lambda one: one.value)
    bound = min(mixture.split.bound, grouped.bound)
    return Mixture(
        replace(last, bound=bound),
        mixture.finished,
        mixture.columns,
        grouped.boxes + mixture.boxes,
    )


# Below these boxes of posteriors close their bounds soon. Of climbs by levels: to what share of the gap, and after how
# many that rise by less than what share of it they end.
_MANY_PARTS, _MANY_INPUTS = 4, 16
_FINELY, _ROSE, _CLIMBED = 0.1, 0.02, 4
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
    if plain and len(problem.distribution) >= MANY:
        return mixture_of_many(problem, starts, gap, budget, search, trace)
    if plain and len(problem.distribution) >= _NEIGHBOURS:
        search.start_from(central_mixture(problem, budget.part(_STARTING), gap))
    for start in starts:
        search.start_from(start)
    return search.run(gap, trace)


def optimal_over_cone(
    rows: FloatArray,
    distribution: FloatArray,
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
    distribution : ndarray, shape (a,)
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
        The same cone, of PolyOpt: in more than a dozen dimensions its own climbing keeps most, and nothing is proven.

    Raises
    ------
    SolverError
        If the distribution is outside the cone or a linear programme fails.
    """
    budget, region = Budget.of(time_limit), Region.of(rows / distribution, distribution, image)
    pricer = None
    if (
        levels is not None
        and image is None
        and len(levels.distribution) >= _MANY_PARTS
        and len(distribution) >= _MANY_INPUTS
    ):
        pricer = LevelPricer.of(levels, budget)
    search = ColumnGeneration(region, budget, pricer)
    if pricer is None:
        return search.run(gap, trace)
    best, still = -np.inf, 0
    while True:
        # Each climb starts from other midpoints.
        mixture = search.run(_FINELY * gap, trace, False)
        still = 0 if mixture.split.value > best + _ROSE * gap else still + 1
        best = max(best, mixture.split.value)
        if still == _CLIMBED or budget.expired:
            return mixture


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
