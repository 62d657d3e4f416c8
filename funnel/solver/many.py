"""Many inputs: hundreds of distinct posteriors, bounded by groups of them, whose prices begin a mixture of vertices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.budget import Budget
from funnel.solver.grouping import GroupedBound
from funnel.solver.mixture import Mixture, MixtureSearch, Trace
from funnel.solver.peeling import peeled
from funnel.solver.problem import Problem
from funnel.solver.split import Split, best_split

# The share of a budget for the prices of a few groups, and of what is left then for the mixture.
_BEGINNING, _MIXING = 0.25, 0.7
# Of what is left after it, for finer groups before all inputs: of a hundred, and of fewer, which boxes close.
_FINER, _FINER_OF_FEW = 0.8, 0.25
# From so many inputs on prices are kept near those of the best bound, and boxes are tightened.
HUNDRED = 100
# A smaller budget of the guarantee, as a share, whose mixture is one here as well; and the share of work for it.
_LESS, _SMALLER = 0.5, 0.15
# What a bound over groups may leave: of the requested gap, of H(X) before a mixture is known, of what is open then.
_LEFT, _LEFT_AT_FIRST, _LEFT_OPEN = 0.15, 0.01, 0.25
# A column that gains less than this share of the gap is not worth a round.
_WORTHWHILE = 0.02


def mixture_of_many(
    problem: Problem,
    starts: list[FloatArray],
    gap: float,
    budget: Budget,
    search: MixtureSearch,
    trace: Trace | None = None,
) -> Mixture:
    """`best_mixture` for many inputs, by a goal that is the entropy and protocols that read X alone.

    Groups of inputs bound it, and their prices begin a mixture; only what they leave open is searched for over all
    inputs, by the given search.
    """
    grouped, law = GroupedBound(problem.priced), problem.law
    nothing = Split(law[None], np.ones(1), float(problem.region.gains(law[None])[0]), grouped.bound)
    grouped.refine(max(_LEFT * gap, -_LEFT_AT_FIRST * nothing.value), budget.part(_BEGINNING))
    prices = grouped.prices if grouped.priced else None
    found = peeled(problem, budget.part(_MIXING), prices, _WORTHWHILE * gap)
    split = _mixed([found, *starts], law, nothing, budget)
    if grouped.bound - split.value > gap:
        # What a smaller budget of the guarantee allows is allowed here as well.
        less = peeled(problem.for_budget_share(_LESS), budget.part(_SMALLER), prices, _WORTHWHILE * gap)
        split = _mixed([split.posteriors, less, *starts], law, split, budget)
    refining = budget.part(_FINER if len(problem.law) >= HUNDRED else _FINER_OF_FEW)
    while True:
        if trace is not None:
            trace(split.value, grouped.bound)
        if grouped.bound - split.value <= gap:
            return Mixture(replace(split, bound=grouped.bound), True, len(found), grouped.boxes)
        if grouped.finest or not grouped.refine(
            max(_LEFT * gap, _LEFT_OPEN * (grouped.bound - split.value)), refining, split
        ):
            break
    # What is left: all inputs, as where they are few.
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


def _mixed(posteriors: list[FloatArray], law: FloatArray, before: Split, budget: Budget) -> Split:
    """The best mixture of posteriors; the one before where a programme over nearly parallel columns fails."""
    try:
        return best_split(np.vstack(posteriors), law, budget)
    except SolverError:
        return before
