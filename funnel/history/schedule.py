"""What a schedule costs: a budget that grows over versions about the same values, against one shot at the last one.

What several versions say together about values that do not change is known exactly, as integer weights of whole
histories (`Paths`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.alphabet import Alphabet
from funnel.errors import SolverError, SpecError
from funnel.guarantees.base import ConeGuarantee, Guarantee
from funnel.joint import FloatArray, Joint
from funnel.measures import mutual_information
from funnel.protocol import DENOMINATOR, Protocol, WeightArray, exact_sums
from funnel.rounding import integer_weights, marginal_weights
from funnel.solver.budget import Budget
from funnel.solver.optimum import optimal
from funnel.solver.presolve import MergedInputs, merge_inputs
from funnel.solver.split import best_split
from funnel.solver.vertices import enumerate_vertices


@dataclass(frozen=True, eq=False)
class Paths:
    """The exact distribution of everything published so far about people whose secret and input never change.

    A *path* is the tuple of outputs published about a person, one for every version. ``W[h, x] / 2^63`` is the
    probability of path h given the input x, and the weights of a path's continuations add up to its own:
    ``Σ_y W_t[hy, x] = W_{t-1}[h, x]``. So the next version is drawn by ``W_t[hy, x] / W_{t-1}[h, x]``, all versions
    together are one ordinary protocol whose outputs are paths, and the ordinary exact decision on its weights decides
    what everybody knows who keeps every version (METHOD section 9, "Bookkeeping that is exact").

    Attributes
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a): those of every version.
    histories : tuple of tuple of int
        The m paths, in lexicographic order of their path so far: places of the outputs, one a version.
    weights : ndarray of uint64, shape (m, a)
        Columns summing to exactly 2^63.

    Notes
    -----
    Children of a path stand where the path stood, so that the thresholds of W_t on [0, 2^63) refine those of W_{t-1}:
    one word of 63 bits that belongs to a person draws all versions by exactly these weights.

    Examples
    --------
    >>> import funnel
    >>> from funnel.history.schedule import Paths
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> first = funnel.fit("grr", joint, funnel.LIP(0.25)).weights
    >>> twice = Paths.of(joint, first).extended([first, first])
    >>> twice.histories, round(funnel.LIP(0.25).level_for(joint, twice.weights).value, 3)
    (((0, 0), (0, 1), (1, 0), (1, 1)), 0.475)
    """

    joint: Joint
    histories: tuple[tuple[int, ...], ...]
    weights: WeightArray

    @classmethod
    def of(cls, joint: Joint, weights: WeightArray) -> Paths:
        """The paths of a first version, drawn by these weights (b, a); outputs of weight zero everywhere are no paths.

        Raises
        ------
        SpecError
            As of `extended`.
        """
        return cls(joint, ((),), np.full((1, len(joint.inputs)), DENOMINATOR, dtype=np.uint64)).extended([weights])

    def extended(self, rows: Sequence[WeightArray]) -> Paths:
        """The paths after one more version.

        Parameters
        ----------
        rows : sequence of ndarray of uint64, each (b, a)
            For every path, in the order of ``histories``, the weights ``R(y|x, h)`` of the next output, each column
            summing to 2^63. They may differ in b.

        Returns
        -------
        Paths
            The interval of a path is cut where R's thresholds fall in it, rounded down: every weight is within one unit
            of ``W[h, x] R[y, x] / 2^63``, zeros stay zeros, and the sums are exact.

        Raises
        ------
        SpecError
            If a column of a channel does not sum to 2^63.

        Notes
        -----
        O(m b a) in whole numbers of any size.
        """
        histories: list[tuple[int, ...]] = []
        parts: list[WeightArray] = []
        for history, weights, channel in zip(self.histories, self.weights, rows, strict=True):
            if any(total != DENOMINATOR for total in exact_sums(channel)):
                raise SpecError("every column of the weights of a version must sum to exactly 2^63")
            # The interval of the path, cut in the proportions of the channel.
            thresholds = np.cumsum(channel.astype(object), axis=0) * weights.astype(object) // DENOMINATOR
            cut = np.diff(thresholds, axis=0, prepend=0).astype(np.uint64)
            kept = np.flatnonzero(cut.any(axis=1))
            histories += [(*history, y) for y in kept.tolist()]
            parts.append(cut[kept])
        return Paths(self.joint, tuple(histories), np.concatenate(parts))

    def holds(self, guarantee: Guarantee) -> bool:
        """Whether all versions together meet the guarantee: decided on the integer weights, in exact arithmetic."""
        return guarantee.holds_for(self.joint, self.weights)

    @property
    def last(self) -> Protocol:
        """The protocol of the last version: the distribution of its output given the input, whatever came before."""
        of_path = np.array([history[-1] for history in self.histories])
        weights = np.zeros((int(of_path.max()) + 1, len(self.joint.inputs)), dtype=np.uint64)
        np.add.at(weights, of_path, self.weights)
        outputs = Alphabet.of(None, len(weights), "Y")
        return Protocol(weights, marginal_weights(self.joint, weights), self.joint.inputs, outputs, "paths")


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
