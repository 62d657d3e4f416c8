"""The optimum under a guarantee over a set of laws: cutting planes on the certified optimiser, exact at the end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from funnel.errors import InfeasibleGuarantee
from funnel.guarantees.over_distributions import SetGuarantee
from funnel.joint import FloatArray, Joint
from funnel.protocol import DENOMINATOR, WeightArray
from funnel.rounding import proven_weights, rounded_weights
from funnel.solver.budget import CALL, Budget
from funnel.solver.columns import ColumnGeneration
from funnel.solver.cuts import Cuts, Flags
from funnel.solver.goal import ENTROPY, Goal
from funnel.solver.lift_cuts import cuts_for
from funnel.solver.lp import MasterProgramme
from funnel.solver.polish import repaired
from funnel.solver.robust import RobustOptimum
from funnel.solver.split import Split, Trace, value_of
from funnel.solver.work import Deciding, levels_work

Places = npt.NDArray[np.intp]

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


def optimum_over_distributions(
    read: Joint,
    guarantee: SetGuarantee,
    gap: float,
    budget: Budget,
    image: Callable[[Places], FloatArray | None],
    trace: Trace | None = None,
    start: WeightArray | None = None,
    seen: Flags | None = None,
    goal: Callable[[Places], Goal] | None = None,
) -> RobustOptimum:
    """Maximise the utility over all channels that meet a guarantee under every law of a set.

    Each law gives every row of a channel a half-space, infinitely many in all. A relaxation has finitely many of them.
    Its best mixture is found by climbing; the worst laws of its outputs are cut off; the outputs themselves, moved
    towards the average row until they meet the guarantee, are mixed to the best protocol that is known to hold. Once
    both are close, and only then, a bound on the relaxation is proven, which is one for the guarantee.

    Parameters
    ----------
    read : Joint
        The joint law (c, a) over what the channel reads.
    guarantee : SetGuarantee
    gap : float
        Requested bound - value, nats.
    budget : Budget
        Ends the rounds; a part is set aside for moving the protocol inside.
    image : callable
        The inputs that occur (k,) to what the utility counts of a posterior, or None for all of it.
    trace : callable, optional
        Told (value, bound) as they improve; the value is that of protocols that hold.
    start : ndarray of uint64, shape (b, a), optional
        Weights of a protocol that meets the guarantee, to start from.
    seen : ndarray of bool, shape (a,), optional
        The inputs that are told apart, by default those that occur; the value and the bound are of the law of these.
    goal : callable, optional
        These inputs (k,) to the convex function whose average is the utility; by default entropy.

    Raises
    ------
    SolverError
        If a linear programme fails.
    """
    finishing = budget.reserve(_FINISHING)
    found = _searched(read, guarantee, gap, budget, image, trace, start, seen, goal)
    weights = _weights(found.cuts, found.split, found.inside, gap, finishing)
    return RobustOptimum(weights, found.bound, found.finished, finishing.fell_short, len(found.cuts))


def bound_over_distributions(
    read: Joint,
    guarantee: SetGuarantee,
    gap: float,
    budget: Budget,
    image: Callable[[Places], FloatArray | None],
    start: WeightArray,
    seen: Flags,
    goal: Callable[[Places], Goal] | None = None,
) -> tuple[float, bool]:
    """The bound of `optimum_over_distributions` alone, and whether it is as close as was asked for: no weights are
    made.

    Raises
    ------
    SolverError
        If a linear programme fails.
    """
    found = _searched(read, guarantee, gap, budget, image, None, start, seen, goal)
    return found.bound, found.finished


class _Found(NamedTuple):
    """What the rounds came to."""

    cuts: Cuts
    split: Split
    inside: _Inside
    bound: float
    finished: bool


def _searched(
    read: Joint,
    guarantee: SetGuarantee,
    gap: float,
    budget: Budget,
    image: Callable[[Places], FloatArray | None],
    trace: Trace | None,
    start: WeightArray | None,
    seen: Flags | None,
    goal: Callable[[Places], Goal] | None,
) -> _Found:
    """Climb, cut and prove, round by round."""
    apart_from = np.asarray(read.p_input > 0) if seen is None else seen
    places = np.flatnonzero(apart_from)
    cuts = cuts_for(read, guarantee, image(places), apart_from, ENTROPY if goal is None else goal(places))
    inside = _Inside(cuts, budget)
    if start is not None:
        inside.take(_posteriors(start, cuts))
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
        budget.spend(100 * CALL + 2 * levels_work(read, guarantee, len(split.mass)))
        added = cuts.add(split.posteriors / cuts.law)
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
    """Posteriors that meet the guarantee under every law, and the best mixture of them."""

    def __init__(self, cuts: Cuts, budget: Budget) -> None:
        self._cuts = cuts
        self._master = MasterProgramme(cuts.law, budget)
        self._mass = np.ones(1)
        self.value = 0.0
        self.most = cuts.goal.most(cuts.law if cuts.image is None else cuts.image @ cuts.law)
        self._add(cuts.law[None])
        self._solve()

    def _add(self, posteriors: FloatArray) -> None:
        for posterior, gain in zip(posteriors, self._cuts.gains(posteriors), strict=True):
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
    read, guarantee = cuts.read, cuts.guarantee
    deciding = Deciding(read, guarantee, budget)
    weights = np.full((1, len(read.inputs)), DENOMINATOR, dtype=np.uint64)
    # What is inside may be decided exactly whatever the moving takes.
    mixing = budget.part(_MIXING)
    with suppress(InfeasibleGuarantee):
        deciding_these = Deciding(read, guarantee, mixing)
        weights = proven_weights(read, guarantee, cuts.channel(inside.split), 1.0, deciding_these.holds)

    def utility_of(found: WeightArray) -> float:
        return value_of(found, read.p_input, cuts.seen, cuts.gains)

    for margin in _MARGINS:
        moved = _moved(cuts, split, margin, budget)
        if moved is not None and deciding.holds(moved):
            return moved if utility_of(moved) >= utility_of(weights) - _ZEROS * gap else weights
    return weights


def _moved(cuts: Cuts, split: Split, margin: float, budget: Budget) -> WeightArray | None:
    """Integer weights of a split moved inside by linear programmes, zeros kept; None where that does not end.

    Each programme has the half-spaces that some output broke before, each for that output; moving changes which laws
    are worst, so cut again until none is.
    """
    if len(split.mass) < 2:
        return None
    spaces, of = np.zeros((0, len(cuts.law))), np.zeros(0, dtype=np.int64)
    moved = split
    for _ in range(_MOVES):
        work = 200 * CALL + 2 * levels_work(cuts.read, cuts.guarantee, len(split.mass))
        if not budget.allows(work):
            return None
        budget.spend(work)
        new, which, _ = cuts.broken(moved.posteriors / cuts.law, margin)
        if not len(new):
            return rounded_weights(cuts.read, cuts.channel(moved))
        spaces, of = np.vstack([spaces, new]), np.concatenate([of, which])
        found = repaired(split, cuts.law, spaces / cuts.law, cuts.image, budget, of, cuts.goal)
        if found is None or len(found.mass) < len(split.mass):
            return None
        moved = found
    return None


def _posteriors(weights: WeightArray, cuts: Cuts) -> FloatArray:
    """Posteriors (b, inputs that occur) of the outputs of a protocol."""
    masses = (weights / np.float64(DENOMINATOR))[:, cuts.seen] * cuts.law
    masses = masses[masses.any(axis=1)]
    return np.asarray(masses / masses.sum(axis=1, keepdims=True))
