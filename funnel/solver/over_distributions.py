"""The optimum under a guarantee over a set of distributions: boxes, the χ² set, or every table that noise allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from funnel.errors import SpecError
from funnel.guarantees.by_event import ByEvent, Part, SideChannels
from funnel.guarantees.over_distributions import OfBase, RatioGuarantee, SetGuarantee, Sides
from funnel.guarantees.possible_distributions import DistributionSet
from funnel.guarantees.reading import reads_secret
from funnel.guarantees.rldp import RLDP
from funnel.guarantees.sided import over_set
from funnel.joint import FloatArray, Joint
from funnel.protocol import WeightArray
from funnel.solver.budget import Budget
from funnel.solver.cuts import Flags, SetProblem
from funnel.solver.cutting import RobustOptimum, bound_over_distributions, decided_weights, optimum_over_distributions
from funnel.solver.floors import Best, propose_columns, set_aside
from funnel.solver.goal import Entropy, goal_of
from funnel.solver.greedy import greedy_weights
from funnel.solver.over_cone import BLIND
from funnel.solver.request import Request, Solution, rounding_of
from funnel.solver.robust_ascent import Kept, RobustCone, best_mixture, nothing_disclosed
from funnel.solver.robust_search import searchable, searched
from funnel.solver.split import Split, Trace


@dataclass(frozen=True, eq=False)
class KnownInputs(OfBase, RatioGuarantee):
    """What a guarantee asks of the rows of a channel at some inputs, whatever it does with the others.

    A channel that meets the guarantee under every distribution of a set does so under those distributions under which
    nobody has the other inputs; and of these no condition looks at what the others get. So this is weaker than the
    guarantee, for every channel: a bound on what can be reached under it is one for the guarantee. It decides about no
    protocol.

    Parameters
    ----------
    base : RatioGuarantee
        Over boxes.
    known : ndarray of bool, shape (a,)
        The inputs that are looked at, of what the channel reads.
    """

    base: RatioGuarantee
    known: npt.NDArray[np.bool_]

    @property
    def sides(self) -> Sides:
        """Those of the base."""
        return self.base.sides

    def distributions(self, joint: Joint) -> DistributionSet:
        """Those of the base under which nobody has another input.

        Raises
        ------
        ValueError
            If there are none.
        """
        found = self._found(joint)
        if found is None:
            raise ValueError("under every distribution of the set some have other inputs")
        return found

    def _found(self, joint: Joint) -> DistributionSet | None:
        distributions = self.base.distributions(joint)
        others = ~self.known.reshape(distributions.shape if reads_secret(joint) else (1, -1))
        return distributions.without(np.broadcast_to(others, distributions.shape))

    def is_possible(self, joint: Joint) -> bool:
        """Whether some distribution of the set has none of the other inputs."""
        return self._found(joint) is not None

    def starting_cone(self, joint: Joint) -> FloatArray:
        """None to begin with: the counts themselves may have other inputs."""
        return np.zeros((0, len(joint.inputs)))


@dataclass(frozen=True, eq=False)
class KnownInputsByEvent(OfBase, ByEvent):
    """The same of a guarantee that is asked for event by event.

    Parameters
    ----------
    base : ByEvent
    known : ndarray of bool, shape (a,)
        The inputs that are looked at, of what the channel reads.
    """

    base: ByEvent
    known: npt.NDArray[np.bool_]

    @property
    def bounded(self) -> SideChannels:
        """As the base has it."""
        return self.base.bounded

    def parts(self, joint: Joint) -> Iterator[Part]:
        """Those events that some distribution has without the other inputs."""
        for event, part in self.base.parts(joint):
            found = _limited_ratios(part, event.joint, self.known[event.inside])
            if found is not None:
                yield event, found

    def label_inputs(self, joint: Joint) -> npt.NDArray[np.bool_] | None:
        """Those that are looked at."""
        labels = self.base.label_inputs(joint)
        return None if labels is None else labels & self.known.reshape(labels.shape)


def limited(guarantee: SetGuarantee, joint: Joint, known: npt.NDArray[np.bool_]) -> SetGuarantee | None:
    """A guarantee as it is on some inputs alone: itself if none has others, None if nothing is left to be asked.

    Of several guarantees at once nothing is, which is less than could be.
    """
    if isinstance(guarantee, RatioGuarantee):
        return _limited_ratios(guarantee, joint, known)
    if known.all():
        return guarantee
    return KnownInputsByEvent(guarantee, known) if isinstance(guarantee, ByEvent) else None


def _limited_ratios(guarantee: RatioGuarantee, joint: Joint, known: npt.NDArray[np.bool_]) -> RatioGuarantee | None:
    distributions = guarantee.distributions(joint)
    others = ~known.reshape(distributions.shape if reads_secret(joint) else (1, -1))
    if not (distributions.conceivable & others).any():
        return guarantee
    found = KnownInputs(guarantee, known)
    return found if found.is_possible(joint) else None


# The share of the budget for moving inside, and of the gap that a search is asked for; the rest is for shares of the
# deviation between those it looks at.
_FINISHING, _SEARCHED = 0.15, 0.8


def robust_weights(problem: SetProblem, gap: float, budget: Budget, trace: Trace | None = None) -> RobustOptimum:
    """Maximise the utility over all channels that are RLDP over F, F itself and not a polytope around it.

    A channel that reads secrets of few values is searched for by levels (`robust_search`). Cutting planes do the rest,
    as over boxes: F gives every row of a channel a half-space for each of its distributions (METHOD section 5).

    Parameters
    ----------
    problem : SetProblem
        Over F, telling all inputs apart that occur.
    gap : float
        Requested bound - value, nats.
    budget : Budget
        Ends the search; a part is set aside for moving the protocol inside.
    trace : callable, optional
        Told (value, bound) as they improve.

    Raises
    ------
    SolverError
        If a linear programme fails.
    """
    told_apart = reads_secret(problem.read) and problem.image is None and isinstance(problem.goal, Entropy)
    if not told_apart or not searchable(problem.near, problem.guarantee.budget):
        return optimum_over_distributions(problem, gap, budget, trace)
    finishing = budget.reserve(_FINISHING)
    found = searched(problem, _SEARCHED * gap, budget, trace)
    weights = _proven(RobustCone(problem, finishing), found.kept)
    if not found.finished or found.bound - found.kept.value <= gap:
        return RobustOptimum(weights, found.bound, found.finished, finishing.fell_short, found.cuts)
    # Where the search came to its end without the gap, cutting planes may bound closer what levels cannot.
    further = optimum_over_distributions(problem, gap, budget, trace, weights)
    return replace(further, bound=min(found.bound, further.bound))


def _proven(cone: RobustCone, kept: Kept) -> WeightArray:
    """Integer weights of a mixture inside, for which the exact worst case agrees; the cone's budget is charged."""
    inner = np.vstack([cone.inside(kept.posteriors, True), cone.distribution])
    found = best_mixture(cone, inner, cone.gains(inner)) or nothing_disclosed(cone)
    return decided_weights(cone.problem, Split(found.posteriors, found.mass, found.value, np.inf), cone.budget)


# Inputs that noise may have made up are not told apart if they are more than so many, and of all records at most such
# a share.
_FEW_MADE_UP, _MADE_UP = 8, 0.05
# Of what is set aside for merging, the greedy way; columns as they are have the rest.
_GREEDY = 0.8
# Of a budget, what finding a protocol may take that gives some inputs the marginal, the rest being for a bound on all;
# and the gap, as a share of the requested one, of that bound.
_FINDING, _PROVING = 0.6, 0.5


def set_optimum(request: Request) -> Solution:
    """The best protocol that holds for every distribution of a set, by cutting planes or a search by levels.

    Raises
    ------
    SpecError
        If the guarantee is over no set of distributions.
    SolverError
        If a linear programme fails.
    """
    joint, read, guarantee = request.joint, request.read, request.guarantee
    gap, budget = request.gap, request.budget
    entropy = request.most

    seen = None if request.reads_secret or not request.informs else _expected(joint)
    # Of the information: what the protocol leaves to the other inputs is in the bound alone.
    share, kept = (1.0, entropy) if seen is None else (float(joint.p_input[seen].sum()), _entropy_of(joint, seen))
    # What Σ P(y) g(v_y) lies below the utility: of entropies all there is, of squared means nothing.
    apart = kept if request.informs else 0.0

    def most_with(bound: float) -> float:
        # What the inputs that are not told apart could add, to X at most: who has one, and which.
        return share * min(kept, apart + bound) + (0.0 if seen is None else entropy - share * kept)

    def trace(value: float, bound: float) -> None:
        request.report(share * (apart + value), most_with(bound))

    floor = set_aside(budget, len(joint.inputs))
    over = over_set(guarantee, read)
    told_apart = read.p_input > 0 if seen is None else seen
    blind: WeightArray | None = None
    finding = budget
    if over is not None:
        if request.reads_secret:
            # Protocols that read X alone are among those that read the secret too, and found sooner.
            without = replace(request, budget=budget.part(BLIND), progress=None, reads_secret=False, counts="inputs")
            # Combinations that never occurred may occur under some distribution: they too get what their input gets.
            lifted = np.tile(set_optimum(without).protocol.weights, len(read.secret))
            blind = lifted if over.holds_for(read, lifted) else None
        problem = _problem(request, over, told_apart)
        asked = limited(over, read, told_apart)
        if asked is over:
            found = optimum_over_distributions(problem, gap / share, budget, trace, blind)
        else:
            # The best of those protocols that give the other inputs the marginal; then what no protocol exceeds.
            finding = budget.part(_FINDING)
            found = optimum_over_distributions(
                problem, gap / share, finding, lambda value, _: trace(value, np.inf), blind
            )
            most, finished = np.inf, found.finished
            if asked is not None:
                most, proven = bound_over_distributions(
                    replace(problem, guarantee=asked), _PROVING * gap / share, budget, found.weights
                )
                finished = finished and proven
            found = replace(found, bound=most, finished=finished)
    elif isinstance(guarantee, RLDP):
        found = robust_weights(_problem(request, guarantee, told_apart), gap, budget, trace)
    else:
        raise SpecError(f"{guarantee.title} is no guarantee over a set of distributions")
    best = Best(request, found.weights)
    if blind is not None:
        best.propose(blind)
    bound = most_with(found.bound)
    if bound - best.utility > gap:
        best.propose(greedy_weights(joint, read, guarantee, floor.part(_GREEDY)))
        propose_columns(request, best, floor)
    ended = None if found.finished else budget.ended_by or finding.ended_by
    if found.finished and found.fell_short:
        ended = "work"
    bound += rounding_of(len(read.p_input), entropy)
    return request.answer(best.protocol, best.utility, bound, found.cuts, "cutting planes", found.finished, ended)


def _problem(request: Request, guarantee: SetGuarantee, told_apart: Flags) -> SetProblem:
    """What is maximised: of a channel that reads the secret, what it tells of X, unless the utility counts all."""
    joint, places = request.joint, np.flatnonzero(told_apart)
    distribution, inputs = request.read.p_input[places], places % joint.counts.shape[1]
    image: FloatArray | None = None
    if request.reads_secret and not request.counts_all and request.informs:
        seen = np.flatnonzero(joint.counts.any(axis=0))
        image = np.asarray(seen[:, None] == inputs, dtype=np.float64)
    goal = goal_of(request.utility, joint, inputs, distribution / distribution.sum())
    return SetProblem(request.read, guarantee, told_apart, image, goal)


def _expected(joint: Joint) -> Flags | None:
    """The inputs, shape (a,), that some people have whatever the noise was; None where all are told apart.

    Noise makes people up: of combinations that nobody has, about half seem to have some. To tell them apart helps
    nobody, and a search over hundreds of them does not end. Where they are few, or more than a few of all records,
    they are told apart nevertheless. The bound holds for protocols that tell them apart too.
    """
    if joint.bounds is None:
        return None
    seen = np.asarray(joint.bounds.lower.any(axis=0) & joint.counts.any(axis=0))
    made_up = int(joint.counts[:, ~seen].sum())
    others = int((joint.counts.any(axis=0) & ~seen).sum())
    return seen if others > _FEW_MADE_UP and made_up <= _MADE_UP * joint.n and seen.any() else None


def _entropy_of(joint: Joint, seen: Flags) -> float:
    """H(X) given that X is one of these, nats."""
    distribution = joint.p_input[seen] / joint.p_input[seen].sum()
    return float(-(distribution * np.log(distribution)).sum())
