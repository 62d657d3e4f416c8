"""The optimum over the confidence set itself: a search by levels, or cutting planes, and an exact check at the end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.errors import InfeasibleGuarantee
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.reading import reads_secret, rows_by_secret
from funnel.guarantees.worst_case import pair_ratios, refined
from funnel.joint import FloatArray
from funnel.protocol import DENOMINATOR, WeightArray
from funnel.rounding import proven_weights, rounded_weights
from funnel.solver.ball_cuts import BallCuts, worst_distribution
from funnel.solver.budget import CALL, Budget
from funnel.solver.columns import ColumnGeneration
from funnel.solver.cuts import SetProblem
from funnel.solver.goal import Entropy
from funnel.solver.repair import repaired
from funnel.solver.robust_ascent import Kept, RobustCone, ascended, best_mixture, nothing_disclosed
from funnel.solver.robust_search import searchable, searched
from funnel.solver.split import Split, Trace
from funnel.solver.work import Deciding

# Rounds until the worst case is this close to the budget, relatively; the rest is moved inside at the end.
_CLOSE = 1e-5
_ROUNDS = 60
# Rounds without a change worth speaking of, as a share of the gap, after which cutting ends.
_STILL, _UNCHANGED = 2, 0.02
# Half-spaces added for one output and round: the worst pairs, whose distributions differ most.
_PAIRS = 3
# The relatively smaller budget that a protocol is moved into by linear programmes at the end, and how many of them.
_MARGIN, _MOVES = 1e-6, 30
_SPACED = 1e-9
# The largest gap (nats) to which a relaxation is solved.
_ROUGH = 0.02
# The share of the budget for moving inside, and units of work of a search for the worst distributions: for an input of
# an output and a secret.
_FINISHING, _BY_ROW = 0.15, 8_000.0
# The rounds of cutting planes after which there is an ascent, and the most inputs for which one is worth its work.
_ASCENTS, _FEW_INPUTS = (1, 3, 6, 12, 20, 30, 40, 50), 12
# The share of the gap that a search is asked for; the rest is for shares of the deviation between those it looks at.
_SEARCHED = 0.8


@dataclass(frozen=True, eq=False)
class RobustOptimum:
    """Weights that meet a guarantee over a set of distributions, and a bound on what any protocol could reach.

    Attributes
    ----------
    weights : ndarray of uint64, shape (b, a)
    bound : float
        Upper bound on Σ P(y) g(v_y), nats, of every protocol that meets the guarantee and gives inputs that never
        occurred the marginal.
    finished : bool
    fell_short : bool
        Whether the budget did not allow to move it inside as closely as can be.
    cuts : int
    """

    weights: WeightArray
    bound: float
    finished: bool
    fell_short: bool
    cuts: int


def robust_weights(problem: SetProblem, gap: float, budget: Budget, trace: Trace | None = None) -> RobustOptimum:
    """Maximise the utility over all channels that are RLDP over F, F itself and not a polytope around it.

    A channel that reads secrets of few values is searched for by levels (`robust_search`). Else: F gives every row of a
    channel a half-space for each of its distributions, infinitely many. Start from those of the estimate;
    solve; find for every output the distributions in F that break its bound most (METHOD section 5); add their
    half-spaces; repeat. Each round solves a relaxation, so each bound is a bound for RLDP. What remains at the end is
    moved inside by a linear programme or mixed with the marginal, and decided by the exact worst case.

    Parameters
    ----------
    problem : SetProblem
        Over F, telling all inputs apart that occur.
    gap : float
        Requested bound - value, nats.
    budget : Budget
        Ends the rounds; a part is set aside for moving the protocol inside.
    trace : callable, optional
        Told (value, bound) as they improve; the value is that of a relaxation until the end.

    Raises
    ------
    InfeasibleGuarantee
        If only a channel that says nothing is left.
    SolverError
        If a linear programme fails.
    """
    finishing = budget.reserve(_FINISHING)
    near, distribution, epsilon = problem.near, problem.distribution, problem.guarantee.budget
    limit = capped_exp(epsilon)
    cone = RobustCone(problem, budget)
    kept, bound, rounds = nothing_disclosed(cone), np.inf, 0
    told_apart = reads_secret(problem.read) and problem.image is None and isinstance(problem.goal, Entropy)
    if told_apart and searchable(near, epsilon):
        found = searched(problem, _SEARCHED * gap, budget, trace)
        kept, bound = found.kept, found.bound
        # Where the search came to its end without the gap, cutting planes may bound closer what levels cannot.
        if not found.finished or bound - kept.value <= gap:
            weights = _proven(RobustCone(problem, finishing), kept)
            return RobustOptimum(weights, bound, found.finished, finishing.fell_short, found.cuts)
    cuts = BallCuts(problem)
    worst, columns, finished = np.inf, np.zeros((0, len(distribution))), False
    value, still, ended = np.inf, 0, False
    while True:
        if rounds and (budget.expired or rounds == _ROUNDS):
            break
        rounds += 1
        region = problem.region(cuts.rows(epsilon))
        search = ColumnGeneration(region, budget)
        inside = (columns @ region.rows.T <= 1e-9).all(axis=1) & (columns @ region.rows.T >= region.least - 1e-9).all(1)
        search.start_from(columns[inside])
        # While half-spaces are missing, the last digits of a relaxation are not worth their time.
        rough = 0.0 if still >= _STILL else min(_ROUGH, 0.1 * float(np.log(worst / limit)))
        mixture = search.run(max(0.7 * gap, rough))
        split = mixture.split
        bound = min(bound, split.bound)
        if trace is not None:
            trace(split.value, bound)
        columns = split.posteriors
        budget.spend(100 * CALL + _BY_ROW * split.posteriors.size * len(near.distribution))
        added, worst = _cut(cuts, problem, problem.channel(split), limit)
        # Half-spaces of outputs that are too rare to be told from rounding change nothing.
        still = still + 1 if abs(split.value - value) < _UNCHANGED * gap else 0
        value = split.value
        if (worst <= limit * (1 + _CLOSE) or not added or still > _STILL) and rough <= 0.7 * gap:
            finished = mixture.finished
            ended = True
            break
        # At rounds that do not depend on the budget, so that a larger one never finds less.
        if rounds in _ASCENTS and len(distribution) <= _FEW_INPUTS and not budget.expired:
            kept = ascended(cone, columns, kept, budget)
    told = [_proven(RobustCone(problem, finishing), kept)] if len(kept.mass) > 1 else []
    # What a search that was stopped is moved to is not what a longer one would pass by.
    if ended or not told:
        told.append(_moved_inside(problem, cuts, split, finishing))
    weights = max(told, key=problem.value_of)
    return RobustOptimum(weights, bound, finished, finishing.fell_short, len(cuts))


def _cut(cuts: BallCuts, problem: SetProblem, matrix: FloatArray, limit: float) -> tuple[int, float]:
    """Add half-spaces of the worst distributions for each output; how many, and the largest ratio."""
    rows, near = rows_by_secret(problem.read, matrix), problem.near
    pairs = pair_ratios(rows, near)
    # What is found on the grid of θ is a little less than the worst: search the worst pairs of every output closely.
    order = np.argsort(-pairs.found.reshape(len(rows), -1), axis=1, kind="stable")[:, :_PAIRS]
    outputs = np.repeat(np.arange(len(rows)), order.shape[1])
    places = np.column_stack([outputs, *np.unravel_index(order.ravel(), pairs.found.shape[1:])])
    places = places[places[:, 1] != places[:, 2]]
    bounds, shares = refined(rows, near, pairs, places)
    broken = bounds > limit * (1 + _SPACED)
    for (y, s, t), share in zip(places[broken].tolist(), shares[broken].tolist(), strict=True):
        one, two = (
            float((1 + part * near.deviation / near.prior[secret]) ** 2)
            for part, secret in ((share, s), (1 - share, t))
        )
        cuts.add(
            s,
            t,
            worst_distribution(rows[y, s], near.distribution[s], one),
            worst_distribution(-rows[y, t], near.distribution[t], two),
        )
    return int(broken.sum()), float(bounds.max(initial=1.0))


def _proven(cone: RobustCone, kept: Kept) -> WeightArray:
    """Integer weights of a mixture inside, for which the exact worst case agrees; the cone's budget is charged."""
    inner = np.vstack([cone.inside(kept.posteriors, True), cone.distribution])
    found = best_mixture(cone, inner, cone.gains(inner)) or nothing_disclosed(cone)
    return _decided(cone.problem, Split(found.posteriors, found.mass, found.value, np.inf), cone.budget)


def _moved_inside(problem: SetProblem, cuts: BallCuts, split: Split, budget: Budget) -> WeightArray:
    # Moving changes which distributions are worst: cut again, over the outputs there are, until the worst case agrees.
    margin, distribution, guarantee = _MARGIN, problem.distribution, problem.guarantee
    for _ in range(_MOVES if guarantee.budget > 0 else 0):
        if not budget.allows(0.0):
            break
        budget.spend(200 * CALL + 2 * _BY_ROW * split.posteriors.size * len(problem.near.distribution))
        smaller = guarantee.tightened(margin).budget
        moved = repaired(
            split, distribution, cuts.rows(smaller) / distribution, problem.image, budget, goal=problem.goal
        )
        if moved is None:
            break
        matrix = problem.channel(moved)
        weights = rounded_weights(problem.read, matrix)
        if guarantee.holds_for(problem.read, weights):
            return weights
        added, _ = _cut(cuts, problem, matrix, capped_exp(smaller))
        margin = margin if added else 4 * margin
    return _decided(problem, split, budget)


def _decided(problem: SetProblem, split: Split, budget: Budget) -> WeightArray:
    """The weights of a split, mixed with the marginal until the exact worst case agrees."""
    read, guarantee = problem.read, problem.guarantee
    deciding = Deciding(read, guarantee, budget)
    try:
        weights = proven_weights(read, guarantee, problem.channel(split), 1.0, deciding.holds)
    except InfeasibleGuarantee:
        # The budget does not allow to decide anything.
        return np.full((1, len(read.inputs)), DENOMINATOR, dtype=np.uint64)
    if len(weights) > 1 and (weights == weights[:, :1]).all():
        raise InfeasibleGuarantee(f"no protocol that says anything meets {guarantee}")
    return weights
