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
from funnel.history.history_status import HistoryStatus
from funnel.history.observed import Observed
from funnel.history.programme import Rows
from funnel.joint import FloatArray, IntArray
from funnel.progress import Progress

# What may be missing at a tangent, and what a new tangent must gain, relative to all there is; rounds at one, and
# tangents.
_AT_PRICES, _AT_TANGENT, _ROUNDS, _TANGENTS = 2e-4, 1e-4, 30, 30
# How often conditions that W breaks are added, and rounds before that: the next ones change prices again.
_CUTS, _BEFORE = 24, 3
# Rounds that may gain next to nothing before a tangent is left.
_PATIENCE = 4
# How much of the best prices so far there is in those that are tried next.
_DAMPED = 0.5
# Averages leave out what has a smaller weight, and rows that had none at so many tangents are forgotten.
_LIGHT, _FORGOTTEN = 1e-7, 0
# Conditions on W are met with so much room, relative to the probability of the output.
_ROOM = 1e-9

Solve = Callable[[FloatArray], Rows | None]
"""The best rows for gains (b, a); None where there is no work left for them."""

Broken = Callable[[FloatArray], tuple[FloatArray, IntArray]]
"""Conditions (m, a) that single rows of a channel (b, a) break, and which row each, (m,); none where it meets all."""


@dataclass(eq=False)
class _Found:
    """Rows for all histories: a library (n, b, a), the channel of each (h,), and what parts add to W, (q, b, a).

    Of that, which is not kept of constant rows, the probability of each output (b,), what it adds to the conditions on
    W, (q, b, k), and to its balance, (q, b); and its value (q,) for the gains of a tangent.
    """

    library: FloatArray
    assigned: IntArray
    said: FloatArray | None
    likely: FloatArray
    conditions: FloatArray
    balance: FloatArray
    value: FloatArray
    unused: int = 0


@dataclass(frozen=True, eq=False)
class _Prices:
    """What a unit of what W has to keep is worth: its conditions (b, k) and cuts (m,), >= 0, and its balance (b,)."""

    conditions: FloatArray
    cuts: FloatArray
    balance: FloatArray

    def damped(self, centre: _Prices) -> _Prices:
        """Between these and others."""
        return _Prices(
            _DAMPED * centre.conditions + (1 - _DAMPED) * self.conditions,
            _DAMPED * centre.cuts + (1 - _DAMPED) * self.cuts,
            _DAMPED * centre.balance + (1 - _DAMPED) * self.balance,
        )


def best_together(
    status: HistoryStatus,
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
    status : HistoryStatus
        h histories.
    observed : Observed
    conditions : ndarray, shape (k, a)
        Half-spaces ``G T <= 0`` that every row T of W has to meet for the version alone; others are added as cuts
        where a row breaks them.
    aim : Aim
    solve : callable
    broken : callable
    begins : callable
        Whether another start may be made.
    progress : Progress

    Raises
    ------
    SolverError
        If there is nothing to search.
    """
    search = _Search(status, observed, aim, conditions)
    best, most = None, -np.inf
    for start in aim.starts():
        if most > -np.inf and not begins():
            break
        gains: FloatArray | None = start
        utility, number, weights = -np.inf, 0, None
        while gains is not None and number < _TANGENTS:
            number += 1
            weights = search.towards(weights, search.at_tangent(gains, solve, broken))
            channel = search.channel(weights)
            reached = aim.reached(channel)
            progress(f"rows for every history: {reached:.5f}", number, None)
            if reached > most:
                best, most = search.averaged(weights), reached
            if reached <= utility + _AT_TANGENT * aim.scale:
                break
            utility, gains = reached, aim.gains(channel)
            weights = search.remembered(weights)
    if best is None:
        raise SolverError("no rows were found for the histories of a version; please report it")
    return best


class _Search:
    """What was found for the histories of a version so far, the conditions (k, a) on W, and cuts (m, a) of its rows."""

    def __init__(self, status: HistoryStatus, observed: Observed, aim: Aim, conditions: FloatArray) -> None:
        self._status, self._observed, self._aim, self._conditions = status, observed, aim, conditions
        self._cuts, self._cut = np.zeros((0, conditions.shape[1])), np.zeros(0, dtype=np.int64)
        self._parts = np.zeros(len(status.nodes), dtype=np.int64) if aim.parts is None else aim.parts
        # Rows that publish the same whatever the input is tell nothing: they are always allowed.
        self._outputs, inputs = aim.starts()[0].shape
        nobody = np.zeros_like(self._parts)
        self._everybody = self._effective(np.ones((1, 1, inputs)), nobody)
        self._gains = np.zeros((self._outputs, inputs))
        constants = np.eye(self._outputs)[:, :, None].repeat(inputs, axis=2)
        self._pool = [self._found(row[None], nobody, None) for row in constants]

    def at_tangent(self, gains: FloatArray, solve: Solve, broken: Broken) -> FloatArray:
        """The weights of what was found, and what is found here, that are best for some gains, (n, q).

        Where there are too many conditions to write down, those are added that the average breaks.
        """
        for number in range(_CUTS):
            weights = self._at_conditions(gains, solve, _BEFORE if number else _ROUNDS)
            more, of = broken(self.channel(weights))
            if not len(more):
                break
            self._cuts, self._cut = np.vstack([self._cuts, more]), np.concatenate([self._cut, of])
        return weights

    def _found(self, library: FloatArray, assigned: IntArray, said: FloatArray | None) -> _Found:
        """Rows, and what they come to."""
        p, balanced = self._aim.shares, self._aim.balanced
        told = library * self._everybody if said is None else said
        balance = np.zeros((len(told), 0)) if balanced is None else told @ balanced
        likely, conditions = (told @ p).sum(axis=0), told @ self._conditions.T
        return _Found(library, assigned, said, likely, conditions, balance, self._value(told))

    def _value(self, said: FloatArray) -> FloatArray:
        """What parts (q, b, a) of W are worth, (q,)."""
        return np.asarray((said * self._gains * self._aim.shares).sum(axis=(1, 2)))

    def _said(self, found: _Found) -> FloatArray:
        """What parts add to W, (q, b, a)."""
        return found.library * self._everybody if found.said is None else found.said

    def channel(self, weights: FloatArray) -> FloatArray:
        """W (b, a) of an average with weights (n, q)."""
        used = np.flatnonzero(weights.any(axis=1))
        said = np.array([self._said(self._pool[place]) for place in used.tolist()])
        return np.asarray(np.einsum("nq,nqba->ba", weights[used], said))

    def averaged(self, weights: FloatArray) -> tuple[FloatArray, IntArray]:
        """One library, and the channel of each history in it."""
        used = np.flatnonzero(weights.max(axis=1) > _LIGHT).tolist()
        shares = weights[used] / weights[used].sum(axis=0)
        kinds = np.array([self._parts, *(self._pool[i].assigned for i in used)])
        together, assigned = np.unique(kinds, axis=1, return_inverse=True)
        library = np.zeros((together.shape[1], *self._pool[0].library.shape[1:]))
        for row, place, share in zip(together[1:], used, shares, strict=True):
            library += share[together[0]][:, None, None] * self._pool[place].library[row]
        return library, np.asarray(assigned.reshape(-1))

    def towards(self, before: FloatArray | None, tried: FloatArray) -> FloatArray:
        """Weights between those of an average, if there is one, and others, as far as the aim is reached more."""
        if before is None:
            return tried
        before = np.pad(before, ((0, len(tried) - len(before)), (0, 0)))
        part = self._aim.part(self.channel(before), self.channel(tried))
        return tried if part == 1 else before + part * (tried - before)

    def remembered(self, weights: FloatArray) -> FloatArray:
        """Leave out what has had no weight for a while; the constants stay. The weights of the rest."""
        for found, weight in zip(self._pool, weights.max(axis=1).tolist(), strict=True):
            found.unused = 0 if weight > _LIGHT else found.unused + 1
        kept = [i for i, found in enumerate(self._pool) if i < self._outputs or found.unused <= _FORGOTTEN]
        self._pool = [self._pool[i] for i in kept]
        return np.asarray(weights[kept])

    def _at_conditions(self, gains: FloatArray, solve: Solve, rounds: int) -> FloatArray:
        """The same under the conditions that there are, in so many rounds at most.

        Prices that swing are damped: rows are found at prices between the last and those for which what can be had at
        most was least (Wentges 1997).
        """
        aim, self._gains = self._aim, gains
        for found in self._pool:
            found.value = self._value(self._said(found))
        weights, prices, _ = self._average()
        least, centre = np.inf, prices
        values: list[float] = []
        for number in range(rounds):
            tried = prices if number == 0 else prices.damped(centre)
            charged = self._charged(gains, tried)
            rows = solve(charged)
            if rows is None:
                break
            said = self._effective(rows.library, rows.assigned)
            self._pool.append(self._found(rows.library, rows.assigned, said))
            most = float((said.sum(axis=0) * charged * aim.shares).sum()) - tried.balance.sum()
            if most < least:
                least, centre = most, tried
            weights, prices, value = self._average()
            values.append(value)
            enough = _AT_PRICES * aim.scale
            # Rows are chosen by what is expected of histories and W is what people have, so the gap need not close.
            if least - value <= enough or (number >= _PATIENCE and value - values[-1 - _PATIENCE] <= enough):
                break
        return weights

    def _charged(self, gains: FloatArray, prices: _Prices) -> FloatArray:
        """Gains less what an output costs by what it does to the conditions on W and to its balance, (b, a)."""
        aim = self._aim
        p = aim.shares

        def each(rows: FloatArray) -> FloatArray:
            return np.divide(rows, p, out=np.zeros_like(rows), where=p > 0)

        charged = gains - prices.conditions @ each(self._conditions)
        np.subtract.at(charged, self._cut, prices.cuts[:, None] * each(self._cuts))
        if aim.balanced is not None:
            charged += np.outer(prices.balance / aim.balanced[aim.balanced > 0], each(aim.balanced))
        return np.asarray(charged)

    def _effective(self, library: FloatArray, assigned: IntArray) -> FloatArray:
        """What parts of the histories add to W(y|x), with their shares among the people of each input, (q, b, a)."""
        observed, parts = self._observed, self._parts
        places = np.searchsorted(self._status.nodes, observed.nodes)
        channels, number = assigned[places], int(parts.max()) + 1
        people = np.zeros((number, len(library), len(observed.joint.inputs)))
        np.add.at(people, (parts[places], channels, observed.inputs), observed.chosen_for)
        total = people.sum(axis=(0, 1))
        spoken = np.einsum("qna,nba->qba", people, library)
        return np.asarray(
            np.divide(
                spoken, total, out=np.repeat(library.mean(axis=0)[None] / number, number, axis=0), where=total > 0
            )
        )

    def _average(self) -> tuple[FloatArray, _Prices, float]:
        """The weights (n, q) whose average is best and keeps what it has to; their prices, and its value."""
        from scipy.optimize import linprog
        from scipy.sparse import csr_array

        aim, cut, pool = self._aim, self._cut, self._pool
        count, number, outputs = len(pool), *pool[0].conditions.shape[:2]
        values = np.concatenate([found.value for found in pool])
        # An output's conditions, by its own probability, so that the solver's tolerance is relative to it.
        likely = np.maximum(np.array([found.likely for found in pool]).max(axis=0), 1e-12)
        of_all = np.array([found.conditions for found in pool]) / likely[:, None]
        of_some = np.zeros((count, number, 0))
        if len(cut):
            said = np.array([self._said(found)[:, cut] for found in pool])
            of_some = np.einsum("nqma,ma->nqm", said, self._cuts) / likely[cut]
        table = np.concatenate([of_all.reshape(count, number, -1), of_some], axis=2) + _ROOM / number
        # What tells nothing meets every condition, or it could not be met at all.
        table[:outputs] -= np.maximum(table[:outputs].sum(axis=1, keepdims=True), 0.0) / number
        equal = np.tile(np.eye(number), count)
        if aim.balanced is not None:
            wanted = aim.balanced[aim.balanced > 0]
            balance = np.array([found.balance for found in pool]) / wanted
            equal = np.vstack([equal, balance.reshape(-1, outputs).T])
        # The stubs say that there may be no solution, which the status says.
        solved: Any = linprog
        for method in ("highs-ds", "highs-ipm"):
            result = solved(
                -values,
                A_ub=csr_array(table.reshape(count * number, -1).T),
                b_ub=np.zeros(table.shape[2]),
                A_eq=csr_array(equal),
                b_eq=np.ones(len(equal)),
                method=method,
            )
            # Where the conditions are equations but for rounding, one method may give up what the other one solves.
            if result.status == 0:
                break
        else:
            return self._constants(values.reshape(count, number), cut)
        prices = np.maximum(-result.ineqlin.marginals, 0.0)
        of_rows = prices[: len(prices) - len(cut)].reshape(outputs, -1) / likely[:, None]
        of_balance = np.zeros(outputs) if aim.balanced is None else np.asarray(result.eqlin.marginals[number:])
        return (
            np.maximum(result.x, 0.0).reshape(count, number),
            _Prices(of_rows, prices[len(prices) - len(cut) :] / likely[cut], of_balance),
            float(-result.fun),
        )

    def _constants(self, values: FloatArray, cut: IntArray) -> tuple[FloatArray, _Prices, float]:
        """An average of constant rows, for values (n, q) of all rows: it keeps whatever has to be kept.

        Where conditions are equations it may be all that there is, and rounding can hide it from a solver.
        """
        weights = np.zeros_like(values)
        if self._aim.balanced is None:
            weights[int(values[: self._outputs].sum(axis=1).argmax())] = 1.0
        else:
            weights[: self._outputs] = self._aim.balanced[self._aim.balanced > 0, None]
        nothing = np.zeros(self._outputs)
        prices = _Prices(np.zeros((self._outputs, len(self._conditions))), np.zeros(len(cut)), nothing)
        return weights, prices, float((weights * values).sum())


def constants_needed(conditions: FloatArray, channel: FloatArray, balanced: FloatArray | None = None) -> FloatArray:
    """How much of a constant row each output of a channel (b, a) needs to keep what it has to; (b,).

    These are conditions (k, a), and balance for a distribution of the inputs (a,), whose outputs are those of its
    inputs that occur.
    """
    missed, room = channel @ conditions.T, np.maximum(-conditions.sum(axis=1), 1e-300)
    needed = np.asarray(np.maximum(missed / room, 0.0).max(axis=1, initial=0.0))
    if balanced is None:
        return needed
    distribution, wanted = channel @ balanced + needed, balanced[balanced > 0]
    # Whoever has too much stays as they are, and all others get more.
    return np.asarray(needed + np.maximum((distribution / wanted).max() * wanted - distribution, 0.0))
