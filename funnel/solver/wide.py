"""Wide tables: the optimum over the distinct posteriors of the secret, dealt out to all inputs without a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from funnel.errors import SolverError
from funnel.guarantees.base import Guarantee, PosteriorGuarantee
from funnel.guarantees.sided import Sided
from funnel.joint import FloatArray, Joint
from funnel.naming import name_outputs
from funnel.protocol import DENOMINATOR, Protocol
from funnel.rounding import marginal_weights, silence_unseen, sparse_rounded_weights
from funnel.solver.as_it_is import unchanged_optimum
from funnel.solver.budget import Budget
from funnel.solver.floors import set_aside, some_columns
from funnel.solver.goal import negative_entropy
from funnel.solver.integers import splits_inside
from funnel.solver.interval import Interval, Places
from funnel.solver.over_cone import cone_optimum
from funnel.solver.pairs import balanced, best_shares, paired
from funnel.solver.presolve import MergedInputs, merge_equal_posteriors, split_entries
from funnel.solver.problem import Problem
from funnel.solver.request import Request, Solution, rounding_of
from funnel.solver.split import Split
from funnel.sparse_weights import SparseWeights

# A table of all inputs by all outputs would have more entries than this.
_ENTRIES = 2**20
# Two secrets: from so many inputs on pairs are found in closed form rather than listed.
_MANY_INPUTS = 64
# How far inside the ends of an interval pairs are moved for their integer weights; further in, they are found again.
_MARGINS, _LARGER_MARGINS = (1e-11, 1e-10, 1e-9, 1e-8), (1e-6, 1e-4, 1e-2)
# The shares of a budget for integer weights of two secrets, and of more; for the bound by events of secrets, which is
# to be there whatever the rest took.
_FINISHING, _FINISHING_MANY, _EVENTS = 0.1, 0.05, 0.02
# Units of work of an input, of an entry of a channel that is made and decided, and of one of its outputs and secrets.
_BY_INPUT, _BY_ENTRY, _BY_OUTPUT = 2_000.0, 3_000.0, 2_000.0


def wide_optimum(request: Request) -> Solution:
    """The optimum without a table of all inputs by all outputs.

    Parameters
    ----------
    request : Request
        For which `is_wide`, and that protocols read X only, by information.

    Raises
    ------
    SolverError
        If a linear programme fails.
    """
    joint, guarantee, gap, budget = request.joint, request.guarantee, request.gap, request.budget
    if not isinstance(guarantee, PosteriorGuarantee):
        raise SolverError("wide tables have an optimum under a guarantee on the posterior of the secret")
    # What never occurs is outside the alphabet of a wide protocol: its records draw from the marginal.
    seen = joint.occurring
    if is_binary(joint):
        found = binary_optimum(seen, guarantee, gap, budget)
        weights, bound, method, size, finished = found.weights, found.bound, "pairs", found.columns, found.finished
        ended = None if finished else budget.ended_by
    else:
        narrowed, finishing, events = Narrowed.of(seen), budget.reserve(_FINISHING_MANY), budget.reserve(_EVENTS)
        floor = set_aside(budget, len(seen.inputs))
        within = replace(request, joint=narrowed.merged.joint, known=())
        best = unchanged_optimum(within) or cone_optimum(within)
        weights = narrowed.widened(best.protocol, guarantee, finishing)
        bound, method, size = narrowed.reported_besides + best.bound, best.method, best.vertices
        kept = narrowed.reported_besides + best.utility
        if bound - kept > gap and (columns := columns_as_they_are(seen, guarantee, kept, floor)) is not None:
            weights = columns
        if bound - best.utility - narrowed.reported_besides > gap and isinstance(guarantee, Sided):
            bound = min(bound, bound_by_events(seen, guarantee, gap / 10, events))
        finished, ended = best.finished, best.ended_by
    if needs_no_table(joint):
        protocol = _sparse_protocol(seen, guarantee, weights)
    else:
        table = np.zeros((weights.shape[0], len(joint.inputs)), dtype=np.uint64)
        table[:, joint.counts.any(axis=0)] = weights.table()
        protocol = request.protocol(silence_unseen(joint, table))
    bound = min(request.most, bound) + rounding_of(len(joint.inputs), request.most)
    return request.answer(protocol, request.utility_of(protocol), bound, size, method, finished, ended)


def is_wide(joint: Joint, guarantee: Guarantee) -> bool:
    """Whether the optimum is found here: a guarantee on the posterior of the secret, for more inputs than fit a table.

    With a budget of 0 the equations of a lattice are for tables; what is known of counts up to noise is for boxes.
    """
    if not isinstance(guarantee, PosteriorGuarantee) or guarantee.is_perfect or joint.bounds is not None:
        return False
    a = len(joint.inputs)
    return needs_no_table(joint) or (a >= _MANY_INPUTS and is_binary(joint))


def needs_no_table(joint: Joint) -> bool:
    """Whether all inputs by as many outputs are too many entries for a table."""
    return len(joint.inputs) ** 2 > _ENTRIES


def is_binary(joint: Joint) -> bool:
    """Whether two secrets occur."""
    return int(np.count_nonzero(joint.counts.any(axis=1))) == 2


def columns_as_they_are(
    joint: Joint, guarantee: PosteriorGuarantee, least: float, budget: Budget
) -> SparseWeights | None:
    """Weights that publish some of the columns as they are, of more than so many nats; None where none are found.

    A guarantee on the posterior holds for them if it holds for X as it is, of the table that has these columns alone.
    """
    for kept, output in some_columns(joint):
        if kept <= least or budget.expired:
            break
        alone = np.zeros((len(joint.secret), output.max() + 1), dtype=np.int64)
        np.add.at(alone.T, output, joint.counts.T)
        narrow = Joint.from_counts(alone)
        every = np.arange(len(narrow.inputs))
        budget.spend(_BY_ENTRY * len(every) + _BY_INPUT * len(output))
        if guarantee.sparse_holds(narrow, sparse_rounded_weights(narrow, every, every, narrow.p_input, len(every))):
            return sparse_rounded_weights(joint, output, np.arange(len(output)), joint.p_input, len(every))
    return None


@dataclass(frozen=True, eq=False)
class Found:
    """Weights that meet the guarantee exactly, and a bound.

    Attributes
    ----------
    weights : SparseWeights
    bound : float
        No protocol that meets the guarantee tells more nats of X.
    columns : int
        Columns of the last programme.
    finished : bool
        Whether more work would change nothing.
    """

    weights: SparseWeights
    bound: float
    columns: int
    finished: bool


def binary_optimum(joint: Joint, guarantee: PosteriorGuarantee, gap: float, budget: Budget) -> Found:
    """The optimum for two secrets, by inputs alone and pairs of them (`funnel.solver.pairs`).

    Parameters
    ----------
    joint : Joint
        Every input occurs.
    guarantee : PosteriorGuarantee
        Of a budget above 0.
    gap : float
        Requested bound - utility, nats.
    budget : Budget

    Raises
    ------
    SolverError
        If a linear programme fails.
    """
    r, distribution, group, prior = _of_event(joint, joint.counts[joint.counts.any(axis=1)][0])
    finishing = budget.reserve(_FINISHING)
    finishing.spend(_BY_INPUT * len(group))
    shares = best_shares(r, distribution, Interval.of(guarantee, prior), gap, budget)
    for margin in (*_MARGINS, *_LARGER_MARGINS):
        inside = Interval.of(guarantee.tightened(margin), prior)
        near = shares
        if margin in _LARGER_MARGINS:
            near = best_shares(r, distribution, inside, gap, finishing)
        moved = balanced(r, distribution, near.share, inside)
        weights = _dealt_out(joint, r, group, moved)
        finishing.spend(_BY_ENTRY * len(weights.values))
        if guarantee.sparse_holds(joint, weights):
            break
    else:
        weights = SparseWeights.of(np.full((1, len(joint.inputs)), DENOMINATOR, dtype=np.uint64))
    return Found(weights, joint.entropy + shares.bound, shares.columns, shares.finished)


def _of_event(joint: Joint, records: npt.NDArray[np.int64]) -> tuple[FloatArray, FloatArray, Places, float]:
    """Distinct P(event|x), rising, their distribution, which each input has, and P(event); or of what is no event.

    Whichever is rarer, so that its probabilities have all their digits.
    """
    sizes = joint.counts.sum(axis=0)
    if 2 * int(records.sum()) > joint.n:
        records = sizes - records
    r, group = np.unique(records / sizes, return_inverse=True)
    distribution = np.asarray(np.bincount(group, weights=sizes / joint.n), dtype=np.float64)
    return r, distribution, group, float(records.sum() / joint.n)


def bound_by_events(joint: Joint, guarantee: Sided, gap: float, budget: Budget) -> float:
    """A bound on I(X;Y), nats, of every protocol that meets a guarantee for more than two secrets.

    What holds for all secrets holds for whether the secret is one of several: of sums of P(y|s), by their weights P(s),
    no ratio is larger than the largest of theirs. So the optimum for two secrets, an event and what is none, bounds
    that for all. Events grow from single secrets by whichever other one lowers the bound most.
    """
    best, event, bound = np.inf, np.zeros(len(joint.counts), dtype=np.bool_), joint.entropy
    while not budget.expired:
        found = []
        for s in np.flatnonzero(joint.counts.any(axis=1) & ~event):
            larger = event.copy()
            larger[s] = True
            if (larger | ~joint.counts.any(axis=1)).all():
                continue
            r, distribution, _, prior = _of_event(joint, joint.counts[larger].sum(axis=0))
            try:
                shares = best_shares(r, distribution, Interval.of(guarantee, prior), gap, budget)
            except SolverError:
                # Of events of a few records a programme can fail; a bound by others is one too.
                continue
            found.append((shares.bound, int(s)))
        if not found or min(found)[0] >= best:
            break
        best, chosen = min(found)
        event[chosen] = True
        bound = min(bound, joint.entropy + best)
    return bound


def _dealt_out(joint: Joint, r: FloatArray, group: Places, share: FloatArray) -> SparseWeights:
    """Weights of the best pairs, the shares of a posterior being those of its inputs one after the other.

    So of inputs with the same posterior at most two are in more than one place.
    """
    distribution = joint.p_input
    order = np.argsort(group, kind="stable")
    upto = np.cumsum(distribution[order])
    first = np.searchsorted(group[order], np.arange(len(r)))
    begins = np.concatenate([[0.0], upto])[first][group[order]]
    mass = np.bincount(group, weights=distribution)[group[order]]
    start, stop = (np.concatenate([[0.0], upto[:-1]]) - begins) / mass, (upto - begins) / mass
    edges = np.cumsum(share, axis=1)[group[order]]
    low = np.concatenate([np.zeros((len(order), 1)), edges[:, :-1]], axis=1)
    high = np.concatenate([edges[:, :-1], np.ones((len(order), 1))], axis=1)
    amounts = np.maximum(np.minimum(stop[:, None], high) - np.maximum(start[:, None], low), 0.0)
    size = stop - start
    # What is left of an input by rounding is nothing.
    amounts[amounts < 1e-12 * size[:, None]] = 0.0
    amounts *= (distribution[order] / amounts.sum(axis=1))[:, None]
    alone = np.flatnonzero(amounts[:, 0] > 0)
    parts, number = [(np.arange(len(alone)), order[alone], amounts[alone, 0])], len(alone)
    for end in (1, 2):
        used = np.flatnonzero(amounts[:, end] > 0)
        if not len(used):
            continue
        one, two, of_one, of_two = paired(r[group[order[used]]], amounts[used, end])
        places = number + np.arange(len(one))
        parts.append((places, order[used[one]], of_one))
        both = of_two > 0
        parts.append((places[both], order[used[two[both]]], of_two[both]))
        number += len(one)
    outputs, inputs, masses = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sparse_rounded_weights(joint, outputs, inputs, masses, number)


@dataclass(frozen=True, eq=False)
class Narrowed:
    """A wide joint distribution with one input for each posterior of the secret, on which its optimum is found.

    Attributes
    ----------
    joint : Joint
    merged : MergedInputs
    """

    joint: Joint
    merged: MergedInputs

    @classmethod
    def of(cls, joint: Joint) -> Narrowed:
        """Merge equal posteriors, which no posterior guarantee tells apart."""
        return cls(joint, merge_equal_posteriors(joint))

    @property
    def reported_besides(self) -> float:
        """H(X | posterior) in nats: what an output that is one of inputs of the same posterior tells besides."""
        return self.joint.entropy - self.merged.joint.entropy

    def widened(self, protocol: Protocol, guarantee: PosteriorGuarantee, budget: Budget) -> SparseWeights:
        """Weights for all inputs of a protocol that meets the guarantee, as useful but for their rounding.

        Where rounding breaks the bound, its outputs are moved a hair inside first; where that does not help, inputs of
        the same posterior stay together, as they are in the protocol.
        """
        problem = Problem.of(self.merged.joint, guarantee, False)
        posteriors = problem.posteriors(protocol.weights)
        # `problem.posteriors` is over what presolve leaves, which is all of it.
        mass = protocol.weights.astype(np.float64) @ self.merged.joint.p_input / float(protocol.denominator)
        split = Split(posteriors, mass / mass.sum(), float(negative_entropy(posteriors) @ mass), 0.0)
        for near in self._near(problem, split, budget):
            try:
                weights = self._split(near)
            except SolverError:
                continue
            budget.spend(_BY_ENTRY * len(weights.values) + _BY_OUTPUT * weights.shape[0])
            if guarantee.sparse_holds(self.joint, weights):
                return weights
        places = np.full(len(self.joint.inputs), -1)
        for m, group in enumerate(self.merged.members):
            places[list(group)] = m
        return SparseWeights.of(protocol.weights[:, places])

    def _near(self, problem: Problem, split: Split, budget: Budget) -> Iterator[Split]:
        yield split
        yield from splits_inside(problem, split, budget)

    def _split(self, split: Split) -> SparseWeights:
        pieces = split_entries(self.merged, split.posteriors, split.mass)
        masses = pieces.share * pieces.mass[pieces.output]
        return sparse_rounded_weights(self.joint, pieces.output, pieces.input, masses, len(pieces.mass))


def _sparse_protocol(joint: Joint, guarantee: Guarantee, weights: SparseWeights) -> Protocol:
    """Sparse weights with their labels, outputs in the order of the inputs they stand for, as those of tables are."""
    entries = np.lexsort((weights.inputs, -weights.values.astype(np.float64), weights.outputs))
    leading = entries[weights.starts[:-1]]
    order = np.lexsort((-weights.values[leading].astype(np.float64), weights.inputs[leading]))
    weights = weights.chosen(order)
    return Protocol.of_sparse(
        weights,
        marginal_weights(joint, weights),
        joint.inputs,
        name_outputs(weights, joint.inputs, joint.inputs.columns),
        "optimal",
        str(guarantee),
    )
