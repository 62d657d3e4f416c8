"""The linear programme over given vertices: the best way to split p_X into them, with its dual bound."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.bounds import negative_entropy
from funnel.solver.split import Split


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
    result = linprog(-gains, A_eq=posteriors.T, b_eq=law, bounds=(0, None), method="highs-ds")
    if result.status != 0:
        raise SolverError(f"the linear programme over {len(gains)} vertices failed: {result.message}")
    duals = -np.asarray(result.eqlin.marginals)
    bound = float(duals @ law + (gains - posteriors @ duals).max())
    mass = np.asarray(result.x, dtype=np.float64)
    used = mass > 1e-13
    return Split(posteriors[used], mass[used], float(gains @ mass), bound)
