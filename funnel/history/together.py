"""Together: rows for all histories that tell most of X, with an effective channel that meets the guarantee alone.

The effective channel is an average over histories, and its information is convex: a tangent is a lower bound, and the
programme for it separates over histories but for the conditions on W itself. These have prices μ, and with prices the
programme separates again, for gains ``ln(W(y|x)/w(y)) - Σ_k μ_ky (M P(S|x))_k``. What was found under several prices is
averaged so that W meets its conditions (Dantzig and Wolfe 1960); the tangent is then taken again at the average.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from funnel.errors import SolverError
from funnel.history.observed import Observed
from funnel.history.programme import Rows
from funnel.history.standing import Standing
from funnel.joint import FloatArray, IntArray
from funnel.progress import Progress

# What a zero of a channel counts as in the logarithm of its gains (METHOD section 9).
_ZERO = 5e-4
# What a round must gain, relative to H(X): at new prices, and at a new tangent; and how many rounds there are at most.
_AT_PRICES, _AT_TANGENT, _ROUNDS = 2e-4, 1e-5, 60
# Averages leave out what has a smaller weight, and rows that had none for so many rounds are forgotten.
_LIGHT, _FORGOTTEN = 1e-7, 6
# Conditions on W are met with so much room, relative to the probability of the output.
_ROOM = 1e-9

Solve = Callable[[FloatArray], Rows]
"""The best rows for gains (b, a)."""


@dataclass(eq=False)
class _Found:
    """Rows for all histories: a library (n, b, a), the channel of each (h,), and the effective channel (b, a)."""

    library: FloatArray
    assigned: IntArray
    channel: FloatArray
    unused: int = 0


def best_together(
    standing: Standing, observed: Observed, cone: FloatArray, start: FloatArray, solve: Solve, progress: Progress
) -> tuple[FloatArray, IntArray]:
    """Rows over all histories: a library (n, b, a) and the channel of each history, (h,).

    Parameters
    ----------
    standing : Standing
        h histories.
    observed : Observed
    cone : ndarray, shape (k, c)
        ``M P(S|y) <= 0`` is what W has to meet for the version alone.
    start : ndarray, shape (b, a)
        The target, at which the first tangent is taken.
    solve : callable
    progress : Progress

    Raises
    ------
    SolverError
        If a programme fails.
    """
    joint, p = observed.joint, observed.joint.p_input
    conditions = cone @ joint.p
    # Everybody says the same: such a W tells nothing, which is allowed.
    silent = np.zeros_like(start)
    silent[int((start @ p).argmax())] = 1.0
    pool = [_Found(silent[None], np.zeros(len(standing.nodes), dtype=np.int64), silent)]
    gains, prices = gains_at(start, p), np.zeros((len(start), len(cone)))
    weights, reached, utility = np.ones(1), -np.inf, -np.inf
    for number in range(_ROUNDS):
        progress("rows for every history", number, None)
        rows = solve(_charged(gains, prices, conditions, p))
        pool.append(_Found(rows.library, rows.assigned, _effective(standing, observed, rows)))
        before = prices
        weights, prices, value = _average(pool, gains, conditions, p)
        channel = np.tensordot(weights, np.array([found.channel for found in pool]), axes=1)
        progress(f"rows for every history: {information(channel, p):.5f} nats", number + 1, None)
        pool, weights = _remembered(pool, weights)
        if value > reached + _AT_PRICES * joint.entropy and (np.abs(prices - before) > 1e-9).any():
            reached = value
            continue
        if information(channel, p) <= utility + _AT_TANGENT * joint.entropy:
            break
        utility, gains = information(channel, p), gains_at(channel, p)
        reached = -np.inf
    return _averaged(pool, weights)


def _charged(gains: FloatArray, prices: FloatArray, conditions: FloatArray, p: FloatArray) -> FloatArray:
    """Gains less what an output costs by what it does to the conditions on W, (b, a)."""
    shares = np.divide(conditions, p, out=np.zeros_like(conditions), where=p > 0)
    return np.asarray(gains - prices @ shares)


def _effective(standing: Standing, observed: Observed, rows: Rows) -> FloatArray:
    """W(y|x) of some rows, with the shares that histories have among the people of each input, (b, a)."""
    channels = rows.assigned[np.searchsorted(standing.nodes, observed.nodes)]
    people = np.zeros((len(rows.library), len(observed.joint.inputs)))
    np.add.at(people, (channels, observed.inputs), observed.records)
    total = people.sum(axis=0)
    spoken = np.einsum("na,nba->ba", people, rows.library)
    return np.asarray(np.divide(spoken, total, out=rows.library.mean(axis=0), where=total > 0))


def _average(
    pool: list[_Found], gains: FloatArray, conditions: FloatArray, p: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """The weights of what was found for which the average is best and meets the conditions; their prices, (b, k)."""
    from scipy.optimize import linprog

    channels = np.array([found.channel for found in pool])
    values = (channels * gains * p).sum(axis=(1, 2))
    # An output's conditions, by its own probability, so that the solver's tolerance is relative to it.
    likely = np.maximum((channels @ p).max(axis=0), 1e-12)
    table = (channels @ conditions.T) / likely[None, :, None] + _ROOM
    # What tells nothing meets every condition, or it could not be met at all.
    table[0] = np.minimum(table[0], 0.0)
    result = linprog(
        -values,
        A_ub=table.reshape(len(pool), -1).T,
        b_ub=np.zeros(table[0].size),
        A_eq=np.ones((1, len(pool))),
        b_eq=np.ones(1),
        method="highs-ds",
    )
    if result.status != 0:
        raise SolverError("the average over rows of histories failed; please report it")
    prices = np.maximum(-result.ineqlin.marginals, 0.0).reshape(table[0].shape) / likely[:, None]
    return np.maximum(result.x, 0.0), prices, float(-result.fun)


def _remembered(pool: list[_Found], weights: FloatArray) -> tuple[list[_Found], FloatArray]:
    """Without what has had no weight for a while; what tells nothing stays."""
    kept = []
    for number, (found, weight) in enumerate(zip(pool, weights.tolist(), strict=True)):
        found.unused = 0 if weight > _LIGHT else found.unused + 1
        if number == 0 or found.unused <= _FORGOTTEN:
            kept.append(number)
    return [pool[number] for number in kept], weights[kept]


def _averaged(pool: list[_Found], weights: FloatArray) -> tuple[FloatArray, IntArray]:
    """One library, and the channel of each history in it."""
    used = np.flatnonzero(weights > _LIGHT).tolist()
    shares = weights[used] / weights[used].sum()
    together, assigned = np.unique(np.array([pool[i].assigned for i in used]), axis=1, return_inverse=True)
    library = np.zeros((together.shape[1], *pool[0].channel.shape))
    for row, (place, share) in enumerate(zip(used, shares.tolist(), strict=True)):
        library += share * pool[place].library[together[row]]
    return library, np.asarray(assigned.reshape(-1))


def gains_at(channel: FloatArray, p: FloatArray) -> FloatArray:
    """ln(W(y|x)/w(y)), (b, a): the tangent of the information at a channel, for inputs with probabilities (a,)."""
    outputs = channel @ p
    return np.asarray(np.log(np.maximum(channel, _ZERO) / np.maximum(outputs, _ZERO)[:, None]))


def information(channel: FloatArray, p: FloatArray) -> float:
    """I(X;Y) in nats of a channel (b, a)."""
    law = channel * p
    independent = law.sum(axis=1, keepdims=True) * p
    seen = law > 0
    return float((law[seen] * np.log(law[seen] / independent[seen])).sum())
