"""Interior: the programme of an invariant channel by interior points, for few values and many conditions that meet."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from funnel.guarantees.families import Families
from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.exchange import Exchanged, proven_bound
from funnel.solver.hinges import Hinges, NewtonHinges, State
from funnel.solver.interior_steps import next_point

# Units of work of a step: for each entry of the matrices of all outputs, of what a condition adds to one, and of a row.
_CUBE, _SQUARE, _ENTRY = 0.4, 0.1, 0.25
# The first product of a variable and its price, by the number of pairs; steps at most.
_FIRST, _STEPS = 30.0, 80
# Corrections of a step, and what steps have to be longer than.
_CORRECTIONS, _SHORT = 3, 1e-4
# What a cone leaves a constant row open at the least.
_LEAST_SLACK = 1e-12
# The price of a family that counts, as a share of the largest of its row.
_LOOSE = 1e-4
# Rows may be out of balance, and families unlike their slack, by that much; solutions are refined that often.
_OFF, _REFINED = 1e-6, 2


# Of families these are variables; the others are prices.
_PRIMAL = ("slack", "level", "hinge", "distance")


class _Point(NamedTuple):
    """Where the method is, or a change of it. Rows are R(y, x) = T(y|x) / p_y: those of a constant channel are ones.

    Attributes
    ----------
    rows, spare : ndarray, shape (n, n)
        R and its prices.
    slack, load : ndarray, shape (n, K)
        What cones leave open, and their prices.
    families : State
    sums, balance : ndarray, shape (n,)
        Prices of the sum of every column, and of the balance of every output.
    """

    rows: FloatArray
    spare: FloatArray
    slack: FloatArray
    load: FloatArray
    families: State
    sums: FloatArray
    balance: FloatArray

    @property
    def variables(self) -> tuple[FloatArray, ...]:
        """All that has to stay positive."""
        return self.rows, self.slack, self.families.slack, self.families.hinge, self.families.distance

    @property
    def duals(self) -> tuple[FloatArray, ...]:
        """The price of each of them."""
        return self.spare, self.load, self.families.price, self.families.room, self.families.load

    def moved(self, change: _Point, primal: float, dual: float) -> _Point:
        """After so much of a change of variables, and of prices."""
        one, two = self.families, change.families
        families = State(
            *(
                value + (primal if name in _PRIMAL else dual) * by
                for name, value, by in zip(State._fields, one, two, strict=True)
            )
        )
        return _Point(
            self.rows + primal * change.rows,
            self.spare + dual * change.spare,
            self.slack + primal * change.slack,
            self.load + dual * change.load,
            families,
            self.sums + dual * change.sums,
            self.balance + dual * change.balance,
        )


class InteriorProgramme:
    """The same programme as `ExchangeProgramme` over all pairs, solved anew each time; no condition may be broken.

    Rows are held together by the sums of columns alone. So a Newton step solves n systems of n equations, one for each
    row, and one of n for all. The constant channel is where it starts: it is inside of all conditions.

    Parameters
    ----------
    distribution : ndarray, shape (n,)
        Probabilities of the values, > 0.
    worth : ndarray, shape (n,)
        What a value is worth that stays as it is, summing to 1.
    cones : tuple of ndarray, shape (K, n)
        Half-spaces ``cone @ R_y <= 0`` of every output, with the margin and without.
    budget : Budget
        Charged for every step.
    """

    def __init__(
        self, distribution: FloatArray, worth: FloatArray, cones: tuple[FloatArray, FloatArray], budget: Budget
    ) -> None:
        self.distribution, self.worth, self._budget = distribution, worth, budget
        self._cones, self.cone = cones, cones[0]
        self.gain = np.diag(worth * distribution)
        self._families = Families.none(len(distribution) + 1)
        self._price = np.zeros(0)

    def add(self, families: Families) -> None:
        """Further conditions; over n + 1 places, at the last of which every row is one."""
        self._families = Families.joined([self._families, families]).by_row()

    def drop_loose(self) -> None:
        """Drop the families that hardly count at the last solution: most are of rows that are far from the best ones.

        Those that further solutions break can be added again.
        """
        families, largest = self._families, np.zeros(len(self.distribution))
        np.maximum.at(largest, families.of, self._price)
        self._families = families.only(self._price > _LOOSE * largest[families.of])

    def solve(self, gap: float, with_margin: bool = True) -> Exchanged:
        """The best channel under the conditions so far, up to a gap; or what there is time for.

        From a constant channel each time: from near the last solution, two problems under noise took more steps,
        by a fifth and by a third.
        """
        families = self._families if with_margin else self._families.without_margin()
        self.cone = self._cones[not with_margin]
        self._price, found = self._solved(Hinges(families, len(self.distribution)), gap)
        return found

    def _solved(self, hinges: Hinges, gap: float) -> tuple[FloatArray, Exchanged]:
        """As `solve`; and the prices of families."""
        import scipy.sparse as sp

        n, own, families, point = len(self.distribution), self._cones[1], hinges.families, self._start(hinges)
        for _ in range(_STEPS):
            value = float((self.gain * point.rows).sum())
            tight, proven = hinges.loads(point.families)
            tight[:, :-1] += point.load @ self.cone
            proven[:, :-1] += point.load @ own
            asked = tight[:, :-1] / self.distribution + point.balance[:, None]
            bound = proven_bound(self.distribution, self.worth, asked, point.balance - tight[:, -1])
            off = [point.rows @ self.distribution - 1, self.distribution @ point.rows - 1, _off_families(hinges, point)]
            met = max(float(np.abs(one).max(initial=0.0)) for one in off) < _OFF
            if (bound - value <= gap and met) or self._budget.ended_by is not None:
                break
            further = _step(self, hinges, point)
            squares = n * len(self.cone) + len(families) + len(families.rest)
            self._budget.spend(CALL * 200 + _CUBE * n**4 + _SQUARE * n**2 * squares + _ENTRY * n * 20 * squares)
            if further is None:
                break
            point = further
        # At the last place are values that draw from the marginal, whatever the channel is: they ask all in proportion.
        flows, taken = (
            point.rows * np.outer(self.distribution, self.distribution),
            proven[:, :-1] / self.distribution + proven[:, -1:],
        )
        balance = point.balance - proven[:, -1]
        return point.families.price, Exchanged(flows, value, 0.0, balance, sp.csr_array((n, 0)), taken)

    def _start(self, hinges: Hinges) -> _Point:
        n = len(self.distribution)
        product = _FIRST / n**2
        ones = np.ones((n, n))
        zero = np.zeros(n)
        slack = np.tile(np.maximum(-self.cone.sum(axis=1), _LEAST_SLACK), (n, 1))
        return _Point(ones, product * ones, slack, product / slack, hinges.start(product), zero, zero)


def _off_families(hinges: Hinges, point: _Point) -> FloatArray:
    """What families lack of their slack, which the first point does not give all of them."""
    state, rows = point.families, np.column_stack([point.rows, np.ones(len(point.rows))])
    return hinges.values(rows, state.level, state.hinge) + state.slack


def _step(programme: InteriorProgramme, hinges: Hinges, point: _Point) -> _Point | None:
    """The next point; None where there is none, by rounding."""
    try:
        return _Step(programme, hinges, point).taken()
    except np.linalg.LinAlgError:
        return None


class _Step:
    """The equations of one step."""

    def __init__(self, programme: InteriorProgramme, hinges: Hinges, point: _Point) -> None:
        self._distribution, self._point, self._cone = programme.distribution, point, programme.cone
        distribution, n = self._distribution, len(self._distribution)
        self._hinges: NewtonHinges = hinges.newton(np.column_stack([point.rows, np.ones(n)]), point.families)
        asked = self._hinges.asked[:, :n] + point.load @ self._cone
        self._off_slack, self._stiff = -point.rows @ self._cone.T - point.slack, point.load / point.slack
        self._off_price = (
            programme.gain
            - np.outer(distribution, point.sums)
            - np.outer(point.balance, distribution)
            - asked
            + point.spare
        )
        self._off_balance, self._off_sums = 1 - point.rows @ distribution, 1 - distribution @ point.rows
        self._matrices = self._assembled(hinges)
        scale = 1 / np.sqrt(np.diagonal(self._matrices, axis1=1, axis2=2))
        scaled = self._matrices * scale[:, :, None] * scale[:, None, :]
        self._inverse = np.linalg.inv(scaled) * scale[:, :, None] * scale[:, None, :]
        self._along = self._inverse @ distribution
        self._across = self._along @ distribution
        if not (self._across > 0).all():
            raise np.linalg.LinAlgError
        weights = distribution / np.sqrt(self._across)
        joint = np.tensordot(distribution**2, self._inverse, 1)
        joint -= (self._along * weights[:, None]).T @ (self._along * weights[:, None])
        # Balance of all outputs and all sums but one imply the last: that of the likeliest value is left out.
        self._rest = np.flatnonzero(np.arange(n) != distribution.argmax())
        size = np.diagonal(joint)[self._rest]
        if not (size > 0).all():
            raise np.linalg.LinAlgError
        self._unit = 1 / np.sqrt(size)
        self._joint = joint[np.ix_(self._rest, self._rest)] * self._unit * self._unit[:, None]

    def _assembled(self, hinges: Hinges) -> FloatArray:
        """The matrix of every row, shape (n, n, n)."""
        point, n, pull = self._point, len(self._distribution), self._hinges.pull
        own = pull.own[:, :n] + point.spare / point.rows
        matrices = np.empty((n, n, n))
        for y in range(n):
            rows, less = pull.rows[hinges.of_output[y], :n], pull.less[hinges.terms_of_output[y], :n]
            matrices[y] = rows.T @ rows - less.T @ less + (self._cone.T * self._stiff[y]) @ self._cone
            matrices[y].flat[:: n + 1] += own[y]
        return matrices

    def taken(self) -> _Point | None:
        """Where the step leads; None where it leads nowhere."""
        return next_point(self._point, self._change, _CORRECTIONS, _SHORT)

    def _change(self, goals: list[FloatArray], off: float) -> _Point:
        """The change by which every price changes by its goal where its variable stays, and what is off by ``-off``."""
        point, n = self._point, len(self._distribution)
        spare, of_cones, of_families, room, load = goals
        none = np.zeros(0)
        wanted = State(none, of_families, none, none, room, none, load)
        target = self._hinges.target(wanted, off)
        taken = of_cones - off * self._stiff * self._off_slack
        right = off * self._off_price + spare - target[0][:, :n] - taken @ self._cone
        rows, sums, balance = self._solved(right, off * self._off_balance, off * self._off_sums)
        families = self._hinges.change(wanted, off, np.column_stack([rows, np.zeros(n)]), target)
        moved = rows @ self._cone.T
        slack, price = off * self._off_slack - moved, taken + self._stiff * moved
        return _Point(rows, spare - point.spare / point.rows * rows, slack, price, families, sums, balance)

    def _solved(
        self, right: FloatArray, balance: FloatArray, sums: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rows d_y and prices of the step: ``H_y d_y + p_y of_sums + of_balance_y p = right_y``, refined.

        With ``d_y · p = balance_y`` and ``Σ_y p_y d_y = sums``.
        """
        distribution = self._distribution
        rows, of_sums, of_balance = self._solved_once(right, balance, sums)
        for _ in range(_REFINED):
            rest = right - _products(self._matrices, rows)
            rest -= np.outer(distribution, of_sums) + np.outer(of_balance, distribution)
            more = self._solved_once(rest, balance - rows @ distribution, sums - distribution @ rows)
            rows, of_sums, of_balance = rows + more[0], of_sums + more[1], of_balance + more[2]
        return rows, of_sums, of_balance

    def _solved_once(
        self, right: FloatArray, balance: FloatArray, sums: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        distribution = self._distribution
        free = _products(self._inverse, right)
        free -= self._along * ((free @ distribution - balance) / self._across)[:, None]
        of_sums = np.zeros(len(distribution))
        of_sums[self._rest] = self._unit * np.linalg.solve(
            self._joint, self._unit * (distribution @ free - sums)[self._rest]
        )
        free = _products(self._inverse, right - np.outer(distribution, of_sums))
        of_balance = (free @ distribution - balance) / self._across
        return free - self._along * of_balance[:, None], of_sums, of_balance


def _products(matrices: FloatArray, rows: FloatArray) -> FloatArray:
    """Of every matrix (n, n, n) by its row (n, n)."""
    return np.asarray((matrices @ rows[:, :, None])[:, :, 0])
