"""Together: rows for all histories that tell most of X, with an effective channel that meets the guarantee alone.

The effective channel is an average over histories, and its information is convex: a tangent is a lower bound, and the
programme for it separates over histories but for the conditions on W itself. These have prices μ, and with prices the
programme separates again, for gains ``ln(W(y|x)/w(y)) - Σ_k μ_ky (M P(S|x))_k``. What was found under several prices is
averaged so that W meets its conditions (Dantzig and Wolfe 1960); the tangent is then taken again at the average.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from funnel.errors import SolverError
from funnel.history.observed import Observed
from funnel.history.programme import Rows
from funnel.history.standing import Standing
from funnel.joint import FloatArray, IntArray
from funnel.progress import Progress

# What a zero of a channel counts as in the logarithm of its gains (METHOD section 9).
_ZERO = 5e-4
# What may be missing at a tangent, and what a new tangent must gain, relative to H(X); rounds at one, and tangents.
_AT_PRICES, _AT_TANGENT, _ROUNDS, _TANGENTS = 2e-4, 1e-4, 30, 30
# Rounds that may gain next to nothing before a tangent is left.
_PATIENCE = 4
# How much of the best prices so far there is in those that are tried next.
_DAMPED = 0.5
# Averages leave out what has a smaller weight, and rows that had none at so many tangents are forgotten.
_LIGHT, _FORGOTTEN = 1e-7, 0
# Where so much of a constant would be needed, nothing is left: conditions that are equations.
_HOPELESS = 1e3
# Conditions on W are met with so much room, relative to the probability of the output.
_ROOM = 1e-9

Solve = Callable[[FloatArray], Rows | None]
"""The best rows for gains (b, a); None where there is no work left for them."""


@dataclass(eq=False)
class _Found:
    """Rows for all histories: a library (n, b, a), the channel of each (h,), and the effective channel (b, a).

    The rows are those of the library with constants (b,) added, which no history forbids, over what they then sum to.
    """

    library: FloatArray
    assigned: IntArray
    channel: FloatArray
    constants: FloatArray
    unused: int = 0

    def mended(self, conditions: FloatArray) -> _Found | None:
        """The same rows with what W needs of a constant to meet its conditions (k, a), if that leaves anything."""
        constants = constants_needed(conditions, self.channel)
        total = 1 + constants.sum()
        if total == 1 or total > _HOPELESS:
            return None
        return _Found(self.library, self.assigned, (self.channel + constants[:, None]) / total, constants)

    def rows(self, channels: IntArray) -> FloatArray:
        """The rows (n, b, a) of some channels of the library."""
        return np.asarray((self.library[channels] + self.constants[:, None]) / (1 + self.constants.sum()))


def best_together(
    standing: Standing,
    observed: Observed,
    conditions: FloatArray,
    target: FloatArray,
    solve: Solve,
    begins: Callable[[], bool],
    progress: Progress,
) -> tuple[FloatArray, IntArray]:
    """Rows over all histories: a library (n, b, a) and the channel of each history, (h,).

    What is climbed has several tops, so it is begun from several channels, if there is work left for that.

    Parameters
    ----------
    standing : Standing
        h histories.
    observed : Observed
    conditions : ndarray, shape (k, a)
        Half-spaces ``G T <= 0`` that every row T of W has to meet for the version alone.
    target : ndarray, shape (b, a)
        Where the first tangent is taken.
    solve : callable
    begins : callable
        Whether another start may be made.
    progress : Progress

    Raises
    ------
    SolverError
        If a programme fails.
    """
    joint, p = observed.joint, observed.joint.p_input
    # Everybody says the same: such a W tells nothing, which is allowed.
    silent = np.zeros_like(target)
    silent[int((target @ p).argmax())] = 1.0
    nothing = np.zeros(len(target))
    pool = [_Found(silent[None], np.zeros(len(standing.nodes), dtype=np.int64), silent, nothing)]
    best, most = _averaged(pool, np.ones(1)), -np.inf
    for start in _starts(target, p):
        if most > -np.inf and not begins():
            break
        gains, utility = gains_at(start, p), -np.inf
        prices = np.zeros((len(target), len(conditions)))
        for number in range(_TANGENTS):
            weights, prices = _at_tangent(pool, gains, prices, conditions, standing, observed, solve)
            channel = np.tensordot(weights, np.array([found.channel for found in pool]), axes=1)
            reached = information(channel, p)
            progress(f"rows for every history: {reached:.5f} nats", number + 1, None)
            if reached > most:
                best, most = _averaged(pool, weights), reached
            if reached <= utility + _AT_TANGENT * joint.entropy:
                break
            utility, gains = reached, gains_at(channel, p)
            pool = _remembered(pool, weights)
    return best


def _starts(target: FloatArray, p: FloatArray) -> list[FloatArray]:
    """Channels (b, a) to begin from: the target, the same with the likely made likelier, and one output an input."""
    from scipy.optimize import linear_sum_assignment

    sharp = target**2 / (target**2).sum(axis=0)
    alone = np.zeros_like(target)
    alone[target.argmax(axis=0), np.arange(len(p))] = 1.0
    outputs, inputs = linear_sum_assignment(-target * p)
    alone[:, inputs] = 0.0
    alone[outputs, inputs] = 1.0
    starts = [target]
    for start in (sharp, alone):
        if not any(np.allclose(start, known, rtol=0, atol=1e-3) for known in starts):
            starts.append(start)
    return starts


def _at_tangent(
    pool: list[_Found],
    gains: FloatArray,
    prices: FloatArray,
    conditions: FloatArray,
    standing: Standing,
    observed: Observed,
    solve: Solve,
) -> tuple[FloatArray, FloatArray]:
    """The weights of what was found, and what is found here, that are best for some gains; and the prices, (b, k).

    Prices that swing are damped: rows are found at prices between the last and those for which what can be had at most
    was least (Wentges 1997).
    """
    p = observed.joint.p_input
    least, centre = np.inf, prices
    values: list[float] = []
    weights, prices, _ = _average(pool, gains, conditions, p)
    for number in range(_ROUNDS):
        tried = prices if number == 0 else _DAMPED * centre + (1 - _DAMPED) * prices
        charged = _charged(gains, tried, conditions, p)
        rows = solve(charged)
        if rows is None:
            break
        nothing = np.zeros(len(gains))
        found = _Found(rows.library, rows.assigned, _effective(standing, observed, rows), nothing)
        mended = found.mended(conditions)
        pool += [found] if mended is None else [found, mended]
        most = float((found.channel * charged * p).sum())
        if most < least:
            least, centre = most, tried
        weights, prices, value = _average(pool, gains, conditions, p)
        values.append(value)
        enough = _AT_PRICES * observed.joint.entropy
        # Rows are chosen by what is expected of histories and W is what people have, so the gap need not close.
        if least - value <= enough or (number >= _PATIENCE and value - values[-1 - _PATIENCE] <= enough):
            break
    return weights, prices


def constants_needed(conditions: FloatArray, channel: FloatArray) -> FloatArray:
    """How much of a constant row each output of a channel (b, a) needs to meet conditions (k, a); (b,)."""
    missed, room = channel @ conditions.T, np.maximum(-conditions.sum(axis=1), 1e-300)
    return np.asarray(np.maximum(missed / room, 0.0).max(axis=1, initial=0.0))


def _charged(gains: FloatArray, prices: FloatArray, conditions: FloatArray, p: FloatArray) -> FloatArray:
    """Gains less what an output costs by what it does to the conditions on W, (b, a)."""
    shares = np.divide(conditions, p, out=np.zeros_like(conditions), where=p > 0)
    return np.asarray(gains - prices @ shares)


def _effective(standing: Standing, observed: Observed, rows: Rows) -> FloatArray:
    """W(y|x) of some rows, with the shares that histories have among the people of each input, (b, a)."""
    channels = rows.assigned[np.searchsorted(standing.nodes, observed.nodes)]
    people = np.zeros((len(rows.library), len(observed.joint.inputs)))
    np.add.at(people, (channels, observed.inputs), observed.records if observed.totals is None else observed.spoken)
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
    # The stubs say that there may be no solution, which the status says.
    solved: Any = linprog
    for method in ("highs-ds", "highs-ipm"):
        result = solved(
            -values,
            A_ub=table.reshape(len(pool), -1).T,
            b_ub=np.zeros(table[0].size),
            A_eq=np.ones((1, len(pool))),
            b_eq=np.ones(1),
            method=method,
        )
        # Where the conditions are equations but for rounding, one method may give up what the other one solves.
        if result.status == 0:
            break
    else:
        raise SolverError("the average over rows of histories failed; please report it")
    prices = np.maximum(-result.ineqlin.marginals, 0.0).reshape(table[0].shape) / likely[:, None]
    return np.maximum(result.x, 0.0), prices, float(-result.fun)


def _remembered(pool: list[_Found], weights: FloatArray) -> list[_Found]:
    """Without what has had no weight for a while; what tells nothing stays."""
    for found, weight in zip(pool, weights.tolist(), strict=True):
        found.unused = 0 if weight > _LIGHT else found.unused + 1
    return [pool[0], *(found for found in pool[1:] if found.unused <= _FORGOTTEN)]


def _averaged(pool: list[_Found], weights: FloatArray) -> tuple[FloatArray, IntArray]:
    """One library, and the channel of each history in it."""
    used = np.flatnonzero(weights > _LIGHT).tolist()
    shares = weights[used] / weights[used].sum()
    together, assigned = np.unique(np.array([pool[i].assigned for i in used]), axis=1, return_inverse=True)
    library = np.zeros((together.shape[1], *pool[0].channel.shape))
    for row, (place, share) in enumerate(zip(used, shares.tolist(), strict=True)):
        library += share * pool[place].rows(together[row])
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
