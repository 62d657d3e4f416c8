"""The protocol between parts of classes that leaves most records, for observers of no column and of any at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import highspy
import numpy as np

from funnel.errors import InfeasibleGuarantee, SolverError, SpecError
from funnel.guarantees.any_column import AnyColumn, Condition
from funnel.guarantees.base import Guarantee
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.lip import LIP
from funnel.guarantees.several import parts_of
from funnel.guarantees.srlip import SRLIP
from funnel.joint import FloatArray, Joint
from funnel.progress import Progress
from funnel.protocol import DENOMINATOR, WeightArray
from funnel.rounding import integer_weights
from funnel.solver.integer_balance import IMBALANCE

_INFINITY = highspy.kHighsInf
# The relatively smaller budgets that are solved for; and what counts as broken, in people, for the largest coefficient.
_MARGIN, _BROKEN = 1e-7, 1e-7
# Tolerances of the solver in people, one after the other where it fails; conditions of a part that a round adds.
_TOLERANCES, _PER_PART, _ROUNDS = (1e-9, 1e-8, 1e-7), 3, 1_000
# What a condition that whole numbers break is moved inside by, in people; how much more each time, and how often.
_INSIDE, _FURTHER, _TRIES = 1e-6, 10.0, 6
# Newton steps that put flows in balance.
_STEPS = 4


@dataclass(frozen=True, eq=False)
class Moves:
    """A protocol between parts.

    Attributes
    ----------
    weights : ndarray of uint64, shape (k, k)
        P(published part | true part) in units of 2^-63; the diagonal is of records that stay.
    unchanged : float
        Share of the records that stay.
    bound : float
        No protocol between these parts with donors drawn evenly leaves more.
    """

    weights: WeightArray
    unchanged: float
    bound: float


def best_moves(joint: Joint, guarantee: Guarantee, progress: Progress) -> Moves:
    """The protocol between parts that leaves most records, in balance and within both bounds, decided exactly.

    Parameters
    ----------
    joint : Joint
        Over parts of classes.
    guarantee : Guarantee
        lip, srlip or both.
    progress : callable

    Raises
    ------
    SpecError
        If the guarantee is another.
    InfeasibleGuarantee
        If no protocol between these parts is within the bounds.
    SolverError
        If the linear programme fails.

    Notes
    -----
    People F(k, h) of part h become records of part k; the diagonal stays. Of the people of a part come as many as go.
    A condition says that, of those who know some values, people times how far their class is beyond a limit add up to
    no more than 0 over all who may be seen as a record of k: a row in F. Rows are added when they are broken.
    """
    alone, knowing = budgets_of(guarantee)
    known = AnyColumn.of(joint, knowing < math.inf).distinct
    programme = _Programme(known, alone, knowing)
    sizes = known.sizes
    moved_in = _INSIDE
    for _ in range(_TRIES):
        programme.run(progress)
        weights = integer_weights(_balanced(programme.flows, sizes) / sizes)
        broken = known.broken(weights, alone, knowing)
        off = np.abs((weights.astype(object) @ sizes.astype(object)) - sizes.astype(object) * DENOMINATOR).max()
        if not broken and Fraction(int(off), int(sizes.sum()) * DENOMINATOR) <= IMBALANCE:
            unchanged = float(np.diagonal(weights).astype(np.float64) / DENOMINATOR @ sizes / sizes.sum())
            return Moves(weights, unchanged, max(unchanged, programme.bound))
        programme.move_inside(broken, moved_in)
        moved_in *= _FURTHER
    raise SolverError("no protocol in whole numbers was found near the optimum; change epsilon slightly")


def budgets_of(guarantee: Guarantee) -> tuple[float, float]:
    """Of observers of no column, and of some; infinite where nothing is bounded. Those of srlip may know nothing.

    Raises
    ------
    SpecError
        If another bound is asked for, or one of 0.
    """
    parts = parts_of(guarantee)
    if guarantee.is_perfect or not all(type(part) in (LIP, SRLIP) for part in parts):
        raise SpecError(f"{guarantee} cannot be kept between parts of classes; ask for lip and srlip above 0")
    knowing = [part.budget for part in parts if isinstance(part, SRLIP)]
    return min(part.budget for part in parts), min(knowing, default=math.inf)


# A side of a bound, what is known, a part, and whether a record of it agrees with that.
_Key = tuple[int, int, int, bool]


class _Programme:
    """The linear programme, with the rows that were broken so far."""

    def __init__(self, known: AnyColumn, alone: float, knowing: float) -> None:
        self._known, size = known, len(known.sizes)
        budgets = np.append(alone, np.full(len(known.known), knowing))
        self._shares = known.people / known.sizes
        self._beyond = self._sides(budgets * (1 - _MARGIN))
        self._exactly = self._sides(budgets)
        self._rows: dict[_Key, int] = {}
        self._shut: set[_Key] = set()
        self._solver = self._begun(known.sizes)
        self._prices = np.zeros(2 * size)
        self._nothing = np.zeros((size, size), dtype=bool)
        self._add((side, 0, part, True) for side in range(len(self._beyond)) for part in range(size))

    def _sides(self, budgets: FloatArray) -> FloatArray:
        """How far classes of parts are beyond each limit, shape (sides, v, k); sides are up and down by secret."""
        given, before = self._known.given, self._known.before
        return np.stack(
            [
                sign * (one - np.array([capped_exp(budget) ** sign for budget in budgets])[:, np.newaxis] * prior)
                for one, prior in zip(given[:, np.newaxis, :], before[:, :, np.newaxis], strict=True)
                for sign in (1, -1)
            ]
        )

    def _begun(self, sizes: np.ndarray) -> highspy.Highs:
        """Flows from each part, and to each, add up to its people; as many as possible stay."""
        solver, size = highspy.Highs(), len(sizes)  # type: ignore[no-untyped-call]
        for option, value in (("output_flag", False), ("parallel", "off"), ("threads", 1), ("random_seed", 0)):
            solver.setOptionValue(option, value)
        source, target = np.tile(np.arange(size), size), np.repeat(np.arange(size), size)
        programme = highspy.HighsLp()
        programme.num_col_, programme.num_row_ = size * size, 2 * size
        programme.col_cost_ = -np.eye(size).ravel()
        programme.col_lower_ = np.zeros(size * size)
        programme.col_upper_ = np.minimum.outer(sizes, sizes).astype(np.float64).ravel()
        programme.row_lower_ = programme.row_upper_ = np.tile(sizes, 2).astype(np.float64)
        programme.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        programme.a_matrix_.start_ = 2 * np.arange(size * size + 1, dtype=np.int32)
        programme.a_matrix_.index_ = np.column_stack([source, size + target]).astype(np.int32).ravel()
        programme.a_matrix_.value_ = np.ones(2 * size * size)
        solver.passModel(programme)
        return solver

    def _row(self, beyond: FloatArray, key: _Key) -> FloatArray:
        """The coefficients (k,) of the flows to a part."""
        side, known, part, agrees = key
        found: FloatArray = self._shares[known] * beyond[side, known]
        found[part] = beyond[side, known, part] if agrees else 0.0
        return found

    def _add(self, keys: Iterable[_Key]) -> bool:
        """Add rows that are not there; whether there were such."""
        size, places, values, shut = len(self._known.sizes), [], [], len(self._shut)
        for key in keys:
            row = self._row(self._beyond, key)
            some = np.flatnonzero(row)
            if key in self._rows or key in self._shut or not len(some):
                continue
            part = key[2]
            if row.min() >= 0:
                # Nobody else brings the belief back, so these do not come at all: exactly, and not within a tolerance.
                self._shut.add(key)
                self._nothing[part, some] = True
                none = np.zeros(len(some))
                self._solver.changeColsBounds(len(some), (part * size + some).astype(np.int32), none, none)
                continue
            self._rows[key] = len(self._rows)
            places.append(part * size + some)
            values.append(row[some] / np.abs(row).max())
        if not places:
            return len(self._shut) > shut
        starts = np.cumsum([0, *map(len, places)])
        self._solver.addRows(
            len(places),
            np.full(len(places), -_INFINITY),
            np.zeros(len(places)),
            int(starts[-1]),
            starts[:-1].astype(np.int32),
            np.concatenate(places).astype(np.int32),
            np.concatenate(values),
        )
        return True

    def run(self, progress: Progress) -> None:
        """Solve, and add the rows that are broken, until none is.

        Raises
        ------
        InfeasibleGuarantee, SolverError
            As `best_moves`.
        """
        known = self._known
        for _ in range(_ROUNDS):
            self._solve()
            stays, moved = np.diagonal(self.flows).copy(), self.flows.copy()
            np.fill_diagonal(moved, 0.0)
            progress(f"{stays.sum() / known.sizes.sum():.5f} of the records unchanged at most", 0, None)
            if not self._add(self._broken(stays, moved)):
                return
        raise SolverError("the search for a protocol between parts does not end; change epsilon slightly")

    def _broken(self, stays: FloatArray, moved: FloatArray) -> Iterator[_Key]:
        """The rows that flows break most, of every part and side."""
        people = self._known.people
        for side, beyond in enumerate(self._beyond):
            brought = self._shares * beyond
            come, largest = brought @ moved.T, np.abs(brought).max(axis=1)[:, np.newaxis]
            together = (come + stays * beyond) / np.maximum(largest, np.abs(beyond))
            for agrees, amounts in (
                (False, np.where(people < self._known.sizes, come / largest, 0.0)),
                (True, np.where(people > 0, together, 0.0)),
            ):
                for part in np.flatnonzero((amounts > _BROKEN).any(axis=0)).tolist():
                    some = np.flatnonzero(amounts[:, part] > _BROKEN)
                    for one in some[np.argsort(-amounts[some, part])[:_PER_PART]].tolist():
                        yield side, one, part, agrees

    def _solve(self) -> None:
        for tolerance in _TOLERANCES:
            self._solver.setOptionValue("primal_feasibility_tolerance", tolerance)
            self._solver.setOptionValue("dual_feasibility_tolerance", tolerance)
            self._solver.run()
            status = self._solver.getModelStatus()
            if status == highspy.HighsModelStatus.kOptimal:
                size, solution = len(self._known.sizes), self._solver.getSolution()
                flows = np.maximum(0.0, np.array(solution.col_value)).reshape(size, size)
                self.flows: FloatArray = np.where(self._nothing, 0.0, flows)
                self._prices = np.array(solution.row_dual)
                return
            # From a basis and with close tolerances, thousands of nearly parallel rows may seem to have no solution.
            self._solver.clearSolver()
        if status == highspy.HighsModelStatus.kInfeasible:
            raise InfeasibleGuarantee(
                "no protocol that exchanges whole records keeps the bound for all observers of columns that may be "
                "known; raise its budget, or publish fewer columns"
            )
        raise SolverError(f"the programme of parts of classes failed: {status.name}")

    def move_inside(self, broken: list[Condition], by: float) -> None:
        """Ask more of conditions that whole numbers break."""
        keys = [(2 * one.secret + (not one.upward), one.known, one.part, one.agrees) for one in broken]
        self._add(keys)
        for key in keys:
            if key in self._rows:
                self._solver.changeRowBounds(2 * len(self._known.sizes) + self._rows[key], -_INFINITY, -by)

    @property
    def bound(self) -> float:
        """What the prices of the last round prove of all protocols, whatever the tolerances of the solver are.

        For prices z of balance and π >= 0 of conditions with rows a no flows F leave more than z · people + Σ max(0,
        1[stays] - z - π a) times the smaller of two parts; or times 0 where a row without a negative number is above 0.
        """
        sizes = self._known.sizes
        size = len(sizes)
        of_sources, of_targets, prices = np.split(-self._prices, [size, 2 * size])
        gains = np.eye(size) - of_sources - of_targets[:, np.newaxis]
        for (key, _), price in zip(self._rows.items(), np.maximum(0.0, prices), strict=True):
            if price:
                scale = np.abs(self._row(self._beyond, key)).max()
                gains[key[2]] -= price / scale * self._row(self._exactly, key)
        most = np.minimum.outer(sizes, sizes)
        for key in self._shut:
            row = self._row(self._exactly, key)
            if row.min() >= 0:
                most[key[2], row > 0] = 0
        proven = sizes @ (of_sources + of_targets) + (np.maximum(0.0, gains) * most).sum()
        return float(proven / sizes.sum())


def _balanced(flows: FloatArray, sizes: np.ndarray) -> FloatArray:
    """Flows (k, h) whose sums are the people of parts as nearly as floats can tell; what is 0 stays so."""
    for _ in range(_STEPS):
        arrive, leave = flows.sum(axis=1), flows.sum(axis=0)
        system = np.block([[np.diag(arrive), flows], [flows.T, np.diag(leave)]])
        factors = np.linalg.lstsq(system, np.concatenate([sizes - arrive, sizes - leave]))[0]
        flows = flows * (1 + factors[: len(sizes), np.newaxis] + factors[len(sizes) :])
    return flows
