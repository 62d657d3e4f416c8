"""From a float split of the inputs to integer weights for which the guarantee holds, losing next to nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from funnel.errors import InfeasibleGuarantee, SolverError
from funnel.joint import FloatArray
from funnel.protocol import WeightArray
from funnel.rounding import proven_weights, rounded_weights
from funnel.solver.budget import CALL, Budget
from funnel.solver.goal import ENTROPY, Goal
from funnel.solver.lattice import exact_channel
from funnel.solver.problem import Problem
from funnel.solver.repair import repaired
from funnel.solver.split import Split
from funnel.solver.work import Deciding, decision_work

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


# How far inside the cone the polished vertices sit: far above rounding (1e-15), far below any gap that matters.
_MARGINS = (1e-11, 1e-9, 1e-7)
# The same for protocols moved by a linear programme, whose own tolerance is 1e-10.
_WIDER_MARGINS = (1e-8, 1e-7, 1e-6)
# The same for budgets so small that rounding, absolute as it is, is a share like this of them. At 1 the opposite sides
# of a condition, both of which then seem active, are the same equation.
_FAR_MARGINS = (1e-4, 1e-2, 1.0)
# Units of work of mixing a weight with the marginal.
_BY_MIXED = 500.0
# The same of reducing a lattice, for the number of inputs cubed.
_BY_LATTICE = 150.0


def integers_near(problem: Problem, split: Split, budget: Budget) -> Iterator[WeightArray]:
    """Weights (b, a) near a split that meet the problem's guarantee exactly: polished, or repaired, or mixed.

    Parameters
    ----------
    problem : Problem
    split : Split
        Posteriors of the region up to the solver's tolerance.
    budget : Budget
        When it is spent, what is left is mixing with the marginal; a lattice is not begun if it would take more.

    Yields
    ------
    ndarray of uint64
        One, where it loses next to nothing; more to choose from where all lose something; none if the split is not one
        of the input distribution as closely as integers need, or the budget too small.
    """
    try:
        matrix = problem.channel(split, budget)
    except SolverError:
        return
    if problem.guarantee.is_perfect:
        lattice = _BY_LATTICE * float(np.count_nonzero(problem.read.p_input)) ** 3
        if not budget.allows(lattice):
            return
        budget.spend(lattice)
        weights = exact_channel(problem.read, problem.guarantee, matrix)
        if not _decided(problem, weights, budget):
            raise SolverError(
                f"the integer protocol does not meet {problem.guarantee}; this is a defect, please report it"
            )
        yield weights
        return
    weights_inside = _first_decided(problem, splits_inside(problem, split, budget), budget)
    if weights_inside is not None:
        yield weights_inside
        return
    # Of a tiny budget the rounding of a float is a large share: far inside is then near, and mixing loses zeros.
    far_inside = _first_decided(problem, _polished(problem, split, _FAR_MARGINS, budget), budget)
    if far_inside is not None:
        yield far_inside
    mixing = Deciding(problem.read, problem.guarantee, budget, _BY_MIXED)
    try:
        # Some protocol meets every guarantee, so what the repair costs is shown as a gap instead of refusing.
        yield proven_weights(problem.read, problem.guarantee, matrix, 1.0, mixing.holds)
    except InfeasibleGuarantee:
        return


def _first_decided(problem: Problem, splits: Iterator[Split], budget: Budget) -> WeightArray | None:
    """Weights of the first split for which the guarantee holds exactly."""
    for split in splits:
        try:
            weights = rounded_weights(problem.read, problem.channel(split, budget))
        except SolverError:
            continue
        if _decided(problem, weights, budget):
            return weights
    return None


def _polished(problem: Problem, split: Split, margins: tuple[float, ...], budget: Budget) -> Iterator[Split]:
    for margin in margins:
        tighter = problem.tightened(margin)
        if budget.allows(0.0) and tighter.shape == problem.rows.shape:
            polished = polish(split, problem.distribution, problem.rows, tighter, budget, problem.region.goal)
            if polished is not None:
                yield polished


def splits_inside(problem: Problem, split: Split, budget: Budget) -> Iterator[Split]:
    """Splits near this one that are a hair inside the cone, the nearest first, while the budget lasts."""
    yield from _polished(problem, split, _MARGINS, budget)
    for margin in _WIDER_MARGINS:
        if budget.allows(0.0):
            region = problem.region
            moved = repaired(
                split, problem.distribution, problem.tightened(margin), region.image, budget, goal=region.goal
            )
            if moved is not None:
                yield moved


def _decided(problem: Problem, weights: WeightArray, budget: Budget) -> bool:
    budget.spend(decision_work(problem.read, problem.guarantee, len(weights)))
    return problem.guarantee.holds_for(problem.read, weights)
