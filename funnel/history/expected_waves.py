"""Expected waves: rows of units decided from published tables alone, and drawn for those who really have them.

Where rows are decided for the histories that units have, and what these draw from on average is published, exact data
are in both. Here every wave is decided for the units that published tables lead one to expect in it, and the effective
channel is the mean over these: nothing is published but functions of published tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.base import Level, Witness
from funnel.history.allowed import Kept
from funnel.history.changes import Changes, MoveLimits
from funnel.history.distributions import distributions_before
from funnel.history.expected import LEAST, MOST, Attending, Expected, answered, expected_people, likeliest
from funnel.history.fitting import Fitted, fitted
from funnel.history.library import balanced
from funnel.history.observed import Observed
from funnel.history.past import Past, wave_name
from funnel.history.step import Step
from funnel.history.waves import RowPlan, UnitVersion, Wave, part_of
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import WeightArray
from funnel.rounding import marginal_weights

# Shares of units are of so many parts where effective channels are averaged.
_PARTS = 1 << 30


@dataclass(frozen=True, eq=False)
class ExpectedUnits:
    """What published tables tell of the units of a version: all that is made of them is made of this.

    Parameters
    ----------
    who : Attending
        In the first wave, by what was published of them before.
    observed : Observed
        The same as people, with the published counts of first rows, and the distribution of changes from the last row
        of a unit in an earlier version.
    within : Changes
        The distribution of the change from a row of a unit to the next.
    waves : sequence of int
        About how many units have a first row, a second one, …: falling, and one number at least, above zero.
    limits : MoveLimits, optional
        What is open of how second rows follow first ones, where the bound is to hold for all of that.
    """

    who: Attending
    observed: Observed
    within: Changes
    waves: Sequence[int]
    limits: MoveLimits | None = None

    @property
    def first(self) -> Joint:
        """Published counts of first rows."""
        return self.observed.joint

    def going_on(self, row: int) -> float:
        """The share of those with such a row who are expected to have one more."""
        return self.waves[row] / self.waves[row - 1] if row < len(self.waves) and self.waves[row - 1] else 0.0

    def begin(self, asked: UnitVersion, declared: Kept) -> RowPlan:
        """The plan of a version, whose target is for the published distribution of first rows.

        A unit with a history that is not predicted draws from a channel of the library that keeps the bound for the
        distribution of that history, and from what tells nothing after the last wave that is expected. Every wave has
        an effective channel that keeps the bound for an observer who reads it alone, and so has their mean.
        """
        return _ExpectedRows(asked, self, declared)


@dataclass(frozen=True, eq=False)
class _Wave:
    """What becomes of the units in a wave: histories and outputs, sorted, people with each, and all others."""

    nodes: IntArray
    outputs: IntArray
    people: FloatArray
    others: float

    def following(self, first: int, share: float) -> Attending:
        """Who is expected in the next wave, if histories are numbered from ``first`` on; the others stay."""
        there, left = share * self.people, (1 - share) * self.people
        on, stay = likeliest(there, MOST), np.flatnonzero(left >= LEAST)
        others = share * self.others + float(there.sum() - there[on].sum())
        lost = (1 - share) * self.others + float(left.sum() - left[stay].sum())
        return Attending(first + on, there[on], others, Expected(first + stay, left[stay], np.array([lost])))


class _ExpectedRows:
    def __init__(self, asked: UnitVersion, units: ExpectedUnits, declared: Kept) -> None:
        self._asked, self._units, self._declared, self._work = asked, units, declared, asked.work
        self._who, self._observed, self.depth = units.who, units.observed, len(units.waves)
        self._told = _Wave(asked.nodes[:0], asked.nodes[:0], np.zeros(0), 0.0)
        self._ends: list[Expected] = []
        self._decided: list[Step] = []
        self._found: list[Fitted] = []
        self._shares: list[float] = []

    def decide(self, past: Past, wave: Wave) -> tuple[Step, IntArray] | None:
        units, distribution, row = self._units, self._units.first, wave.row
        since = units.observed.changes if row == 1 else {len(past) - 1: units.within}
        there = _those_there(distribution, since, wave)
        if row <= self.depth and len(self._who.nodes):
            step = self._predicted(past, since, row)
            self._found.append(
                Fitted(_no_further(step), step, 0, 0)
                if there is None
                else fitted(step, there, self._asked.terms.utility)
            )
        elif there is not None:
            self._told = _Wave(wave.had[:0], wave.had[:0], np.zeros(0), 0.0)
            self._found.append(_silent(self._decided[-1], past, wave_name(self._asked.terms.version, row), there))
        else:
            return None
        told = self._told
        # Unless the wave is drawn, and then until it is.
        self._who = replace(told.following(0, 0.0), others=told.others)
        return self._found[-1].step, told.nodes * len(self._asked.terms.aim.outputs) + told.outputs

    def _predicted(self, past: Past, since: Mapping[int, Changes], row: int) -> Step:
        """The step for the units that are expected, and what becomes of them."""
        units, who, secrets = self._units, self._who, self._observed.secrets
        distribution, waves = units.first, units.waves
        # In the first wave those whose history nobody knows are in the effective channel.
        share = 0.0
        if row > 1:
            limits = None if units.limits is None else {len(past) - 1: units.limits}
            of_wave = expected_people(past, replace(who, others=0.0), distribution, since, limits, secrets)
            self._observed = replace(of_wave, row=row, of_units=True)
            share = who.others / (float(who.people.sum()) + who.others)
        step = self._asked.step(past, self._observed, part_of(self._work, waves[row - 1], sum(waves[row:])))
        self._shares.append(share)
        self._decided.append(step)
        distributions = distributions_before(past, who.nodes, distribution, since).values.sum(axis=1)
        self._told = _Wave(*answered(who, distributions, step.library, step.drawn_from))
        return step

    def answered(self, first: int) -> None:
        row = len(self._found)
        if row == len(self._decided):
            self._who = self._told.following(first, self._units.going_on(row))
            self._ends.append(self._who.away)

    def ended(self, before: IntArray, chapters: int) -> tuple[Step, Fitted, Expected]:
        asked, units = self._asked, self._units
        distribution, changes = units.first, units.observed.changes
        channel = asked.channel(
            distribution, _mean(self._declared, distribution, self._decided, self._shares, units.waves)
        )
        people = asked.drawn_people(distribution, changes, before, units.observed.secrets)
        together = Fitted(
            Step.of_waves([one.step for one in self._found], people, asked.terms.aim, channel),
            Step.of_waves(self._decided, units.observed, asked.terms.aim, channel),
            sum(one.silent for one in self._found),
            sum(one.unpredicted for one in self._found),
        )
        # With histories that were to go on, and that nobody could be expected to have any more.
        lost = Expected(before[:0], np.zeros(0), np.array([self._who.others]))
        return together.step, together, _expected_after_rows(units.who, [*self._ends, lost], chapters)


def _those_there(distribution: Joint, since: Mapping[int, Changes], wave: Wave) -> Observed | None:
    """The units that really are in a wave, for an observer who knows published tables; None if there is nobody."""
    a = len(distribution.inputs)
    gone = wave.gone % a
    if not len(wave.had) + len(gone):
        return None
    # Who is forgotten counts as new.
    pairs, records = np.unique(np.concatenate([wave.had * a + wave.cells % a, gone]), return_counts=True)
    return Observed(
        distribution,
        since,
        pairs // a,
        pairs % a,
        records,
        np.bincount(gone, minlength=a),
        totals=_adding_up(distribution, np.bincount(pairs % a, records, a).astype(np.int64)),
        row=wave.row,
        of_units=True,
    )


def _adding_up(like: Joint, inputs: IntArray) -> Joint:
    """Any counts with these sums by input: nothing else is asked of them."""
    counts = np.zeros_like(like.counts)
    counts[0] = inputs
    return Joint(counts, like.secret, like.inputs)


def _silent(last: Step, past: Past, version: str, there: Observed) -> Fitted:
    """A wave that nobody expects: everybody in it draws from what tells nothing."""
    nodes = np.unique(there.nodes)
    step = replace(
        last,
        version=version,
        past=past,
        observed=there,
        library=np.repeat(last.channel.marginal[None, :, None], len(last.channel.inputs), axis=2),
        followed=nodes,
        drawn_from=np.zeros(len(nodes), dtype=np.int64),
    )
    people = int(there.records.sum())
    return Fitted(_no_further(step), step, people, people)


def _no_further(step: Step) -> Step:
    """A wave after which nobody is further than before: of rows that tell nothing, or of nobody."""
    nothing = Level(0.0, Witness(0, 0, None, Fraction(1), True))
    reached = tuple(replace(one, level=0.0, moved_level=None) for one in step.by_observer)
    return replace(step, level=nothing, worst=None, worst_secret_of=None, by_observer=reached)


def _mean(
    declared: Kept, distribution: Joint, decided: list[Step], shares: list[float], waves: Sequence[int]
) -> WeightArray:
    """Σ_k T_k W_k / Σ_k T_k, W_k = (1 - λ_k) V_k + λ_k v_k: a mixture with shares that no input has a part in.

    In whole numbers, with λ in parts of 2^-30; what is missing to 2^63 goes to the largest of a column.
    """
    sums = np.zeros_like(decided[0].channel.weights, dtype=object)
    for step, share, units in zip(decided, shares, waves, strict=False):
        told = step.channel.weights.astype(object)
        alike = marginal_weights(distribution, step.channel.weights).astype(object)
        unknown = round(share * _PARTS)
        sums = sums + units * ((_PARTS - unknown) * told + unknown * alike[:, None])
    total = _PARTS * sum(waves[: len(decided)])
    weights: WeightArray = np.asarray(balanced((sums // total).astype(np.uint64)[None])[0])
    if not declared.holds_for(distribution, weights):
        raise SpecError(
            "the mean over the rows of a unit leaves the bound for this version alone, by rounding; set a slightly "
            "smaller budget_fraction in [history]"
        )
    return weights


def _expected_after_rows(who: Attending, ends: list[Expected], chapters: int) -> Expected:
    """How many units are expected to have which history after their last row, and before, of those who were away."""
    before = who.away
    lost = np.zeros(chapters)
    lost[: len(before.lost)] = before.lost
    lost[len(before.lost)] = sum(float(one.lost[0]) for one in ends)
    return Expected(
        np.concatenate([before.nodes, *(one.nodes for one in ends)]),
        np.concatenate([before.people, *(one.people for one in ends)]),
        lost,
    )
