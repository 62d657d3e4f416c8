"""Together: rows for all histories that reach most of an aim, with an effective channel that keeps what it has to.

The effective channel W is an average over histories. For given gains the programme separates over histories but for
what W itself has to keep: conditions of the guarantee, and balance. These have prices, and with prices the programme
separates again, for gains ``g(y, x) - Σ_k μ_ky (M P(S|x))_k - β_y``. What was found under several prices is averaged so
that W keeps all of it (Dantzig and Wolfe 1960); where gains are a tangent it is then taken again at the average.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from funnel.errors import SolverError
from funnel.history.aim import Aim
from funnel.history.observed import Observed
from funnel.history.programme import Rows
from funnel.history.standing import Standing
from funnel.joint import FloatArray, IntArray
from funnel.progress import Progress

# What may be missing at a tangent, and what a new tangent must gain, relative to all there is; rounds at one, and
# tangents.
_AT_PRICES, _AT_TANGENT, _ROUNDS, _TANGENTS = 2e-4, 1e-4, 30, 30
# How often conditions that W breaks are added.
_CUTS = 16
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

Broken = Callable[[FloatArray], FloatArray]
"""More conditions (k, a) on the rows of W, those that a channel (b, a) breaks; none where it meets all."""


@dataclass(eq=False)
class _Found:
    """Rows for all histories: a library (n, b, a), the channel of each (h,), and what parts add to W, (q, b, a)."""

    library: FloatArray
    assigned: IntArray
    said: FloatArray
    unused: int = 0


@dataclass(frozen=True, eq=False)
class _Prices:
    """What a unit of what W has to keep is worth: its conditions (b, k), >= 0, and its balance (b,)."""

    conditions: FloatArray
    balance: FloatArray

    def damped(self, centre: _Prices) -> _Prices:
        """Between these and others."""
        return _Prices(
            _DAMPED * centre.conditions + (1 - _DAMPED) * self.conditions,
            _DAMPED * centre.balance + (1 - _DAMPED) * self.balance,
        )


def best_together(
    standing: Standing,
    observed: Observed,
    conditions: FloatArray,
    aim: Aim,
    solve: Solve,
    broken: Broken,
    begins: Callable[[], bool],
    progress: Progress,
) -> tuple[FloatArray, IntArray]:
    """Rows over all histories: a library (n, b, a) and the channel of each history, (h,).

    Where what is climbed has several tops, it is begun from several channels, if there is work left for that.

    Parameters
    ----------
    standing : Standing
        h histories.
    observed : Observed
    conditions : ndarray, shape (k, a)
        Half-spaces ``G T <= 0`` that every row T of W has to meet for the version alone.
    aim : Aim
    solve : callable
    broken : callable
    begins : callable
        Whether another start may be made.
    progress : Progress

    Raises
    ------
    SolverError
        If a programme fails.
    """
    parts = np.zeros(len(standing.nodes), dtype=np.int64) if aim.parts is None else aim.parts
    # Rows that publish the same whatever the input is tell nothing: they are always allowed.
    outputs, inputs = aim.starts()[0].shape
    everybody = _effective(standing, observed, parts, np.ones((1, 1, inputs)), np.zeros_like(parts))[:, 0]
    constants = np.eye(outputs)[:, :, None].repeat(inputs, axis=2)
    pool = [_Found(row[None], np.zeros_like(parts), row[None] * everybody[:, None]) for row in constants]
    best, most = None, -np.inf
    for start in aim.starts():
        if most > -np.inf and not begins():
            break
        gains: FloatArray | None = start
        utility, number = -np.inf, 0
        while gains is not None and number < _TANGENTS:
            number += 1
            weights, conditions = _at_tangent(pool, gains, aim, conditions, standing, observed, parts, solve, broken)
            channel = _channel(pool, weights)
            reached = aim.reached(channel)
            progress(f"rows for every history: {reached:.5f}", number, None)
            if reached > most:
                best, most = _averaged(pool, weights, parts), reached
            if reached <= utility + _AT_TANGENT * aim.scale:
                break
            utility, gains = reached, aim.gains(channel)
            pool = _remembered(pool, weights, outputs)
    if best is None:
        raise SolverError("no rows were found for the histories of a version; please report it")
    return best


def _channel(pool: list[_Found], weights: FloatArray) -> FloatArray:
    """W (b, a) of an average with weights (n, q)."""
    return np.asarray(np.einsum("nq,nqba->ba", weights, np.array([found.said for found in pool])))


def _at_tangent(
    pool: list[_Found],
    gains: FloatArray,
    aim: Aim,
    conditions: FloatArray,
    standing: Standing,
    observed: Observed,
    parts: IntArray,
    solve: Solve,
    broken: Broken,
) -> tuple[FloatArray, FloatArray]:
    """The weights of what was found, and what is found here, that are best for some gains; and the conditions on W.

    Where there are too many conditions to write down, those are added that the average breaks.
    """
    for _ in range(_CUTS):
        weights = _at_conditions(pool, gains, aim, conditions, standing, observed, parts, solve)
        more = broken(_channel(pool, weights))
        if not len(more):
            break
        conditions = np.vstack([conditions, more])
    return weights, conditions


def _at_conditions(
    pool: list[_Found],
    gains: FloatArray,
    aim: Aim,
    conditions: FloatArray,
    standing: Standing,
    observed: Observed,
    parts: IntArray,
    solve: Solve,
) -> FloatArray:
    """The weights of what was found, and what is found here, that are best for some gains under some conditions on W.

    Prices that swing are damped: rows are found at prices between the last and those for which what can be had at most
    was least (Wentges 1997).
    """
    weights, prices, _ = _average(pool, gains, aim, conditions)
    least, centre = np.inf, prices
    values: list[float] = []
    for number in range(_ROUNDS):
        tried = prices if number == 0 else prices.damped(centre)
        charged = _charged(gains, tried, aim, conditions)
        rows = solve(charged)
        if rows is None:
            break
        said = _effective(standing, observed, parts, rows.library, rows.assigned)
        pool.append(_Found(rows.library, rows.assigned, said))
        most = float((said.sum(axis=0) * charged * aim.shares).sum()) - tried.balance.sum()
        if most < least:
            least, centre = most, tried
        weights, prices, value = _average(pool, gains, aim, conditions)
        values.append(value)
        enough = _AT_PRICES * aim.scale
        # Rows are chosen by what is expected of histories and W is what people have, so the gap need not close.
        if least - value <= enough or (number >= _PATIENCE and value - values[-1 - _PATIENCE] <= enough):
            break
    return weights


def constants_needed(conditions: FloatArray, channel: FloatArray, balanced: FloatArray | None = None) -> FloatArray:
    """How much of a constant row each output of a channel (b, a) needs to keep what it has to; (b,).

    These are conditions (k, a), and balance for a distribution of the inputs (a,), whose outputs are those of its
    inputs that occur.
    """
    missed, room = channel @ conditions.T, np.maximum(-conditions.sum(axis=1), 1e-300)
    needed = np.asarray(np.maximum(missed / room, 0.0).max(axis=1, initial=0.0))
    if balanced is None:
        return needed
    law, wanted = channel @ balanced + needed, balanced[balanced > 0]
    # Whoever has too much stays as they are, and all others get more.
    return np.asarray(needed + np.maximum((law / wanted).max() * wanted - law, 0.0))


def _charged(gains: FloatArray, prices: _Prices, aim: Aim, conditions: FloatArray) -> FloatArray:
    """Gains less what an output costs by what it does to the conditions on W and to its balance, (b, a)."""
    p = aim.shares
    shares = np.divide(conditions, p, out=np.zeros_like(conditions), where=p > 0)
    charged = gains - prices.conditions @ shares
    if aim.balanced is not None:
        kept = np.divide(aim.balanced, p, out=np.zeros_like(p), where=p > 0)
        charged += np.outer(prices.balance / aim.balanced[aim.balanced > 0], kept)
    return np.asarray(charged)


def _effective(
    standing: Standing, observed: Observed, parts: IntArray, library: FloatArray, assigned: IntArray
) -> FloatArray:
    """What every part of the histories adds to W(y|x), with their shares among the people of each input, (q, b, a)."""
    places = np.searchsorted(standing.nodes, observed.nodes)
    channels, number = assigned[places], int(parts.max()) + 1
    people = np.zeros((number, len(library), len(observed.joint.inputs)))
    np.add.at(people, (parts[places], channels, observed.inputs), observed.chosen_for)
    total = people.sum(axis=(0, 1))
    spoken = np.einsum("qna,nba->qba", people, library)
    return np.asarray(
        np.divide(spoken, total, out=np.repeat(library.mean(axis=0)[None] / number, number, axis=0), where=total > 0)
    )


def _average(
    pool: list[_Found], gains: FloatArray, aim: Aim, conditions: FloatArray
) -> tuple[FloatArray, _Prices, float]:
    """The weights (n, q) of what was found, by part, whose average is best and keeps what it has to; their prices."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    p = aim.shares
    said = np.array([found.said for found in pool])
    count, number, outputs, _ = said.shape
    values = (said * gains * p).sum(axis=(2, 3)).ravel()
    # An output's conditions, by its own probability, so that the solver's tolerance is relative to it.
    likely = np.maximum((said @ p).sum(axis=1).max(axis=0), 1e-12)
    table = (said @ conditions.T) / likely[None, None, :, None] + _ROOM / number
    # What tells nothing meets every condition, or it could not be met at all.
    table[:outputs] -= np.maximum(table[:outputs].sum(axis=1, keepdims=True), 0.0) / number
    equal = np.tile(np.eye(number), count)
    if aim.balanced is not None:
        wanted = aim.balanced[aim.balanced > 0]
        equal = np.vstack([equal, (said @ aim.balanced / wanted).reshape(-1, outputs).T])
    # The stubs say that there may be no solution, which the status says.
    solved: Any = linprog
    for method in ("highs-ds", "highs-ipm"):
        result = solved(
            -values,
            A_ub=csr_array(table.reshape(count * number, -1).T),
            b_ub=np.zeros(table[0, 0].size),
            A_eq=csr_array(equal),
            b_eq=np.ones(len(equal)),
            method=method,
        )
        # Where the conditions are equations but for rounding, one method may give up what the other one solves.
        if result.status == 0:
            break
    else:
        raise SolverError("the average over rows of histories failed; please report it")
    prices = np.maximum(-result.ineqlin.marginals, 0.0).reshape(table[0, 0].shape) / likely[:, None]
    balance = np.zeros(outputs) if aim.balanced is None else np.asarray(result.eqlin.marginals[number:])
    return np.maximum(result.x, 0.0).reshape(count, number), _Prices(prices, balance), float(-result.fun)


def _remembered(pool: list[_Found], weights: FloatArray, constants: int) -> list[_Found]:
    """Without what has had no weight for a while; the constants stay."""
    for found, weight in zip(pool, weights.max(axis=1).tolist(), strict=True):
        found.unused = 0 if weight > _LIGHT else found.unused + 1
    return [*pool[:constants], *(found for found in pool[constants:] if found.unused <= _FORGOTTEN)]


def _averaged(pool: list[_Found], weights: FloatArray, parts: IntArray) -> tuple[FloatArray, IntArray]:
    """One library, and the channel of each history in it."""
    used = np.flatnonzero(weights.max(axis=1) > _LIGHT).tolist()
    shares = weights[used] / weights[used].sum(axis=0)
    kinds = np.array([parts, *(pool[i].assigned for i in used)])
    together, assigned = np.unique(kinds, axis=1, return_inverse=True)
    library = np.zeros((together.shape[1], *pool[0].library.shape[1:]))
    for row, place, share in zip(together[1:], used, shares, strict=True):
        library += share[together[0]][:, None, None] * pool[place].library[row]
    return library, np.asarray(assigned.reshape(-1))
