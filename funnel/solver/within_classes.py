"""Within classes: channels of a secret and a column in which the secret is drawn anew where that column changes.

Of all channels under attribute protection these are few enough that one linear programme finds the best: where a search
over all pairs of values would take minutes, it begins here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from funnel.guarantees.attribute import Attribute
from funnel.guarantees.base import Guarantee
from funnel.guarantees.reading import reads_secret
from funnel.joint import FloatArray, IntArray, Joint
from funnel.solver.budget import Budget
from funnel.solver.lp import sparse_optimum


def within_classes(
    joint: Joint, guarantee: Guarantee, worth: FloatArray, margin: float, budget: Budget
) -> FloatArray | None:
    """The best channel in which a record that changes its class k draws its secret from P(s | k) there.

    Parameters
    ----------
    joint : Joint
        Over values (s, k), n of which occur.
    guarantee : Guarantee
    worth : ndarray, shape (n,)
        What values count that stay as they are.
    margin : float
        The relatively smaller budget that is kept.
    budget : Budget

    Returns
    -------
    ndarray, shape (n, n), or None
        Flows P(x, y) at [y, x]; None where it is no plain attribute protection beside one other column, or the
        programme does not end within the budget.

    Notes
    -----
    Variables are the probabilities ``m_kc`` of going from class c to k, and ``D_k(t|s)`` of staying in k with the
    secret t: k² + k c² of them for c secrets. Label LDP is ``D_k(t|s) <= e^ε D_k(t|s')``, and LIP asks of every output
    (t, k) that ``p_ks D_k(t|s) + p_t|k Σ_c m_kc p_cs`` is between e^-ε and e^ε times ``p_s p_kt``.
    """
    if type(guarantee) is not Attribute or not reads_secret(joint) or joint.bounds is not None:
        return None
    if len(joint.inputs.columns) != len(joint.secret.columns) + 1:
        return None
    return _Programme.of(joint, worth).flows(guarantee.epsilon * (1 - margin), budget)


@dataclass(frozen=True, eq=False)
class _Programme:
    """The values by their secrets and classes: probabilities and worth, shape (n,) each."""

    law: FloatArray
    worth: FloatArray
    secret: IntArray
    of_class: IntArray

    @classmethod
    def of(cls, joint: Joint, worth: FloatArray) -> _Programme:
        width = len(joint.secret.columns)
        classes = {symbol: k for k, symbol in enumerate(dict.fromkeys(x[width:] for x in joint.inputs.symbols))}
        secret = np.array([joint.secret.index(x[:width]) for x in joint.inputs.symbols])
        of_class = np.array([classes[x[width:]] for x in joint.inputs.symbols])
        seen = joint.p_input > 0
        return cls(joint.p_input[seen], worth, secret[seen], of_class[seen])

    @cached_property
    def _table(self) -> FloatArray:
        """P(s, k), shape (c, classes)."""
        table = np.zeros((int(self.secret.max()) + 1, int(self.of_class.max()) + 1))
        table[self.secret, self.of_class] = self.law
        return table

    @cached_property
    def _stays(self) -> tuple[IntArray, IntArray]:
        """The values (y, x) of one class: what D_k(t|s) are about."""
        y, x = np.nonzero(self.of_class[:, np.newaxis] == self.of_class)
        return y, x

    @cached_property
    def _moves(self) -> tuple[IntArray, IntArray]:
        """The classes (k, c) that m_kc are about."""
        into, out = np.nonzero(~np.eye(self._table.shape[1], dtype=np.bool_))
        return into, out

    def flows(self, epsilon: float, budget: Budget) -> FloatArray | None:
        """The best flows, if they are found."""
        (y, x), (into, out) = self._stays, self._moves
        n, stays, moves = len(self.law), len(y), len(into)
        gain = np.concatenate([np.where(y == x, self.worth[x], 0.0), np.zeros(moves + 1)])
        values = np.ones(2 * n + 1)
        found = sparse_optimum(gain, self._conditions(epsilon), self._equations(), values, budget)
        if found is None:
            return None
        channel = np.zeros((n, n))
        channel[y, x] = found[:stays]
        between = np.zeros((self._table.shape[1],) * 2)
        between[into, out] = found[stays : stays + moves]
        drawn = self.law / self._table.sum(axis=0)[self.of_class]
        channel += drawn[:, np.newaxis] * between[self.of_class[:, np.newaxis], self.of_class]
        return np.asarray(channel * self.law)

    def _equations(self) -> Any:
        """Every value goes somewhere, every output is as frequent as its value, and the last variable is 1."""
        (y, x), (into, out) = self._stays, self._moves
        n, stays, moves = len(self.law), len(y), len(into)
        sizes = self._table.sum(axis=0)
        leaving, of = np.nonzero(self.of_class[:, np.newaxis] == out)
        coming, to = np.nonzero(self.of_class[:, np.newaxis] == into)
        last = stays + moves
        return _sparse(
            (2 * n + 1, last + 1),
            (x, np.arange(stays), np.ones(stays)),
            (leaving, stays + of, np.ones(len(of))),
            (n + y, np.arange(stays), self.law[x] / self.law[y]),
            # P(t | k) p_c / p_kt is p_c / p_k.
            (n + coming, stays + to, sizes[out[to]] / sizes[into[to]]),
            ([2 * n], [last], [1.0]),
        )

    def _conditions(self, epsilon: float) -> Any:
        """Label LDP of what stays, and LIP of every output, up and down."""
        (y, x), (into, out) = self._stays, self._moves
        n, stays, moves = len(self.law), len(y), len(into)
        most, last = math.exp(epsilon), stays + moves
        first, second = np.nonzero((y[:, np.newaxis] == y) & (x[:, np.newaxis] != x))
        pairs = np.arange(len(first))
        prior, sizes = self._table.sum(axis=1), self._table.sum(axis=0)
        secrets = len(prior)
        coming, to = np.nonzero(self.of_class[:, np.newaxis] == into)
        parts = [(pairs, first, np.ones(len(pairs))), (pairs, second, np.full(len(pairs), -most))]
        row = len(pairs)
        for s in range(secrets):
            mine = np.flatnonzero(self.secret[x] == s)
            # Relative to p_s p_kt, so that tolerances are alike for rare ones.
            kept = self.law[x[mine]] / (prior[s] * self.law[y[mine]])
            moved = self._table[s, out[to]] / (prior[s] * sizes[into[to]])
            for sign, limit in ((1.0, most), (-1.0, 1 / most)):
                parts += [
                    (row + y[mine], mine, sign * kept),
                    (row + coming, stays + to, sign * moved),
                    (row + np.arange(n), np.full(n, last), np.full(n, -sign * limit)),
                ]
                row += n
        return _sparse((row, last + 1), *parts)


def _sparse(shape: tuple[int, int], *parts: tuple[Any, Any, Any]) -> Any:
    """A sparse matrix of entries given by rows, columns and values."""
    from scipy.sparse import csr_array

    rows, columns, values = (np.concatenate(some) for some in zip(*parts, strict=True))
    return csr_array((values, (rows, columns)), shape=shape)
