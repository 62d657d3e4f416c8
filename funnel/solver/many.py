"""Many inputs: hundreds of distinct posteriors, bounded by groups of them, whose prices begin a mixture of vertices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from funnel.joint import FloatArray
from funnel.solver.budget import Budget
from funnel.solver.grouping import GroupedBound
from funnel.solver.mixture import Mixture, Trace
from funnel.solver.peeling import peeled
from funnel.solver.problem import Problem
from funnel.solver.split import best_split
from funnel.solver.stabilised import StabilisedColumns

# Groups whose prices are good to begin with, and the share of a budget that they may take.
_ENOUGH, _BEGINNING = 64, 0.25
# Of what is left then: for the mixture. Of what is left after it: for finer groups, before all inputs.
_MIXING, _FINER = 0.7, 0.8
# A column that gains less than this share of the gap is not worth a round.
_WORTHWHILE = 0.02


def mixture_of_many(
    problem: Problem, starts: list[FloatArray], gap: float, budget: Budget, trace: Trace | None = None
) -> Mixture:
    """`best_mixture` for hundreds of inputs, by a goal that is the entropy and protocols that read X alone.

    Groups of inputs bound it, and their prices begin a mixture; only what they leave open is searched for over all
    inputs.
    """
    grouped = GroupedBound(problem.priced)
    beginning = budget.part(_BEGINNING)
    while grouped.groups < _ENOUGH and grouped.refine(gap, beginning):
        pass
    prices = grouped.prices if grouped.priced else None
    found = peeled(problem, budget.part(_MIXING), prices, _WORTHWHILE * gap)
    split = best_split(np.vstack([found, *starts]), problem.law, budget)
    refining = budget.part(_FINER)
    while True:
        if trace is not None:
            trace(split.value, grouped.bound)
        if grouped.bound - split.value <= gap:
            return Mixture(replace(split, bound=grouped.bound), True, len(found), grouped.boxes)
        if grouped.finest or not grouped.refine(gap, refining):
            break
    # What is left: all inputs, as where they are few.
    search = StabilisedColumns(problem.priced, budget)
    search.start_from(split.posteriors)
    mixture = search.run(gap, trace)
    # A search that was ended at once falls below what it started from.
    last = max(split, mixture.split, key=lambda one: one.value)
    bound = min(mixture.split.bound, grouped.bound)
    return Mixture(
        replace(last, bound=bound),
        mixture.finished,
        mixture.columns,
        grouped.boxes + mixture.boxes,
    )
