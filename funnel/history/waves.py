"""Waves: a version in which people have several rows, decided and drawn row by row under one bound for all of them.

The rows of a unit are a history within the version: the first rows of all units are one wave, the second rows the next,
each drawn given everything that the unit's rows before have shown, in this version and in earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee
from funnel.history.allowed import require_for_rows
from funnel.history.changes import Changes
from funnel.history.decisions import numbered
from funnel.history.expected import Expected
from funnel.history.fitting import Fitted
from funnel.history.following import follow, inner_bound
from funnel.history.observed import Observed, Secrets
from funnel.history.past import Past
from funnel.history.step import Step
from funnel.history.unit_rows import UnitRows, counted_cells, row_changes
from funnel.history.whole import Whole
from funnel.joint import IntArray, Joint
from funnel.progress import Progress, quiet
from funnel.protocol import Protocol
from funnel.rounding import marginal_weights
from funnel.solver.budget import Budget
from funnel.solver.optimum import optimal

# Seconds of work for all waves together; a wave may take its part of what is left, by its rows, and some more.
_SECONDS, _MORE = 40.0, 1.5

Draw = Callable[[Step, IntArray, IntArray], IntArray]
"""Outputs of the rows of a wave, (k,): from the step, the numbers of the rows, and the history of each before it."""


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


def wave_name(version: str, row: int) -> str:
    """How histories name the rows of a version: by the version, and from the second row on by its number too."""
    return version if row == 1 else f"{version}#{row}"


def follow_waves(
    past: Past,
    rows: UnitRows,
    cells: IntArray,
    joint: Joint,
    nodes: IntArray,
    changes: Mapping[int, Changes],
    guarantee: Guarantee,
    version: str,
    draw: Draw,
    *,
    target: Protocol | None = None,
    reserve: float = 1.0,
    read_alone: bool = False,
    secrets: Secrets = "all",
    budget: float | Budget | None = None,
    progress: Progress = quiet,
) -> Waves:
    """Decide and draw a version row by row, at one bound for all rows of a unit and all versions together.

    An observer who can link all rows of a unit, and knows how common every (secret, input) is among the first rows of
    units, how often a row follows another in a unit, and all channels, starts from how common secrets are among units.
    Their posterior of a unit's secret is within the guarantee after every row. How many rows a unit has is taken for
    known: it is no evidence.

    The law of the change from a row to the next is that of all pairs of successive rows, whichever they are: with rows
    in a random order all such pairs of a unit are alike, and deep waves have too few units for a law of their own.

    Parameters
    ----------
    past : Past
    rows : UnitRows
        In an order that is unrelated to what is in them.
    cells : ndarray of int64, shape (rows,)
        Secret and input of every row, by their places in ``joint``. All rows of a unit have one secret.
    joint : Joint
        Counts (c, a) of all rows.
    nodes : ndarray of int64, shape (units,)
        What was published of every unit before; -1 of those that are forgotten.
    changes : mapping of int to Changes
        From the last row of a unit in an earlier version to its first row here, by the ordinal of every chapter of
        that version. Counts of all units in both.
    guarantee : Guarantee
    version : str
    draw : callable
    target, reserve, read_alone, budget, progress
        As `follow` takes them; the target is one for all rows, read as rows of different people.
    secrets : "all" or "current"
        Whether the secrets of earlier versions are bounded too.

    Raises
    ------
    SpecError
        As `follow`.
    DataError
        If changes from the last version of some history are missing.

    Notes
    -----
    A wave for every row of the unit that has most. Arrays of some 100 bytes a row.
    """
    declared = require_for_rows(guarantee)
    if any(chapter.version == version for chapter in past.chapters):
        raise SpecError(f"version {version!r} has been published already; give the next one another name")
    if target is None:
        target = optimal(joint, inner_bound(declared, reserve), time_limit=budget).protocol
    work = Budget.of(_SECONDS if budget is None else budget)
    first = counted_cells(cells[rows.at(1)], joint)
    # Who is forgotten is counted among units, as all are, and in no change.
    known = nodes[rows.units] >= 0
    of_known = UnitRows(rows.units[known], rows.places[known])
    within = row_changes(of_known, cells[known], first) if rows.deepest > 1 else None
    constant = marginal_weights(joint, target.weights)
    whole = Whole.beginning(joint, constant)
    nodes, xs = nodes.copy(), cells % len(joint.inputs)
    outputs, before, after = (np.full(len(cells), -1, dtype=np.int64) for _ in range(3))
    steps: list[Step] = []
    left = len(cells)
    for row in range(1, rows.deepest + 1):
        wave = rows.at(row)
        left -= len(wave)
        units = rows.units[wave]
        forgotten = nodes[units] < 0
        if row > 1:
            # Nothing is decided for them any more: they are drawn as in the first wave.
            wave, units, forgotten = wave[~forgotten], units[~forgotten], forgotten[~forgotten]
            if not len(wave):
                continue
        had = np.maximum(nodes[units], 0)
        of_wave = counted_cells(cells[wave], joint)
        since = changes if row == 1 or within is None else {len(past) - 1: within}
        observed = Observed.counted(of_wave, since, had, xs[wave], row, secrets=secrets)
        if forgotten.any():
            observed = replace(observed, silent=np.bincount(xs[wave[forgotten]], minlength=len(joint.inputs)))
        progress(f"row {row} of every unit", len(cells) - left, len(cells))
        step = follow(
            past,
            observed,
            guarantee,
            wave_name(version, row),
            target=replace(target, outputs=numbered(target.outputs)),
            reserve=reserve,
            read_alone=read_alone,
            whole=whole,
            budget=work.part(min(1.0, _MORE * len(wave) / (len(wave) + left))),
            progress=progress,
        )
        whole = whole.with_rows(observed, step.library, step.drawn_from[np.searchsorted(step.followed, observed.nodes)])
        speaking = wave[~forgotten]
        had = had[~forgotten]
        said = draw(step, speaking, had)
        b = len(target.outputs)
        pairs, place = np.unique(had * b + said, return_inverse=True)
        chapter = step.chapter(pairs // b, pairs % b)
        steps.append(step)
        outputs[speaking], before[speaking], after[speaking] = said, had, chapter.first + place
        nodes[rows.units[speaking]] = chapter.first + place
        past = past.followed_by(chapter)
    whole = whole.ended()
    if read_alone and not declared.holds_for(joint, whole.weights()):
        raise SpecError(
            "the rows of people who are forgotten would take the effective channel out of the bound for this version "
            "alone; set a smaller budget_fraction in [history]"
        )
    together = _together(steps, target, joint, whole, before, xs)
    return Waves(together, past, outputs, before, after)


def _together(steps: list[Step], target: Protocol, joint: Joint, whole: Whole, before: IntArray, xs: IntArray) -> Step:
    """All waves as one step over all rows."""
    silent = np.bincount(xs[before < 0], minlength=len(joint.inputs))
    counted = Observed.counted(joint, steps[0].observed.changes, np.maximum(before, 0), xs)
    observed = Observed(joint, counted.changes, counted.nodes, counted.inputs, counted.records, silent)
    weights = whole.weights()
    channel = Protocol(
        weights, marginal_weights(joint, weights), joint.inputs, target.outputs, "history", str(steps[0].guarantee)
    )
    return Step.of_waves(steps, observed, target, channel)
