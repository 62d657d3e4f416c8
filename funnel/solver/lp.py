"""The linear programmes of the optimiser over HiGHS: mixtures, changed in place and warm-started, and sparse ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import highspy
import numpy as np

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget

_INFINITY = highspy.kHighsInf
_TOLERANCE = 1e-9
# Units of work: of a programme, of an iteration, and of an entry of the matrix touched by an iteration.
_PROGRAMME, _ITERATION, _ENTRY = 20 * CALL, 3 * CALL, 2.0
# The same for sparse programmes, where an iteration touches rows, columns and entries.
_SPARSE_PROGRAMME, _SPARSE_ENTRY = 400 * CALL, 1.0
# Iterations that the solver can count.
_MOST = 1e9


def quiet_solver() -> highspy.Highs:
    solver: highspy.Highs = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in (
        ("output_flag", False),
        ("solver", "simplex"),
        ("presolve", "off"),
        ("parallel", "off"),
        ("threads", 1),
        ("random_seed", 0),
        ("primal_feasibility_tolerance", _TOLERANCE),
        ("dual_feasibility_tolerance", _TOLERANCE),
    ):
        solver.setOptionValue(option, value)
    return solver


class MasterProgramme:
    """max Σ α_i g_i subject to Σ α_i v_i = p_X, α >= 0; more columns v_i with their g_i are added as they are found.

    Parameters
    ----------
    distribution : ndarray, shape (a,)
        p_X > 0.
    budget : Budget
        Charged for every iteration.
    """

    def __init__(self, distribution: FloatArray, budget: Budget) -> None:
        self._distribution, self._budget, self._solver = distribution, budget, quiet_solver()
        self._columns: list[FloatArray] = []
        self._gains: list[float] = []
        self._entries = 0
        # Rows are divided by p_x, so that the solver's tolerances are relative for rare inputs too.
        for _ in distribution:
            self._solver.addRow(1.0, 1.0, 0, np.zeros(0, dtype=np.int32), np.zeros(0))

    def __len__(self) -> int:
        return len(self._columns)

    def add(self, posterior: FloatArray, gain: float) -> None:
        """A further column v (a,) with its g."""
        used = np.flatnonzero(posterior).astype(np.int32)
        self._solver.addCol(-gain, 0.0, _INFINITY, len(used), used, posterior[used] / self._distribution[used])
        self._entries += len(used)
        self._budget.spend(4 * CALL)
        self._columns.append(posterior)
        self._gains.append(gain)

    @property
    def posteriors(self) -> FloatArray:
        """All columns, shape (k, a)."""
        return np.array(self._columns)

    @property
    def gains(self) -> FloatArray:
        """g of all columns, shape (k,)."""
        return np.array(self._gains)

    def solve(self, bounded: bool = False) -> tuple[FloatArray, FloatArray]:
        """Masses α, shape (k,), and prices λ, shape (a,).

        Parameters
        ----------
        bounded : bool
            Whether the budget ends the programme: then it is spent.

        Raises
        ------
        SolverError
            If the solver fails, or the budget ends it.
        """
        each = _ITERATION + _ENTRY * (len(self) + len(self._distribution) ** 2)
        most = int(min(_MOST, max(1.0, self._budget.remaining / each))) if bounded else int(_MOST)
        self._solver.setOptionValue("simplex_iteration_limit", most)
        # Columns of a thin region are nearly parallel; then the usual tolerances are all that doubles can give.
        for tolerance in (_TOLERANCE, 1e-7, 1e-6):
            self._solver.setOptionValue("primal_feasibility_tolerance", tolerance)
            self._solver.setOptionValue("dual_feasibility_tolerance", tolerance)
            self._solver.run()
            iterations = max(0, int(self._solver.getInfo().simplex_iteration_count))
            self._budget.spend(_PROGRAMME + _ENTRY * self._entries + iterations * each)
            status = self._solver.getModelStatus()
            if status == highspy.HighsModelStatus.kIterationLimit:
                # What is left is less than an iteration.
                self._budget.spend(each)
                raise SolverError(f"the linear programme over {len(self)} columns did not finish within the budget")
            if status == highspy.HighsModelStatus.kOptimal:
                break
            self._solver.clearSolver()
        else:
            raise SolverError(f"the linear programme over {len(self)} columns failed: {status.name}")
        solution = self._solver.getSolution()
        return np.maximum(np.array(solution.col_value), 0.0), -np.array(solution.row_dual) / self._distribution


class Prices(NamedTuple):
    """The solution of a sparse programme, and the prices of its conditions, not negative, and of its equations."""

    values: FloatArray
    conditions: FloatArray
    equations: FloatArray


def sparse_programme(
    gain: FloatArray,
    conditions: Any,
    equations: Any,
    values: FloatArray,
    budget: Budget,
    ends: tuple[float, float] | None = None,
) -> Prices | None:
    """The x >= 0 with the largest ``gain @ x`` for which ``conditions @ x <= 0`` and ``equations @ x = values``.

    Parameters
    ----------
    gain : ndarray, shape (n,)
    conditions, equations : scipy sparse matrices, shapes (m, n) and (k, n)
    values : ndarray, shape (k,)
    budget : Budget
        Charged for every iteration; sets how many there may be.
    ends : tuple of two floats, optional
        The least and the most that each entry of x may be.

    Returns
    -------
    Prices or None
        None if there is none, or the solver does not find it within the budget.
    """
    from scipy.optimize import linprog

    entries = conditions.nnz + equations.nnz + len(gain) + len(values) + conditions.shape[0]
    budget.spend(_SPARSE_PROGRAMME)
    each = CALL + _SPARSE_ENTRY * entries
    if not budget.allows(each):
        return None
    most = int(min(_MOST, budget.remaining / each))
    # Iterations alone: a programme that a clock ends would give another bound on a busy machine.
    options = {"primal_feasibility_tolerance": 1e-10, "maxiter": most}
    # The stubs know no sparse conditions.
    solve: Any = linprog
    result = solve(
        -gain,
        A_ub=conditions,
        b_ub=np.zeros(conditions.shape[0]),
        A_eq=equations,
        b_eq=values,
        bounds=(0, None) if ends is None else ends,
        method="highs-ds",
        options=options,
    )
    budget.spend(each * max(0, result.nit))
    if result.status != 0:
        # Where it stopped at the iterations there were, this remembers it.
        budget.allows(each)
        return None
    return Prices(
        np.asarray(result.x, dtype=np.float64),
        np.maximum(-np.asarray(result.ineqlin.marginals, dtype=np.float64), 0.0),
        -np.asarray(result.eqlin.marginals, dtype=np.float64),
    )
