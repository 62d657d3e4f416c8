"""The linear programme over given vertices: the best way to split p_X into them, with its dual bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.special import xlogy

from funnel.errors import SolverError
from funnel.joint import FloatArray

# Mass the LP solver leaves on a column it does not use.
_UNUSED = 1e-13
# What is left of an equation is repaired later, at the price of utility, so first the tightest that HiGHS takes; then
# its own default, for vertices that are not known as well as that.
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
        No mixture of the given posteriors has a larger value, whatever the LP solver's tolerances were.
    """

    posteriors: FloatArray
    mass: FloatArray
    value: float
    bound: float


def negative_entropy(posteriors: FloatArray) -> FloatArray:
    """g(v) = Σ_x v_x ln v_x of each row, in nats: convex, 0 for a point mass; shape (k, a) to (k,)."""
    return np.asarray(xlogy(posteriors, posteriors).sum(axis=1))


def best_split(posteriors: FloatArray, law: FloatArray) -> Split:
    """Maximise Σ_i α_i g(v_i) subject to Σ_i α_i v_i = p_X, α >= 0 (PF theorem 3; METHOD section 3).

    The bound evaluates the dual on all given posteriors: for any λ, the maximum is at most
    ``λ·p_X + max_i (g(v_i) - λ·v_i)``, so it holds however inexact the solver's λ is.

    Parameters
    ----------
    posteriors : ndarray, shape (k, a)
        Candidate posteriors; p_X must lie in their hull.
    law : ndarray, shape (a,)
        p_X.

    Raises
    ------
    SolverError
        If the LP solver fails or p_X is not in the hull.
    """
    gains = negative_entropy(posteriors)
    # One equation Σ_y P(y|x) = 1 for every input: the solver's absolute tolerance then weighs rare inputs like others.
    shares = (posteriors / law).T
    for tolerance in _TOLERANCES:
        result = linprog(
            -gains,
            A_eq=shares,
            b_eq=np.ones(len(law)),
            bounds=(0, None),
            method="highs-ds",
            options={"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance},
        )
        if result.status == 0:
            break
    else:
        raise SolverError(
            f"the linear programme over {len(gains)} vertices failed ({result.message}); change epsilon slightly"
        )
    duals = -np.asarray(result.eqlin.marginals) / law
    bound = float(duals @ law + (gains - posteriors @ duals).max())
    mass = np.asarray(result.x, dtype=np.float64)
    used = mass > _UNUSED
    refined = _refined(shares[:, used], mass[used])
    return Split(posteriors[used], refined, float(gains[used] @ refined), bound)


def _refined(shares: FloatArray, mass: FloatArray) -> FloatArray:
    """The same basic solution without the LP solver's tolerance, where solving its equations again gives one."""
    better = np.asarray(np.linalg.lstsq(shares, np.ones(len(shares)), rcond=None)[0], dtype=np.float64)
    closer = np.abs(shares @ better - 1).max() < np.abs(shares @ mass - 1).max()
    return better if closer and (better > 0).all() else mass
