"""The protocol between parts of classes that leaves most records, for observers of no column and of any at once.

Where the secret is published too, records move without a look at it, and of those that stay it changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import highspy
import numpy as np

from funnel.errors import InfeasibleGuarantee, SolverError, SpecError
from funnel.guarantees.any_column import AnyColumn, Condition
from funnel.guarantees.attribute import Attribute
from funnel.guarantees.base import Guarantee
from funnel.guarantees.binomial_limits import UNIT
from funnel.guarantees.class_limits import Belief, ClassLimits
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.reading import reads_secret
from funnel.guarantees.several import parts_of
from funnel.joint import FloatArray, IntArray, Joint
from funnel.progress import Progress
from funnel.protocol import DENOMINATOR, WeightArray
from funnel.rounding import integer_weights
from funnel.solver.integer_balance import IMBALANCE, imbalance
from funnel.solver.part_budgets import Budgets, budgets_of
from funnel.solver.part_flows import PartFlows

_INFINITY = highspy.kHighsInf
# The relatively smaller budgets that are solved for; and what counts as broken, in people, for the largest coefficient.
_MARGIN, _BROKEN = 1e-7, 1e-7
# Tolerances of the solver in people, one after the other where it fails; conditions of a part that a round adds.
_TOLERANCES, _PER_PART, _ROUNDS = (1e-9, 1e-8, 1e-7), 3, 1_000
# What a condition that whole numbers break is moved inside by, in people; how much more each time, and how often.
_INSIDE, _FURTHER, _TRIES = 1e-6, 10.0, 6


@dataclass(frozen=True, eq=False)
class Moves:
    """A protocol between parts.

    Attributes
    ----------
    weights : ndarray of uint64, shape (k, k), or (c·k, c·k) where the secret is published
        P(published part | true part) in units of 2^-63; the diagonal is of records that stay.
    unchanged : float
        Share of the records that stay.
    bound : float
        No protocol between these parts with donors drawn evenly leaves more; none whose moves do not read the secret.
    """

    weights: WeightArray
    unchanged: float
    bound: float


def best_moves(joint: Joint, guarantee: Guarantee, progress: Progress, least: float = 0.0) -> Moves:
    """The protocol between parts that leaves most records, in balance and within all bounds, decided exactly.

    Parameters
    ----------
    joint : Joint
        Over parts of classes; over the secret and these where it is published.
    guarantee : Guarantee
        lip or rlip, srlip or both; attribute, with srlip or alone, where the secret is published.
    progress : callable
    least : float
        Where a smaller share of the records stays the search ends as if no protocol were within the bounds.

    Raises
    ------
    SpecError
        If the guarantee is another.
    InfeasibleGuarantee
        If no protocol between these parts is within the bounds, and leaves so many records.
    SolverError
        If the linear programme fails.

    Notes
    -----
    Variables are people who move from part h to part k and are published there with the secret t, M_t(k, h), and those
    who would stay if all of a part had the secret s, G_t(s, k); without a published secret there is one t and one s.
    Flows are in balance; what an observer of some values must not believe of a secret, after an output, is a row in M
    and G, and rows are added when they are broken. Label LDP is G_t(s, k) <= e^ε G_t(s', k). In the population there is
    such a row for everything that held-out records leave open of how common a secret is in each class.
    """
    budgets = budgets_of(guarantee)
    if reads_secret(joint) != math.isfinite(budgets.labels):
        raise SpecError(
            f"attribute goes with a published secret between parts of classes, and {guarantee} does not fit"
        )
    known = AnyColumn.of(joint, budgets.knowing < math.inf).distinct
    of_labels = [part for part in parts_of(guarantee) if isinstance(part, Attribute)]
    limits = None if budgets.alpha is None else ClassLimits.of(joint, budgets.alpha)
    programme = _Programme(known, budgets, limits)
    moved_in = _INSIDE
    for _ in range(_TRIES):
        programme.run(progress, least)
        weights = integer_weights(programme.channel())
        broken = known.broken(weights, budgets.alone, budgets.knowing)
        open_ = [] if limits is None else limits.broken(weights, budgets.population)
        proven = not (broken or open_) and all(part.holds_for(joint, weights) for part in of_labels)
        if proven and imbalance(joint, weights) <= IMBALANCE:
            unchanged = float((weights.diagonal() / float(DENOMINATOR)) @ joint.p_input)
            return Moves(weights, unchanged, max(unchanged, programme.bound))
        programme.move_inside(broken, open_, moved_in)
        moved_in *= _FURTHER
    raise SolverError("no protocol in whole numbers was found near the optimum; change epsilon slightly")


# A side of a bound, what is known, an output, and whether a record of it agrees with that. Below 0 nothing is
# known, and shares of the secret are others: those of `_Programme._beliefs`, counted from the end.
_Key = tuple[int, int, int, bool]
# Variables and their coefficients.
_Row = tuple[IntArray, FloatArray]


class _Programme:
    """The linear programme, with the rows that were broken so far."""

    def __init__(self, known: AnyColumn, budgets: Budgets, open_: ClassLimits | None) -> None:
        self._known, self._of, self._open = known, PartFlows.of(known), open_
        # P(secret | part) that held-out records leave open, (k,), and where they are.
        self._beliefs: list[FloatArray] = []
        self._believed: dict[bytes, int] = {}
        self._population = budgets.population
        self._shares = known.people / known.sizes
        self._ratio = capped_exp(budgets.labels * (1 - _MARGIN)), capped_exp(budgets.labels)
        of_all = np.append(budgets.alone, np.full(len(known.known), budgets.knowing))
        self._limits, self._exactly = self._sides(of_all * (1 - _MARGIN)), self._sides(of_all)
        self._rows: dict[_Key, int] = {}
        self._most, self._shut = self._of.largest(), set[_Key]()
        self._solver = self._begun()
        self._prices = np.zeros(self._fixed)
        self._add((side, 0, output, True) for side in range(len(self._limits)) for output in range(self._of.outputs))

    def _sides(self, budgets: FloatArray) -> FloatArray:
        """The limit of each belief, shape (sides, v); sides are up and down by secret."""
        factors = np.array([capped_exp(budget) for budget in budgets])
        return np.stack([factors**sign * prior for prior in self._known.before for sign in (1, -1)])

    @property
    def _fixed(self) -> int:
        """Rows that are there from the start."""
        return len(self._of.balance[1]) + len(self._of.label_pairs[0])

    def _begun(self) -> highspy.Highs:
        """Balance and label LDP; as many as possible stay."""
        from scipy.sparse import vstack

        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, value in (("output_flag", False), ("parallel", "off"), ("threads", 1), ("random_seed", 0)):
            solver.setOptionValue(option, value)
        equations, values = self._of.balance
        matrix = vstack([equations, self._of.labels(self._ratio[0])], format="csc")
        further = np.zeros(self._fixed - len(values))
        programme = highspy.HighsLp()
        programme.num_row_, programme.num_col_ = matrix.shape
        programme.col_cost_ = -self._of.unchanged
        programme.col_lower_, programme.col_upper_ = np.zeros(len(self._most)), self._most
        programme.row_lower_ = np.concatenate([values, further - _INFINITY])
        programme.row_upper_ = np.concatenate([values, further])
        programme.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        programme.a_matrix_.start_ = matrix.indptr.astype(np.int32)
        programme.a_matrix_.index_ = matrix.indices.astype(np.int32)
        programme.a_matrix_.value_ = matrix.data
        solver.passModel(programme)
        return solver

    def _row(self, key: _Key, exactly: bool = False) -> _Row:
        """A condition on what comes to an output, and on what stays there if it agrees."""
        side, known, output, agrees = key
        secret, sign = side // 2, 1 - 2 * (side % 2)
        if known < 0:
            tells, shares = self._beliefs[known], self._shares[0]
            budget = self._population if exactly else self._population * (1 - _MARGIN)
            limit = capped_exp(budget) ** sign * float(tells @ self._known.sizes) / self._known.sizes.sum()
        else:
            tells, shares = self._known.given[secret], self._shares[known]
            limit = (self._exactly if exactly else self._limits)[side, known]
        published, part = divmod(output, len(self._known.sizes))
        come = shares * sign * (tells - limit)
        come[part] = 0.0
        every = np.arange(self._of.secrets)
        own = -sign * limit * self._of.mass[:, part]
        own[secret if self._known.publishes else 0] += sign * tells[part]
        columns = [output * len(come) + np.arange(len(come)), self._of.stay(np.array(published), every, np.array(part))]
        values = np.concatenate([come, own if agrees else 0.0 * own])
        some = np.flatnonzero(values)
        return np.concatenate(columns)[some], values[some]

    def _opened(self, secret: int, upward: bool, output: int, shares: IntArray) -> _Key:
        """The row of shares of a secret in classes that held-out records leave open."""
        limits = self._open
        if limits is None:
            raise ValueError("only a bound in the population has such rows")
        number = self._believed.setdefault(shares.tobytes(), -1 - len(self._beliefs))
        if number == -1 - len(self._beliefs):
            # Counted from the end, so that the numbers of the others stay what they are.
            self._beliefs.insert(0, shares[limits.class_of] / UNIT)
        return 2 * secret + (not upward), number, output, True

    def _add(self, keys: Iterable[_Key]) -> bool:
        """Add rows that are not there; whether there were such."""
        places, values, shut = [], [], len(self._shut)
        for key in keys:
            columns, row = self._row(key)
            if key in self._rows or key in self._shut or not len(row):
                continue
            if row.min() >= 0:
                # Nobody else brings the belief back, so these do not come at all: exactly, and not within a tolerance.
                self._shut.add(key)
                self._close(columns)
                continue
            self._rows[key] = len(self._rows)
            places.append(columns)
            values.append(row / np.abs(row).max())
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

    def _close(self, columns: IntArray) -> None:
        """Let variables be 0; with people of one secret who stay those of every other, as label LDP has it."""
        size = len(self._known.sizes)
        published, rest = np.divmod(columns[columns >= self._of.moves] - self._of.moves, self._of.outputs)
        every = np.arange(self._of.secrets)[:, np.newaxis]
        columns = np.concatenate([columns, self._of.stay(published, every, rest % size).ravel()])
        none = np.zeros(len(columns))
        self._most[columns] = 0.0
        self._solver.changeColsBounds(len(columns), columns.astype(np.int32), none, none)

    def run(self, progress: Progress, least: float) -> None:
        """Solve, and add the rows that are broken, until none is.

        Raises
        ------
        InfeasibleGuarantee, SolverError
            As `best_moves`.
        """
        for _ in range(_ROUNDS):
            self._solve()
            share = float(self._of.unchanged @ self._flows) / self._known.sizes.sum()
            progress(f"{share:.5f} of the records unchanged at most", 0, None)
            # Further rows leave no more.
            if share < least:
                raise InfeasibleGuarantee(f"no protocol leaves {least:.0%} of the records unchanged; ask for fewer")
            if not self._add([*self._broken(), *self._broken_in_population()]):
                return
        raise SolverError("the search for a protocol between parts does not end; change epsilon slightly")

    def _broken(self) -> Iterator[_Key]:
        """The rows that flows break most, of every output and side."""
        known, secrets, mass = self._known, self._of.secrets, self._of.mass
        moved, stays = self._of.split(self._flows)
        people = np.tile(known.people, (1, secrets))
        sizes, weighted = np.tile(known.sizes, secrets), (stays * mass).sum(axis=1).ravel()
        for side, limits in enumerate(self._limits):
            secret, sign = side // 2, 1 - 2 * (side % 2)
            tells = known.given[secret]
            brought = self._shares * sign * (tells - limits[:, np.newaxis])
            come, largest = brought @ moved.T, np.abs(brought).max(axis=1)[:, np.newaxis]
            read = secret if known.publishes else 0
            stay = sign * ((stays[:, read] * tells).ravel() - limits[:, np.newaxis] * weighted)
            of_each = [tells * (s == read) - limits[:, np.newaxis] * of_secret for s, of_secret in enumerate(mass)]
            together = np.maximum(largest, np.tile(np.abs(of_each).max(axis=0), (1, secrets)))
            for agrees, amounts in (
                (False, np.where(people < sizes, come / largest, 0.0)),
                (True, np.where(people > 0, (come + stay) / together, 0.0)),
            ):
                for output in np.flatnonzero((amounts > _BROKEN).any(axis=0)).tolist():
                    some = np.flatnonzero(amounts[:, output] > _BROKEN)
                    for one in some[np.argsort(-amounts[some, output])[:_PER_PART]].tolist():
                        yield side, one, output, agrees

    def _broken_in_population(self) -> Iterator[_Key]:
        """The same of shares that held-out records leave open: of every output, secret and side the worst."""
        if self._open is None:
            return
        moved, stays = self._of.split(self._flows)
        people, every = moved.copy(), np.arange(len(self._known.sizes))
        people[every, every] = stays[0, 0]
        limit = capped_exp(self._population * (1 - _MARGIN))
        for secret, upward, ratios, shares in self._open.extremes(people):
            for output in np.flatnonzero(ratios > limit * (1 + _BROKEN)).tolist():
                yield self._opened(secret, upward, output, shares[output])

    def _solve(self) -> None:
        for tolerance in _TOLERANCES:
            self._solver.setOptionValue("primal_feasibility_tolerance", tolerance)
            self._solver.setOptionValue("dual_feasibility_tolerance", tolerance)
            self._solver.run()
            status = self._solver.getModelStatus()
            if status == highspy.HighsModelStatus.kOptimal:
                solution = self._solver.getSolution()
                self._flows: FloatArray = np.clip(np.array(solution.col_value), 0.0, self._most)
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

    def move_inside(self, broken: list[Condition], open_: list[Belief], by: float) -> None:
        """Ask more of conditions that whole numbers break."""
        keys = [(2 * one.secret + (not one.upward), one.known, one.output, one.agrees) for one in broken]
        keys += [self._opened(one.secret, one.upward, one.output, one.shares) for one in open_]
        self._add(keys)
        for key in keys:
            if key in self._rows:
                self._solver.changeRowBounds(self._fixed + self._rows[key], -_INFINITY, -by)

    @property
    def bound(self) -> float:
        """What the prices of the last round prove of all protocols, whatever the tolerances of the solver are.

        For prices z of balance and π >= 0 of conditions with rows a no flows leave more than z · people + Σ max(0,
        1[stays] - z - π a) times what a variable is at most; or times 0 where a row without a negative number is above
        0.
        """
        prices, of_labels, of_rows = np.split(-self._prices, [len(self._of.balance[1]), self._fixed])
        equations, values = self._of.balance
        gains = self._of.unchanged - equations.T @ prices
        gains -= self._of.labels(self._ratio[1]).T @ np.maximum(0.0, of_labels)
        for key, price in zip(self._rows, np.maximum(0.0, of_rows), strict=True):
            if price:
                scale = np.abs(self._row(key)[1]).max()
                columns, row = self._row(key, exactly=True)
                gains[columns] -= price / scale * row
        proven = prices @ values + (np.maximum(0.0, gains) * self._proven_most).sum()
        return float(proven / self._known.sizes.sum())

    @property
    def _proven_most(self) -> FloatArray:
        """What each variable is at most, without a margin."""
        most = self._of.largest()
        for key in self._shut:
            columns, row = self._row(key, exactly=True)
            if row.min() >= 0:
                most[columns] = 0.0
        return most

    def channel(self) -> FloatArray:
        """P(output | input) of the flows that were found, (o, o)."""
        return self._of.channel(self._flows, self._ratio[0])
