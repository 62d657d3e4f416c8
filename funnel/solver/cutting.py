"""The optimum under a guarantee over a set of distributions: cutting planes, exact at the end."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from funnel.errors import InfeasibleGuarantee
from funnel.joint import FloatArray
from funnel.protocol import DENOMINATOR, WeightArray
from funnel.rounding import proven_weights, rounded_weights
from funnel.solver.budget import CALL, Budget
from funnel.solver.columns import ColumnGeneration
from funnel.solver.cuts import Cuts, SetProblem
from funnel.solver.lift_cuts import cuts_for
from funnel.solver.lp import MasterProgramme
from funnel.solver.repair import repaired
from funnel.solver.split import Split, Trace
from funnel.solver.work import Deciding, levels_work

# The share of the budget that climbing may take before the first proof, and that moving inside is given.
_CLIMBING, _FINISHING = 0.6, 0.1
# Climbing goes on until what the relaxation has above what is inside is this share of the gap; the proof has the rest.
_APART, _PROOF = 0.4, 0.5
# What a climb must gain to go on: a share of the gap, or of what is to be cut off, up to so many nats.
_FINE, _ROUGH = 0.1, 0.02
# Rounds without progress worth speaking of, as a share of the gap, after which a proof is due anyway.
_STILL, _UNCHANGED = 8, 0.02
_ROUNDS = 400
# The relatively smaller budgets that a protocol is moved into, and how often it may be cut again on the way.
_MARGINS, _MOVES = (1e-8, 1e-7, 1e-6), 12
# Zeros are worth this share of the gap: a document without them lists every output for every input.
_ZEROS = 0.2
# The share of that budget for what is inside already.
_MIXING = 0.3
_UNUSED = 1e-13


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


def optimum_over_distributions(
    problem: SetProblem, gap: float, budget: Budget, trace: Trace | None = None, start: WeightArray | None = None
) -> RobustOptimum:
    """Maximise the utility over all channels that meet a guarantee under every distribution of a set.

    Each distribution gives every row of a channel a half-space, infinitely many in all. A relaxation has finitely many
    of them. Its best mixture is found by climbing; the worst distributions of its outputs are cut off; the outputs
    themselves, moved towards the average row until they meet the guarantee, are mixed to the best protocol that is
    known to hold. Once both are close, and only then, a bound on the relaxation is proven, which is one for the
    guarantee.

    Parameters
    ----------
    problem : SetProblem
        The value and the bound are of the distribution of the inputs that it tells apart.
    gap : float
        Requested bound - value, nats.
    budget : Budget
        Ends the rounds; a part is set aside for moving the protocol inside.
    trace : callable, optional
        Told (value, bound) as they improve; the value is that of protocols that hold.
    start : ndarray of uint64, shape (b, a), optional
        Weights of a protocol that meets the guarantee, to start from.

    Raises
    ------
    SolverError
        If a linear programme fails.
    """
    finishing = budget.reserve(_FINISHING)
    found = _searched(problem, gap, budget, trace, start)
    weights = _weights(found.cuts, found.split, found.inside, gap, finishing)
    return RobustOptimum(weights, found.bound, found.finished, finishing.fell_short, len(found.cuts))


def bound_over_distributions(problem: SetProblem, gap: float, budget: Budget, start: WeightArray) -> tuple[float, bool]:
    """The bound of `optimum_over_distributions` alone, and whether it is as close as was asked for: no weights are
    made.

    Raises
    ------
    SolverError
        If a linear programme fails.
    """
    found = _searched(problem, gap, budget, None, start)
    return found.bound, found.finished


class _Found(NamedTuple):
    """What the rounds came to."""

    cuts: Cuts
    split: Split
    inside: _Inside
    bound: float
    finished: bool


def _searched(
    problem: SetProblem, gap: float, budget: Budget, trace: Trace | None, start: WeightArray | None
) -> _Found:
    """Climb, cut and prove, round by round."""
    cuts = cuts_for(problem)
    inside = _Inside(cuts, budget)
    if start is not None:
        inside.take(problem.posteriors(start))
    climbing = budget.part(_CLIMBING)
    bound, best, still, rounds = inside.most, np.inf, 0, 0
    proving = finished = False
    while True:
        rounds += 1
        current = budget if proving else climbing
        pricer = cuts.pricer(current)
        search = ColumnGeneration(pricer.region, current, pricer)
        search.start_from(inside.columns)
        # While much is to be cut off yet, the last digits of a relaxation are not worth their time.
        apart = best - inside.value
        left = max(_PROOF * gap, gap - max(apart, 0.0)) if proving else max(_FINE * gap, min(_ROUGH, _FINE * apart))
        mixture = search.run(left, None, proving)
        split = mixture.split
        bound = min(bound, split.bound)
        before = apart
        inside.take(split.posteriors)
        best = split.value
        budget.spend(100 * CALL + 2 * levels_work(problem.read, problem.guarantee, len(split.mass)))
        added = cuts.add(split.posteriors / problem.distribution)
        if trace is not None:
            trace(inside.value, bound)
        apart = best - inside.value
        if bound - inside.value <= gap:
            finished = True
            break
        if budget.expired or rounds == _ROUNDS:
            break
        if proving and mixture.finished and not added:
            finished = True
            break
        still = still + 1 if before - apart < _UNCHANGED * gap else 0
        proving = apart <= _APART * gap or not added or still > _STILL or climbing.expired
    return _Found(cuts, split, inside, bound, finished)


class _Inside:
    """Posteriors that meet the guarantee under every distribution, and the best mixture of them."""

    def __init__(self, cuts: Cuts, budget: Budget) -> None:
        self._cuts = cuts
        distribution = cuts.problem.distribution
        self._master = MasterProgramme(distribution, budget)
        self._mass = np.ones(1)
        self.value = 0.0
        self.most = cuts.problem.goal.most(cuts.problem.counts(distribution))
        self._add(distribution[None])
        self._solve()

    def _add(self, posteriors: FloatArray) -> None:
        for posterior, gain in zip(posteriors, self._cuts.problem.gains(posteriors), strict=True):
            self._master.add(posterior, float(gain))

    def take(self, posteriors: FloatArray) -> None:
        """Move posteriors of a relaxation (k, a) inside, and mix again."""
        self._add(self._cuts.inside(posteriors))
        self._solve()

    def _solve(self) -> None:
        self._mass, _ = self._master.solve()
        self.value = float(self._master.gains @ self._mass)

    @property
    def columns(self) -> FloatArray:
        """The posteriors in use, (k, a)."""
        return np.asarray(self._master.posteriors[self._mass > _UNUSED])

    @property
    def split(self) -> Split:
        """The best mixture; its bound is that of g."""
        used = self._mass > _UNUSED
        return Split(self._master.posteriors[used], self._mass[used], self.value, self.most)


def _weights(cuts: Cuts, split: Split, inside: _Inside, gap: float, budget: Budget) -> WeightArray:
    """The outputs of the relaxation moved inside by linear programmes, zeros kept, or those inside if more useful."""
    problem = cuts.problem
    read, guarantee = problem.read, problem.guarantee
    deciding = Deciding(read, guarantee, budget)
    # What is inside may be decided exactly whatever the moving takes.
    weights = decided_weights(problem, inside.split, budget.part(_MIXING))
    for margin in _MARGINS:
        moved = _moved(cuts, split, margin, budget)
        if moved is not None and deciding.holds(moved):
            return moved if problem.value_of(moved) >= problem.value_of(weights) - _ZEROS * gap else weights
    return weights


def decided_weights(problem: SetProblem, split: Split, budget: Budget) -> WeightArray:
    """The weights of a split, mixed with the marginal until the guarantee holds; one output if nothing is decided."""
    read, guarantee = problem.read, problem.guarantee
    with suppress(InfeasibleGuarantee):
        return proven_weights(read, guarantee, problem.channel(split), 1.0, Deciding(read, guarantee, budget).holds)
    return np.full((1, len(read.inputs)), DENOMINATOR, dtype=np.uint64)


def _moved(cuts: Cuts, split: Split, margin: float, budget: Budget) -> WeightArray | None:
    """Integer weights of a split moved inside by linear programmes, zeros kept; None where that does not end.

    Each programme has the half-spaces that some output broke before, each for that output; moving changes which
    distributions are worst, so cut again until none is.
    """
    if len(split.mass) < 2:
        return None
    problem = cuts.problem
    spaces, of = np.zeros((0, len(problem.distribution))), np.zeros(0, dtype=np.int64)
    moved = split
    for _ in range(_MOVES):
        work = 200 * CALL + 2 * levels_work(problem.read, problem.guarantee, len(split.mass))
        if not budget.allows(work):
            return None
        budget.spend(work)
        new, which, _ = cuts.broken(moved.posteriors / problem.distribution, margin)
        if not len(new):
            return rounded_weights(problem.read, problem.channel(moved))
        spaces, of = np.vstack([spaces, new]), np.concatenate([of, which])
        found = repaired(
            split, problem.distribution, spaces / problem.distribution, problem.image, budget, of, problem.goal
        )
        if found is None or len(found.mass) < len(split.mass):
            return None
        moved = found
    return None
