"""The tangent programme of one history over HiGHS: the best rows of its channel, and prices that bound them."""

from __future__ import annotations

import highspy
import numpy as np

from funnel.errors import SolverError
from funnel.history.conditions import STILL, Conditions
from funnel.joint import FloatArray
from funnel.solver.budget import CALL

_INFINITY = highspy.kHighsInf
# Units of work: of a programme, of an entry of its matrix, and of an iteration and its entries.
_PROGRAMME, _ENTRY, _ITERATION, _BY_ENTRY = 40 * CALL, 40.0, 2_000.0, 1.0
# Iterations, for a variable, after which something is wrong.
_PATIENCE = 200
# Entries and outputs of less probability than this are rounding of the solver.
_NOTHING = 1e-12
_NEVER = 1e-9


def programme_work(outputs: int, inputs: int, rows: int) -> float:
    """Units of work that a programme of a shape is expected to take before any was solved."""
    entries = outputs * inputs * (rows + 1)
    return _PROGRAMME + _ENTRY * entries + (inputs + outputs * rows) * (_ITERATION + _BY_ENTRY * entries)


class Tangent:
    """max Σ g T subject to Σ_y T(y|x) = 1, T >= 0 and the conditions of a history for every output.

    One solver for programmes of one shape, each started from the basis of the one before it: histories that are
    alike share their basis, and then a programme takes few iterations.

    Parameters
    ----------
    outputs, inputs, rows : int
        b, a and the number of conditions.
    """

    def __init__(self, outputs: int, inputs: int, rows: int) -> None:
        self._shape = (outputs, inputs, rows)
        variables = outputs * inputs
        output, given = np.divmod(np.arange(variables), inputs)
        places = inputs + output[:, None] * rows + np.arange(rows)
        self._index = np.concatenate([given[:, None], places], axis=1).astype(np.int32).ravel()
        self._start = (np.arange(variables + 1) * (rows + 1)).astype(np.int32)
        self._values = np.ones((outputs, inputs, rows + 1))
        self._zeros, self._ends = np.zeros(variables), np.full(variables, _INFINITY)
        self._kinds = np.zeros(variables, dtype=np.int32)
        self._basis: highspy.HighsBasis | None = None
        self.work = 0.0
        self._solver = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, value in (
            ("output_flag", False),
            ("solver", "simplex"),
            ("presolve", "off"),
            ("parallel", "off"),
            ("threads", 1),
            ("random_seed", 0),
            ("primal_feasibility_tolerance", 1e-10),
            ("dual_feasibility_tolerance", 1e-10),
            ("simplex_iteration_limit", _PATIENCE * (variables + inputs + outputs * rows)),
        ):
            self._solver.setOptionValue(option, value)

    def solve(self, conditions: Conditions, which: int, gains: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The best channel (b, a), up to the tolerance of the solver, and multipliers >= 0 of the conditions (b, k).

        Parameters
        ----------
        conditions : Conditions
        which : int
            The history among those of the conditions.
        gains : ndarray, shape (b, a)
            What a unit of T(y|x) is worth.

        Raises
        ------
        SolverError
            If the solver fails; a constant channel is always feasible, so there is an optimum.
        """
        outputs, inputs, rows = self._shape
        matrix, held = conditions.rows[which], conditions.held[which]
        scale = np.abs(matrix).max(axis=1, initial=0.0)
        scale[scale == 0] = 1.0
        worth = float(np.abs(gains).max()) or 1.0
        self._values[:, :, 1:] = (matrix / scale[:, None]).T
        # Posteriors average to the history's, so where all outputs stand still the last one does by itself.
        least = np.where(held, 0.0, -_INFINITY)
        lower = np.concatenate([np.ones(inputs), np.tile(least, outputs)])
        upper = np.concatenate([np.ones(inputs), np.zeros(outputs * rows)])
        lower[inputs + (outputs - 1) * rows :] = -_INFINITY
        upper[inputs + (outputs - 1) * rows :][held] = _INFINITY
        costs = -gains.ravel() / worth
        for scaling in (0, 4):
            self._solver.setOptionValue("simplex_scale_strategy", scaling)
            self._pass(costs, lower, upper)
            if self._basis is not None and scaling == 0:
                self._solver.setBasis(self._basis)
            self._solver.run()
            iterations = max(0, int(self._solver.getInfo().simplex_iteration_count))
            entries = float(self._values.size)
            self.work += _PROGRAMME + _ENTRY * entries + iterations * (_ITERATION + _BY_ENTRY * entries)
            status = self._solver.getModelStatus()
            if status == highspy.HighsModelStatus.kOptimal:
                break
            self._basis = None
        else:
            raise SolverError(
                f"the programme of a history with {outputs} outputs of {inputs} inputs failed: {status.name}"
            )
        self._basis = self._solver.getBasis()
        solution = self._solver.getSolution()
        channel = np.array(solution.col_value).reshape(outputs, inputs)
        prices = -np.array(solution.row_dual)[inputs:].reshape(outputs, rows) * (worth / scale)
        # Where outputs stand still, all prices of a condition may be moved together: what they are paid for adds up to
        # nothing.
        prices[:, held] -= np.minimum(prices[:, held].min(axis=0, initial=0.0), 0.0)
        return cleaned(channel, conditions, which), np.maximum(prices, 0.0)

    def _pass(self, costs: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
        self._solver.passModel(
            len(costs),
            len(lower),
            len(self._index),
            int(highspy.MatrixFormat.kColwise),
            int(highspy.ObjSense.kMinimize),
            0.0,
            costs,
            self._zeros,
            self._ends,
            lower,
            upper,
            self._start,
            self._index,
            self._values.ravel(),
            self._kinds,
        )


def cleaned(channel: FloatArray, conditions: Conditions, which: int) -> FloatArray:
    """A channel without the solver's rounding: nothing negative, columns sum to 1, no output that is mere rounding.

    Inputs that the history excludes get the law of the output. Where outputs have to stand still they do so up to the
    rounding of doubles, as far as that can be had by small relative changes.
    """
    given, held = conditions.given[which], conditions.held[which]
    channel = np.where(channel > _NOTHING, channel, 0.0)
    channel[channel @ given < _NEVER] = 0.0
    seen = given > 0
    channel[:, ~seen] = (channel @ given)[:, None]
    empty = channel.sum(axis=0) == 0
    channel[:, empty] = (channel @ given)[:, None]
    channel /= channel.sum(axis=0)
    if held.any():
        channel = _stilled(channel, conditions.rows[which][held], conditions.size[which][held])
        channel[:, ~seen] = (channel @ given)[:, None] / given.sum()
    return np.asarray(channel / channel.sum(axis=0))


def _stilled(channel: FloatArray, rows: FloatArray, size: FloatArray) -> FloatArray:
    """The channel changed as little as can be, relatively to its entries, so that all outputs stand still."""
    outputs, inputs = channel.shape
    number = len(rows)
    output, given = np.nonzero(channel)
    for _ in range(3):
        scale = channel @ size.T
        scale[scale == 0] = 1.0
        off = (channel @ rows.T) / scale
        if np.abs(off).max() <= 1e-3 * STILL:
            break
        weights = channel[output, given]
        system = np.zeros((inputs + outputs * number, len(weights)))
        place = np.arange(len(weights))
        system[given, place] = weights
        for j in range(number):
            system[inputs + output * number + j, place] = weights * rows[j, given] / scale[output, j]
        wanted = np.concatenate([1.0 - channel.sum(axis=0), -off.ravel()])
        change = np.linalg.lstsq(system, wanted, rcond=1e-13)[0]
        channel = channel.copy()
        channel[output, given] = weights * np.maximum(1.0 + change, 0.0)
    return channel
