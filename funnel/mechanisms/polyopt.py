"""PolyOpt: the optimum over a polytope around the confidence set, calibrated to the set itself."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.rldp import RLDP
from funnel.guarantees.worst_case import Neighbourhood
from funnel.joint import FloatArray, Joint
from funnel.measures.information import information_of
from funnel.mechanisms.false_position import parameter_at
from funnel.mechanisms.family import Fitted, Mechanism
from funnel.mechanisms.instead import best_for, of_the_paper
from funnel.mechanisms.memory import table_memory
from funnel.mechanisms.robust_reporting import least_conditionals
from funnel.progress import Progress, quiet
from funnel.protocol import DENOMINATOR
from funnel.rounding import rounded_weights
from funnel.solver.budget import Budget
from funnel.solver.levels import LevelCone
from funnel.solver.search import optimal_over_cone
from funnel.solver.split import channel_of
from funnel.solver.work import decision_work

# What is asked for: so many nats, or this share of H(S,U) where that is more.
_GAP = 1e-3
_SHARE = 0.002
# How close to ε the true level is brought, relatively, and in how many optimisations at most.
_CLOSE, _STEPS = 1e-3, 10
# Entries of the paper's half-spaces beyond which even the first linear programmes take many minutes.
_LARGEST = 200_000


def polyopt_cone(near: Neighbourhood, epsilon: float) -> FloatArray:
    """Rows of RLDP (6) on T over (s, u), shape (c(c-1)u², c·u): every corner of the polytope for s against each for s'.

    Only pairs s ≠ s': the rows for s = s', which the paper keeps, are neither needed nor implied and cost utility.
    """
    c, u = near.distribution.shape
    least = least_conditionals(near)
    corners = np.zeros((c, u, c, u))
    for s in range(c):
        for place in range(u):
            corners[s, place, s] = least[s]
            corners[s, place, s, place] += 1 - least[s].sum()
    flat = corners.reshape(c, u, c * u)
    pairs = [(s, t) for s in range(c) for t in range(c) if s != t]
    rows = [flat[s][:, None] - capped_exp(epsilon) * flat[t][None] for s, t in pairs]
    return np.concatenate([row.reshape(-1, c * u) for row in rows])


def polyopt_channel(
    joint: Joint, near: Neighbourhood, epsilon: float, budget: float | Budget | None = None
) -> FloatArray:
    """The channel (b, c·u) of RLDP theorem 2 for a nominal ε, up to numerical error; unseen cells get the marginal.

    Raises
    ------
    SpecError
        If the polytope has too many half-spaces for any optimisation to finish.
    """
    read = joint.with_secret()
    c, u = near.distribution.shape
    number = c * (c - 1) * u**2
    if number * c * u > _LARGEST:
        raise SpecError(
            f"polyopt would need {number:,} half-spaces in {c * u} dimensions, more than can be optimised over in "
            "reasonable time; use robust-optimal, which adds those that are needed, or publish fewer values"
        )
    seen = read.p_input > 0
    distribution = read.p_input[seen]
    rows = polyopt_cone(near, epsilon)
    # A cell that was never seen says what the average record says.
    rows = rows[:, seen] + rows[:, ~seen].sum(axis=1, keepdims=True) * distribution
    levels = LevelCone(near.prior[:, None] * near.distribution, least_conditionals(near), capped_exp(epsilon))
    gap = max(_GAP, _SHARE * float(-distribution @ np.log(distribution)))
    split = optimal_over_cone(rows, distribution, gap, budget, levels=levels).split
    return channel_of(split.posteriors, split.mass, distribution, seen)


class PolyOpt(Mechanism):
    """PolyOpt (RLDP theorems 1 and 2) at the largest nominal ε whose true worst case is within the guarantee."""

    name: ClassVar[str] = "polyopt"
    summary: ClassVar[str] = "the optimum over a polytope around what the data allow"
    reads_secret: ClassVar[bool] = True
    optimises: ClassVar[bool] = True

    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """False position on the nominal ε, upwards from the guarantee's own, each step an optimisation.

        Raises
        ------
        SpecError
            If the guarantee is not RLDP over the χ² set, or the polytope has too many half-spaces.
        """
        guarantee = of_the_paper(self.name, guarantee, best_for(guarantee))
        read = joint.with_secret()
        near = guarantee.neighbourhood(read)
        best, most = np.full((1, len(read.inputs)), DENOMINATOR, dtype=np.uint64), 0.0
        finished = True

        def level_at(nominal: float) -> float:
            nonlocal best, most, finished
            step = budget.part(0.5)
            weights = rounded_weights(read, polyopt_channel(joint, near, nominal, step))
            finished &= not step.expired
            budget.spend(2 * decision_work(read, guarantee, len(weights)))
            level = guarantee.level_for(read, weights).value
            utility = information_of((weights / np.float64(DENOMINATOR) * read.p_input).T)
            if level <= guarantee.epsilon and utility > most and guarantee.holds_for(read, weights):
                best, most = weights, utility
            return level

        # A hair below the nominal ε the paper's theorem 1 holds in spite of rounding.
        parameter_at(level_at, guarantee.epsilon, _CLOSE, guarantee.epsilon * (1 - 1e-6), _STEPS, budget)
        return Fitted(self.protocol(joint, guarantee, best, read.inputs), None, finished and not budget.expired)

    def memory(self, joint: Joint, guarantee: Guarantee) -> float:
        """What a table over (S, X) takes; more half-spaces than fit are refused without one."""
        cells = joint.counts.size if isinstance(guarantee, RLDP) and not guarantee.over_boxes else 0
        return table_memory(cells, cells)
