"""The protocol of highest utility under a guarantee, with an upper bound on what any protocol could reach."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from funnel.errors import SolverError, SpecError
from funnel.guarantees.base import ConeGuarantee, Guarantee, PosteriorGuarantee
from funnel.guarantees.known_inputs import limited
from funnel.guarantees.perfect import PerfectPrivacy
from funnel.guarantees.rldp import RLDP
from funnel.guarantees.sided import Sided, over_set
from funnel.joint import FloatArray, Joint
from funnel.measures import Counted, mutual_information
from funnel.measures.utilities import INFORMATION, Estimation, Utility, utility_of
from funnel.naming import name_outputs
from funnel.progress import Progress
from funnel.protocol import DENOMINATOR, Protocol, WeightArray
from funnel.rounding import marginal_weights, rounded_weights, silence_unseen
from funnel.solver.ascent import ascend
from funnel.solver.budget import Budget, Ended
from funnel.solver.choice import METHODS, chosen_method, has_few_vertices
from funnel.solver.cutting import bound_over_laws, optimum_over_laws
from funnel.solver.designed import best_design
from funnel.solver.goal import ENTROPY, Goal, goal_of
from funnel.solver.greedy import greedy_weights
from funnel.solver.integers import integers_near
from funnel.solver.merging import merged_split
from funnel.solver.problem import Problem
from funnel.solver.robust import robust_weights
from funnel.solver.search import HUNDREDS, best_mixture
from funnel.solver.split import Split, best_split
from funnel.solver.unchanged import unchanged_weights
from funnel.solver.vertices import enumerate_vertices
from funnel.solver.wide import Narrowed, binary_optimum, bound_by_events, is_binary, is_wide, needs_no_table
from funnel.solver.work import Deciding, decision_work
from funnel.sparse_weights import SparseWeights

# For estimates: the least gap, as a share of the records, and the share of the budget that the design may take.
_DESIGN_GAP, _DESIGNING = 1e-3, 0.9
# The share of the requested gap left to polishing and integer weights.
_ROUNDING_SHARE = 0.05
# Shares of a budget: set aside for integer weights, on a lattice or not; for the search, the rest being for perfect
# privacy.
_FINISHING, _LATTICE, _SEARCHING = 0.05, 0.5, 0.95
# The same, before a search over protocols that read the secret: the optimum without, the joint ascent.
_BLIND, _ASCENT = 0.3, 0.2
# For the bound by events of secrets, which is to be there whatever the rest of a wide table took.
_EVENTS = 0.02
# Inputs that noise may have made up are not told apart if they are more than so many, and of all records at most such
# a share.
_FEW_MADE_UP, _MADE_UP = 8, 0.05
# Of a budget, what finding a protocol may take that gives some inputs the marginal, the rest being for a bound on all;
# and the gap, as a share of the requested one, of that bound.
_FINDING, _PROVING = 0.6, 0.5
# Of a budget, what is set aside for merging, where there are many inputs, hundreds of them, and where there are not;
# and seconds of work that it may take whatever the limit.
_FLOOR_OF_MANY, _FLOOR_OF_HUNDREDS, _FLOOR, _MERGING = 0.25, 0.1, 0.05, 0.5
# The share of that for the greedy way; and of the rest for finding classes, what is left being for deciding them.
_GREEDY, _CLASSES = 0.8, 0.8
# From so many inputs on a search starts from the greedy way: climbing from the corners of the region is lost there.
_MANY_INPUTS = 64


@dataclass(frozen=True, eq=False)
class Solution:
    """An optimised protocol with its certificate; utility <= optimum <= bound.

    Attributes
    ----------
    protocol : Protocol
        Verified integer weights.
    utility : float
        I(X;Y) of that protocol, in nats; or the share of the variance of X that it explains, where that was asked for.
    bound : float
        Upper bound on the utility of every protocol that meets the guarantee. Over the χ² set: and that gives the
        marginal to inputs which never occurred.
    status : str
        ``"optimal"`` if ``gap`` is at most the requested one. Else what ended the search: ``"time limit"`` if it was
        the work that the limit allows, the same in every run; ``"clock"`` if it was the safety stop far beyond;
        ``"interrupted"``; ``"gap above request"`` if doubles or integer weights cannot come closer; ``"gave up"`` if
        the search stopped far from the gap, with nothing that moved it or with a programme that failed.
    seconds : float
        Time taken.
    vertices : int
        Number of vertices enumerated, or of columns generated.
    method : str
        ``"vertices"``, ``"columns"``, ``"pairs"``, ``"identity"`` or ``"cutting planes"``: what was done.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> best = funnel.optimal(joint, funnel.LIP(0.5))
    >>> best.status, best.utility <= best.bound, best.protocol.mechanism
    ('optimal', True, 'optimal')
    """

    protocol: Protocol
    utility: float
    bound: float
    status: str
    seconds: float
    vertices: int
    method: str

    @property
    def gap(self) -> float:
        """bound - utility."""
        return self.bound - self.utility

    @property
    def finished(self) -> bool:
        """Whether more time would change nothing."""
        return self.status in ("optimal", "gap above request")


_STATUS: dict[Ended, str] = {"work": "time limit", "clock": "clock", "interrupt": "interrupted"}
_ENDED: dict[str, Ended] = {status: ended for ended, status in _STATUS.items()}


def optimal(
    joint: Joint,
    guarantee: Guarantee,
    gap: float = 1e-6,
    time_limit: float | Budget | None = None,
    method: str = "auto",
    progress: Progress | None = None,
    reads_secret: bool = False,
    counts: Counted = "inputs",
    utility: str | Utility = "information",
) -> Solution:
    """Maximise the utility over all protocols that read X and meet the guarantee (PF problem 2, theorem 3; METHOD 3).

    Works in dimension a-1 for every guarantee that is a cone on rows, LDP included, instead of the a(a-1) dimensions
    of PF theorem 2.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a).
    guarantee : Guarantee
        One that is a polyhedral cone, or one over a set of laws (`funnel.guarantees.over_laws`). Where the joint law
        has bounds, LDP, LIP, ALIP and PML are over every table of counts within them.
    gap : float
        Requested ``bound - utility``, in nats or as a share of the variance.
    time_limit : float or Budget, optional
        Seconds of processor time of the reference machine, counted as work (`funnel.solver.budget`): the same on a
        busy machine. Columns return the best protocol so far, with a bound; vertex enumeration fails.
    method : str
        ``"vertices"`` lists every vertex of the cone, ``"columns"`` generates those that are needed and certifies the
        rest by branch and bound, ``"auto"`` predicts which is cheaper.
    progress : callable, optional
        Told the utility and the bound, in words, whenever columns have come a step further.
    reads_secret : bool
        Maximise over the protocols that read (S, X) instead, still by I(X;Y): at least as useful, and at least as
        useful as Conditional Reporting. Columns only, in dimension c a.
    counts : "inputs" or "secret and inputs"
        What the utility counts of a protocol that reads the secret: X, or (S, X) as in RLDP.
    utility : "information", "variance", "estimation" or Utility
        I(X;Y) in nats; or Var E[X|Y] / Var X of one column of numbers (METHOD section 9), where gap, utility and bound
        are shares of the variance. Values that are no numbers are given theirs by `funnel.Variance`.

    Returns
    -------
    Solution
        Its protocol has at most a outputs (if it does not read the secret) and meets the guarantee exactly, on its
        integer weights. It is never less useful than merging, nor than perfect privacy on a lattice, nor, if it reads
        the secret, than the optimum that was found without. The same input gives the same protocol, unless the safety
        clock or an interrupt ends the search: Ctrl-C, which columns answer with the best protocol so far.

    Raises
    ------
    SpecError
        If the guarantee is neither, the method or utility is unknown, a value has no number, or the gap or time limit
        is not positive.
    SolverError
        If enumeration fails or does not finish in time, or a linear programme fails.

    Notes
    -----
    Vertices: O(a²) of them for two secrets, else exponential in min(a, c). Columns: exponential in the worst case
    too, but stopped whenever the gap is reached; see docs/solver.md for measured times.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> best = funnel.optimal(joint, funnel.LIP(0.5))
    >>> round(best.utility, 4), round(best.bound, 4)
    (0.2434, 0.2434)
    """
    started = time.perf_counter()
    if method not in METHODS:
        raise SpecError(f"unknown method {method!r} for the optimum; choose one of {', '.join(METHODS)}")
    if not gap > 0 or not (time_limit is None or isinstance(time_limit, Budget) or time_limit > 0):
        raise SpecError("gap (nats) and time limit (seconds) of the optimum must be positive")
    budget, useful = Budget.of(time_limit), utility_of(utility, joint.inputs)
    if useful != INFORMATION:
        if counts != "inputs":
            raise SpecError(f"utility by {useful.name} counts the published columns; leave counts out")
        return _in_table(joint, guarantee, gap, budget, method, progress, reads_secret, counts, started, useful)
    chosen = method == "auto" or (method == "columns" and needs_no_table(joint) and not is_binary(joint))
    if chosen and not reads_secret and isinstance(guarantee, PosteriorGuarantee) and is_wide(joint, guarantee):
        with budget.interruptible():
            return _wide(joint, guarantee, gap, budget, method, progress, started)
    return _in_table(joint, guarantee, gap, budget, method, progress, reads_secret, counts, started)


def _in_table(
    joint: Joint,
    guarantee: Guarantee,
    gap: float,
    budget: Budget,
    method: str,
    progress: Progress | None,
    reads_secret: bool,
    counts: Counted,
    started: float,
    useful: Utility = INFORMATION,
) -> Solution:
    """The optimum as a table of all inputs by all outputs."""
    # Publishing X as it is is no optimum where telling S counts as well.
    whole = reads_secret and counts == "secret and inputs"
    unchanged = None if whole else unchanged_weights(joint, guarantee, budget)
    if unchanged is not None:
        protocol = _protocol(joint, joint, guarantee, unchanged)
        utility, most = useful.told(joint, protocol), useful.whole(joint)
        if most - utility <= gap:
            bound, seconds = max(most, utility), time.perf_counter() - started
            return Solution(protocol, utility, bound, "optimal", seconds, len(unchanged), "identity")
    with budget.interruptible():
        if isinstance(useful, Estimation):
            return _designed(joint, guarantee, gap, budget, progress, reads_secret, started, useful)
        if isinstance(guarantee, RLDP) or over_set(guarantee, joint) is not None:
            return _robust(joint, guarantee, gap, budget, progress, reads_secret, counts, started, useful)
        if not isinstance(guarantee, ConeGuarantee):
            raise SpecError(
                f"{guarantee.title} is no polyhedral cone, so no optimum can be certified; use grr or another explicit "
                "mechanism"
            )
        if reads_secret and method == "vertices":
            raise SpecError("the optimum over protocols that read the secret is found by columns only")
        return _over_cone(joint, guarantee, gap, budget, method, progress, reads_secret, started, None, useful)


def _designed(
    joint: Joint,
    guarantee: Guarantee,
    gap: float,
    budget: Budget,
    progress: Progress | None,
    reads_secret: bool,
    started: float,
    useful: Estimation,
) -> Solution:
    """The best for estimates: a design over the rows of a cone, or else the most informative protocol."""
    gap, designing = max(gap, _DESIGN_GAP), budget.part(_DESIGNING)

    def trace(worth: float, bound: float) -> None:
        if progress is not None:
            progress(f"worth {worth:.4f} of the records, at most {bound:.4f}", 0, None)

    found = None if reads_secret else best_design(joint, guarantee, gap, designing, trace)
    if found is not None:
        protocol, bound, finished = _protocol(joint, joint, guarantee, found.weights), found.bound, found.finished
    else:
        informative = _in_table(joint, guarantee, gap, budget, "auto", None, reads_secret, "inputs", started)
        protocol, bound, finished = informative.protocol, 1.0, informative.finished
    utility = useful.told(joint, protocol)
    bound = max(utility, bound)
    ended = None if finished else budget.ended_by or designing.ended_by
    status = _status(bound - utility <= gap, finished, ended)
    return Solution(protocol, utility, bound, status, time.perf_counter() - started, len(protocol.outputs), "design")


def _wide(
    joint: Joint,
    guarantee: PosteriorGuarantee,
    gap: float,
    budget: Budget,
    method: str,
    progress: Progress | None,
    started: float,
) -> Solution:
    """The optimum without a table of all inputs by all outputs."""
    # What never occurs is outside the alphabet of a wide protocol: its records draw from the marginal.
    seen = joint.occurring
    if is_binary(joint):
        found = binary_optimum(seen, guarantee, gap, budget)
        weights, bound, done, size, finished = found.weights, found.bound, "pairs", found.columns, found.finished
        ended = None if finished else budget.ended_by
    else:
        narrowed, finishing, events = Narrowed.of(seen), budget.reserve(_FINISHING), budget.reserve(_EVENTS)
        best = _in_table(
            narrowed.merged.joint, guarantee, gap, budget, method, progress, False, "inputs", time.perf_counter()
        )
        weights = narrowed.widened(best.protocol, guarantee, finishing)
        bound, done, size = narrowed.told_besides + best.bound, best.method, best.vertices
        if bound - best.utility - narrowed.told_besides > gap and isinstance(guarantee, Sided):
            bound = min(bound, bound_by_events(seen, guarantee, gap / 10, events))
        finished, ended = best.finished, _ENDED.get(best.status)
    if needs_no_table(joint):
        protocol = _sparse_protocol(seen, guarantee, weights)
    else:
        table = np.zeros((weights.shape[0], len(joint.inputs)), dtype=np.uint64)
        table[:, joint.counts.any(axis=0)] = weights.table()
        protocol = _protocol(joint, joint, guarantee, silence_unseen(joint, table))
    utility = mutual_information(joint, protocol)
    rounding = 2.0**-50 * (len(joint.inputs) + 8) * (1.0 + joint.entropy)
    bound = max(utility, min(joint.entropy, bound + rounding))
    status = _status(bound - utility <= gap, finished, ended)
    return Solution(protocol, utility, bound, status, time.perf_counter() - started, size, done)


class _Best:
    """The most useful of the protocols that were found to meet the guarantee exactly."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.utility = -np.inf
        self.protocol: Protocol
        self.propose(np.full((1, len(problem.read.inputs)), DENOMINATOR, dtype=np.uint64))

    def propose(self, weights: WeightArray) -> None:
        """Keep these weights, which meet the guarantee, if they are more useful than those there are."""
        problem = self._problem
        protocol = _protocol(problem.joint, problem.read, problem.guarantee, weights)
        utility = problem.utility.told(problem.joint, protocol)
        if utility > self.utility:
            self.utility, self.protocol = utility, protocol

    def propose_proven(self, weights: WeightArray) -> None:
        """The same for weights that have yet to be found to meet it."""
        if self._problem.guarantee.holds_for(self._problem.read, weights):
            self.propose(weights)


def _over_cone(
    joint: Joint,
    guarantee: ConeGuarantee,
    gap: float,
    budget: Budget,
    method: str,
    progress: Progress | None,
    reads_secret: bool,
    started: float,
    floor: Budget | None = None,
    useful: Utility = INFORMATION,
) -> Solution:
    """The best of what a search finds and of what is known without one; floor: what merging may take."""
    problem = Problem.of(joint, guarantee, reads_secret, utility=useful)
    # Σ P(y) g(v_y) of a protocol, and of the best one at most, lie this much below its utility.
    goal, most = problem.region.goal, useful.whole(joint)
    apart = joint.entropy if goal is ENTROPY else -float(problem.region.gains(problem.law))
    best, finishing = _Best(problem), budget.reserve(_LATTICE if guarantee.is_perfect else _FINISHING)
    if floor is None:
        floor = _set_aside(budget, len(joint.inputs))
    split: Split | None = None
    ended: Ended | None = None
    finished = True
    chosen = "columns"
    if not reads_secret:
        chosen = chosen_method(method, problem.merged.joint, guarantee, problem.region, budget)
    if chosen == "vertices":
        try:
            split, size = _over_vertices(problem, budget)
            slack = goal.slack
        except SolverError:
            # Double description in floats fails on thin regions; what was not asked for by name need not be used.
            if method != "auto":
                raise
            chosen = "columns"
    if split is None:

        def trace(value: float, bound: float) -> None:
            if progress is not None:
                progress(f"{apart + value:.5f} {useful.unit}, at most {min(most, apart + bound):.5f}", 0, None)

        if reads_secret:
            starts = _starts_with_secret(problem, best, gap, budget, floor)
        else:
            starts = _greedy_start(problem, best, floor)
        searching, asked = budget.part(_SEARCHING), (1 - _ROUNDING_SHARE) * gap
        mixture = best_mixture(problem, starts, asked, searching, trace)
        split, size, slack = mixture.split, mixture.columns, 0.0
        finished = mixture.finished
        ended = None if finished else searching.ended_by
    # I(X;Y) = H(X) - Σ P(y) H(v_y), and splitting merged inputs again leaves every H(v_y) as it is.
    rounding = 2.0**-50 * (len(joint.p_input) + 8) * (1.0 + most)
    bound = min(most, apart + split.bound + slack) + rounding
    for weights in integers_near(problem, split, finishing):
        best.propose(weights)
    if bound - best.utility > gap and not reads_secret:
        _propose_merged(problem, best, floor)
    if bound - best.utility > gap and not budget.expired:
        _propose_perfect(problem, best, gap, finishing if guarantee.is_perfect else budget)
    bound = max(bound, best.utility)
    if finished and finishing.fell_short:
        ended = "work"
    status = _status(bound - best.utility <= gap, finished, ended)
    return Solution(best.protocol, best.utility, bound, status, time.perf_counter() - started, size, chosen)


def _status(reached: bool, finished: bool, ended: Ended | None) -> str:
    if reached:
        return "optimal"
    if ended is not None:
        return _STATUS[ended]
    return "gap above request" if finished else "gave up"


def _set_aside(budget: Budget, inputs: int) -> Budget:
    """What merging may take: a share of the budget, and in any case half a second's work."""
    share = _FLOOR_OF_HUNDREDS if inputs >= HUNDREDS else _FLOOR_OF_MANY if inputs >= _MANY_INPUTS else _FLOOR
    aside = budget.reserve(share)
    least = Budget.of(_MERGING)
    return aside if aside.remaining > least.remaining else least


def _greedy_start(problem: Problem, best: _Best, budget: Budget) -> list[FloatArray]:
    """Propose the greedy way's protocol, and return its posteriors to start from, where there are many inputs."""
    if len(problem.law) < _MANY_INPUTS or problem.region.goal is not ENTROPY:
        return []
    best.propose(greedy_weights(problem.joint, problem.read, problem.guarantee, budget.part(_GREEDY)))
    return [problem.posteriors(best.protocol.weights)]


def _over_vertices(problem: Problem, budget: Budget) -> tuple[Split, int]:
    few = has_few_vertices(problem.region)
    vertices = enumerate_vertices(problem.merged.joint, problem.guarantee, budget, problem.rows, few)
    return best_split(vertices, problem.law, budget, problem.region.goal), len(vertices)


def _propose_merged(problem: Problem, best: _Best, budget: Budget) -> None:
    """Propose the protocols of greedy merging, which are there even where the budget allows nothing."""
    if len(problem.law) < _MANY_INPUTS or problem.region.goal is not ENTROPY:
        best.propose(greedy_weights(problem.joint, problem.read, problem.guarantee, budget.part(_GREEDY)))
    # Inputs that presolve makes one may as well be in different classes.
    ways = [
        (whole, risks)
        for whole in (problem, Problem.of(problem.joint, problem.guarantee, False, False, problem.utility))
        for risks in (whole.risks, None)
    ]
    for left, (whole, risks) in zip(range(len(ways), 0, -1), ways, strict=True):
        part = budget.part(1 / left)
        split = merged_split(whole.region, part.part(_CLASSES), risks)
        deciding = Deciding(whole.read, problem.guarantee, part)
        if len(split.mass) > 1 and deciding.holds(weights := rounded_weights(whole.read, whole.channel(split))):
            best.propose(weights)


def _starts_with_secret(problem: Problem, best: _Best, gap: float, budget: Budget, floor: Budget) -> list[FloatArray]:
    """Columns for a search over protocols that read the secret; proposes the best one that does not."""
    part, started = budget.part(_BLIND), time.perf_counter()
    blind = _over_cone(
        problem.joint, problem.guarantee, gap, part, "auto", None, False, started, floor, problem.utility
    ).protocol
    lifted = problem.lifted(blind.weights)
    budget.spend(decision_work(problem.read, problem.guarantee, len(lifted)))
    best.propose_proven(lifted)
    known = [problem.posteriors(lifted)]
    return [*known, ascend(problem.region, budget.part(_ASCENT))] if problem.region.goal is ENTROPY else known


def _propose_perfect(problem: Problem, best: _Best, gap: float, budget: Budget) -> None:
    """Propose what perfect privacy allows, which every guarantee allows: near ε = 0 doubles may find less."""
    guarantee = problem.guarantee
    if guarantee.is_perfect:
        # Members of merged inputs can be told apart in any case, and on a lattice that has shorter vectors.
        law = problem.law
        alone = Split(law[None], np.ones(1), float(problem.region.gains(law[None])[0]), 0.0)
        for weights in integers_near(problem, alone, budget):
            best.propose(weights)
        return
    perfect = PerfectPrivacy() if isinstance(guarantee, PosteriorGuarantee) else guarantee.with_budget(0.0)
    started, useful = time.perf_counter(), problem.utility
    found = _over_cone(
        problem.joint, perfect, gap, budget, "auto", None, problem.reads_secret, started, None, useful
    ).protocol
    best.propose_proven(found.weights)


def _robust(
    joint: Joint,
    guarantee: Guarantee,
    gap: float,
    budget: Budget,
    progress: Progress | None,
    reads_secret: bool,
    counts: Counted,
    started: float,
    useful: Utility = INFORMATION,
) -> Solution:
    """Over a set of laws: boxes, the χ² set, or every table of counts that noise does not rule out."""
    read = joint.with_secret() if reads_secret else joint
    a = joint.counts.shape[1]
    whole, informs = counts == "secret and inputs", useful == INFORMATION
    entropy = (read.entropy if whole else joint.entropy) if informs else useful.whole(joint)

    def image(inputs: npt.NDArray[np.intp]) -> FloatArray | None:
        if not reads_secret or whole or not informs:
            return None
        seen = np.flatnonzero(joint.counts.any(axis=0))
        return np.asarray(seen[:, None] == inputs % a, dtype=np.float64)

    def goal(inputs: npt.NDArray[np.intp]) -> Goal:
        law = read.p_input[inputs]
        return goal_of(useful, joint, inputs % a, law / law.sum())

    def told(protocol: Protocol) -> float:
        return mutual_information(joint, protocol, counts) if informs else useful.told(joint, protocol)

    seen = None if reads_secret or not informs else _expected(joint)
    # Of the information: what the protocol leaves to the other inputs is in the bound alone.
    share, kept = (1.0, entropy) if seen is None else (float(joint.p_input[seen].sum()), _entropy_of(joint, seen))
    # What Σ P(y) g(v_y) lies below the utility: of entropies all there is, of squared means nothing.
    apart = kept if informs else 0.0

    def most_with(bound: float) -> float:
        # What the inputs that are not told apart could add, to X at most: who has one, and which.
        return share * min(kept, apart + bound) + (0.0 if seen is None else entropy - share * kept)

    def trace(value: float, bound: float) -> None:
        if progress is not None:
            most = most_with(bound)
            progress(f"{share * (apart + value):.5f} {useful.unit}, at most {most:.5f}", 0, None)

    def silent(value: float, _: float) -> None:
        trace(value, np.inf)

    floor = _set_aside(budget, len(joint.inputs))
    over = over_set(guarantee, read)
    blind: WeightArray | None = None
    finding = budget
    if over is not None:
        if reads_secret:
            # Protocols that read X alone are among those that read the secret too, and found sooner.
            part, begun = budget.part(_BLIND), time.perf_counter()
            best = _robust(joint, guarantee, gap, part, None, False, "inputs", begun, useful).protocol
            # Combinations that never occurred may occur under some law: they too get what their input gets.
            lifted = np.tile(best.weights, len(read.secret))
            blind = lifted if over.holds_for(read, lifted) else None
        told_apart = read.p_input > 0 if seen is None else seen
        asked = limited(over, read, told_apart)
        if asked is over:
            found = optimum_over_laws(read, over, gap / share, budget, image, trace, blind, told_apart, goal)
        else:
            # The best of those protocols that give the other inputs the marginal; then what no protocol exceeds.
            finding = budget.part(_FINDING)
            found = optimum_over_laws(read, over, gap / share, finding, image, silent, blind, told_apart, goal)
            most, finished = np.inf, found.finished
            if asked is not None:
                most, proven = bound_over_laws(
                    read, asked, _PROVING * gap / share, budget, image, found.weights, told_apart, goal
                )
                finished = finished and proven
            found = replace(found, bound=most, finished=finished)
    elif isinstance(guarantee, RLDP):
        found = robust_weights(read, guarantee, gap, budget, image, trace, goal)
    else:
        raise SpecError(f"{guarantee.title} is no guarantee over a set of laws")
    protocol = _protocol(joint, read, guarantee, found.weights)
    utility = told(protocol)
    if blind is not None:
        whole_x = _protocol(joint, read, guarantee, blind)
        if (most := told(whole_x)) > utility:
            protocol, utility = whole_x, most
    most_of_all = most_with(found.bound)
    if most_of_all - utility > gap:
        merged = _protocol(joint, read, guarantee, greedy_weights(joint, read, guarantee, floor))
        if (most := told(merged)) > utility:
            protocol, utility = merged, most
    rounding = 2.0**-50 * (len(read.p_input) + 8) * (1.0 + entropy)
    bound = max(utility, most_of_all + rounding)
    ended = None if found.finished else budget.ended_by or finding.ended_by
    if found.finished and found.fell_short:
        ended = "work"
    status = _status(bound - utility <= gap, found.finished, ended)
    seconds = time.perf_counter() - started
    return Solution(protocol, utility, bound, status, seconds, found.cuts, "cutting planes")


def _expected(joint: Joint) -> npt.NDArray[np.bool_] | None:
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


def _entropy_of(joint: Joint, seen: npt.NDArray[np.bool_]) -> float:
    """H(X) given that X is one of these, nats."""
    law = joint.p_input[seen] / joint.p_input[seen].sum()
    return float(-(law * np.log(law)).sum())


def _protocol(joint: Joint, read: Joint, guarantee: Guarantee, weights: WeightArray) -> Protocol:
    # Outputs in the order of the inputs they stand for: reports and successive releases read alike.
    order = np.lexsort((-weights.max(axis=1).astype(np.float64), weights.argmax(axis=1)))
    weights = weights[order]
    return Protocol(
        weights,
        marginal_weights(read, weights),
        read.inputs,
        name_outputs(weights, read.inputs, joint.inputs.columns),
        "optimal",
        str(guarantee),
    )


def _sparse_protocol(joint: Joint, guarantee: Guarantee, weights: SparseWeights) -> Protocol:
    # In the order of the inputs they stand for, as tables are.
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
