"""Waves: a version in which people have several rows, decided and drawn row by row under one bound for all of them.

The rows of a unit are a history within the version: the first rows of all units are one wave, the second rows the next,
each drawn given everything that the unit's rows before have shown, in this version and in earlier ones. The recursion
is the same whoever the rows are decided for: the units that there are (`CountedUnits`), or those that published tables
lead one to expect (`funnel.history.expected_waves.ExpectedUnits`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol as Interface

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.rsrlip import RSRLIP
from funnel.guarantees.srlip import SRLIP
from funnel.history.allowed import Kept, allowed_by, require_posterior
from funnel.history.changes import Changes, MoveLimits
from funnel.history.decisions import numbered
from funnel.history.expected import Expected
from funnel.history.fitting import Fitted
from funnel.history.following import VersionTerms, inner_bound
from funnel.history.observed import Members, Observed, Secrets
from funnel.history.past import Past, wave_name
from funnel.history.step import Step
from funnel.history.unit_rows import MOST_MEMBERS, UnitRows, counted_cells, row_changes, second_rows
from funnel.history.whole import Whole
from funnel.joint import IntArray, Joint
from funnel.protocol import INVARIANT, Protocol, WeightArray
from funnel.rounding import marginal_weights
from funnel.solver.budget import Budget
from funnel.solver.optimum import optimal

# Seconds of work for all waves together; a wave may take its part of what is left, by its rows, and some more. Longer
# searches fit rows to what is expected of people, and keep next to no more of what they have.
_SECONDS, _MORE = 24.0, 1.5

Draw = Callable[[Step, IntArray, IntArray], IntArray]
"""Outputs of the rows of a wave, (k,): from the step, the numbers of the rows, and the history of each before it."""


@dataclass(frozen=True, eq=False)
class UnitVersion:
    """A version of several rows a unit that is to be decided and drawn.

    Parameters
    ----------
    past : Past
    rows : UnitRows
        In an order that is unrelated to what is in them.
    cells : ndarray of int64, shape (rows,)
        Secret and input of every row, by their places in ``joint``.
    joint : Joint
        Counts (c, a) of all rows.
    nodes : ndarray of int64, shape (units,)
        What was published of every unit before; -1 of those that are forgotten.
    terms : VersionTerms
    """

    past: Past
    rows: UnitRows
    cells: IntArray
    joint: Joint
    nodes: IntArray
    terms: VersionTerms

    @property
    def work(self) -> Budget:
        """What all waves may take together."""
        return Budget.of(_SECONDS if self.terms.budget is None else self.terms.budget)

    def step(
        self, past: Past, observed: Observed, budget: Budget, *, read_alone: bool = True, whole: Whole | None = None
    ) -> Step:
        """Decide a wave, whose outputs are numbered in all of them."""
        name, aim = wave_name(self.terms.version, observed.row), self.terms.aim
        # Sets of values are named once all rows are drawn.
        target = aim if aim.is_invariant else replace(aim, outputs=numbered(aim.outputs))
        of_wave = replace(self.terms, version=name, target=target, budget=budget)
        return of_wave.decide(past, observed, read_alone=read_alone, whole=whole)

    def channel(self, distribution: Joint, weights: WeightArray) -> Protocol:
        """The effective channel of all rows."""
        marginal, outputs = marginal_weights(distribution, weights), self.terms.aim.outputs
        mechanism = INVARIANT if self.terms.aim.is_invariant else "history"
        return Protocol(weights, marginal, distribution.inputs, outputs, mechanism, str(self.terms.guarantee))

    def drawn_people(
        self, distribution: Joint, changes: Mapping[int, Changes], before: IntArray, secrets: Secrets
    ) -> Observed:
        """All rows as people with a history before each (-1 if forgotten), for an observer of a distribution."""
        inputs, a = self.cells % len(self.joint.inputs), len(self.joint.inputs)
        pairs, records = np.unique(np.maximum(before, 0) * a + inputs, return_counts=True)
        silent = np.bincount(inputs[before < 0], minlength=a)
        totals = None if distribution is self.joint else self.joint
        return Observed(distribution, changes, pairs // a, pairs % a, records, silent, totals=totals, secrets=secrets)


@dataclass(frozen=True, eq=False)
class Wave:
    """The rows of a version that come next in their units: the history before each, and their cells.

    ``gone`` are the cells of first rows of units that are forgotten: later ones are drawn as the first are.
    """

    row: int
    had: IntArray
    cells: IntArray
    gone: IntArray


class RowPlan(Interface):
    """What the rows of a version are decided by, wave after wave."""

    @property
    def depth(self) -> int:
        """Waves that are decided whether a unit has so many rows or not."""

    def decide(self, past: Past, wave: Wave) -> tuple[Step, IntArray] | None:
        """The step of a wave, and the numbers ``history * b + output`` that are predicted; None where all is done."""

    def answered(self, first: int) -> None:
        """Note that the wave was drawn, and that predicted histories are numbered from ``first`` on."""

    def ended(self, before: IntArray, chapters: int) -> tuple[Step, Fitted | None, Expected | None]:
        """All waves together, given the history before every row, and how many chapters there are now."""


class UnitPlan(Interface):
    """Whom the rows of a version are decided for."""

    def begin(self, asked: UnitVersion, declared: Kept) -> RowPlan:
        """The plan of a version."""


@dataclass(frozen=True, eq=False)
class Waves:
    """A version of several rows a unit: what was decided and drawn.

    Attributes
    ----------
    step : Step
        All waves as one: over all rows, with every history that a row was drawn given, also those within the version.
    past : Past
        With all waves in it.
    outputs, before, after : ndarray of int64, shape (rows,)
        What was drawn; the history of every row's unit before it, and after it. -1 for units that are forgotten.
    fitted : Fitted, optional
        Where rows were decided for the units that are expected: the step, and that of expected units alone.
    expected : Expected, optional
        And how many of these stand where after their last row.
    """

    step: Step
    past: Past
    outputs: IntArray
    before: IntArray
    after: IntArray
    fitted: Fitted | None = None
    expected: Expected | None = None


def part_of(work: Budget, rows: int, left: int) -> Budget:
    """What a wave of so many rows may take of the work, where so many are left after it."""
    return work.part(min(1.0, _MORE * rows / max(1, rows + left)))


def follow_waves(asked: UnitVersion, units: UnitPlan, draw: Draw) -> Waves:
    """Decide and draw a version row by row, at one bound for all rows of a unit and all versions together.

    An observer who can link all rows of a unit, and knows how common every (secret, input) is among the first rows of
    units, how often a row follows another in a unit, and all channels, starts from how common secrets are among units.
    Their posterior of a unit's secret is within the guarantee after every row. How many rows a unit has is taken for
    known: it is no evidence.

    The distribution of the change from a row to the next is that of all pairs of successive rows, whichever they are:
    with rows in a random order all such pairs of a unit are alike, and deep waves have too few units for a distribution
    of their own.

    Parameters
    ----------
    asked : UnitVersion
    units : CountedUnits or ExpectedUnits
    draw : callable

    Raises
    ------
    SpecError
        As `funnel.history.following.VersionTerms.decide`.
    DataError
        If changes from the last version of some history are missing.

    Notes
    -----
    A wave for every row of the unit that has most. Arrays of some 100 bytes a row.
    """
    declared, terms = require_posterior(asked.terms.guarantee), asked.terms
    past, rows, nodes = asked.past, asked.rows, asked.nodes.copy()
    plan = units.begin(asked, declared)
    outputs, before, after = (np.full(len(asked.cells), -1, dtype=np.int64) for _ in range(3))
    for row in range(1, max(rows.deepest, plan.depth) + 1):
        wave = rows.at(row)
        is_known = nodes[rows.units[wave]] >= 0
        gone = wave[~is_known] if row == 1 else wave[:0]
        wave = wave[is_known]
        had = nodes[rows.units[wave]]
        terms.progress(f"row {row} of every unit", int(np.count_nonzero(rows.places < row)), len(asked.cells))
        decided = plan.decide(past, Wave(row, had, asked.cells[wave], asked.cells[gone]))
        if decided is None:
            break
        step, predicted = decided
        # Nobody may be in a wave that is expected, or that is of forgotten units alone.
        said = draw(step, wave, had) if len(wave) else had
        if row > 1 and not len(said) and not len(predicted):
            # Histories that nobody is expected to have, and nobody has.
            break
        chapter, reached = step.published(had, said, predicted)
        outputs[wave], before[wave], after[wave] = said, had, reached
        nodes[rows.units[wave]] = reached
        past = past.followed_by(chapter)
        plan.answered(chapter.first)
    together, fitted, expected = plan.ended(before, len(past))
    return Waves(together, past, outputs, before, after, fitted, expected)


@dataclass(frozen=True, eq=False)
class CountedUnits:
    """Rows decided for the units that there are, whose counts are exact.

    Parameters
    ----------
    changes : mapping of int to Changes
        From the last row of a unit in an earlier version to its first row here, by the ordinal of every chapter of
        that version. Counts of all units in both.
    read_alone : bool
        As `funnel.history.following.VersionTerms.decide` takes it, for all rows as a whole.
    secrets : "all" or "current"
        Whether the secrets of earlier versions are bounded too.
    """

    changes: Mapping[int, Changes]
    read_alone: bool = False
    secrets: Secrets = "all"

    def begin(self, asked: UnitVersion, declared: Kept) -> RowPlan:
        """The plan of a version."""
        if asked.terms.target is None:
            inner = inner_bound(declared, asked.terms.reserve)
            asked = replace(asked, terms=replace(asked.terms, target=_optimum(asked, inner)))
        return _CountedRows(asked, self, declared)


def _optimum(asked: UnitVersion, inner: Kept) -> Protocol:
    """The optimum of all rows, read as rows of different people."""
    return optimal(asked.joint, inner, utility=asked.terms.utility, time_limit=asked.terms.budget).protocol


class _CountedRows:
    depth = 0

    def __init__(self, asked: UnitVersion, units: CountedUnits, declared: Kept) -> None:
        self._asked, self._units, self._declared = asked, units, declared
        self._target, rows = asked.terms.aim, asked.rows
        self._work = asked.work
        # Who is forgotten is counted among units, as all are, and in no change.
        known = asked.nodes[rows.units] >= 0
        of_known = UnitRows(rows.units[known], rows.places[known])
        known_first = asked.cells[known & (rows.places == 1)] % len(asked.joint.inputs)
        first = counted_cells(asked.cells[rows.at(1)], asked.joint)
        self._within = row_changes(of_known, asked.cells[known], first) if rows.deepest > 1 else None
        self._second: MoveLimits | None = None
        if allowed_by(declared).significance is not None and self._within is not None:
            self._second = MoveLimits.of_rows(*second_rows(of_known, asked.cells[known], asked.joint))
        own = self._within is not None and not self._within.keep_secrets(len(asked.joint.inputs))
        one_by_one = own or isinstance(declared, SRLIP | RSRLIP)
        if one_by_one:
            rows.require_few(MOST_MEMBERS, " that are bounded one by one")
        self._members = Members(self._within, rows.deepest) if self._within is not None and one_by_one else None
        constant = marginal_weights(asked.joint, self._target.weights)
        self._whole = Whole.beginning(asked.joint, constant, int(known.sum()))
        if self._target.is_invariant:
            inputs = np.bincount(known_first, minlength=len(asked.joint.inputs))
            self._whole = self._whole.parted(inputs, declared)
        self._steps: list[Step] = []

    def decide(self, past: Past, wave: Wave) -> tuple[Step, IntArray] | None:
        if wave.row > 1 and not len(wave.had):
            return None
        asked, units = self._asked, self._units
        a = len(asked.joint.inputs)
        cells = np.concatenate([wave.cells, wave.gone])
        had = np.concatenate([wave.had, np.zeros_like(wave.gone)])
        since = units.changes if wave.row == 1 or self._within is None else {len(past) - 1: self._within}
        of_wave = counted_cells(cells, asked.joint)
        observed = replace(
            Observed.counted(of_wave, since, had, cells % a),
            row=wave.row,
            secrets=units.secrets,
            of_units=True,
            members=self._members,
            limits=self._limits(past, wave.row, since, of_wave),
            silent=np.bincount(wave.gone % a, minlength=a),
        )
        left = int(np.count_nonzero(asked.rows.places > wave.row))
        part = part_of(self._work, len(cells), left)
        step = asked.step(past, observed, part, read_alone=units.read_alone, whole=self._whole)
        channels = step.channels_of(observed.nodes)
        self._whole = self._whole.with_rows(observed, step.library, channels)
        self._steps.append(step)
        return step, wave.had[:0]

    def _limits(self, past: Past, row: int, since: Mapping[int, Changes], joint: Joint) -> dict[int, MoveLimits] | None:
        """Exact counts of independent units that limits in a population are those of; None where it is for no one."""
        if allowed_by(self._declared).significance is None:
            return None
        if row > 1 and self._second is not None:
            return {len(past) - 1: self._second}
        return {v: MoveLimits.exactly(one, past.chapters[v].joint, joint) for v, one in since.items()}

    def answered(self, first: int) -> None:
        pass

    def ended(self, before: IntArray, chapters: int) -> tuple[Step, None, None]:
        joint, whole = self._asked.joint, self._whole.ended()
        weights = whole.weights()
        if self._units.read_alone and not self._declared.holds_for(joint, weights):
            raise SpecError(
                "the rows of people who are forgotten would take the effective channel out of the bound for this "
                "version alone; set a smaller budget_fraction in [history]"
            )
        people = self._asked.drawn_people(joint, self._units.changes, before, self._units.secrets)
        return Step.of_waves(self._steps, people, self._target, self._asked.channel(joint, weights)), None, None
