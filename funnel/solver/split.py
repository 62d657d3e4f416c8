"""Split: a way to write p_X as a mixture of posteriors, what a search for the best one found, and its channel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.protocol import DENOMINATOR, WeightArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.goal import ENTROPY, Goal
from funnel.solver.lp import MasterProgramme

Trace = Callable[[float, float], None]
# Columns taken into the linear programme at a time; a list of all vertices is far longer than what is used of it.
_AT_ONCE = 200
_IMPROVES = 1e-12
# Mass the LP solver leaves on a column it does not use.
_UNUSED = 1e-13
# How closely the equations of a basic solution must hold for it to be taken as it is.
_EXACT = 1e-12
# First the tightest that HiGHS takes; then its own default, for vertices that are not known as well as that.
_TOLERANCES = (1e-10, 1e-7)


@dataclass(frozen=True, eq=False)
class Split:
    """A way to write p_X as a mixture of posteriors.

    Attributes
    ----------
    posteriors : ndarray, shape (k, a)
        The posteriors used, k <= a.
    mass : ndarray, shape (k,)
        P(y) of each, > 0.
    value : float
        Σ_y P(y) Σ_x v_x ln v_x in nats; the utility is this plus H(X).
    bound : float
        No mixture of posteriors in the cone has a larger value, whatever the LP solver's tolerances were.
    """

    posteriors: FloatArray
    mass: FloatArray
    value: float
    bound: float


@dataclass(frozen=True, eq=False)
class Mixture:
    """What a search found.

    Attributes
    ----------
    split : Split
        Posteriors, masses, value and bound (of Σ P(y) g(v_y), in nats).
    finished : bool
        False if the budget ended it, or if it gave up: nothing moved, or a programme failed, far from the gap.
    columns, boxes : int
        Columns in the last mixture programme, boxes bounded.
    """

    split: Split
    finished: bool
    columns: int
    boxes: int


def channel_of(
    posteriors: FloatArray, mass: FloatArray, distribution: FloatArray, seen: npt.NDArray[np.bool_]
) -> FloatArray:
    """The channel (b, a) of a mixture of posteriors over the inputs that are told apart; the others get the marginal.

    Parameters
    ----------
    posteriors : ndarray, shape (b, k)
    mass : ndarray, shape (b,)
        P(y) of each, > 0.
    distribution : ndarray, shape (k,)
        What they average to, > 0.
    seen : ndarray of bool, shape (a,)
        The k inputs.
    """
    masses = posteriors * mass[:, None]
    matrix = np.zeros((len(masses), len(seen)))
    matrix[:, seen] = masses / distribution
    matrix[:, ~seen] = masses.sum(axis=1, keepdims=True)
    return np.asarray(matrix / matrix.sum(axis=0))


def value_of(
    weights: WeightArray,
    distribution: FloatArray,
    seen: npt.NDArray[np.bool_],
    gains: Callable[[FloatArray], FloatArray],
) -> float:
    """``Σ P(y) g(v_y)`` of weights (b, a) for inputs of a distribution (a,), over those that are told apart."""
    masses = (weights / np.float64(DENOMINATOR) * distribution)[:, seen]
    totals = masses.sum(axis=1)
    used = totals > 0
    return float(totals[used] @ gains(masses[used] / totals[used, None]))


def best_split(
    posteriors: FloatArray, distribution: FloatArray, budget: Budget | None = None, goal: Goal = ENTROPY
) -> Split:
    """Maximise Σ_i α_i g(v_i) subject to Σ_i α_i v_i = p_X, α >= 0 (PF theorem 3; METHOD section 3).

    The bound evaluates the dual on all given posteriors: for any λ, the maximum is at most
    ``λ·p_X + max_i (g(v_i) - λ·v_i)``, so it holds however inexact the solver's λ is.

    Parameters
    ----------
    posteriors : ndarray, shape (k, a)
        Candidate posteriors; p_X must lie in their hull.
    distribution : ndarray, shape (a,)
        p_X > 0.
    budget : Budget, optional
        Charged for the work; it does not end it.
    goal : Goal
        g.

    Raises
    ------
    SolverError
        If the LP solver fails or p_X is not in the hull.

    Notes
    -----
    Columns enter as their prices ask for them, so the time is that of a linear programme with a rows and a few
    hundred columns, plus O(k a) for every exchange of prices.
    """
    gains = goal.gains(posteriors)
    budget = Budget.of(budget)
    master = MasterProgramme(distribution, budget)
    # p_X itself makes the first programme feasible. One nat below its gain it loses to any mixture that gives p_X.
    master.add(distribution, float(goal.gains(distribution)) - 1.0)
    inside = np.zeros(len(gains), dtype=bool)
    while True:
        mass, prices = master.solve()
        surplus = gains - posteriors @ prices
        budget.spend(10 * CALL + 2.0 * posteriors.size + 20.0 * len(gains))
        best = np.flatnonzero((surplus > _IMPROVES) & ~inside)
        if not len(best):
            break
        best = best[np.argsort(-surplus[best], kind="stable")[:_AT_ONCE]]
        inside[best] = True
        for place in best:
            master.add(posteriors[place], float(gains[place]))
    rounding = 2.0**-50 * (len(distribution) + 8) * float(np.abs(prices) @ distribution + np.abs(prices).max() + 1.0)
    bound = float(prices @ distribution + surplus.max()) + rounding
    if mass[0] > 1e-9:
        raise SolverError(f"the input distribution is not a mixture of the {len(gains)} posteriors given")
    chosen, gained = master.posteriors[1:], master.gains[1:]
    mass = mass[1:]
    used = mass > _UNUSED
    refined = _refined((chosen[used] / distribution).T, mass[used])
    if np.abs((chosen[used] / distribution).T @ refined - 1).max() > _EXACT:
        # The basis of the programme above is degenerate: solve once more, to the tightest tolerance.
        mass = _closely((chosen / distribution).T, gained)
        used = mass > _UNUSED
        refined = _refined((chosen[used] / distribution).T, mass[used])
    return Split(chosen[used], refined, float(gained[used] @ refined), bound)


def _closely(shares: FloatArray, gains: FloatArray) -> FloatArray:
    """Masses of the best mixture of the columns that were taken in, to the tightest tolerance the LP solver takes.

    What is left of an equation is repaired later, at the price of utility. One equation Σ_y P(y|x) = 1 for every
    input: the solver's absolute tolerance then weighs rare inputs like others.
    """
    from scipy.optimize import linprog

    for tolerance in _TOLERANCES:
        result = linprog(
            -gains,
            A_eq=shares,
            b_eq=np.ones(len(shares)),
            bounds=(0, None),
            method="highs-ds",
            options={"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance},
        )
        if result.status == 0:
            return np.asarray(result.x, dtype=np.float64)
    raise SolverError(
        f"the linear programme over {len(gains)} vertices failed ({result.message}); change epsilon slightly"
    )


def _refined(shares: FloatArray, mass: FloatArray) -> FloatArray:
    """The same basic solution without the LP solver's tolerance, where solving its equations again gives one."""
    better = np.asarray(np.linalg.lstsq(shares, np.ones(len(shares)), rcond=None)[0], dtype=np.float64)
    closer = np.abs(shares @ better - 1).max() < np.abs(shares @ mass - 1).max()
    return better if closer and (better > 0).all() else mass
