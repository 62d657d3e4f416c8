"""Many inputs: hundreds of distinct posteriors, a mixture of vertices, and a bound by groups of inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.budget import Budget
from funnel.solver.central import central_mixture
from funnel.solver.columns import ColumnGeneration
from funnel.solver.input_groups import GroupedBound
from funnel.solver.problem import Problem
from funnel.solver.split import Mixture, Split, Trace, best_split

# The share of a budget for a bound by a few groups, and of what is left then for the mixture.
_BEGINNING, _MIXING = 0.25, 0.6
# Of what is left after it, for finer groups before all inputs: of a hundred, and of fewer, which boxes close.
_FINER, _FINER_OF_FEW, _HUNDRED = 0.9, 0.25, 100
# What a bound over groups may leave: of the requested gap at least, of H(X) and of what is open at most.
_LEFT, _LEFT_OF_ALL, _LEFT_OPEN = 0.15, 0.01, 0.25
# A mixture that rises by less than this share of the gap in a few rounds is at its end.
_WORTHWHILE = 0.02


def mixture_of_many(
    problem: Problem,
    starts: list[FloatArray],
    gap: float,
    budget: Budget,
    search: ColumnGeneration,
    trace: Trace | None = None,
) -> Mixture:
    """`best_mixture` for many inputs, by a goal that is the entropy and protocols that read X alone.

    Groups of inputs bound it; only what they leave open is searched for over all inputs, by the given search.
    """
    grouped, law = GroupedBound(problem.priced), problem.law
    entropy = -float(problem.region.gains(law[None])[0])
    grouped.refine(max(_LEFT * gap, _LEFT_OF_ALL * entropy), budget.part(_BEGINNING))
    found = central_mixture(problem, budget.part(_MIXING), _WORTHWHILE * gap)
    try:
        split = best_split(np.vstack([law, found, *starts]), law, budget)
    except SolverError:
        # Nearly parallel columns: p_X alone is a mixture that says nothing.
        split = Split(law[None], np.ones(1), -entropy, grouped.bound)
    refining = budget.part(_FINER if len(problem.law) >= _HUNDRED else _FINER_OF_FEW)
    while True:
        if trace is not None:
            trace(split.value, grouped.bound)
        if grouped.bound - split.value <= gap:
            return Mixture(replace(split, bound=grouped.bound), True, len(found), grouped.boxes)
        left = max(_LEFT * gap, min(_LEFT_OF_ALL * entropy, _LEFT_OPEN * (grouped.bound - split.value)))
        if grouped.finest or not grouped.refine(left, refining, split):
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
