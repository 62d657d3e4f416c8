"""Interior: the programme of an invariant channel by interior points, for few values and many conditions that meet."""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
import numpy.typing as npt

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.exchange import Exchanged
from funnel.solver.lp import quiet_solver

Flags = npt.NDArray[np.bool_]

_INFINITY = highspy.kHighsInf
# Units of work of a programme, and of an entry of its matrix in a step.
_PROGRAMME, _ENTRY = 400 * CALL, 300.0
# Prices below this are those of conditions that do not matter.
_PRICED = 1e-7
# Conditions that are this near, in sizes of a constant row, may matter in the next round.
_NEAR = 0.01


class InteriorProgramme:
    """The same programme as `ExchangeProgramme` over all pairs, solved anew each time; no condition may be broken.

    The simplex method takes many steps that gain nothing where thousands of conditions meet in a point, as those of
    label differential privacy do. Variables are T(y|x).

    Parameters
    ----------
    law : ndarray, shape (n,)
        Probabilities of the values, > 0.
    worth : ndarray, shape (n,)
        What a value is worth that stays as it is, summing to 1.
    spaces : ndarray, shape (K, n)
        Half-spaces h; a condition is ``Σ_x h_x P(x, y) <= 0``.
    budget : Budget
        Charged for every step.
    """

    def __init__(self, law: FloatArray, worth: FloatArray, spaces: FloatArray, budget: Budget) -> None:
        self._law, self._worth, self._budget, self.spaces = law, worth, budget, spaces
        self._asked: Flags = np.zeros((len(law), len(spaces)), dtype=bool)
        self._asked_before, self._kept = self._asked.copy(), self._asked.copy()

    def know(self, spaces: FloatArray) -> None:
        """Further half-spaces (k, n)."""
        self.spaces = np.vstack([self.spaces, spaces])
        self._asked, self._asked_before, self._kept = (
            np.pad(flags, ((0, 0), (0, len(spaces)))) for flags in (self._asked, self._asked_before, self._kept)
        )

    def ask(self, conditions: Flags) -> int:
        """Ask for these conditions too, shape (n, K); how many are new."""
        new = conditions & ~self._asked
        # What is asked for a second time is not dropped again.
        self._kept |= new & self._asked_before
        self._asked |= new
        self._asked_before |= new
        return int(new.sum())

    def solve(self) -> Exchanged:
        """The best channel under the conditions that are asked for; those without a price are then dropped.

        Raises
        ------
        SolverError
            If the linear programme fails.
        """
        import scipy.sparse as sp

        law, n = self._law, len(self._law)
        outputs, places = np.nonzero(self._asked)
        entries = self.spaces[places] * law / law[outputs, None]
        row, x = np.nonzero(entries)
        asked = sp.csr_array((entries[row, x], (row, outputs[row] * n + x)), shape=(len(outputs), n * n))
        sums = sp.kron(np.ones((1, n)), sp.eye_array(n))
        balance = sp.kron(sp.diags_array(1 / law), law[None])
        solution = self._solution(sp.csc_array(sp.vstack([sums, balance, asked])), len(outputs))
        channel = np.maximum(np.array(solution.col_value).reshape(n, n), 0.0)
        duals = -np.array(solution.row_dual)
        flows = channel * law
        prices = np.zeros((n, len(self.spaces)))
        prices[outputs, places] = np.maximum(duals[2 * n :], 0.0)
        slack = flows @ self.spaces.T / law[:, None]
        self._asked &= self._kept | (prices > _PRICED * prices.max(initial=0.0)) | (slack > -_NEAR)
        value = float(self._worth @ np.diagonal(channel))
        return Exchanged(flows, value, 0.0, duals[n : 2 * n], sp.csr_array(prices))

    def _solution(self, matrix: Any, conditions: int) -> Any:
        n = len(self._law)
        programme: Any = highspy.HighsLp()
        programme.num_row_, programme.num_col_ = matrix.shape
        programme.col_cost_ = -np.diag(self._worth).ravel()
        programme.col_lower_, programme.col_upper_ = np.zeros(n * n), np.full(n * n, _INFINITY)
        programme.row_lower_ = np.concatenate([np.ones(2 * n), np.full(conditions, -_INFINITY)])
        programme.row_upper_ = np.concatenate([np.ones(2 * n), np.zeros(conditions)])
        programme.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        programme.a_matrix_.start_, programme.a_matrix_.index_ = matrix.indptr, matrix.indices
        programme.a_matrix_.value_ = matrix.data
        solver = quiet_solver()
        solver.setOptionValue("solver", "ipm")
        solver.setOptionValue("run_crossover", "off")
        solver.setOptionValue("presolve", "on")
        solver.passModel(programme)
        solver.run()
        steps = max(1, int(solver.getInfo().ipm_iteration_count))
        self._budget.spend(_PROGRAMME + _ENTRY * matrix.nnz * steps)
        # Unknown is what it says where the last digits do not come: the caller verifies bound and channel itself.
        if solver.getModelStatus() not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kUnknown):
            raise SolverError("the linear programme of the invariant channel failed; change epsilon slightly")
        return solver.getSolution()
