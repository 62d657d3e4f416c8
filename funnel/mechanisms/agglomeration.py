"""Greedy agglomeration: merge published values, two at a time, until the guarantee holds."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import rel_entr, xlogy

from funnel.guarantees.base import Guarantee
from funnel.joint import FloatArray, Joint
from funnel.mechanisms.base import Fitted, Mechanism
from funnel.mechanisms.merging import Subsets, merged_weights, partition_weights
from funnel.mechanisms.work import decision_work
from funnel.progress import Progress, quiet
from funnel.solver.budget import CALL, Budget

# The share of the budget that looking for the way may take; the rest is for where on it to stop.
_WAY = 0.7
# Pairs whose merging is weighed at once.
_CHUNK = 1 << 20

Pair = tuple[int, int]


class Agglomeration(Mechanism):
    """Greedy agglomeration for I(S;Y) <= M, the original Privacy Funnel (PF problem 1), and for any other guarantee.

    Starts from the input as it is and merges, again and again, the two outputs whose merging lowers I(S;Y) most for
    each nat of I(X;Y) it costs, until the guarantee holds exactly. One output tells nothing, so there is an end. For
    guarantees on every output, subset merging looks at what they bound; this looks at the average.

    Notes
    -----
    The way does not depend on the guarantee, and merging never raises a level, so the first place on it where the
    guarantee holds is found by bisection: O(a² c) for the way where it is plain, log a exact decisions.
    """

    name: ClassVar[str] = "agglomeration"
    summary: ClassVar[str] = "merge values pair by pair, where that hides most for what it costs"

    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """The finest partition on the greedy way that meets the guarantee."""
        seen = [int(x) for x in np.flatnonzero(joint.counts.any(axis=0))]

        def holds(subsets: Subsets) -> bool:
            budget.spend(decision_work(joint, guarantee, len(subsets)))
            return guarantee.holds_for(joint, partition_weights(joint, subsets))

        best: Subsets = tuple((x,) for x in seen)
        whole = True
        if not holds(best):
            way, whole = _way(joint.counts[:, seen].astype(np.float64), budget.part(_WAY))
            # After all merges there is one output.
            best, too_fine, enough = (tuple(seen),), 0, len(way)
            while enough - too_fine > 1 and not budget.expired:
                middle = (too_fine + enough) // 2
                subsets = _partition(seen, way[:middle])
                if holds(subsets):
                    best, enough = subsets, middle
                else:
                    too_fine = middle
        weights = merged_weights(joint, guarantee, best)
        return Fitted(self.protocol(joint, guarantee, weights, joint.inputs), None, whole and not budget.expired)


def _partition(seen: list[int], merges: list[Pair]) -> Subsets:
    """The subsets of inputs after some merges, in the order of their first inputs."""
    subsets: dict[int, tuple[int, ...]] = {place: (x,) for place, x in enumerate(seen)}
    for first, second in merges:
        subsets[first] += subsets.pop(second)
    return tuple(sorted((tuple(sorted(subset)) for subset in subsets.values()), key=min))


def _way(counts: FloatArray, budget: Budget) -> tuple[list[Pair], bool]:
    """Merges of the greedy way, the second place into the first, until one is left; and whether all are greedy.

    When the budget is spent, what is left is merged into one output, the most telling first.

    Parameters
    ----------
    counts : ndarray, shape (c, b)
        Whole numbers of records by secret and output; every output occurs.
    budget : Budget
    """
    law = counts.copy()
    c, b = law.shape
    total = law.sum()
    gains = np.full((b, b), -np.inf)
    step = max(1, _CHUNK // (b * c))
    for start in range(0, b, step):
        if budget.expired:
            return _rest(law, np.ones(b, dtype=np.bool_)), False
        rows = range(start, min(start + step, b))
        budget.spend(20 * CALL + 60.0 * c * b * len(rows))
        gains[rows.start : rows.stop] = _gains(law[:, rows.start : rows.stop], law, total)
    gains[np.diag_indices(b)] = -np.inf
    there = np.ones(b, dtype=np.bool_)
    best = gains.argmax(axis=1)
    merges: list[Pair] = []
    while len(merges) < b - 1 and not budget.expired:
        values = np.where(there, gains[np.arange(b), best], -np.inf)
        one = int(values.argmax())
        first, second = sorted((one, int(best[one])))
        merges.append((first, second))
        law[:, first] += law[:, second]
        law[:, second] = 0.0
        there[second] = False
        new = np.where(there, _gains(law[:, [first]], law, total)[0], -np.inf)
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
        budget.spend(60 * CALL + (60.0 * c + 20.0 + 2.0 * len(again)) * b)
    return merges + _rest(law, there), there.sum() == 1


def _rest(law: FloatArray, there: npt.NDArray[np.bool_]) -> list[Pair]:
    """Merges of the outputs that are left, in the order of how far P(s|y) is from P(s), into the first of them."""
    left = np.flatnonzero(there)
    posterior, prior = law[:, left] / law[:, left].sum(axis=0), law.sum(axis=1, keepdims=True) / law.sum()
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
    alone = (xlogy(law, law).sum(axis=0) - xlogy(mass, mass) for law, mass in ((one, ours), (other, theirs)))
    here, there = alone
    saved = here[:, None] + there - (xlogy(pairs, pairs).sum(axis=0) - xlogy(together, together))
    return np.asarray(saved / np.maximum(cost, 1e-300))
