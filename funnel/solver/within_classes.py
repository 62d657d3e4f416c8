"""Within classes: channels of a secret and a class that read the secret only of a record which keeps its class.

A published class then is as likely for every secret of a record, so that all columns which follow from the class of a
record are right on average, whatever becomes of the secret (METHOD 17). Of all channels these are few enough that one
linear programme finds the best.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from funnel.alphabet import CLASS_COLUMN
from funnel.errors import SolverError
from funnel.guarantees.base import Guarantee
from funnel.guarantees.reading import reads_secret
from funnel.joint import FloatArray, IntArray, Joint
from funnel.progress import Progress
from funnel.solver.budget import Budget, Ended
from funnel.solver.conditions import Conditions
from funnel.solver.integer_balance import in_balance
from funnel.solver.lp import Prices, sparse_programme

_ROUNDS = 500
# Conditions broken by less are none, and rows of a programme in which every entry is smaller ask for nothing.
_BROKEN, _NOTHING = 1e-9, 1e-12
# The least part of the gap that is spent on moving channels inside of sets.
_ENOUGH = 0.5


class Found(NamedTuple):
    """The best channel of its kind.

    Attributes
    ----------
    channel : ndarray, shape (n, n)
        Between the values that occur, in balance.
    bound : float
        No channel of the kind is worth more.
    size : int
        Variables and conditions of the programme.
    ended : "work", "clock", "interrupt" or None
        What ended the search before its end.
    """

    channel: FloatArray
    bound: float
    size: int
    ended: Ended | None


def reads_secret_and_class(joint: Joint) -> bool:
    """Whether a channel for this distribution publishes the secret, and the class of a whole record."""
    return reads_secret(joint) and joint.inputs.columns[-1] == CLASS_COLUMN


def within_classes(
    joint: Joint,
    guarantee: Guarantee,
    worth: FloatArray,
    margin: float,
    gap: float,
    budget: Budget,
    progress: Progress,
) -> Found:
    """The best invariant channel over (secret, class) in which a record changes its class unseen by its secret.

    Parameters
    ----------
    joint : Joint
        Over values (s, k), n of which occur.
    guarantee : Guarantee
        Linear in the rows of a channel.
    worth : ndarray, shape (a,)
        What values count that stay as they are, summing to 1; 0 for those that nobody has.
    margin : float
        The relatively smaller budget that is optimised for.
    gap : float
        Requested distance from the bound.
    budget : Budget
    progress : callable

    Raises
    ------
    SolverError
        If a linear programme fails.

    Notes
    -----
    Variables are ``D_k(t|s)``, staying in class k with the secret t, and ``m(t, k|g)``, coming there from class g, the
    same for all s. What the guarantee asks of output (t, k) is linear in those that lead there. For prices π >=
    0 of conditions and β of equations no such channel is worth more than ``β · values + Σ_j max(0, reduced cost of
    variable j)``, since variables are probabilities: a bound whatever the solver's tolerances are.
    """
    return _Search(joint, guarantee, worth[joint.p_input > 0], margin, budget).run(gap, progress)


@dataclass(frozen=True, eq=False)
class _Variables:
    """What the programme is about: the output of each variable, and the values for which it is P(output | value).

    Attributes
    ----------
    distribution : ndarray, shape (n,)
    of_class : ndarray of int, shape (n,)
        The class of every value.
    """

    distribution: FloatArray
    of_class: IntArray

    @classmethod
    def of(cls, joint: Joint) -> _Variables:
        seen = joint.p_input > 0
        names = [symbol[-1] for symbol, there in zip(joint.inputs.symbols, seen, strict=True) if there]
        return cls(joint.p_input[seen], np.unique(names, return_inverse=True)[1].astype(np.int64))

    @cached_property
    def stays(self) -> tuple[IntArray, IntArray]:
        """Values (y, x) of one class."""
        y, x = np.nonzero(self.of_class[:, np.newaxis] == self.of_class)
        return y, x

    @cached_property
    def moves(self) -> tuple[IntArray, IntArray]:
        """Values y and other classes g."""
        y, g = np.nonzero(self.of_class[:, np.newaxis] != np.arange(self.of_class.max() + 1))
        return y, g

    @cached_property
    def entries(self) -> tuple[IntArray, IntArray, IntArray]:
        """Of every entry of a channel that is not zero: its variable, its output and its value."""
        (y, x), (into, g) = self.stays, self.moves
        move, value = np.nonzero(g[:, np.newaxis] == self.of_class)
        variable = np.concatenate([np.arange(len(y)), len(y) + move])
        return variable, np.concatenate([y, into[move]]), np.concatenate([x, value])

    def __len__(self) -> int:
        return len(self.stays[0]) + len(self.moves[0])

    def channel(self, found: FloatArray) -> FloatArray:
        """T (n, n) of the variables."""
        variable, y, x = self.entries
        channel = np.zeros((len(self.distribution),) * 2)
        channel[y, x] = found[variable]
        return channel

    def equations(self) -> tuple[Any, FloatArray]:
        """Every value goes somewhere, and every output is as frequent as its value."""
        variable, y, x = self.entries
        n = len(self.distribution)
        ones = (x, variable, np.ones(len(x)))
        balance = (n + y, variable, self.distribution[x] / self.distribution[y])
        return _sparse((2 * n, len(self)), ones, balance), np.ones(2 * n)

    def conditions(self, outputs: IntArray, spaces: FloatArray) -> Any:
        """Half-spaces (k, n) of masses P(·, y), one for each of the outputs (k,), in the variables; relative to p_y."""
        variable, y, x = self.entries
        order = np.argsort(y, kind="stable")
        ends = np.searchsorted(y[order], np.arange(len(self.distribution) + 1))
        parts = []
        for row, (output, space) in enumerate(zip(outputs.tolist(), spaces, strict=True)):
            some = order[ends[output] : ends[output + 1]]
            parts.append(
                (
                    np.full(len(some), row),
                    variable[some],
                    space[x[some]] * self.distribution[x[some]] / self.distribution[output],
                )
            )
        return _sparse((len(outputs), len(self)), *parts)


class _Search:
    """Rounds of the linear programme, with further conditions of sets in each."""

    def __init__(self, joint: Joint, guarantee: Guarantee, worth: FloatArray, margin: float, budget: Budget) -> None:
        self._variables, self._worth, self._budget = _Variables.of(joint), worth, budget
        self._asked = Conditions.of(joint, guarantee, margin)
        n = len(worth)
        self._outputs = np.repeat(np.arange(n), len(self._asked.inside))
        inside, fixed = (
            self._variables.conditions(self._outputs, np.tile(spaces, (n, 1)))
            for spaces in (self._asked.inside, self._asked.fixed)
        )
        # What takes from no variable is met by all channels.
        told = np.flatnonzero(inside.max(axis=1).toarray().ravel() > _NOTHING)
        self._inside, self._fixed = inside[told], fixed[told]
        y, x = self._variables.stays
        self._gain = np.concatenate([np.where(y == x, worth[x], 0.0), np.zeros(len(self._variables.moves[0]))])
        self._equations = self._variables.equations()

    def run(self, gap: float, progress: Progress) -> Found:
        distribution = self._variables.distribution
        constant = float(self._worth @ distribution)
        bound, best, inside = 1.0, np.outer(distribution, np.ones(len(distribution))), constant
        for _ in range(_ROUNDS):
            found = self._solved()
            if found is None:
                if self._budget.ended_by is None and not self._budget.fell_short:
                    raise SolverError("the linear programme of the invariant channel failed; change epsilon slightly")
                break
            bound = min(bound, self._proven(found))
            channel = in_balance(self._variables.channel(found.values) * distribution, distribution)
            spaces, shares = self._asked.beyond(channel)
            # All outputs alike, so that a class stays as likely for every secret.
            share = float(shares.max(initial=0.0))
            worth = (1 - share) * float(self._worth @ np.diagonal(channel)) + share * constant
            if worth > inside:
                inside, best = worth, (1 - share) * channel + share * distribution[:, np.newaxis]
            progress(f"{inside:.5f} of the records unchanged, at most {bound:.5f}", 0, None)
            if not self._know(spaces, channel * distribution) or bound - inside <= _ENOUGH * gap:
                return Found(best, bound, self._size, None)
            if self._budget.ended_by is not None:
                break
        else:
            raise SolverError("the search for an invariant channel does not end; change epsilon slightly")
        return Found(best, bound, self._size, self._budget.ended_by or "work")

    @property
    def _size(self) -> int:
        return len(self._variables) + int(self._inside.shape[0])

    def _solved(self) -> Prices | None:
        matrix, values = self._equations
        return sparse_programme(self._gain, self._inside, matrix, values, self._budget, (0.0, 1.0))

    def _proven(self, found: Prices) -> float:
        """What no channel exceeds, by the prices of a programme."""
        matrix, values = self._equations
        reduced = self._gain - self._fixed.T @ found.conditions - matrix.T @ found.equations
        return float(found.equations @ values + np.maximum(reduced, 0.0).sum())

    def _know(self, spaces: FloatArray, flows: FloatArray) -> bool:
        """Ask for half-spaces wherever flows break them; whether they break any."""
        output, space = np.nonzero(flows @ spaces.T > _BROKEN * self._variables.distribution[:, np.newaxis])
        if not len(output):
            return False
        from scipy.sparse import vstack

        rows = self._variables.conditions(output, spaces[space])
        self._inside, self._fixed = (vstack([known, rows], format="csr") for known in (self._inside, self._fixed))
        return True


def _sparse(shape: tuple[int, int], *parts: tuple[Any, Any, Any]) -> Any:
    """A sparse matrix of entries given by rows, columns and values."""
    from scipy.sparse import csr_array

    rows, columns, values = (np.concatenate(some) for some in zip(*parts, strict=True))
    return csr_array((values, (rows, columns)), shape=shape)
