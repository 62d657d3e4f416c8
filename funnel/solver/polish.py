"""Recompute a split of p_X at full precision and a hair inside its cone, so that rounding cannot break the bound."""

from __future__ import annotations

import numpy as np

from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.goal import ENTROPY, Goal
from funnel.solver.split import Split

_ACTIVE = 1e-8
_EXACT = 1e-13
# How far a corner may move, relative to each coordinate; further, and it is another corner.
_NEAR = 1e-4


def polish(
    split: Split,
    distribution: FloatArray,
    rows: FloatArray,
    tighter_rows: FloatArray,
    budget: Budget | None = None,
    goal: Goal = ENTROPY,
) -> Split | None:
    """The same split with every vertex moved to the same corner of a slightly tighter polytope.

    Zeros stay zeros, unlike in a mixture with the marginal, so an output that only some inputs can produce stays so.

    Parameters
    ----------
    split : Split
        k posteriors over a inputs, vertices up to a solver's tolerance.
    distribution : ndarray, shape (a,)
        p_X.
    rows, tighter_rows : ndarray, shape (m, a)
        The cone in posterior coordinates, and the same cone for a slightly smaller budget.
    budget : Budget, optional
        Charged for every corner.
    goal : Goal
        What the value is of.

    Returns
    -------
    Split or None
        None where a corner is degenerate and has no counterpart in the tighter polytope, or the budget is spent.
    """
    corners = []
    budget = Budget.of(budget)
    for vertex in split.posteriors:
        # As many conditions are active as the corner has symbols, or a few more.
        work = 20 * CALL + 4.0 * rows.size + 20.0 * np.count_nonzero(vertex) ** 3
        if not budget.allows(work):
            return None
        budget.spend(work)
        corner = _same_corner(vertex, rows, tighter_rows)
        if corner is None:
            return None
        corners.append(corner)
    posteriors = np.array(corners)
    # Relative to p_X, so that rare inputs are met as well as frequent ones.
    shares = (posteriors / distribution).T
    mass = np.asarray(np.linalg.lstsq(shares, np.ones(len(distribution)), rcond=None)[0], dtype=np.float64)
    if (mass <= 0).any() or np.abs(shares @ mass - 1).max() > _EXACT:
        return None
    return Split(posteriors, mass, float(goal.gains(posteriors) @ mass), split.bound)


def _same_corner(vertex: FloatArray, rows: FloatArray, tighter_rows: FloatArray) -> FloatArray | None:
    support = np.flatnonzero(vertex > 0)
    # A condition is measured by the size of its terms, and a coordinate by what it was: rare inputs count like others.
    size = np.abs(rows) @ vertex
    active = np.flatnonzero(np.abs(rows @ vertex) < _ACTIVE * size)
    system = np.vstack([np.ones(len(support)), tighter_rows[np.ix_(active, support)] / size[active, None]])
    system *= vertex[support]
    target = np.zeros(len(system))
    target[0] = 1.0
    growth, *_ = np.linalg.lstsq(system, target, rcond=None)
    if np.abs(system @ growth - target).max() > _EXACT or (np.abs(growth - 1) > _NEAR).any():
        return None
    corner = np.zeros(len(vertex))
    corner[support] = growth * vertex[support]
    return corner
