"""Floors: protocols that take little work, which no search that was stopped falls below, and the best of all found."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from funnel.guarantees.base import Guarantee
from funnel.joint import FloatArray, Joint
from funnel.protocol import DENOMINATOR, Protocol, WeightArray
from funnel.solver.budget import Budget
from funnel.solver.goal import ENTROPY
from funnel.solver.greedy import greedy_weights, partition_weights
from funnel.solver.merging import SymbolRisks, merged_subsets
from funnel.solver.problem import Problem
from funnel.solver.request import Request, Solution
from funnel.solver.search import MANY
from funnel.solver.work import Deciding

# Of a budget, what is set aside for merging, where there are many inputs and where there are not; and seconds of work
# that it may take whatever the limit.
_FLOOR_OF_MANY, _FLOOR, _MERGING = 0.1, 0.05, 0.5
# The share of that for the greedy way; and of the rest for finding subsets, what is left being for deciding them.
_GREEDY, _SUBSETS = 0.8, 0.8
# Of what the greedy way leaves, for columns of X as they are.
_COLUMNS = 0.25
# Columns of X that are published as they are, at most.
_MOST_COLUMNS = 3


class Best:
    """The most useful of the protocols that were found to meet the guarantee of a request exactly.

    Parameters
    ----------
    request : Request
    weights : ndarray of uint64, shape (b, inputs read), optional
        The first of them; by default the one that says nothing.
    """

    def __init__(self, request: Request, weights: WeightArray | None = None) -> None:
        self._request = request
        self.utility = -np.inf
        self.protocol: Protocol
        nothing = np.full((1, len(request.read.inputs)), DENOMINATOR, dtype=np.uint64)
        self.propose(nothing if weights is None else weights)

    def propose(self, weights: WeightArray) -> None:
        """Keep these weights, which meet the guarantee, if they are more useful than those there are."""
        protocol = self._request.protocol(weights)
        utility = self._request.utility_of(protocol)
        if utility > self.utility:
            self.utility, self.protocol = utility, protocol

    def propose_proven(self, weights: WeightArray) -> None:
        """The same for weights that have yet to be found to meet it."""
        if self._request.guarantee.holds_for(self._request.read, weights):
            self.propose(weights)


def never_below(
    known: Sequence[Protocol],
    solution: Solution,
    joint: Joint,
    guarantee: Guarantee,
    gap: float,
    told: Callable[[Protocol], float],
) -> Solution:
    """The most useful of a solution and of those known protocols that meet the guarantee exactly.

    Parameters
    ----------
    known : sequence of Protocol
        For this joint distribution.
    solution : Solution
    joint : Joint
    guarantee : Guarantee
    gap : float
        The requested one.
    told : callable
        The utility of a protocol; below zero where it is none of those asked for.
    """
    for protocol in known:
        utility = told(protocol)
        if utility > solution.utility and guarantee.holds(joint, protocol):
            bound = max(utility, solution.bound)
            status = "optimal" if bound - utility <= gap else solution.status
            named = protocol.named(guarantee=str(guarantee))
            solution = replace(solution, protocol=named, utility=utility, bound=bound, status=status)
    return solution


def set_aside(budget: Budget, inputs: int) -> Budget:
    """What merging may take: a share of the budget, and in any case half a second's work."""
    share = _FLOOR_OF_MANY if inputs >= MANY else _FLOOR
    aside = budget.reserve(share)
    least = Budget.of(_MERGING)
    return aside if aside.remaining > least.remaining else least


def greedy_start(request: Request, problem: Problem, best: Best, budget: Budget) -> list[FloatArray]:
    """Propose the greedy way's protocol, and return its posteriors to start from, where there are many inputs."""
    if not _starts_greedily(problem):
        return []
    best.propose(greedy_weights(problem.joint, problem.read, problem.guarantee, budget.part(_GREEDY)))
    propose_columns(request, best, budget.part(_COLUMNS))
    return [problem.posteriors(best.protocol.weights)]


def some_columns(joint: Joint) -> list[tuple[float, npt.NDArray[np.intp]]]:
    """What is kept where some of the columns of X are published as they are, and which output each input has then.

    Nats, and shape (a,); what keeps most first. Of three columns at most, and not of all there are.
    """
    columns = range(len(joint.inputs.columns))
    values = np.array(joint.inputs.symbols, dtype=object).reshape(len(joint.inputs), -1)
    codes = [np.unique(values[:, j].astype(str), return_inverse=True)[1] for j in columns]
    ways = []
    for size in columns[1 : _MOST_COLUMNS + 1]:
        for some in itertools.combinations(columns, size):
            output = np.zeros(len(values), dtype=np.intp)
            for j in some:
                output = np.unique(output * (codes[j].max() + 1) + codes[j], return_inverse=True)[1]
            mass = np.bincount(output, weights=joint.p_input)
            mass = mass[mass > 0]
            ways.append((-float(mass @ np.log(mass)), output))
    return sorted(ways, key=lambda way: -way[0])


def propose_columns(request: Request, best: Best, budget: Budget) -> None:
    """Propose to publish some of the columns of X as they are: those that keep most of all that hold."""
    joint = request.joint
    if request.reads_secret:
        # The optimum without, which is proposed there, has them.
        return
    seen = np.flatnonzero(joint.counts.any(axis=0))
    deciding = Deciding(request.read, request.guarantee, budget)
    for kept, output in some_columns(joint):
        if budget.expired or (request.informs and kept <= best.utility):
            break
        subsets = tuple(tuple(map(int, seen[output[seen] == one])) for one in np.unique(output[seen]))
        if deciding.holds(weights := partition_weights(joint, subsets)):
            best.propose(weights)


def propose_known(request: Request, problem: Problem, best: Best) -> list[FloatArray]:
    """Propose the known protocols that meet the guarantee, and return their posteriors to start from."""
    found = []
    for protocol in request.known:
        if protocol.inputs.columns == request.read.inputs.columns and not protocol.is_sparse:
            weights = protocol.weights_for(request.read.inputs)
            if request.guarantee.holds_for(request.read, weights):
                best.propose(weights)
                found.append(problem.posteriors(weights))
    return found


def propose_merged(request: Request, problem: Problem, best: Best, budget: Budget) -> None:
    """Propose the protocols of greedy merging, which are there even where the budget allows nothing."""
    if not _starts_greedily(problem):
        best.propose(greedy_weights(problem.joint, problem.read, problem.guarantee, budget.part(_GREEDY)))
        propose_columns(request, best, budget.part(_COLUMNS))
    # Inputs that presolve makes one may as well be in different subsets.
    subsets = merged_subsets(SymbolRisks(problem.joint, problem.guarantee, budget.part(_SUBSETS)))
    deciding = Deciding(problem.read, problem.guarantee, budget)
    if len(subsets) > 1 and deciding.holds(weights := partition_weights(problem.joint, subsets)):
        best.propose(weights)


def _starts_greedily(problem: Problem) -> bool:
    return len(problem.distribution) >= MANY and problem.region.goal is ENTROPY
