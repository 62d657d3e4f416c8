"""Expected waves: rows of units decided from published tables alone, and drawn for those who really have them.

`funnel.history.waves` decides for the histories that units have, and publishes what they draw from on average: exact
data are in both. Here every wave is decided for the units that published tables lead one to expect in it, and the
effective channel is the mean over these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee, Level, Witness
from funnel.history.allowed import Kept, require_for_rows
from funnel.history.changes import Changes
from funnel.history.decisions import numbered
from funnel.history.distributions import distributions_before
from funnel.history.expected import LEAST, MOST, Attending, Expected, answered, expected_people
from funnel.history.fitting import Fitted, fitted
from funnel.history.following import follow
from funnel.history.library import balanced
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.history.step import Step
from funnel.history.unit_rows import UnitRows
from funnel.history.waves import Draw, Waves, wave_name
from funnel.joint import FloatArray, IntArray, Joint
from funnel.progress import Progress, quiet
from funnel.protocol import Protocol, WeightArray
from funnel.rounding import marginal_weights
from funnel.solver.budget import Budget

# As in `funnel.history.waves`.
_SECONDS, _MORE = 40.0, 1.5
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
        The same as people, with the published counts of first rows, and the law of changes from the last row of a unit
        in an earlier version.
    within : Changes
        The law of the change from a row of a unit to the next.
    waves : sequence of int
        About how many units have a first row, a second one, …: falling, and one number at least, above zero.
    """

    who: Attending
    observed: Observed
    within: Changes
    waves: Sequence[int]

    @property
    def first(self) -> Joint:
        """Published counts of first rows."""
        return self.observed.joint

    def going_on(self, row: int) -> float:
        """The share of those with such a row who are expected to have one more."""
        return self.waves[row] / self.waves[row - 1] if row < len(self.waves) and self.waves[row - 1] else 0.0


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
        likeliest = np.argsort(-there, kind="stable")[:MOST]
        on, stay = np.sort(likeliest[there[likeliest] >= LEAST]), np.flatnonzero(left >= LEAST)
        others = share * self.others + float(there.sum() - there[on].sum())
        lost = (1 - share) * self.others + float(left.sum() - left[stay].sum())
        return Attending(first + on, there[on], others, Expected(first + stay, left[stay], np.array([lost])))


def follow_expected_waves(
    past: Past,
    rows: UnitRows,
    cells: IntArray,
    joint: Joint,
    nodes: IntArray,
    expected: ExpectedUnits,
    guarantee: Guarantee,
    version: str,
    draw: Draw,
    *,
    target: Protocol,
    reserve: float = 1.0,
    budget: float | Budget | None = None,
    progress: Progress = quiet,
) -> Waves:
    """Decide and draw a version row by row, of which nothing is published but functions of published tables.

    A unit with a history that is not predicted draws from a channel of the library that keeps the bound for the law of
    that history, and from what tells nothing after the last wave that is expected. Every wave has an effective channel
    that keeps the bound for whoever reads it alone, and so has their mean.

    Parameters
    ----------
    past, rows, cells, nodes, guarantee, version, draw, reserve, budget, progress
        As `funnel.history.waves.follow_waves` takes them.
    joint : Joint
        Exact counts of all rows, which only the drawing is counted by.
    expected : ExpectedUnits
    target : Protocol
        What is aimed at: for the published law of first rows.

    Raises
    ------
    SpecError
        As `funnel.history.follow`.
    DataError
        If changes from the last version of some history are missing.
    """
    declared = require_for_rows(guarantee)
    if any(chapter.version == version for chapter in past.chapters):
        raise SpecError(f"version {version!r} has been published already; give the next one another name")
    work = Budget.of(_SECONDS if budget is None else budget)
    law, a, b = expected.first, len(joint.inputs), len(target.outputs)
    aim = replace(target, outputs=numbered(target.outputs))
    nodes, xs = nodes.copy(), cells % a
    outputs, before, after = (np.full(len(cells), -1, dtype=np.int64) for _ in range(3))
    who, observed = expected.who, expected.observed
    ends: list[Expected] = []
    decided: list[Step] = []
    found: list[Fitted] = []
    shares: list[float] = []
    for row in range(1, max(rows.deepest, len(expected.waves)) + 1):
        wave = rows.at(row)
        gone = wave[nodes[rows.units[wave]] < 0] if row == 1 else wave[:0]
        wave = wave[nodes[rows.units[wave]] >= 0]
        had = nodes[rows.units[wave]]
        since = observed.changes if row == 1 else {len(past) - 1: expected.within}
        foreseen = row <= len(expected.waves) and len(who.nodes) > 0
        if not foreseen and not len(wave):
            break
        progress(f"row {row} of every unit", int(np.count_nonzero(rows.places < row)), len(cells))
        there = _those_there(law, since, had, xs[wave], xs[gone], row)
        if foreseen:
            if row > 1:
                of_wave = expected_people(past, replace(who, others=0.0), law, since, secrets=observed.secrets)
                observed = replace(of_wave, row=row)
                shares.append(who.others / (float(who.people.sum()) + who.others))
            else:
                # Those whose history nobody knows are in the effective channel of this one.
                shares.append(0.0)
            step = follow(
                past,
                observed,
                declared,
                wave_name(version, row),
                target=aim,
                reserve=reserve,
                read_alone=True,
                budget=work.part(min(1.0, _MORE * expected.waves[row - 1] / max(1, sum(expected.waves[row - 1 :])))),
                progress=progress,
            )
            decided.append(step)
            laws = distributions_before(past, who.nodes, law, since).values.sum(axis=1)
            told = _Wave(*answered(who, laws, step.library, step.drawn_from))
            found.append(Fitted(step, step, 0, 0) if there is None else fitted(step, there))
        else:
            told = _Wave(wave[:0], wave[:0], np.zeros(0), 0.0)
            found.append(_silent(decided[-1], past, wave_name(version, row), there))
        step = found[-1].step
        said = draw(step, wave, had)
        pairs, predicted = had * b + said, told.nodes * b + told.outputs
        codes = np.concatenate([predicted, np.setdiff1d(pairs, predicted)])
        if not len(codes):
            # Histories that nobody is expected to have, and nobody has.
            who = replace(told.following(0, 0.0), others=told.others)
            break
        chapter = step.chapter(codes // b, codes % b)
        order = np.argsort(codes)
        places = order[np.searchsorted(codes, pairs, sorter=order)]
        outputs[wave], before[wave], after[wave] = said, had, chapter.first + places
        nodes[rows.units[wave]] = chapter.first + places
        past = past.followed_by(chapter)
        if foreseen:
            who = told.following(chapter.first, expected.going_on(row))
            ends.append(who.away)
    # With histories that were to go on, and that nobody could be expected to have any more.
    ends.append(Expected(nodes[:0], np.zeros(0), np.array([who.others])))
    silent = np.bincount(xs[before < 0], minlength=a)
    counted = Observed.counted(joint, {}, np.maximum(before, 0), xs)
    people = Observed(
        law,
        expected.observed.changes,
        counted.nodes,
        counted.inputs,
        counted.records,
        silent,
        totals=joint,
    )
    channel = _mean(declared, law, target, decided, shares, expected.waves)
    together = Fitted(
        Step.of_waves([one.step for one in found], people, target, channel),
        Step.of_waves(decided, expected.observed, target, channel),
        sum(one.silent for one in found),
        sum(one.unpredicted for one in found),
    )
    return Waves(together.step, past, outputs, before, after, together, _standing(expected.who, ends, len(past)))


def _those_there(
    law: Joint, since: Mapping[int, Changes], had: IntArray, inputs: IntArray, gone: IntArray, row: int
) -> Observed | None:
    """The units that really are in a wave, for whoever knows published tables; None if there is nobody."""
    a = len(law.inputs)
    if not len(had) + len(gone):
        return None
    pairs, records = np.unique(
        np.concatenate([had * a + inputs, gone]),  # Who is forgotten counts as new.
        return_counts=True,
    )
    return Observed(
        law,
        since,
        pairs // a,
        pairs % a,
        records,
        np.bincount(gone, minlength=a),
        totals=_adding_up(law, np.bincount(pairs % a, records, a).astype(np.int64)),
        row=row,
    )


def _adding_up(like: Joint, inputs: IntArray) -> Joint:
    """Any counts with these sums by input: nothing else is asked of them."""
    counts = np.zeros_like(like.counts)
    counts[0] = inputs
    return Joint(counts, like.secret, like.inputs)


def _silent(last: Step, past: Past, version: str, there: Observed | None) -> Fitted:
    """A wave that nobody expects: everybody in it draws from what tells nothing."""
    if there is None:
        raise ValueError("there is somebody in a wave that is drawn")
    nodes = np.unique(there.nodes)
    step = replace(
        last,
        version=version,
        past=past,
        observed=there,
        library=np.repeat(last.channel.marginal[None, :, None], len(last.channel.inputs), axis=2),
        followed=nodes,
        drawn_from=np.zeros(len(nodes), dtype=np.int64),
        level=Level(0.0, Witness(0, 0, None, Fraction(1), True)),
        worst=None,
        worst_secret_of=None,
    )
    people = int(there.records.sum())
    return Fitted(step, step, people, people)


def _mean(
    declared: Kept,
    law: Joint,
    target: Protocol,
    decided: list[Step],
    shares: list[float],
    waves: Sequence[int],
) -> Protocol:
    """Σ_k T_k W_k / Σ_k T_k, W_k = (1 - λ_k) V_k + λ_k v_k: a mixture with shares that no input has a part in.

    In whole numbers, with λ in parts of 2^-30; what is missing to 2^63 goes to the largest of a column.
    """
    sums = np.zeros((len(target.outputs), len(law.inputs)), dtype=object)
    for step, share, units in zip(decided, shares, waves, strict=False):
        told = step.channel.weights.astype(object)
        alike = marginal_weights(law, step.channel.weights).astype(object)
        unknown = round(share * _PARTS)
        sums = sums + units * ((_PARTS - unknown) * told + unknown * alike[:, None])
    total = _PARTS * sum(waves[: len(decided)])
    weights: WeightArray = np.asarray(balanced((sums // total).astype(np.uint64)[None])[0])
    if not declared.holds_for(law, weights):
        raise SpecError(
            "the mean over the rows of a unit leaves the bound for this version alone, by rounding; set a slightly "
            "smaller budget_fraction in [history]"
        )
    return Protocol(weights, marginal_weights(law, weights), law.inputs, target.outputs, "history", str(declared))


def _standing(who: Attending, ends: list[Expected], chapters: int) -> Expected:
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
