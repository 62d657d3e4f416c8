"""Waves that were foreseen: rows of units decided from published tables alone, and drawn for those who really have them.

`funnel.history.waves` decides for the histories that units have, and publishes what they draw from on average: exact data
are in both. Here every wave is decided for the units that a reader of published tables expects in it, and the effective
channel is the mean over these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee
from funnel.history.allowed import require_posterior
from funnel.history.changes import Changes
from funnel.history.decisions import numbered
from funnel.history.following import follow
from funnel.history.foreseen import Foreseen, with_others
from funnel.history.library import balanced, distinct_channels
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.history.rows import UnitRows, counted_cells
from funnel.history.step import Step
from funnel.history.waves import Draw, Waves, wave_name
from funnel.joint import IntArray, Joint
from funnel.measures import mutual_information
from funnel.progress import Progress, quiet
from funnel.protocol import Protocol, WeightArray
from funnel.rounding import marginal_weights
from funnel.solver.budget import Budget

# As in `funnel.history.waves`.
_SECONDS, _MORE = 40.0, 1.5


@dataclass(frozen=True, eq=False)
class Published:
    """What is published of the units of a version: all that its rows and its effective channel are made from.

    Parameters
    ----------
    first : Joint
        Counts (c, a) of first rows.
    within : Changes
        The law of the change from a row of a unit to the next.
    waves : sequence of int
        About how many units have a first row, a second one, …: falling, at least one number.
    foreseen : Foreseen
        Units by what was published of them before.
    changes : mapping of int to Changes
        From the last row of a unit in an earlier version to its first row here, by the ordinal of every chapter.
    """

    first: Joint
    within: Changes
    waves: Sequence[int]
    foreseen: Foreseen
    changes: Mapping[int, Changes]


def follow_foreseen_waves(
    past: Past,
    rows: UnitRows,
    cells: IntArray,
    joint: Joint,
    nodes: IntArray,
    published: Published,
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

    A unit whose history nobody foresaw draws from the best channel of the library that keeps the bound for its law. Each
    wave has an effective channel that keeps the bound for whoever reads it alone, and so has their mean, by how many
    units are expected in each. Rows beyond the last wave that is foreseen are drawn from the library of that one, and no
    reader counts with them.

    Parameters
    ----------
    past, rows, cells, joint, nodes, guarantee, version, draw, reserve, budget, progress
        As `funnel.history.waves.follow_waves` takes them; ``joint`` is exact, of all rows.
    published : Published
    target : Protocol
        What is aimed at: for the law of first rows.

    Raises
    ------
    SpecError
        As `funnel.history.follow`.
    DataError
        If changes from the last version of some history are missing.
    """
    declared = require_posterior(guarantee)
    if any(chapter.version == version for chapter in past.chapters):
        raise SpecError(f"version {version!r} has been published already; give the next one another name")
    work = Budget.of(_SECONDS if budget is None else budget)
    law, a, b = published.first, len(joint.inputs), len(target.outputs)
    aim = replace(target, outputs=numbered(target.outputs))
    nodes, xs = nodes.copy(), cells % a
    outputs, before, after = (np.full(len(cells), -1, dtype=np.int64) for _ in range(3))
    coming, standing = published.foreseen, [_nobody()]
    steps: list[Step] = []
    others = 0
    for row in range(1, max(rows.deepest, len(published.waves)) + 1):
        wave = rows.at(row)
        wave = wave[nodes[rows.units[wave]] >= 0]
        had = nodes[rows.units[wave]]
        since = published.changes if row == 1 else {len(past) - 1: published.within}
        name = wave_name(version, row)
        foreseen = row <= len(published.waves) and coming.total > 0
        progress(f"row {row} of every unit", int(np.count_nonzero(rows.places < row)), len(cells))
        if foreseen:
            left = sum(published.waves[row - 1 :])
            step = follow(
                past,
                coming.observed(past, law, since, row),
                declared,
                name,
                target=aim,
                reserve=reserve,
                read_alone=True,
                budget=work.part(min(1.0, _MORE * published.waves[row - 1] / left) if left else 1.0),
                progress=progress,
            )
        else:
            if not len(wave):
                break
            step = _beyond(steps[-1], past, law, since, name, row)
        expected = coming.after(step) if foreseen else None
        foreseen_here = len(step.followed) if foreseen else 0
        step = with_others(step, np.unique(had))
        others += len(step.followed) - foreseen_here
        said = draw(step, wave, had)
        pairs = had * b + said
        first = np.zeros(0, dtype=np.int64) if expected is None else expected[0] * b + expected[1]
        both = np.concatenate([first, np.setdiff1d(pairs, first)])
        chapter = step.chapter(both // b, both % b)
        order = np.argsort(both)
        place = order[np.searchsorted(both[order], pairs)] if len(pairs) else pairs
        outputs[wave], before[wave], after[wave] = said, had, chapter.first + place
        nodes[rows.units[wave]] = chapter.first + place
        steps.append(step)
        past = past.followed_by(chapter)
        if expected is not None:
            here = Foreseen(chapter.first + np.arange(len(first)), expected[2])
            on = _going_on(published.waves, row)
            standing.append(Foreseen(here.nodes, here.people * (1 - on)))
            coming = Foreseen(here.nodes, here.people * on)
    together = _together(steps, target, published, joint, before, xs)
    nodes_after = np.concatenate([one.nodes for one in standing])
    foreseen_after = Foreseen(nodes_after, np.concatenate([one.people for one in standing]))
    return Waves(together, past, outputs, before, after, foreseen_after)


def _nobody() -> Foreseen:
    return Foreseen(np.zeros(0, dtype=np.int64), np.zeros(0))


def _going_on(waves: Sequence[int], row: int) -> float:
    """The share of those with such a row who are expected to have one more."""
    return waves[row] / waves[row - 1] if row < len(waves) and waves[row - 1] else 0.0


def _beyond(last: Step, past: Past, law: Joint, since: Mapping[int, Changes], name: str, row: int) -> Step:
    """A step of rows that nobody foresaw, with the library of the one before, and nobody in it yet."""
    none = np.zeros(0, dtype=np.int64)
    # Whoever is there is found as other histories are.
    observed = replace(last.observed, joint=law, changes=since, row=row)
    return replace(last, version=name, past=past, observed=observed, followed=none, drawn_from=none)


def _together(
    steps: list[Step], target: Protocol, published: Published, joint: Joint, before: IntArray, xs: IntArray
) -> Step:
    """All waves as one step over all rows, with the mean of the effective channels of those that were foreseen."""
    first, last, law = steps[0], steps[-1], published.first
    decided = steps[: len(published.waves)]
    weights = _mean([step.channel.weights for step in decided], list(published.waves[: len(decided)]))
    starts = np.cumsum([0, *(len(step.library) for step in steps[:-1])])
    library, drawn_from = distinct_channels(
        np.concatenate([step.library for step in steps]),
        np.concatenate([step.drawn_from + start for step, start in zip(steps, starts, strict=True)]),
    )
    silent = np.bincount(xs[before < 0], minlength=len(joint.inputs))
    counted = Observed.counted(joint, first.observed.changes, np.maximum(before, 0), xs)
    observed = Observed(
        law, counted.changes, counted.nodes, counted.inputs, counted.records, silent, exact=counted.joint
    )
    channel = Protocol(
        weights, marginal_weights(law, weights), law.inputs, target.outputs, "history", str(first.guarantee)
    )
    if not first.guarantee.holds_for(law, weights):
        raise SpecError(
            "the mean over the rows of a unit leaves the bound for this version alone, by rounding; set a slightly "
            "smaller reserve in [history]"
        )
    worst = max(decided, key=lambda step: step.level.value)
    people = published.foreseen.total / max(1, first.observed.exact_joint.n)
    return Step(
        version=first.version,
        guarantee=first.guarantee,
        reserve=first.reserve,
        past=last.past,
        observed=observed,
        target=target,
        channel=channel,
        library=library,
        followed=np.concatenate([step.followed for step in steps]),
        drawn_from=drawn_from,
        level=worst.level,
        worst=worst.worst,
        moved=round(first.moved * people),
        outside=round(first.outside * people),
        utility=mutual_information(law, channel),
        alone=mutual_information(law, target),
        bound=law.entropy,
        entropy=law.entropy,
        waves=tuple(steps),
    )


def _mean(channels: list[WeightArray], people: list[int]) -> WeightArray:
    """Σ_k T_k W_k / Σ_k T_k in whole numbers; what is missing to 2^63 goes to the largest of a column; (b, a)."""
    total = sum(people)
    if not total:
        return channels[0]
    sums = np.zeros(channels[0].shape, dtype=object)
    for channel, number in zip(channels, people, strict=True):
        sums = sums + channel.astype(object) * number
    return np.asarray(balanced((sums // total).astype(np.uint64)[None])[0])
