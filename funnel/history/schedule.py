"""What a schedule costs: a budget that grows over versions about the same values, against one shot at the last one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.errors import SolverError, SpecError
from funnel.guarantees.base import ConeGuarantee, Guarantee
from funnel.history.paths import Paths
from funnel.joint import FloatArray, Joint
from funnel.measures import mutual_information
from funnel.protocol import WeightArray
from funnel.rounding import integer_weights
from funnel.solver.budget import Budget
from funnel.solver.optimum import optimal
from funnel.solver.presolve import MergedInputs, merge_inputs
from funnel.solver.split import best_split
from funnel.solver.vertices import enumerate_vertices

# Programmes are solved this much inside their budget, so that rounded weights still meet it.
_INSIDE = 1e-9
# Coordinates of a vertex this small are left over from cancellation.
_ZERO = 1e-12


@dataclass(frozen=True, eq=False)
class ScheduleCost:
    """What is kept by each version of a schedule, and what one shot at its budget would have kept.

    Attributes
    ----------
    budgets : tuple of float
        Of each version, in nats, rising.
    kept : tuple of float
        I(X; Y_1 … Y_t) after each version in nats: what integer weights keep that were proven to meet its budget
        together with all earlier versions. The version alone keeps the same, as each output names the posterior that
        all versions so far lead to.
    one_shot : tuple of float
        An upper bound on what any protocol keeps at that budget, in nats.
    entropy : float
        H(X) in nats.
    paths : Paths
        The weights themselves, over inputs merged where their p(S|x) are equal.

    Examples
    --------
    >>> import funnel
    >>> from funnel.history.schedule import schedule_cost
    >>> joint = funnel.Joint.from_counts([[30, 10, 20], [10, 50, 30]])
    >>> cost = schedule_cost(joint, funnel.LIP(0.5), (0.5, 1.0))
    >>> cost.paths.holds(funnel.LIP(0.5)), [round(lost, 4) for lost in cost.lost]
    (True, [0.0, 0.0])
    """

    budgets: tuple[float, ...]
    kept: tuple[float, ...]
    one_shot: tuple[float, ...]
    entropy: float
    paths: Paths

    @property
    def lost(self) -> tuple[float, ...]:
        """What each version keeps less than one shot at its budget, as a share of H(X); 0 where H(X) is 0."""
        entropy = self.entropy if self.entropy > 0 else 1.0
        return tuple(max(0.0, most - kept) / entropy for kept, most in zip(self.kept, self.one_shot, strict=True))


def schedule_cost(
    joint: Joint, guarantee: Guarantee, shares: Sequence[float], time_limit: float | Budget | None = None
) -> ScheduleCost:
    """What it costs to say a little first and more later about values that do not change (METHOD section 9).

    The first version is the optimum of the first budget. Every later version splits each posterior reached so far into
    vertices of the next region, as usefully as can be. Starting at the full budget would leave nothing to split: a
    posterior at a vertex of its region has nothing left to say.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a).
    guarantee : Guarantee
        The last and largest budget; one that is a polyhedral cone.
    shares : sequence of float
        The budget of each version as a share of it: rising, above 0, the last one 1.
    time_limit : float or Budget, optional
        As for `funnel.optimal`, for listing vertices.

    Returns
    -------
    ScheduleCost
        Its last path weights meet every budget, with all versions up to its own.

    Raises
    ------
    SpecError
        If the shares do not rise to 1, or the guarantee is no cone or has no budget to share.
    SolverError
        If the vertices of a region are too many to list, or rounding breaks a bound.

    Notes
    -----
    One list of vertices a version, and one linear programme for each posterior that some output leads to.
    """
    if not isinstance(guarantee, ConeGuarantee) or guarantee.is_perfect:
        raise SpecError(f"{guarantee} has no budget that could grow; a schedule needs lip, alip, ldp or srlip")
    if not shares or min(shares) <= 0 or shares[-1] != 1 or list(shares) != sorted(set(shares)):
        raise SpecError(f"the shares of a schedule must rise to 1 and be above 0, not {list(shares)}")
    budget = Budget.of(time_limit)
    merged = merge_inputs(joint, guarantee)
    small = merged.joint
    # Members of a merged input are told apart by the same outputs split further, which changes no posterior of S.
    apart = joint.entropy - small.entropy
    paths: Paths | None = None
    kept: list[float] = []
    one_shot: list[float] = []
    for number, share in enumerate(shares, start=1):
        promised = guarantee.with_budget(guarantee.budget * share)
        alone = optimal(small, promised, time_limit=budget)
        if paths is None:
            paths = Paths.of(small, alone.protocol.weights)
        else:
            paths = paths.extended(_refinement(paths, merged, promised, budget))
        if not paths.holds(promised):
            raise SolverError(
                f"version {number} of the schedule misses {promised} by rounding; change the shares slightly"
            )
        # What all paths tell the last version tells alone.
        kept.append(max(0.0, apart + mutual_information(small, paths.last)))
        one_shot.append(min(joint.entropy, apart + alone.bound))
    assert paths is not None
    budgets = tuple(guarantee.budget * share for share in shares)
    return ScheduleCost(budgets, tuple(kept), tuple(one_shot), joint.entropy, paths)


def _refinement(paths: Paths, merged: MergedInputs, promised: ConeGuarantee, budget: Budget) -> list[WeightArray]:
    """For each path the channel that splits its posterior into vertices of the region; outputs are vertices."""
    inside = promised.tightened(_INSIDE)
    vertices = enumerate_vertices(paths.joint, inside, budget, merged.cone(inside) / paths.joint.p_input)
    vertices = np.where(vertices > _ZERO, vertices, 0.0)
    last = np.array([history[-1] for history in paths.histories])
    masses = paths.weights.astype(np.float64) * paths.joint.p_input
    split: dict[int, FloatArray] = {}
    for output in np.unique(last).tolist():
        # Whatever came before it, an output stands for one posterior.
        mass = masses[last == output].sum(axis=0)
        split[output] = _channel(vertices, mass / mass.sum(), budget)
    used = np.flatnonzero(sum(channel.any(axis=1) for channel in split.values()))
    weights = {output: integer_weights(channel[used]) for output, channel in split.items()}
    return [weights[output] for output in last.tolist()]


def _channel(vertices: FloatArray, posterior: FloatArray, budget: Budget) -> FloatArray:
    """P(vertex | x) for the best way to write a posterior (a,) as a mixture of vertices (k, a); shape (k, a)."""
    seen = posterior > 0
    within = np.flatnonzero(~vertices[:, ~seen].any(axis=1))
    found = best_split(vertices[within][:, seen], posterior[seen], budget)
    channel = np.zeros_like(vertices)
    for row, mass in zip(found.posteriors, found.mass, strict=True):
        place = within[int(np.abs(vertices[within][:, seen] - row).sum(axis=1).argmin())]
        channel[np.ix_([place], seen)] += mass * row / posterior[seen]
    sums = channel.sum(axis=0)
    # Inputs that the path rules out: any column will do.
    channel[:, ~seen] = (channel[:, seen] @ posterior[seen])[:, None]
    return np.asarray(channel / np.where(seen, sums, 1.0))
