"""The greedy way: merge outputs two at a time, where that hides most for what it costs, until a guarantee holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import rel_entr, xlogy

from funnel.guarantees.base import Guarantee
from funnel.joint import FloatArray, Joint
from funnel.protocol import DENOMINATOR, WeightArray
from funnel.rounding import silence_unseen
from funnel.solver.budget import CALL, Budget
from funnel.solver.work import Deciding

# The share of the budget that looking for the way may take; the rest is for where on it to stop.
_WAY = 0.75
# Pairs whose merging is weighed at once.
_CHUNK = 1 << 20

Pair = tuple[int, int]
Subsets = tuple[tuple[int, ...], ...]


def greedy_partition(joint: Joint, holds: Callable[[Subsets], bool], budget: Budget) -> tuple[Subsets, bool]:
    """The finest partition of the inputs that occur, on the greedy way, that holds; and whether the budget sufficed.

    Starts from the inputs as they are and merges, again and again, the two outputs whose merging lowers I(S;Y) most for
    each nat of I(X;Y) it costs. The way does not depend on what has to hold, and merging never raises a level, so the
    first place on it where it holds is found by bisection.

    Parameters
    ----------
    joint : Joint
    holds : callable
        Whether publishing the subset that an input is in meets the guarantee; charges for its work itself. One subset
        always does.
    budget : Budget
        When it is spent, the finest partition that was found to hold.

    Notes
    -----
    O(a² c) for the way where it is plain, and log a decisions.
    """
    seen = [int(x) for x in np.flatnonzero(joint.counts.any(axis=0))]
    finest: Subsets = tuple((x,) for x in seen)
    if holds(finest):
        return finest, not budget.expired
    way, whole = _merged(joint.counts[:, seen].astype(np.float64), budget.part(_WAY))
    # After all merges there is one output.
    best: Subsets = (tuple(seen),)
    too_fine, enough = 0, len(way)
    while enough - too_fine > 1 and not budget.expired:
        middle = (too_fine + enough) // 2
        subsets = _partition(seen, way[:middle])
        if holds(subsets):
            best, enough = subsets, middle
        else:
            too_fine = middle
    return best, whole and not budget.expired


def greedy_weights(joint: Joint, read: Joint, guarantee: Guarantee, budget: Budget) -> WeightArray:
    """Weights (b, inputs read) of the finest partition of X on the greedy way that was decided to meet a guarantee.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X).
    read : Joint
        The joint distribution over what the protocol reads: the same, or that over (S, X), which the protocol then
        ignores.
    guarantee : Guarantee
    budget : Budget
        What it does not allow to decide does not hold; one output, which tells nothing, always does.
    """
    deciding = Deciding(read, guarantee, budget)

    def weights_of(subsets: Subsets) -> WeightArray:
        weights = partition_weights(joint, subsets)
        repeated = np.tile(weights, len(read.inputs) // len(joint.inputs))
        return silence_unseen(read, repeated)

    subsets, _ = greedy_partition(joint, lambda subsets: deciding.holds(weights_of(subsets)), budget)
    return weights_of(subsets)


def partition_weights(joint: Joint, subsets: Subsets) -> WeightArray:
    """Weights (number of subsets, a) of the channel that publishes the subset an input is in."""
    weights = np.zeros((len(subsets), joint.counts.shape[1]), dtype=np.uint64)
    for row, subset in zip(weights, subsets, strict=True):
        row[list(subset)] = DENOMINATOR
    # The column of an input that never occurs is made the marginal; until then it must be some column.
    weights[0, joint.counts.sum(axis=0) == 0] = DENOMINATOR
    return silence_unseen(joint, weights)


def _partition(seen: list[int], merges: list[Pair]) -> Subsets:
    """The subsets of inputs after some merges, in the order of their first inputs."""
    subsets: dict[int, tuple[int, ...]] = {place: (x,) for place, x in enumerate(seen)}
    for first, second in merges:
        subsets[first] += subsets.pop(second)
    return tuple(sorted((tuple(sorted(subset)) for subset in subsets.values()), key=min))


def _merged(counts: FloatArray, budget: Budget) -> tuple[list[Pair], bool]:
    """Merges of the greedy way, the second place into the first, until one is left; and whether all are greedy.

    When the budget is spent, what is left is merged into one output, the most telling first.

    Parameters
    ----------
    counts : ndarray, shape (c, b)
        Whole numbers of records by secret and output; every output occurs.
    budget : Budget
    """
    distribution = counts.copy()
    c, b = distribution.shape
    total = distribution.sum()
    gains = np.full((b, b), -np.inf)
    step = max(1, _CHUNK // (b * c))
    for start in range(0, b, step):
        if budget.expired:
            return _rest(distribution, np.ones(b, dtype=np.bool_)), False
        rows = range(start, min(start + step, b))
        budget.spend(20 * CALL + 25.0 * c * b * len(rows))
        gains[rows.start : rows.stop] = _gains(distribution[:, rows.start : rows.stop], distribution, total)
    gains[np.diag_indices(b)] = -np.inf
    there = np.ones(b, dtype=np.bool_)
    best = gains.argmax(axis=1)
    merges: list[Pair] = []
    while len(merges) < b - 1 and not budget.expired:
        values = np.where(there, gains[np.arange(b), best], -np.inf)
        one = int(values.argmax())
        first, second = sorted((one, int(best[one])))
        merges.append((first, second))
        distribution[:, first] += distribution[:, second]
        distribution[:, second] = 0.0
        there[second] = False
        new = np.where(there, _gains(distribution[:, [first]], distribution, total)[0], -np.inf)
        new[first] = -np.inf
        gains[second], gains[:, second] = -np.inf, -np.inf
        gains[first], gains[:, first] = new, new
        best[first] = int(new.argmax())
        # Outputs whose best partner is gone or has changed look again; the others only at what is new.
        again = np.flatnonzero(there & ((best == first) | (best == second)))
        best[again] = gains[again].argmax(axis=1)
        rest = np.arange(b)
        better = there & (new > gains[rest, best])
        best[better] = first
        # Columns of a large table are far apart in memory.
        budget.spend(20 * CALL + (15.0 * c + 150.0 + b / 8 + 2.0 * len(again)) * b)
    return merges + _rest(distribution, there), there.sum() == 1


def _rest(distribution: FloatArray, there: npt.NDArray[np.bool_]) -> list[Pair]:
    """Merges of the outputs that are left, in the order of how far P(s|y) is from P(s), into the first of them."""
    left = np.flatnonzero(there)
    posterior, prior = (
        distribution[:, left] / distribution[:, left].sum(axis=0),
        distribution.sum(axis=1, keepdims=True) / distribution.sum(),
    )
    far = rel_entr(posterior, prior).sum(axis=0)
    first, *others = left[np.argsort(-far, kind="stable")].tolist()
    return [(first, other) for other in others]


def _gains(some: FloatArray, every: FloatArray, total: float) -> FloatArray:
    """How much of the secret each merge hides for a nat of the input it costs, (c, k) and (c, b) to (k, b)."""
    ours, theirs = some.sum(axis=0) / total, every.sum(axis=0) / total
    # Merging y and z costs p ln p terms: I(X;Y) falls by (p_y + p_z) h(p_y / (p_y + p_z)).
    together = ours[:, None] + theirs
    cost = xlogy(together, together) - xlogy(ours, ours)[:, None] - xlogy(theirs, theirs)
    one, other = some / total, every / total
    pairs = one[:, :, None] + other[:, None, :]
    alone = (
        xlogy(distribution, distribution).sum(axis=0) - xlogy(mass, mass)
        for distribution, mass in ((one, ours), (other, theirs))
    )
    here, there = alone
    saved = here[:, None] + there - (xlogy(pairs, pairs).sum(axis=0) - xlogy(together, together))
    return np.asarray(saved / np.maximum(cost, 1e-300))
