"""The tangent programme of one history over HiGHS: the best rows of its channel, and prices that bound them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np
import numpy.typing as npt

from funnel.errors import SolverError
from funnel.history.conditions import STILL, Conditions
from funnel.joint import FloatArray
from funnel.solver.budget import CALL

_INFINITY = highspy.kHighsInf
# Units of work: of a programme, of an entry of its matrix, and of an iteration and its entries.
_PROGRAMME, _ENTRY, _ITERATION, _BY_ENTRY = 100 * CALL, 100.0, 5_000.0, 2.0
# Scaling and tolerances, one after the other. Close to the rounding of doubles a solver may not know what it has; what
# it finds with larger tolerances is repaired, and what it says of a bound holds whatever they are.
_ATTEMPTS = ((0, 1e-10), (4, 1e-10), (0, 1e-9), (4, 1e-8), (0, 1e-7))
# Iterations, for a variable, after which something is wrong.
_PATIENCE = 200
# Entries and outputs of less probability than this are rounding of the solver.
_NOTHING = 1e-12
_NEVER = 1e-9
# Rounds of cutting planes for a group at most; what a member has to be beyond its condition to make one; and the share
# of a constant row that is little enough to repair what is left.
ROUNDS, _BROKEN = 16, 1e-8
ENOUGH = 1e-5


def programme_work(outputs: int, inputs: int, rows: int) -> float:
    """Units of work that a programme of a shape is expected to take before any was solved."""
    entries = outputs * inputs * (rows + 1)
    return _PROGRAMME + _ENTRY * entries + (inputs + outputs * rows) * (_ITERATION + _BY_ENTRY * entries)


@dataclass(frozen=True, eq=False)
class Start:
    """Where a programme ended, and with other gains may begin.

    Attributes
    ----------
    basis : HighsBasis
    cuts : ndarray, shape (r, a)
        The conditions of members that bind.
    at : ndarray of int, shape (r, 2)
        The condition and the output each is for.
    sizes : ndarray, shape (r,)
        What each was divided by.
    """

    basis: highspy.HighsBasis
    cuts: FloatArray
    at: npt.NDArray[np.intp]
    sizes: FloatArray


@dataclass(frozen=True, eq=False)
class Ended:
    """Where the programmes of m histories ended.

    Attributes
    ----------
    channels : ndarray, shape (m, b, a)
    prices : ndarray, shape (m, b, k)
        Multipliers >= 0 of the conditions.
    starts : list of Start or None
        To begin from with other gains.
    work : ndarray, shape (m,)
    """

    channels: FloatArray
    prices: FloatArray
    starts: list[Start | None]
    work: FloatArray


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
        # Lower and upper limits of rows where no condition is held.
        sums, conditions = np.ones(inputs), np.zeros(outputs * rows)
        self._unheld = np.concatenate([sums, conditions - _INFINITY]), np.concatenate([sums, conditions])
        self._basis: highspy.HighsBasis | None = None
        self._allowed: tuple[int, float] | None = None
        self._cuts, self._at, self._sizes = _no_cuts(inputs)
        self.work, self.judged = 0.0, 0.0
        self._solver = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, value in (
            ("output_flag", False),
            ("solver", "simplex"),
            ("presolve", "off"),
            ("parallel", "off"),
            ("threads", 1),
            ("random_seed", 0),
            # Below it entries of a condition are left out; what that breaks is repaired afterwards.
            ("small_matrix_value", 1e-12),
            ("simplex_iteration_limit", _PATIENCE * (variables + inputs + outputs * rows)),
        ):
            self._solver.setOptionValue(option, value)

    def solve(self, conditions: Conditions, gains: FloatArray, starts: Sequence[Start | None]) -> Ended:
        """The best channels of m histories, up to the tolerance of the solver, one programme after the other.

        Parameters
        ----------
        conditions : Conditions
            Of the histories.
        gains : ndarray, shape (m, b, a)
            What a unit of T(y|x) of each is worth.
        starts : sequence of Start or None, length m
            Where each programme ended before, for other gains; else it begins where the last one ended.

        Raises
        ------
        SolverError
            If the solver fails; a constant channel is always feasible, so there is an optimum.
        """
        outputs, inputs, rows = self._shape
        scales = np.abs(conditions.rows).max(axis=2, initial=0.0)
        scales[scales == 0] = 1.0
        worths = np.abs(gains).max(axis=(1, 2), initial=0.0)
        worths[worths == 0] = 1.0
        scaled = (conditions.rows / scales[:, :, None]).swapaxes(1, 2)
        costs = -gains.reshape(len(gains), -1) / worths[:, None]
        channels, duals = np.empty(gains.shape), np.empty((len(gains), outputs, rows))
        ends: list[Start | None] = []
        work = np.empty(len(gains))
        for place, start in enumerate(starts):
            before = self.work
            self._values[:, :, 1:] = scaled[place]
            solution = self._solved(costs[place], *self._limits(conditions.held[place]), start)
            channels[place] = np.array(solution.col_value).reshape(outputs, inputs)
            of_rows, own = np.array(solution.row_dual), inputs + outputs * rows
            duals[place] = of_rows[inputs:own].reshape(outputs, rows) / scales[place]
            if len(self._cuts):
                # What a condition of a member costs, as one on the mean distribution with the same share of its room.
                condition, output = self._at.T
                room = self._sizes * conditions.slack[place, condition]
                np.add.at(duals[place], (output, condition), of_rows[own:] / room)
            ends.append(self.start())
            work[place] = self.work - before
        # Where outputs stand still, all prices of a condition may be moved together: what they are paid for adds up to
        # nothing.
        prices = -worths[:, None, None] * duals
        lowest = np.minimum(prices.min(axis=1, initial=0.0), 0.0)
        prices -= np.where(conditions.held, lowest, 0.0)[:, None, :]
        return Ended(cleaned(channels, conditions), np.maximum(prices, 0.0), ends, work)

    def _limits(self, held: npt.NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        """Lower and upper limits of the rows of a programme: sums of 1, and conditions, which are equations if held."""
        if not held.any():
            return self._unheld
        outputs, inputs, rows = self._shape
        lower, upper = (limits.copy() for limits in self._unheld)
        # Posteriors average to the history's, so where all outputs stand still the last one does by itself.
        lower[inputs:].reshape(outputs, rows)[:-1, held] = 0.0
        upper[inputs:].reshape(outputs, rows)[-1, held] = _INFINITY
        return lower, upper

    def _solved(
        self, costs: FloatArray, lower: FloatArray, upper: FloatArray, start: Start | None
    ) -> highspy.HighsSolution:
        """The solution of the programme with the values at hand."""
        outputs, inputs, _ = self._shape
        for scaling, tolerance in _ATTEMPTS:
            self._allow(scaling, tolerance)
            self._pass(costs, lower, upper)
            if start is None:
                self._cut(*_no_cuts(inputs))
            else:
                self._cut(start.cuts, start.at, start.sizes)
            basis = start.basis if start else self._basis
            if basis is not None and (scaling, tolerance) == _ATTEMPTS[0]:
                self._solver.setBasis(basis)
            status = self._run()
            if status == highspy.HighsModelStatus.kOptimal:
                break
            self._basis = None
        else:
            raise SolverError(
                f"the programme of a history with {outputs} outputs of {inputs} inputs failed: {status.name}"
            )
        if start is None:
            self._basis = self._solver.getBasis()
        return self._solver.getSolution()

    def _allow(self, scaling: int, tolerance: float) -> None:
        if (scaling, tolerance) != self._allowed:
            self._allowed = (scaling, tolerance)
            self._solver.setOptionValue("simplex_scale_strategy", scaling)
            self._solver.setOptionValue("primal_feasibility_tolerance", tolerance)
            self._solver.setOptionValue("dual_feasibility_tolerance", tolerance)

    def bind(
        self, channel: FloatArray, parts: Sequence[Conditions], mean: Conditions, rounds: int, work: float
    ) -> FloatArray:
        """The channel (b, a) of the last programme, solved again with conditions of members that it breaks.

        Cutting planes: for every output and condition the member that breaks it most, relatively to the room that it
        has, in a few rounds. What is still broken then is left to whoever judges the channel.

        Parameters
        ----------
        channel : ndarray, shape (b, a)
            The solution of the programme for the mean distribution.
        parts : sequence of Conditions
            Those of the members; members that are held are not helped.
        mean : Conditions
            Of the mean distribution.
        rounds : int
            At most.
        work : float
            Once all programmes took so much no other round is begun.
        """
        outputs, inputs, rows = self._shape
        free = [part.rows[usable] / part.slack[usable][:, :, None] for part in parts if (usable := _free(part)).any()]
        for _ in range(rounds):
            if self.work >= work:
                break
            worst = np.full((rows, outputs), _BROKEN)
            cuts = np.zeros((rows, outputs, inputs))
            for some in free:
                beyond = (some.reshape(-1, inputs) @ channel.T).reshape(len(some), rows, outputs)
                chosen = beyond.argmax(axis=0)
                most = np.take_along_axis(beyond, chosen[None], axis=0)[0]
                row, output = np.nonzero(most > worst)
                worst[row, output] = most[row, output]
                cuts[row, output] = some[chosen[row, output], row]
            if worst.max(axis=0, initial=0.0).sum() <= ENOUGH:
                break
            at = np.argwhere(worst > _BROKEN)
            added = cuts[at[:, 0], at[:, 1]]
            sizes = np.abs(added).max(axis=1)
            self._cut(added / sizes[:, None], at, sizes, more=True)
            self.judged += sum(some.size for some in free) * float(outputs)
            if self._run() != highspy.HighsModelStatus.kOptimal:
                break
            channel = np.array(self._solver.getSolution().col_value).reshape(1, outputs, inputs)
            channel = cleaned(channel, mean)[0]
        return channel

    def start(self) -> Start | None:
        """Where the last programme ended, without conditions of members that do not bind; None if nowhere."""
        outputs, inputs, rows = self._shape
        basis = self._solver.getBasis()
        if basis.valid and not len(self._cuts):
            return Start(basis, self._cuts, self._at, self._sizes)
        states = list(basis.row_status)
        own = inputs + outputs * rows
        if not basis.valid or len(states) != own + len(self._cuts):
            return None
        binding = np.array([state != highspy.HighsBasisStatus.kBasic for state in states[own:]], dtype=np.bool_)
        basis.row_status = states[:own] + [state for state, kept in zip(states[own:], binding, strict=True) if kept]
        return Start(basis, self._cuts[binding], self._at[binding], self._sizes[binding])

    def _run(self) -> highspy.HighsModelStatus:
        self._solver.run()
        iterations = max(0, int(self._solver.getInfo().simplex_iteration_count))
        entries = float(self._values.size + self._cuts.size)
        self.work += _PROGRAMME + _ENTRY * entries + iterations * (_ITERATION + _BY_ENTRY * entries)
        return self._solver.getModelStatus()

    def _cut(self, cuts: FloatArray, at: npt.NDArray[np.intp], sizes: FloatArray, more: bool = False) -> None:
        """Conditions of members, beside those that there are or in their place in a programme just passed."""
        inputs = self._shape[1]
        if more:
            self._cuts, self._at = np.concatenate([self._cuts, cuts]), np.concatenate([self._at, at])
            self._sizes = np.concatenate([self._sizes, sizes])
        else:
            self._cuts, self._at, self._sizes = cuts, at, sizes
        if len(cuts):
            self._solver.addRows(
                len(cuts),
                np.full(len(cuts), -_INFINITY),
                np.zeros(len(cuts)),
                cuts.size,
                (np.arange(len(cuts)) * inputs).astype(np.int32),
                (at[:, 1:] * inputs + np.arange(inputs)).astype(np.int32).ravel(),
                cuts.ravel(),
            )

    def _pass(self, costs: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
        status = self._solver.passModel(
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
        if status == highspy.HighsStatus.kError:
            # The solver would go on with the programme that it had before.
            raise SolverError("the solver does not take the programme of a history; please report it")


def _no_cuts(inputs: int) -> tuple[FloatArray, npt.NDArray[np.intp], FloatArray]:
    return np.zeros((0, inputs)), np.zeros((0, 2), dtype=np.intp), np.zeros(0)


def _free(conditions: Conditions) -> npt.NDArray[np.bool_]:
    """Which histories have room in every condition."""
    return np.asarray((~conditions.held).all(axis=1) & (conditions.slack > 0).all(axis=1))


def cleaned(channels: FloatArray, conditions: Conditions) -> FloatArray:
    """Channels (m, b, a) without the solver's rounding: nothing negative, columns sum to 1, no output of mere rounding.

    Inputs that a history excludes get the distribution of the output. Where outputs have to stand still they do so up
    to the rounding of doubles, as far as that can be had by small relative changes.
    """
    given, held = conditions.given, conditions.held
    channels = np.where(channels > _NOTHING, channels, 0.0)
    channels[np.matmul(channels, given[:, :, None])[:, :, 0] < _NEVER] = 0.0
    unseen = given <= 0
    told = np.matmul(channels, given[:, :, None])
    channels = np.where((unseen | ~channels.any(axis=1))[:, None, :], told, channels)
    channels /= channels.sum(axis=1, keepdims=True)
    for one in np.flatnonzero(held.any(axis=1)).tolist():
        channel = _stilled(channels[one], conditions.rows[one][held[one]], conditions.size[one][held[one]])
        channels[one] = np.where(unseen[one], (channel @ given[one] / given[one].sum())[:, None], channel)
    return np.asarray(channels / channels.sum(axis=1, keepdims=True))


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
